; A variable number of arguments.
target triple = "nvptx64-nvidia-cuda"

declare i32 @printf(ptr, ...)
define void @f(ptr %p) {
  %n = call i32 (ptr, ...) @printf(ptr %p, i32 3)
  ret void
}
