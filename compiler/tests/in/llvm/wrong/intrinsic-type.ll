; LLVM's verifier names only the function.
declare i64 @llvm.nvvm.read.ptx.sreg.tid.x()

define ptx_kernel void @k(ptr %p) {
  %x = call i64 @llvm.nvvm.read.ptx.sreg.tid.x()
  store i64 %x, ptr %p
  ret void
}
