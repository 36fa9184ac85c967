; Memory that no variable, stack slot or access has.
@local = internal addrspace(5) global i32 0
@cluster = addrspace(7) global i32 0

define ptx_kernel void @k(ptr %p, ptr addrspace(6) %tensor) {
  %slot = alloca i32, addrspace(3)
  %local = alloca i32, addrspace(5)
  store i32 1, ptr addrspace(5) %local
  %v = load i32, ptr addrspace(6) %tensor
  store i32 %v, ptr %p
  ret void
}
