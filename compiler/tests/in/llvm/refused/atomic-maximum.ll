; An atomic operation that PTX lacks.
target triple = "nvptx64-nvidia-cuda"

define void @f(ptr %p, float %x) {
  %old = atomicrmw fmax ptr %p, float %x syncscope("device") monotonic
  ret void
}
