; `fill` stores 7 plus the index of its thread; `start` launches it.
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%struct.dim3 = type { i32, i32, i32 }

define ptx_kernel void @fill(ptr %p) {
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %index = zext i32 %thread to i64
  %place = getelementptr i32, ptr %p, i64 %index
  %number = add i32 %thread, 7
  store i32 %number, ptr %place
  ret void
}

define ptx_kernel void @start(ptr %p) {
  %grid = alloca %struct.dim3
  store %struct.dim3 { i32 1, i32 1, i32 1 }, ptr %grid
  %block = alloca %struct.dim3
  store %struct.dim3 { i32 4, i32 1, i32 1 }, ptr %block
  %buffer = call ptr @cudaGetParameterBufferV2(ptr @fill, ptr byval(%struct.dim3) align 4 %grid, ptr byval(%struct.dim3) align 4 %block, i32 0)
  %null = icmp eq ptr %buffer, null
  br i1 %null, label %end, label %launch

launch:
  store ptr %p, ptr %buffer
  %status = call i32 @cudaLaunchDeviceV2(ptr %buffer, ptr null)
  br label %end

end:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare ptr @cudaGetParameterBufferV2(ptr, ptr byval(%struct.dim3) align 4, ptr byval(%struct.dim3) align 4, i32)
declare i32 @cudaLaunchDeviceV2(ptr, ptr)
