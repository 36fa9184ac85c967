target triple = "nvptx64-nvidia-cuda"

declare i32 @cudaMemsetAsync(ptr, i32, i64, ptr)

define ptx_kernel void @k(ptr %p, i32 %n) {
  %zeros = call i32 @cudaMemsetAsync(ptr %p, i32 0, i64 4, ptr null)
  %ones = call i32 @cudaMemsetAsync(ptr %p, i32 -1, i64 4, ptr null)
  %any = call i32 @cudaMemsetAsync(ptr %p, i32 %n, i64 4, ptr null)
  ret void
}
