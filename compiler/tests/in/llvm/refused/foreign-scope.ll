; A scope of another target.
target triple = "nvptx64-nvidia-cuda"

define void @f(ptr %p) {
  fence syncscope("agent") seq_cst
  ret void
}
