; What an older compiler says of itself, twice, because modules were linked.
define ptx_kernel void @k(ptr %p) {
  store i32 1, ptr %p
  ret void
}

!nvvmir.version = !{!0, !0}
!0 = !{i32 1, i32 6}
