; A convention of another target.
target triple = "nvptx64-nvidia-cuda"

define amdgpu_kernel void @k(ptr %p) {
  ret void
}
