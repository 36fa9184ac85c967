; An atomic operation on a byte.
target triple = "nvptx64-nvidia-cuda"

define void @f(ptr %p) {
  %old = atomicrmw add ptr %p, i8 1 syncscope("device") monotonic
  ret void
}
