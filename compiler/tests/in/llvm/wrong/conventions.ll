; Calling conventions of other targets.
define amdgpu_kernel void @other(ptr %p) {
  ret void
}

define spir_func void @f(ptr %p) {
  ret void
}

define ptx_kernel void @k(ptr %p) {
  call spir_func void @f(ptr %p)
  ret void
}
