; An atomic operation that PTX has not.
target triple = "nvptx64-nvidia-cuda"

define void @f(ptr %p, float %x) {
  %old = atomicrmw fmax ptr %p, float %x syncscope("device") monotonic
  ret void
}
