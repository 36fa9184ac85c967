; More than there is.
@small = addrspace(4) constant [6000 x i8] zeroinitializer
@large = addrspace(4) constant [60000 x i8] zeroinitializer

define ptx_kernel void @k(ptr %p) {
  %x = load i8, ptr addrspace(4) @small
  %y = load i8, ptr addrspace(4) @large
  store i8 %x, ptr %p
  store i8 %y, ptr %p
  ret void
}
