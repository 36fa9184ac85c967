; A number that is no stream.
%struct.dim3 = type { i32, i32, i32 }
declare ptr @cudaGetParameterBufferV2(ptr, %struct.dim3, %struct.dim3, i32)
declare i32 @cudaLaunchDeviceV2(ptr, ptr)
define ptx_kernel void @child(ptr %p, i32 %n) {
  store i32 %n, ptr %p
  ret void
}
define ptx_kernel void @start(ptr %p) {
  %b = call ptr @cudaGetParameterBufferV2(ptr @child, %struct.dim3 { i32 1, i32 1, i32 1 }, %struct.dim3 { i32 1, i32 1, i32 1 }, i32 0)
  store ptr %p, ptr %b
  %o = getelementptr i8, ptr %b, i64 8
  store i32 1, ptr %o
  %s = call i32 @cudaLaunchDeviceV2(ptr %b, ptr inttoptr (i64 7 to ptr))
  ret void
}
