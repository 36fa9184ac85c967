; In the style of numba-cuda: typed pointers, a mangled name, kernels in the annotations.
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

define void @_ZN6cudapy8__main__5scaleB2v1E5ArrayIfLi1E1C7mutable7alignedEf(i8* %a.meminfo, i8* %a.parent, i64 %a.nitems, i64 %a.itemsize, float* %a.data, i64 %a.shape, i64 %a.strides, float %factor) {
entry:
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = sext i32 %tid to i64
  %inside = icmp slt i64 %i, %a.shape
  br i1 %inside, label %body, label %done

body:
  %raw = ptrtoint float* %a.data to i64
  %step = mul i64 %i, %a.strides
  %where = add i64 %raw, %step
  %pointer = inttoptr i64 %where to float*
  %old = load float, float* %pointer
  %new = fmul float %old, %factor
  store float %new, float* %pointer
  br label %done

done:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

!nvvmir.version = !{!0}
!nvvm.annotations = !{!1}
!0 = !{i32 2, i32 0}
!1 = !{void (i8*, i8*, i64, i64, float*, i64, i64, float)* @_ZN6cudapy8__main__5scaleB2v1E5ArrayIfLi1E1C7mutable7alignedEf, !"kernel", i32 1}
