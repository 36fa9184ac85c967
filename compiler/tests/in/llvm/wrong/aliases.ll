; PTX has aliases of functions only.
@g = addrspace(1) global i32 1
@of_variable = alias i32, ptr addrspace(1) @g
@of_kernel = alias void (ptr), ptr @k
@of_function = alias void (ptr), ptr @f
@resolved = ifunc void (ptr), ptr @resolver

define ptr @resolver() {
  ret ptr @f
}

define void @f(ptr %p) {
  store i32 1, ptr %p
  ret void
}

define ptx_kernel void @k(ptr %p) {
  call void @of_function(ptr %p)
  ret void
}
