; Intrinsics that a compiler lacks.
declare float @llvm.sin.f32(float)
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)
declare void @llvm.nvvm.tcgen05.fence.before.thread.sync()

define ptx_kernel void @k(ptr %p, float %f) {
  %stack = call ptr @llvm.stacksave.p0()
  %exact = call float @llvm.sin.f32(float %f)
  %fast = call afn float @llvm.sin.f32(float %f)
  store float %exact, ptr %p
  store float %fast, ptr %p
  call void @llvm.nvvm.tcgen05.fence.before.thread.sync()
  call void @llvm.stackrestore.p0(ptr %stack)
  ret void
}
