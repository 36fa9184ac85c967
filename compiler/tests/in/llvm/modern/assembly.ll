; Intrinsics that libNVVM would call as functions.
declare i32 @llvm.nvvm.activemask()
declare void @llvm.nvvm.nanosleep(i32)
declare void @llvm.nvvm.barrier.cta.sync.aligned.count(i32, i32)
declare i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32, i1)
declare i1 @llvm.nvvm.barrier.cta.red.or.count(i32, i32, i1)
declare void @llvm.nvvm.fence.proxy.async()
declare i32 @llvm.nvvm.read.ptx.sreg.globaltimer.lo()

define ptx_kernel void @k(ptr %p, i32 %n) {
  %test = icmp eq i32 %n, 3
  %mask = call i32 @llvm.nvvm.activemask()
  store volatile i32 %mask, ptr %p
  call void @llvm.nvvm.nanosleep(i32 %n)
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 1, i32 64)
  %count = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %test)
  store volatile i32 %count, ptr %p
  %any = call i1 @llvm.nvvm.barrier.cta.red.or.count(i32 1, i32 64, i1 %test)
  %word = zext i1 %any to i32
  store volatile i32 %word, ptr %p
  call void @llvm.nvvm.fence.proxy.async()
  %time = call i32 @llvm.nvvm.read.ptx.sreg.globaltimer.lo()
  store volatile i32 %time, ptr %p
  ret void
}
