; An address space that libNVVM lacks.
target triple = "nvptx64-nvidia-cuda"

define void @f(ptr addrspace(7) %p) {
  ret void
}
