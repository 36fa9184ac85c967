; An indirect operand of assembly.
target triple = "nvptx64-nvidia-cuda"

define void @f(ptr %p) {
  call void asm sideeffect "ld.u32 $0, $1;", "=*m,*m"(ptr elementtype(i32) %p, ptr elementtype(i32) %p)
  ret void
}
