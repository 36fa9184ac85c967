; Variables beyond the memory of a device.
@huge = addrspace(1) global [9000000000000 x i8] zeroinitializer

define ptx_kernel void @k(ptr %p, i64 %n) {
  %local = alloca [6000000000 x i8]
  %at = getelementptr i8, ptr %local, i64 %n
  store i8 1, ptr %at
  %unused = alloca [6000000000 x i8]
  ret void
}
