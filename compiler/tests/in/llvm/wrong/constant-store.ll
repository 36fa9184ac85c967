; A store into constant memory.
@c = addrspace(4) constant i32 7
define ptx_kernel void @k(ptr %p, i32 %n, float %f, double %d, i64 %l) {
  store i32 %n, ptr addrspace(4) @c
  ret void
}
