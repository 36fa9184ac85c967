; Linkages and sections that libNVVM lacks.
@weak = extern_weak addrspace(1) global i32
@list = appending global [1 x i32] [i32 4]

define ptx_kernel void @k(ptr %p) section "own" {
  ret void
}
