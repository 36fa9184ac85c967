; A type that LLVM 7 lacks.
target triple = "nvptx64-nvidia-cuda"

define void @f(ptr %p) {
  %x = load bfloat, ptr %p, align 2
  store bfloat %x, ptr %p, align 2
  ret void
}
