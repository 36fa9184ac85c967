; libNVVM would forget it; of a function's, ptxas rejects what it makes.
target triple = "nvptx64-nvidia-cuda"

@g = addrspace(1) global i32 0, align 4
@h = alias i32, ptr addrspace(1) @g
