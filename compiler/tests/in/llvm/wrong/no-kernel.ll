; Launches of what is no kernel.
%struct.dim3 = type { i32, i32, i32 }
@variable = addrspace(1) global i32 0
declare ptr @cudaGetParameterBufferV2(ptr, %struct.dim3, %struct.dim3, i32)
declare i32 @cudaLaunchDeviceV2(ptr, ptr)

define ptx_kernel void @k(ptr %p) {
  %b = call ptr @cudaGetParameterBufferV2(ptr null, %struct.dim3 { i32 1, i32 1, i32 1 }, %struct.dim3 { i32 1, i32 1, i32 1 }, i32 0)
  %s = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)
  %c = call ptr @cudaGetParameterBufferV2(ptr inttoptr (i64 16 to ptr), %struct.dim3 { i32 1, i32 1, i32 1 }, %struct.dim3 { i32 1, i32 1, i32 1 }, i32 0)
  %t = call i32 @cudaLaunchDeviceV2(ptr %c, ptr null)
  %d = call ptr @cudaGetParameterBufferV2(ptr poison, %struct.dim3 { i32 1, i32 1, i32 1 }, %struct.dim3 { i32 1, i32 1, i32 1 }, i32 0)
  %u = call i32 @cudaLaunchDeviceV2(ptr %d, ptr null)
  %e = call ptr @cudaGetParameterBufferV2(ptr addrspacecast (ptr addrspace(1) @variable to ptr), %struct.dim3 { i32 1, i32 1, i32 1 }, %struct.dim3 { i32 1, i32 1, i32 1 }, i32 0)
  %v = call i32 @cudaLaunchDeviceV2(ptr %e, ptr null)
  ret void
}
