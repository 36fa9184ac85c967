; A launch without a buffer.
%struct.dim3 = type { i32, i32, i32 }
declare ptr @cudaGetParameterBufferV2(ptr, %struct.dim3, %struct.dim3, i32)
declare i32 @cudaLaunchDeviceV2(ptr, ptr)
define ptx_kernel void @child(ptr %p, i32 %n) {
  store i32 %n, ptr %p
  ret void
}
define ptx_kernel void @start(ptr %p) {
  %s = call i32 @cudaLaunchDeviceV2(ptr null, ptr null)
  %t = call i32 @cudaLaunchDeviceV2(ptr %p, ptr null)
  ret void
}
