; Structures as values: built, taken apart, passed, returned, and in memory.
target triple = "nvptx64-nvidia-cuda"

%inner = type { i8, float }
%outer = type { i32, %inner, [2 x i16], ptr }
%empty = type {}

define %outer @build(i32 %a, float %f, ptr %p) {
  %1 = insertvalue %outer poison, i32 %a, 0
  %2 = insertvalue %outer %1, float %f, 1, 1
  %3 = insertvalue %outer %2, [2 x i16] [i16 1, i16 2], 2
  %4 = insertvalue %outer %3, ptr %p, 3
  %5 = insertvalue %outer %4, i16 9, 2, 1
  ret %outer %5
}

define float @take(%outer %o) {
  %1 = extractvalue %outer %o, 1
  %2 = extractvalue %inner %1, 1
  %3 = extractvalue %outer %o, 3
  store %inner %1, ptr %3, align 4
  %4 = call %outer @build(i32 1, float %2, ptr %3)
  %5 = extractvalue %outer %4, 1, 1
  %6 = extractvalue %outer %4, 3
  %7 = load { i8, float }, ptr %6, align 4
  %8 = extractvalue { i8, float } %7, 1
  %e = load %empty, ptr %6, align 1
  store %empty %e, ptr %6, align 1
  %9 = select i1 true, %outer %4, %outer zeroinitializer
  %10 = extractvalue %outer %9, 1, 1
  %11 = fadd float %8, %5
  %12 = fadd float %11, %10
  ret float %12
}
