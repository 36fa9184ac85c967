; libNVVM takes the floor of the quotient.
target triple = "nvptx64-nvidia-cuda"

define float @f(float %x) {
  %r = frem float %x, 3.0
  ret float %r
}
