; A stack slot in local memory by name.
target triple = "nvptx64-nvidia-cuda"

define void @f() {
  %x = alloca i32, align 4, addrspace(5)
  ret void
}
