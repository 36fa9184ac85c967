; An address space that libNVVM has not.
target triple = "nvptx64-nvidia-cuda"

define void @f(ptr addrspace(7) %p) {
  ret void
}
