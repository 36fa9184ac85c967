; libNVVM would ignore it.
target triple = "nvptx64-nvidia-cuda"

module asm ".visible .func f() { ret; }"
