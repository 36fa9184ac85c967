; In the style of NVIDIA's libNVVM samples: typed pointers, the first name of the barrier, `vprintf` with a buffer in local memory.
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%struct.dim3 = type { i32, i32, i32 }
%struct.CUstream_st = type opaque
%printed = type { i32, double }

@format = private addrspace(1) constant [23 x i8] c"%d left, %4.1f so far\0A\00"
@sum = internal addrspace(3) global [4 x i32] undef, align 4

; Adds the numbers of the block's threads to `total`, and launches itself with one block less work.
define void @countdown(i32 %left, double* %total) {
entry:
  %buffer = alloca %printed, align 8
  %bytes = bitcast %printed* %buffer to i8*
  %first = getelementptr inbounds %printed, %printed* %buffer, i64 0, i32 0
  %first.local = addrspacecast i32* %first to i32 addrspace(5)*
  %second = getelementptr inbounds %printed, %printed* %buffer, i64 0, i32 1
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %own = getelementptr [4 x i32], [4 x i32] addrspace(3)* @sum, i32 0, i32 %tid
  store i32 %tid, i32 addrspace(3)* %own, align 4
  call void @llvm.cuda.syncthreads()
  %is.first = icmp eq i32 %tid, 0
  br i1 %is.first, label %add, label %return

add:
  %last = load i32, i32 addrspace(3)* getelementptr ([4 x i32], [4 x i32] addrspace(3)* @sum, i32 0, i32 3), align 4
  %last.real = sitofp i32 %last to double
  %old = load double, double* %total, align 8
  %new = fadd double %old, %last.real
  store double %new, double* %total, align 8
  store i32 %left, i32 addrspace(5)* %first.local, align 8
  store double %new, double* %second, align 8
  %text = addrspacecast i8 addrspace(1)* getelementptr inbounds ([23 x i8], [23 x i8] addrspace(1)* @format, i64 0, i64 0) to i8*
  %printed = call i32 @vprintf(i8* %text, i8* %bytes)
  %next = add nsw i32 %left, -1
  %ends = icmp slt i32 %next, 0
  br i1 %ends, label %return, label %get

get:
  %parameters = call i8* @cudaGetParameterBufferV2(i8* bitcast (void (i32, double*)* @countdown to i8*), %struct.dim3 { i32 1, i32 1, i32 1 }, %struct.dim3 { i32 4, i32 1, i32 1 }, i32 0)
  %none = icmp eq i8* %parameters, null
  br i1 %none, label %return, label %launch

launch:
  %number = bitcast i8* %parameters to i32*
  store i32 %next, i32* %number, align 4
  %at = getelementptr inbounds i8, i8* %parameters, i64 8
  %pointer = bitcast i8* %at to double**
  store double* %total, double** %pointer, align 8
  %status = call i32 @cudaLaunchDeviceV2(i8* %parameters, %struct.CUstream_st* null)
  br label %return

return:
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x() nounwind readnone

declare i32 @vprintf(i8* nocapture, i8*) nounwind

declare void @llvm.cuda.syncthreads() nounwind

declare i8* @cudaGetParameterBufferV2(i8*, %struct.dim3, %struct.dim3, i32)

declare i32 @cudaLaunchDeviceV2(i8*, %struct.CUstream_st*)

!nvvm.annotations = !{!0}
!0 = !{void (i32, double*)* @countdown, !"kernel", i32 1}

!nvvmir.version = !{!1}
!1 = !{i32 2, i32 0}
