; A stream without a value.
%struct.dim3 = type { i32, i32, i32 }
declare ptr @cudaGetParameterBufferV2(ptr, %struct.dim3, %struct.dim3, i32)
declare i32 @cudaLaunchDeviceV2(ptr, ptr)
define ptx_kernel void @child() {
  ret void
}
define ptx_kernel void @start() {
  %b = call ptr @cudaGetParameterBufferV2(ptr @child, %struct.dim3 { i32 1, i32 1, i32 1 }, %struct.dim3 { i32 1, i32 1, i32 1 }, i32 0)
  %s = call i32 @cudaLaunchDeviceV2(ptr %b, ptr undef)
  %c = call ptr @cudaGetParameterBufferV2(ptr @child, %struct.dim3 { i32 1, i32 1, i32 1 }, %struct.dim3 { i32 1, i32 1, i32 1 }, i32 0)
  %t = call i32 @cudaLaunchDeviceV2(ptr %c, ptr poison)
  ret void
}
