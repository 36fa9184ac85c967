; Addresses that PTX cannot write.
@shared = internal addrspace(3) global i32 undef
@of_shared = addrspace(1) global ptr addrspacecast (ptr addrspace(3) @shared to ptr)
@a = addrspace(1) global { i32, ptr addrspace(1) } { i32 1, ptr addrspace(1) @b }
@b = addrspace(1) global ptr addrspace(1) @a
@right = addrspace(1) global ptr addrspace(1) @after
@after = addrspace(1) global i32 1

define ptx_kernel void @k(ptr %p) {
  store ptr addrspace(1) @right, ptr %p
  ret void
}
