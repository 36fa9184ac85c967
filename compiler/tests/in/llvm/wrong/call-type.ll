; A function called with other types than its own.
define ptx_kernel void @k(ptr %p, i32 %n, float %f, double %d, i64 %l) {
  call void @h(i32 %n)
  call void null(i32 %n)
  ret void
}
define void @h(ptr %q, i64 %z) {
  store i64 %z, ptr %q
  ret void
}
