; LLVM's intrinsics: kept, renamed, dropped, and rewritten as instructions.
target triple = "nvptx64-nvidia-cuda"

define i32 @integers(i32 %a, i32 %b, i64 %c, i8 %d, i1 %e) {
  %1 = call i32 @llvm.smin.i32(i32 %a, i32 %b)
  %2 = call i32 @llvm.umax.i32(i32 %1, i32 %b)
  %3 = call i32 @llvm.abs.i32(i32 %2, i1 true)
  %4 = call i32 @llvm.fshl.i32(i32 %3, i32 %a, i32 %b)
  %5 = call i64 @llvm.fshr.i64(i64 %c, i64 %c, i64 7)
  %6 = call i32 @llvm.ctlz.i32(i32 %4, i1 false)
  %7 = call i64 @llvm.cttz.i64(i64 %5, i1 true)
  %8 = call i8 @llvm.ctpop.i8(i8 %d)
  %9 = call i32 @llvm.bitreverse.i32(i32 %6)
  %10 = call i64 @llvm.bswap.i64(i64 %7)
  %11 = call i32 @llvm.sadd.sat.i32(i32 %9, i32 %a)
  %12 = call i32 @llvm.usub.sat.i32(i32 %11, i32 %b)
  %13 = call { i32, i1 } @llvm.smul.with.overflow.i32(i32 %12, i32 %b)
  %14 = extractvalue { i32, i1 } %13, 0
  %15 = call { i8, i1 } @llvm.uadd.with.overflow.i8(i8 %8, i8 %d)
  %16 = extractvalue { i8, i1 } %15, 1
  %17 = call i8 @llvm.scmp.i8.i32(i32 %14, i32 %a)
  %18 = call i8 @llvm.ucmp.i8.i64(i64 %10, i64 %c)
  %19 = call i1 @llvm.expect.i1(i1 %16, i1 true)
  %20 = call i1 @llvm.expect.with.probability.i1(i1 %19, i1 true, double 0.9)
  %21 = call i1 @llvm.is.constant.i32(i32 %a)
  call void @llvm.assume(i1 %e)
  call void @llvm.assume(i1 true) [ "align"(ptr null, i64 8) ]
  %22 = or i1 %20, %21
  %23 = zext i1 %22 to i32
  %24 = sext i8 %17 to i32
  %25 = sext i8 %18 to i32
  %26 = add i32 %23, %24
  %27 = add i32 %26, %25
  ret i32 %27
}

define double @floats(float %x, double %y, half %h) {
  %root = call contract double @llvm.sqrt.f64(double %y)
  %fast_root = call fast double @llvm.sqrt.f64(double %root)
  %1 = call float @llvm.sqrt.f32(float %x)
  %2 = call float @llvm.fma.f32(float %1, float %x, float 1.0)
  %3 = call contract float @llvm.fmuladd.f32(float %2, float %x, float %1)
  %4 = call float @llvm.minnum.f32(float %3, float %x)
  %5 = call float @llvm.fabs.f32(float %4)
  %6 = call float @llvm.floor.f32(float %5)
  %7 = call float @llvm.rint.f32(float %6)
  %8 = call float @llvm.round.f32(float %7)
  %9 = call double @llvm.ceil.f64(double %y)
  %10 = call double @llvm.trunc.f64(double %9)
  %11 = call double @llvm.copysign.f64(double %10, double %y)
  %12 = call half @llvm.fabs.f16(half %h)
  %13 = call half @llvm.trunc.f16(half %12)
  %14 = call double @llvm.maxnum.f64(double %11, double %y)
  %15 = call double @llvm.round.f64(double %14)
  %16 = fpext float %8 to double
  %17 = fpext half %13 to double
  %18 = fadd double %15, %16
  %19 = fadd double %18, %17
  ret double %19
}

define i64 @saturating(float %x, double %y, half %h) {
  %1 = call i32 @llvm.fptosi.sat.i32.f32(float %x)
  %2 = call i8 @llvm.fptosi.sat.i8.f32(float %x)
  %3 = call i16 @llvm.fptoui.sat.i16.f64(double %y)
  %4 = call i64 @llvm.fptoui.sat.i64.f64(double %y)
  %5 = call i32 @llvm.fptoui.sat.i32.f16(half %h)
  %6 = sext i32 %1 to i64
  %7 = sext i8 %2 to i64
  %8 = zext i16 %3 to i64
  %9 = zext i32 %5 to i64
  %10 = add i64 %6, %7
  %11 = add i64 %8, %9
  %12 = add i64 %10, %11
  %13 = add i64 %12, %4
  ret i64 %13
}

define ptr @marks(ptr %p, i32 %x) {
  %1 = call ptr @llvm.launder.invariant.group.p0(ptr %p)
  %2 = call ptr @llvm.ptrmask.p0.i64(ptr %1, i64 -16)
  %3 = freeze i32 %x
  %4 = freeze ptr %2
  %5 = freeze float undef
  %6 = freeze i8 3
  store i32 %3, ptr %4, align 4
  store float %5, ptr %4, align 4
  store i8 %6, ptr %4, align 1
  %7 = call i64 @llvm.readcyclecounter()
  store i64 %7, ptr %4, align 8
  call void @llvm.donothing()
  call void @llvm.prefetch.p0(ptr %p, i32 0, i32 3, i32 1)
  call void @llvm.debugtrap()
  call void @llvm.ubsantrap(i8 1)
  ret ptr %4
}
