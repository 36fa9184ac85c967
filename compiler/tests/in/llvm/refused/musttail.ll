; A guarantee that PTX cannot give.
target triple = "nvptx64-nvidia-cuda"

declare void @g(ptr)
define void @f(ptr %p) {
  musttail call void @g(ptr %p)
  ret void
}
