; An atomic access that would become several.
target triple = "nvptx64-nvidia-cuda"

define void @f(ptr %p) {
  %v = load atomic i32, ptr %p monotonic, align 2
  ret void
}
