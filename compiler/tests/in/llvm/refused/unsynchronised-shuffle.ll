; PTX dropped it from sm_70 on.
target triple = "nvptx64-nvidia-cuda"

define i32 @f(i32 %x) {
  %r = call i32 @llvm.nvvm.shfl.down.i32(i32 %x, i32 1, i32 31)
  ret i32 %r
}
