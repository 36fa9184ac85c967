; The target's own intrinsics: same names, other names, and PTX where libNVVM lacks them.
target triple = "nvptx64-nvidia-cuda"

define void @geometry(ptr %p) {
  %1 = call range(i32 0, 1024) i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %2 = call i32 @llvm.nvvm.read.ptx.sreg.nctaid.z()
  %3 = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %4 = call i32 @llvm.nvvm.read.ptx.sreg.lanemask.lt()
  %5 = call i64 @llvm.nvvm.read.ptx.sreg.clock64()
  %6 = call i64 @llvm.nvvm.read.ptx.sreg.globaltimer()
  %7 = call i32 @llvm.nvvm.read.ptx.sreg.dynamic_smem_size()
  %8 = add i32 %1, %2
  %9 = add i32 %3, %4
  %10 = add i32 %8, %9
  %11 = add i32 %10, %7
  %12 = add i64 %5, %6
  store i32 %11, ptr %p, align 4
  store volatile i64 %12, ptr %p, align 8
  ret void
}

define i32 @block(i32 %id, i32 %n, i1 %c) convergent {
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 0)
  call void @llvm.nvvm.barrier.cta.sync.aligned.all(i32 %id)
  call void @llvm.nvvm.barrier.cta.sync.aligned.count(i32 2, i32 64)
  call void @llvm.nvvm.barrier.cta.sync.all(i32 1)
  call void @llvm.nvvm.barrier.cta.sync.count(i32 1, i32 %n)
  call void @llvm.nvvm.barrier.cta.arrive.aligned.count(i32 3, i32 64)
  %1 = call i32 @llvm.nvvm.barrier.cta.red.popc.aligned.all(i32 0, i1 %c)
  %2 = call i1 @llvm.nvvm.barrier.cta.red.and.aligned.all(i32 0, i1 %c)
  %3 = call i1 @llvm.nvvm.barrier.cta.red.or.count(i32 4, i32 64, i1 %c)
  call void @llvm.nvvm.membar.cta()
  call void @llvm.nvvm.membar.gl()
  call void @llvm.nvvm.membar.sys()
  %4 = and i1 %2, %3
  %5 = zext i1 %4 to i32
  %6 = add i32 %1, %5
  ret i32 %6
}

define i32 @warp(i32 %mask, i32 %x, float %f, i64 %l, i1 %c) convergent {
  call void @llvm.nvvm.bar.warp.sync(i32 %mask)
  %1 = call i32 @llvm.nvvm.shfl.sync.down.i32(i32 %mask, i32 %x, i32 1, i32 31)
  %2 = call float @llvm.nvvm.shfl.sync.bfly.f32(i32 %mask, float %f, i32 1, i32 31)
  %3 = call { i32, i1 } @llvm.nvvm.shfl.sync.idx.i32p(i32 %mask, i32 %1, i32 0, i32 31)
  %4 = call { float, i1 } @llvm.nvvm.shfl.sync.up.f32p(i32 %mask, float %2, i32 1, i32 0)
  %5 = extractvalue { i32, i1 } %3, 0
  %6 = extractvalue { float, i1 } %4, 1
  %7 = call i32 @llvm.nvvm.vote.ballot.sync(i32 %mask, i1 %6)
  %8 = call i1 @llvm.nvvm.vote.any.sync(i32 %mask, i1 %c)
  %9 = call i32 @llvm.nvvm.match.any.sync.i64(i32 %mask, i64 %l)
  %10 = call { i32, i1 } @llvm.nvvm.match.all.sync.i32p(i32 %mask, i32 %x)
  %11 = extractvalue { i32, i1 } %10, 0
  %12 = call i32 @llvm.nvvm.activemask()
  %13 = add i32 %5, %7
  %14 = add i32 %9, %11
  %15 = add i32 %12, %13
  %16 = zext i1 %8 to i32
  %17 = add i32 %14, %15
  %18 = add i32 %16, %17
  ret i32 %18
}

define float @arithmetic(float %x, double %y, i32 %i, ptr %p) {
  %1 = call float @llvm.nvvm.add.rn.ftz.f(float %x, float 1.0)
  %2 = call float @llvm.nvvm.fabs.f32(float %1)
  %3 = call float @llvm.nvvm.ex2.approx.ftz.f32(float %2)
  %4 = call float @llvm.nvvm.div.full(float %3, float %x)
  %5 = call i32 @llvm.nvvm.mulhi.ui(i32 %i, i32 %i)
  %6 = call i32 @llvm.nvvm.prmt(i32 %5, i32 %i, i32 4660)
  %7 = call i32 @llvm.nvvm.d2i.rz(double %y)
  %8 = call i32 @llvm.nvvm.fshl.clamp.i32(i32 %6, i32 %7, i32 5)
  %9 = call i1 @llvm.nvvm.isspacep.shared(ptr %p)
  %10 = call i32 @llvm.nvvm.atomic.add.gen.i.cta.i32.p0(ptr %p, i32 1)
  %11 = call float @llvm.nvvm.atomic.add.gen.f.sys.f32.p0(ptr %p, float %4)
  %12 = call i32 @llvm.nvvm.reflect(ptr addrspacecast (ptr addrspace(4) @flag to ptr))
  %13 = select i1 %9, i32 %8, i32 %10
  %14 = add i32 %13, %12
  %15 = sitofp i32 %14 to float
  %16 = fadd float %15, %11
  call void @llvm.nvvm.nanosleep(i32 100)
  ret float %16
}

@flag = private unnamed_addr addrspace(4) constant [11 x i8] c"__CUDA_FTZ\00"
