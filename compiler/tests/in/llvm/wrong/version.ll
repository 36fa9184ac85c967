; A version of NVVM IR that there is not.
define ptx_kernel void @k(ptr %p) {
  ret void
}

!nvvmir.version = !{!0, !1}
!0 = !{i32 1, i32 6}
!1 = !{i32 99, i32 6}
