; A function that may not be there.
target triple = "nvptx64-nvidia-cuda"

declare extern_weak void @f()
