; A call of a kernel.
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k(ptr %p) {
  ret void
}
define void @f(ptr %p) {
  call ptx_kernel void @k(ptr %p)
  ret void
}
