; Atomic accesses that no device makes at once.
define ptx_kernel void @k(ptr %p) {
  %right = load atomic i32, ptr %p monotonic, align 4
  %unaligned = load atomic i32, ptr %p monotonic, align 1
  store atomic i128 0, ptr %p seq_cst, align 16
  ret void
}
