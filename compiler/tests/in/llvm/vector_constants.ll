; Vector constants that LLVM leaves unfolded, because the bits of an element depend on the data layout.
target triple = "nvptx64-nvidia-cuda"

define ptx_kernel void @k(ptr %out) {
  %same = icmp eq i16 extractelement (<2 x i16> bitcast (<1 x i32> splat (i32 131073) to <2 x i16>), i32 1), 2
  %flag = zext i1 %same to i32
  store i32 %flag, ptr %out, align 4
  ret void
}
