; A barrier that no block has.
define ptx_kernel void @k(ptr %p, i32 %n, float %f, double %d, i64 %l) {
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 99)
  ret void
}
declare void @llvm.nvvm.barrier.cta.sync.aligned.all(i32)
