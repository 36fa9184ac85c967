; The module of launch_legacy.ll, as a front end for Blackwell and newer writes it: opaque pointers.
target datalayout = "e-p:64:64:64-p3:32:32:32-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%struct.dim3 = type { i32, i32, i32 }
%struct.View = type { <2 x float>, i8 }

declare ptr @cudaGetParameterBufferV2(ptr, %struct.dim3, %struct.dim3, i32)
declare i32 @cudaLaunchDeviceV2(ptr, ptr)

define ptx_kernel void @child(ptr %out, i8 %step, ptr byval(%struct.View) align 8 %view, double %scale) {
entry:
  %field = getelementptr %struct.View, ptr %view, i32 0, i32 1
  %flag = load i8, ptr %field
  %sum = add i8 %flag, %step
  %wide = sext i8 %sum to i32
  store i32 %wide, ptr %out
  ret void
}

define ptx_kernel void @parent(ptr %out, i8 %step) {
entry:
  %grid = insertvalue %struct.dim3 { i32 undef, i32 1, i32 1 }, i32 2, 0
  %block = insertvalue %struct.dim3 { i32 undef, i32 1, i32 1 }, i32 32, 0
  %param_buffer = call ptr @cudaGetParameterBufferV2(ptr @child, %struct.dim3 %grid, %struct.dim3 %block, i32 0)
  %failed = icmp eq ptr %param_buffer, null
  br i1 %failed, label %launch.end, label %launch.ok

launch.ok:
  store ptr %out, ptr %param_buffer, align 8
  %second = getelementptr i8, ptr %param_buffer, i64 8
  store i8 %step, ptr %second
  %launch_status = call i32 @cudaLaunchDeviceV2(ptr %param_buffer, ptr null)
  br label %launch.end

launch.end:
  ret void
}

define ptx_kernel void @nothing() {
entry:
  ret void
}

!nvvmir.version = !{!0}
!0 = !{i32 2, i32 0}
