; A parameter passed as other targets do.
define ptx_kernel void @k(ptr byref({ i32, i32 }) %p) {
  store i32 1, ptr %p
  ret void
}
