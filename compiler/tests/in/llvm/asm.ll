; Assembly: operands, several results, text that needs escapes; calls through pointers.
target triple = "nvptx64-nvidia-cuda"

define i32 @assembly(i32 %x, i64 %l, ptr %p) {
  %1 = call i32 asm "bfe.u32 $0, $1, 4, 8;", "=r,r"(i32 %x)
  %2 = call { i32, i32 } asm sideeffect "mov.b64 {$0, $1}, $2;\09// \22both\22", "=r,=r,l"(i64 %l) #0
  %3 = extractvalue { i32, i32 } %2, 1
  call void asm sideeffect "st.global.u32 [$0], $1;", "l,r,~{memory}"(ptr %p, i32 %3)
  call void asm sideeffect "", "~{memory}"()
  %4 = add i32 %1, %3
  ret i32 %4
}

define i32 @through_pointers(ptr %f, i32 %x, ptr %where) {
  %1 = call i32 %f(i32 %x)
  %2 = load ptr, ptr %where, align 8
  %3 = call fastcc float %2(ptr byval([8 x i8]) align 4 %where, i32 %1)
  %4 = call i32 @through_pointers(ptr @other, i32 1, ptr null)
  call void @other(i64 3)
  %5 = call i32 inttoptr (i64 4096 to ptr)(i32 %4)
  %6 = fptosi float %3 to i32
  %7 = add i32 %5, %6
  ret i32 %7
}

declare i32 @other(i32)

attributes #0 = { convergent nounwind }

; Predicates, as Triton passes them.
define void @predicates(ptr addrspace(1) %p, i32 %x, i1 %c) {
  call void asm sideeffect "@$2 st.global.u32 [ $0 + 0 ], $1;", "l,r,b"(ptr addrspace(1) %p, i32 %x, i1 %c)
  %r = call i32 asm sideeffect "mov.u32 $0, 0;\0A\09@!$2 ld.global.u32 $0, [$1];", "=r,l,b"(ptr addrspace(1) %p, i1 %c)
  store i32 %r, ptr addrspace(1) %p
  ret void
}
