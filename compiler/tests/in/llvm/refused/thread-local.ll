; libNVVM would ignore it.
target triple = "nvptx64-nvidia-cuda"

@t = thread_local global i32 0, align 4
