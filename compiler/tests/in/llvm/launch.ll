; The launch of the seed: declarations, `dim3` by value, a checked buffer, and the kernel's address.
target triple = "nvptx64-nvidia-cuda"

%struct.dim3 = type { i32, i32, i32 }

declare ptr @cudaGetParameterBufferV2(ptr, %struct.dim3, %struct.dim3, i32)
declare i32 @cudaLaunchDeviceV2(ptr, ptr)

define ptx_kernel void @child(ptr %data, i32 %n) {
entry:
  store i32 %n, ptr %data, align 4
  ret void
}

define ptx_kernel void @parent(ptr %data, i32 %n, ptr %status) {
entry:
  %grid = insertvalue %struct.dim3 { i32 undef, i32 1, i32 1 }, i32 %n, 0
  %buffer = call ptr @cudaGetParameterBufferV2(ptr @child, %struct.dim3 %grid, %struct.dim3 { i32 128, i32 1, i32 1 }, i32 0)
  %none = icmp eq ptr %buffer, null
  br i1 %none, label %failed, label %launch

launch:
  store ptr %data, ptr %buffer, align 8
  %second = getelementptr i8, ptr %buffer, i64 8
  store i32 %n, ptr %second, align 8
  %launched = call i32 @cudaLaunchDeviceV2(ptr %buffer, ptr null)
  %tail = call i32 @cudaLaunchDeviceV2(ptr %buffer, ptr inttoptr (i64 3 to ptr))
  br label %end

failed:
  br label %end

end:
  %result = phi i32 [ %launched, %launch ], [ 69, %failed ]
  store i32 %result, ptr %status, align 4
  ret void
}
