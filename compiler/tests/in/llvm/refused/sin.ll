; An intrinsic that needs libdevice.
target triple = "nvptx64-nvidia-cuda"

declare float @llvm.sin.f32(float)
define float @f(float %x) {
  %r = call float @llvm.sin.f32(float %x)
  ret float %r
}
