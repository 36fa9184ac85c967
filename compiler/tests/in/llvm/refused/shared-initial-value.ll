; Shared memory has no initial value.
target triple = "nvptx64-nvidia-cuda"

@s = internal addrspace(3) global i32 0, align 4
