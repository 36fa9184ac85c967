; A function that may be undefined.
target triple = "nvptx64-nvidia-cuda"

declare extern_weak void @f()
