; A section.
target triple = "nvptx64-nvidia-cuda"

@t = addrspace(1) global i32 0, section "mine", align 4
