; In the style of CUDA.jl: a structure that is passed by value, device arrays in address space 1, libdevice, a trap.
target datalayout = "e-i64:64-i128:128-v16:16-v32:32-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

%array = type { ptr addrspace(1), i64, [1 x i64], i64 }

define ptx_kernel void @_Z6julia_13CuDeviceArray(ptr byval(%array) align 8 %xs, float %power) {
top:
  %data.at = getelementptr inbounds %array, ptr %xs, i64 0, i32 0
  %data = load ptr addrspace(1), ptr %data.at, align 8
  %length.at = getelementptr inbounds %array, ptr %xs, i64 0, i32 3
  %length = load i64, ptr %length.at, align 8
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %base = mul nuw i32 %block, %size
  %sum = add nuw i32 %base, %thread
  %i = zext i32 %sum to i64
  %bad = icmp uge i64 %i, %length
  br i1 %bad, label %out, label %in

out:
  call void @llvm.trap()
  unreachable

in:
  %place = getelementptr inbounds float, ptr addrspace(1) %data, i64 %i
  %x = load float, ptr addrspace(1) %place, align 4
  %y = call float @__nv_powf(float %x, float %power)
  store float %y, ptr addrspace(1) %place, align 4
  ret void
}

declare float @__nv_powf(float, float)
declare void @llvm.trap()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
