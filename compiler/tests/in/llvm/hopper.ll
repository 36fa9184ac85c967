; Intrinsics of sm_80 and sm_90: warp reductions and clusters.
target triple = "nvptx64-nvidia-cuda"

define i32 @reductions(i32 %mask, i32 %x) convergent {
  %1 = call i32 @llvm.nvvm.redux.sync.add(i32 %x, i32 %mask)
  %2 = call i32 @llvm.nvvm.redux.sync.umin(i32 %1, i32 %mask)
  %3 = call i32 @llvm.nvvm.redux.sync.xor(i32 %2, i32 %mask)
  ret i32 %3
}

define i32 @clusters() convergent {
  call void @llvm.nvvm.barrier.cluster.arrive()
  call void @llvm.nvvm.barrier.cluster.wait()
  call void @llvm.nvvm.fence.sc.cluster()
  %1 = call i32 @llvm.nvvm.read.ptx.sreg.cluster.ctarank()
  %2 = call i32 @llvm.nvvm.read.ptx.sreg.clusterid.x()
  %3 = add i32 %1, %2
  ret i32 %3
}
