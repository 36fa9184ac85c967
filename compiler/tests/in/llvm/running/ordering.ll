; Two blocks run the same rounds, each round with words of its own, and wait a while for each other before each round.
; Store buffering: each block stores into its word and loads the other's. Under `seq_cst`, at least one of them sees the other's store.
; Messages: block 0 stores a number and raises a flag by `release`; block 1 that sees it by `acquire` must see the number, too.
@left = internal addrspace(1) global [65536 x i32] zeroinitializer, align 4
@right = internal addrspace(1) global [65536 x i32] zeroinitializer, align 4
@seen.left = internal addrspace(1) global [65536 x i32] zeroinitializer, align 4
@seen.right = internal addrspace(1) global [65536 x i32] zeroinitializer, align 4
@message = internal addrspace(1) global [65536 x i32] zeroinitializer, align 4
@flag = internal addrspace(1) global [65536 x i32] zeroinitializer, align 4
; How many rounds each thread of each block has begun.
@begun = internal addrspace(1) global [2 x [1024 x i32]] zeroinitializer, align 4

; Word 0 of `out`: messages that were missing. Word 1: flags that block 1 saw.
define ptx_kernel void @test(ptr %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %size = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %is.left = icmp eq i32 %block, 0
  %against = sub i32 1, %block
  %here = getelementptr [2 x [1024 x i32]], ptr addrspace(1) @begun, i32 0, i32 %block, i32 %tid
  %there = getelementptr [2 x [1024 x i32]], ptr addrspace(1) @begun, i32 0, i32 %against, i32 %tid
  br label %loop
loop:
  %i = phi i32 [ %tid, %0 ], [ %next, %more ]
  %number = add i32 %i, 1
  %own = getelementptr [65536 x i32], ptr addrspace(1) @left, i32 0, i32 %i
  %other = getelementptr [65536 x i32], ptr addrspace(1) @right, i32 0, i32 %i
  %m = getelementptr [65536 x i32], ptr addrspace(1) @message, i32 0, i32 %i
  %f = getelementptr [65536 x i32], ptr addrspace(1) @flag, i32 0, i32 %i
  store atomic i32 %number, ptr addrspace(1) %here syncscope("device") monotonic, align 4
  br label %wait
wait:
; The other block need not run yet, or need not run at the same time.
  %turn = phi i32 [ 0, %loop ], [ %turn.next, %wait ]
  %turn.next = add i32 %turn, 1
  %reached = load atomic i32, ptr addrspace(1) %there syncscope("device") monotonic, align 4
  %is.there = icmp uge i32 %reached, %number
  %long = icmp eq i32 %turn, 100
  %go = or i1 %is.there, %long
  br i1 %go, label %round, label %wait
round:
  br i1 %is.left, label %as.left, label %as.right
as.left:
  store atomic i32 1, ptr addrspace(1) %own seq_cst, align 4
  %r = load atomic i32, ptr addrspace(1) %other seq_cst, align 4
  %kept = getelementptr [65536 x i32], ptr addrspace(1) @seen.left, i32 0, i32 %i
  store i32 %r, ptr addrspace(1) %kept, align 4
  store i32 %number, ptr addrspace(1) %m, align 4
  store atomic i32 1, ptr addrspace(1) %f syncscope("device") release, align 4
  br label %more
as.right:
  store atomic i32 1, ptr addrspace(1) %other seq_cst, align 4
  %l = load atomic i32, ptr addrspace(1) %own seq_cst, align 4
  %kept.right = getelementptr [65536 x i32], ptr addrspace(1) @seen.right, i32 0, i32 %i
  store i32 %l, ptr addrspace(1) %kept.right, align 4
  br label %look
look:
  %look.turn = phi i32 [ 0, %as.right ], [ %look.next, %look ]
  %look.next = add i32 %look.turn, 1
  %raised = load atomic i32, ptr addrspace(1) %f syncscope("device") acquire, align 4
  %is.raised = icmp eq i32 %raised, 1
  %look.long = icmp eq i32 %look.turn, 20
  %look.go = or i1 %is.raised, %look.long
  br i1 %look.go, label %looked, label %look
looked:
  br i1 %is.raised, label %receive, label %more
receive:
  %got = load i32, ptr addrspace(1) %m, align 4
  %wrong = icmp ne i32 %got, %number
  %one = zext i1 %wrong to i32
  %count = atomicrmw add ptr %out, i32 %one syncscope("device") monotonic
  %out.1 = getelementptr i32, ptr %out, i64 1
  %flags = atomicrmw add ptr %out.1, i32 1 syncscope("device") monotonic
  br label %more
more:
  %next = add i32 %i, %size
  %end = icmp uge i32 %next, 65536
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
  %at.left = getelementptr [65536 x i32], ptr addrspace(1) @seen.left, i32 0, i32 %i
  %at.right = getelementptr [65536 x i32], ptr addrspace(1) @seen.right, i32 0, i32 %i
  %l = load i32, ptr addrspace(1) %at.left, align 4
  %r = load i32, ptr addrspace(1) %at.right, align 4
  %any = or i32 %l, %r
  %none = xor i32 %any, 1
  %neither.next = add i32 %neither, %none
  %two = and i32 %l, %r
  %both.next = add i32 %both, %two
  %next = add i32 %i, 1
  %end = icmp eq i32 %next, 65536
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
