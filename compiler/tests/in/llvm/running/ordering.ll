; Two blocks run the same rounds, each round with words of its own.
; Store buffering: each block stores into its word and loads the other's. Under `seq_cst`, at least one of them sees the other's store.
; Messages: block 0 stores a number and raises a flag by `release`; block 1 that sees it by `acquire` must see the number, too.
@left = internal addrspace(1) global [524288 x i32] zeroinitializer, align 4
@right = internal addrspace(1) global [524288 x i32] zeroinitializer, align 4
@seen.left = internal addrspace(1) global [524288 x i32] zeroinitializer, align 4
@seen.right = internal addrspace(1) global [524288 x i32] zeroinitializer, align 4
@message = internal addrspace(1) global [524288 x i32] zeroinitializer, align 4
@flag = internal addrspace(1) global [524288 x i32] zeroinitializer, align 4
@arrived = internal addrspace(1) global i32 0, align 4

; Word 0 of `out`: messages that were missing. Word 1: rounds in which block 1 saw the flag.
define ptx_kernel void @test(ptr %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %is.left = icmp eq i32 %block, 0
  %arrive = atomicrmw add ptr addrspace(1) @arrived, i32 1 seq_cst
  br label %wait
wait:
; A while for the other block, which need not run yet.
  %turn = phi i32 [ 0, %0 ], [ %turn.next, %wait ]
  %turn.next = add i32 %turn, 1
  %there = load atomic i32, ptr addrspace(1) @arrived monotonic, align 4
  %both = mul i32 %size, 2
  %all = icmp eq i32 %there, %both
  %long = icmp eq i32 %turn, 100000
  %go = or i1 %all, %long
  br i1 %go, label %loop, label %wait
loop:
  %i = phi i32 [ %tid, %wait ], [ %next, %more ]
  %own = getelementptr [524288 x i32], ptr addrspace(1) @left, i32 0, i32 %i
  %other = getelementptr [524288 x i32], ptr addrspace(1) @right, i32 0, i32 %i
  br i1 %is.left, label %as.left, label %as.right
as.left:
  store atomic i32 1, ptr addrspace(1) %own seq_cst, align 4
  %r = load atomic i32, ptr addrspace(1) %other seq_cst, align 4
  %kept = getelementptr [524288 x i32], ptr addrspace(1) @seen.left, i32 0, i32 %i
  store i32 %r, ptr addrspace(1) %kept, align 4
  %m = getelementptr [524288 x i32], ptr addrspace(1) @message, i32 0, i32 %i
  %number = add i32 %i, 1
  store i32 %number, ptr addrspace(1) %m, align 4
  %f = getelementptr [524288 x i32], ptr addrspace(1) @flag, i32 0, i32 %i
  store atomic i32 1, ptr addrspace(1) %f syncscope("device") release, align 4
  br label %more
as.right:
  store atomic i32 1, ptr addrspace(1) %other seq_cst, align 4
  %l = load atomic i32, ptr addrspace(1) %own seq_cst, align 4
  %kept.right = getelementptr [524288 x i32], ptr addrspace(1) @seen.right, i32 0, i32 %i
  store i32 %l, ptr addrspace(1) %kept.right, align 4
  %flag = getelementptr [524288 x i32], ptr addrspace(1) @flag, i32 0, i32 %i
  %raised = load atomic i32, ptr addrspace(1) %flag syncscope("device") acquire, align 4
  %is.raised = icmp eq i32 %raised, 1
  br i1 %is.raised, label %receive, label %more
receive:
  %m.right = getelementptr [524288 x i32], ptr addrspace(1) @message, i32 0, i32 %i
  %got = load i32, ptr addrspace(1) %m.right, align 4
  %number.right = add i32 %i, 1
  %wrong = icmp ne i32 %got, %number.right
  %one = zext i1 %wrong to i32
  %count = atomicrmw add ptr %out, i32 %one syncscope("device") monotonic
  %out.1 = getelementptr i32, ptr %out, i64 1
  %rounds = atomicrmw add ptr %out.1, i32 1 syncscope("device") monotonic
  br label %more
more:
  %next = add i32 %i, %size
  %end = icmp uge i32 %next, 524288
  br i1 %end, label %return, label %loop
return:
  ret void
}

; Word 2 of `out`: rounds in which neither block saw the other's store. Word 3: in which both did.
define ptx_kernel void @check(ptr %out) {
  br label %loop
loop:
  %i = phi i32 [ 0, %0 ], [ %next, %loop ]
  %neither = phi i32 [ 0, %0 ], [ %neither.next, %loop ]
  %both = phi i32 [ 0, %0 ], [ %both.next, %loop ]
  %at.left = getelementptr [524288 x i32], ptr addrspace(1) @seen.left, i32 0, i32 %i
  %at.right = getelementptr [524288 x i32], ptr addrspace(1) @seen.right, i32 0, i32 %i
  %l = load i32, ptr addrspace(1) %at.left, align 4
  %r = load i32, ptr addrspace(1) %at.right, align 4
  %any = or i32 %l, %r
  %none = xor i32 %any, 1
  %neither.next = add i32 %neither, %none
  %two = and i32 %l, %r
  %both.next = add i32 %both, %two
  %next = add i32 %i, 1
  %end = icmp eq i32 %next, 524288
  br i1 %end, label %return, label %loop
return:
  %out.2 = getelementptr i32, ptr %out, i64 2
  store i32 %neither.next, ptr %out.2, align 4
  %out.3 = getelementptr i32, ptr %out, i64 3
  store i32 %both.next, ptr %out.3, align 4
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
