; libNVVM rounds the quotient down.
target triple = "nvptx64-nvidia-cuda"

define float @f(float %x) {
  %r = frem float %x, 3.0
  ret float %r
}
