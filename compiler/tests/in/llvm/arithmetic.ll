; Binary operations with their flags, casts, comparisons, negation, wide integers.
target triple = "nvptx64-nvidia-cuda"

define i64 @integers(i32 %a, i32 %b, i64 %c, i128 %w) {
  %1 = add nuw i32 %a, %b
  %2 = sub nsw i32 %1, 7
  %3 = mul nuw nsw i32 %2, %b
  %4 = udiv exact i32 %3, 3
  %5 = sdiv i32 %4, %b
  %6 = urem i32 %5, 10
  %7 = srem i32 %6, %b
  %8 = shl nuw i32 %7, 3
  %9 = lshr exact i32 %8, 1
  %10 = ashr i32 %9, %a
  %11 = and i32 %10, 255
  %12 = or disjoint i32 %11, 256
  %13 = xor i32 %12, -1
  %14 = zext nneg i32 %13 to i64
  %15 = sext i32 %13 to i64
  %16 = trunc nuw nsw i64 %15 to i16
  %17 = sext i16 %16 to i64
  %18 = add i64 %14, %17
  %19 = add i128 %w, 340282366920938463463374607431768211455
  %20 = mul i128 %19, 170141183460469231731687303715884105727
  %21 = lshr i128 %20, 64
  %22 = trunc i128 %21 to i64
  %23 = add i64 %18, %22
  ret i64 %23
}

define double @floats(float %a, float %b, double %c, half %h, i32 %i) {
  %1 = fadd fast float %a, %b
  %2 = fsub nnan ninf float %1, 1.5
  %3 = fmul reassoc nsz arcp contract afn float %2, %a
  %4 = fdiv float %3, %b
  %5 = fneg float %4
  %6 = fneg nsz half %h
  %7 = fpext half %6 to float
  %8 = fptrunc double %c to float
  %9 = fadd float %7, %8
  %10 = fadd float %5, %9
  %11 = fptosi float %10 to i32
  %12 = fptoui float %10 to i64
  %13 = sitofp i32 %11 to double
  %14 = uitofp nneg i64 %12 to double
  %15 = fadd double %13, %14
  %16 = bitcast double %15 to i64
  %17 = bitcast i64 %16 to <2 x i32>
  %18 = extractelement <2 x i32> %17, i32 0
  %19 = sitofp i32 %18 to double
  %20 = fneg double %19
  ret double %20
}

define i32 @comparisons(i32 %a, i32 %b, float %x, float %y, ptr %p, ptr %q) {
  %1 = icmp eq i32 %a, %b
  %2 = icmp samesign ult i32 %a, %b
  %3 = icmp sge i32 %a, %b
  %4 = fcmp oeq float %x, %y
  %5 = fcmp nnan une float %x, %y
  %6 = fcmp uno float %x, 0.0
  %7 = fcmp true float %x, %y
  %8 = icmp ne ptr %p, %q
  %9 = icmp ugt ptr %p, null
  %10 = xor i1 %1, %2
  %11 = select i1 %3, i1 %4, i1 %10
  %12 = select i1 %11, i1 %5, i1 false
  %13 = select i1 %12, i1 true, i1 %6
  %14 = and i1 %13, %7
  %15 = or i1 %8, %9
  %16 = select fast i1 %15, float %x, float %y
  %17 = fptosi float %16 to i32
  %18 = zext i1 %14 to i32
  %19 = add i32 %17, %18
  ret i32 %19
}
