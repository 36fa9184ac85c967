; libNVVM would drop it; for a function, ptxas rejects the output.
target triple = "nvptx64-nvidia-cuda"

@g = addrspace(1) global i32 0, align 4
@h = alias i32, ptr addrspace(1) @g
