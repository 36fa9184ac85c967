; A kernel that launches another, as a front end for Hopper and older writes it: LLVM 7, typed pointers.
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%struct.dim3 = type { i32, i32, i32 }
%struct.CUstream_st = type opaque
%struct.View = type { <2 x float>, i8 }

declare i8* @cudaGetParameterBufferV2(i8*, %struct.dim3, %struct.dim3, i32)
declare i32 @cudaLaunchDeviceV2(i8*, %struct.CUstream_st*)

define void @child(i32* %out, i8 %step, %struct.View* byval align 8 %view, double %scale) {
entry:
  %field = getelementptr %struct.View, %struct.View* %view, i32 0, i32 1
  %flag = load i8, i8* %field
  %sum = add i8 %flag, %step
  %wide = sext i8 %sum to i32
  store i32 %wide, i32* %out
  ret void
}

define void @parent(i32* %out, i8 %step) {
entry:
  %target = bitcast void (i32*, i8, %struct.View*, double)* @child to i8*
  %grid = insertvalue %struct.dim3 { i32 undef, i32 1, i32 1 }, i32 2, 0
  %block = insertvalue %struct.dim3 { i32 undef, i32 1, i32 1 }, i32 32, 0
  %param_buffer = call i8* @cudaGetParameterBufferV2(i8* %target, %struct.dim3 %grid, %struct.dim3 %block, i32 0)
  %failed = icmp eq i8* %param_buffer, null
  br i1 %failed, label %launch.end, label %launch.ok

launch.ok:
  %first = bitcast i8* %param_buffer to i32**
  store i32* %out, i32** %first, align 8
  %second = getelementptr i8, i8* %param_buffer, i64 8
  store i8 %step, i8* %second
  %launch_status = call i32 @cudaLaunchDeviceV2(i8* %param_buffer, %struct.CUstream_st* null)
  br label %launch.end

launch.end:
  ret void
}

define void @nothing() {
entry:
  ret void
}

!nvvm.annotations = !{!0, !1, !2}
!0 = !{void (i32*, i8, %struct.View*, double)* @child, !"kernel", i32 1}
!1 = !{void (i32*, i8)* @parent, !"kernel", i32 1}
!2 = !{void ()* @nothing, !"kernel", i32 1}
!nvvmir.version = !{!3}
!3 = !{i32 2, i32 0}
