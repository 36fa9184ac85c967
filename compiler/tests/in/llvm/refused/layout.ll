; 32-bit shared pointers.
target triple = "nvptx64-nvidia-cuda"

target datalayout = "e-p3:32:32-i64:64"
define void @f() {
  ret void
}
