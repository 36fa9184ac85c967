; Addresses of blocks.
define ptx_kernel void @k(ptr %p) {
  store ptr blockaddress(@k, %next), ptr %p
  indirectbr ptr %p, [label %next]
next:
  ret void
}
