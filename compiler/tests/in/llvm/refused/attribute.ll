; A parameter that the caller placed on its stack.
target triple = "nvptx64-nvidia-cuda"

define void @f(ptr byref(i32) align 4 %p) {
  ret void
}
