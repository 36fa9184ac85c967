; Launch bounds that are not numbers.
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k() "nvvm.maxntid"="many" {
  ret void
}
