; In the style of Clang: CUDA C++ with a device-side launch, LLVM's data layout, opaque pointers, a copied structure.
target datalayout = "e-p6:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%struct.dim3 = type { i32, i32, i32 }
%struct.Range = type { i32, i32, double }

define dso_local ptx_kernel void @fill(ptr noundef %out, ptr noundef byval(%struct.Range) align 8 %range) #0 {
entry:
  %first = load i32, ptr %range, align 8
  %count.at = getelementptr inbounds i8, ptr %range, i64 4
  %count = load i32, ptr %count.at, align 4
  %value.at = getelementptr inbounds %struct.Range, ptr %range, i32 0, i32 2
  %value = load double, ptr %value.at, align 8
  %block = tail call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %size = tail call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %thread = tail call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %base = mul i32 %block, %size
  %at = add i32 %base, %thread
  %inside = icmp slt i32 %at, %count
  br i1 %inside, label %then, label %end

then:
  %index = add nsw i32 %first, %at
  %wide = sext i32 %index to i64
  %place = getelementptr inbounds double, ptr %out, i64 %wide
  %number = sitofp i32 %at to double
  %sum = fadd contract double %value, %number
  store double %sum, ptr %place, align 8
  br label %end

end:
  ret void
}

define dso_local ptx_kernel void @start(ptr noundef %out, i32 noundef %count) #0 {
entry:
  %grid = alloca %struct.dim3, align 4
  store i32 2, ptr %grid, align 4
  %y = getelementptr inbounds %struct.dim3, ptr %grid, i64 0, i32 1
  store i32 1, ptr %y, align 4
  %z = getelementptr inbounds %struct.dim3, ptr %grid, i64 0, i32 2
  store i32 1, ptr %z, align 4
  %block = alloca %struct.dim3, align 4
  store i32 4, ptr %block, align 4
  %by = getelementptr inbounds %struct.dim3, ptr %block, i64 0, i32 1
  store i32 1, ptr %by, align 4
  %bz = getelementptr inbounds %struct.dim3, ptr %block, i64 0, i32 2
  store i32 1, ptr %bz, align 4
  %buffer = call ptr @cudaGetParameterBufferV2(ptr noundef @fill, ptr noundef byval(%struct.dim3) align 4 %grid, ptr noundef byval(%struct.dim3) align 4 %block, i32 noundef 0)
  %null = icmp eq ptr %buffer, null
  br i1 %null, label %end, label %launch

launch:
  store ptr %out, ptr %buffer, align 8
  %first = getelementptr inbounds i8, ptr %buffer, i64 8
  store i32 1, ptr %first, align 8
  %number = getelementptr inbounds i8, ptr %buffer, i64 12
  store i32 %count, ptr %number, align 4
  %value = getelementptr inbounds i8, ptr %buffer, i64 16
  store double 5.000000e-01, ptr %value, align 8
  %status = call i32 @cudaLaunchDeviceV2(ptr noundef %buffer, ptr noundef null)
  br label %end

end:
  ret void
}

declare ptr @cudaGetParameterBufferV2(ptr, ptr byval(%struct.dim3) align 4, ptr byval(%struct.dim3) align 4, i32)
declare i32 @cudaLaunchDeviceV2(ptr, ptr)
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

attributes #0 = { convergent mustprogress norecurse nounwind "nvvm.maxntid"="256" "target-cpu"="sm_90" "target-features"="+ptx82,+sm_90" }
