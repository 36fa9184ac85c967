; A vector of unknown length.
target triple = "nvptx64-nvidia-cuda"

define void @f(<vscale x 4 x i32> %x) {
  ret void
}
