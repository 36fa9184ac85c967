; An intrinsic of the target that the legacy dialect lacks.
target triple = "nvptx64-nvidia-cuda"

define void @f(ptr addrspace(3) %barrier) {
  call void @llvm.nvvm.mbarrier.init.shared(ptr addrspace(3) %barrier, i32 32)
  ret void
}
