; Vectors: lanes, shuffles, arithmetic, comparisons, vectors of pointers, intrinsics lane by lane.
target triple = "nvptx64-nvidia-cuda"

define <4 x float> @lanes(<4 x float> %a, <2 x float> %b, i32 %i, float %f) {
  %1 = extractelement <4 x float> %a, i32 %i
  %2 = insertelement <4 x float> %a, float %f, i64 2
  %3 = insertelement <4 x float> poison, float %1, i32 0
  %4 = shufflevector <4 x float> %3, <4 x float> poison, <4 x i32> zeroinitializer
  %5 = shufflevector <4 x float> %2, <4 x float> %4, <2 x i32> <i32 1, i32 6>
  %6 = shufflevector <2 x float> %5, <2 x float> %b, <4 x i32> <i32 0, i32 poison, i32 2, i32 3>
  %7 = fadd contract <4 x float> %6, <float 1.0, float 0.5, float 0x3FB99999A0000000, float -0.0>
  %8 = fneg <4 x float> %7
  %9 = fcmp olt <4 x float> %8, zeroinitializer
  %10 = select <4 x i1> %9, <4 x float> %7, <4 x float> %8
  ret <4 x float> %10
}

define <2 x i32> @integers(<2 x i32> %a, <2 x i32> %b, <2 x half> %h, <2 x double> %d) {
  %1 = call <2 x i32> @llvm.smax.v2i32(<2 x i32> %a, <2 x i32> %b)
  %2 = call <2 x i32> @llvm.abs.v2i32(<2 x i32> %1, i1 false)
  %3 = call <2 x i32> @llvm.ctpop.v2i32(<2 x i32> %2)
  %4 = call <2 x i32> @llvm.uadd.sat.v2i32(<2 x i32> %3, <2 x i32> %b)
  %5 = call <2 x i32> @llvm.ssub.sat.v2i32(<2 x i32> %4, <2 x i32> %b)
  %6 = call <2 x half> @llvm.fabs.v2f16(<2 x half> %h)
  %7 = fptosi <2 x half> %6 to <2 x i32>
  %8 = add <2 x i32> %5, %7
  %9 = call <2 x i32> @llvm.fptosi.sat.v2i32.v2f64(<2 x double> %d)
  %10 = add <2 x i32> %8, %9
  %11 = freeze <2 x i32> %10
  ret <2 x i32> %11
}

define <4 x half> @halves(<4 x half> %h, half %a, i32 %i) {
  %1 = insertelement <4 x half> %h, half %a, i32 1
  %2 = insertelement <4 x half> %1, half 2.5, i32 %i
  %3 = freeze <4 x half> %2
  %4 = insertelement <4 x half> poison, half %a, i32 0
  %5 = shufflevector <4 x half> %4, <4 x half> %3, <4 x i32> <i32 0, i32 5, i32 6, i32 7>
  ret <4 x half> %5
}

define <2 x ptr> @pointers(<2 x ptr> %p, <2 x i64> %i, ptr %base) {
  %1 = getelementptr inbounds i32, <2 x ptr> %p, <2 x i64> %i
  %2 = getelementptr { i32, i64 }, ptr %base, <2 x i64> %i, i32 1
  %3 = extractelement <2 x ptr> %1, i32 0
  %4 = insertelement <2 x ptr> %2, ptr %3, i32 1
  %5 = ptrtoint <2 x ptr> %4 to <2 x i64>
  %6 = inttoptr <2 x i64> %5 to <2 x ptr>
  %7 = icmp eq <2 x ptr> %6, %p
  %8 = select <2 x i1> %7, <2 x ptr> %6, <2 x ptr> <ptr null, ptr @pointers>
  ret <2 x ptr> %8
}
