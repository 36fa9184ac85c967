; A stack slot in the local address space.
target triple = "nvptx64-nvidia-cuda"

define void @f() {
  %x = alloca i32, align 4, addrspace(5)
  ret void
}
