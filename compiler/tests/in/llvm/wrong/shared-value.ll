; An initial value of shared memory, which tools drop.
@s = internal addrspace(3) global i32 7
define ptx_kernel void @k(ptr %p, i32 %n, float %f, double %d, i64 %l) {
  %v = load i32, ptr addrspace(3) @s
  store i32 %v, ptr %p
  ret void
}

@zero = internal addrspace(3) global [4 x float] zeroinitializer
@unset = internal addrspace(3) global float poison
