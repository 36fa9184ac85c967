; A store into constant memory.
@c = addrspace(4) constant i32 7
define ptx_kernel void @k(ptr %p, i32 %n, float %f, double %d, i64 %l) {
  store i32 %n, ptr addrspace(4) @c
  ret void
}

declare void @llvm.memset.p4.i64(ptr addrspace(4), i8, i64, i1)

define void @f() {
  call void @llvm.memset.p4.i64(ptr addrspace(4) @c, i8 0, i64 4, i1 false)
  %old = atomicrmw add ptr addrspace(4) @c, i32 1 monotonic
  ret void
}
