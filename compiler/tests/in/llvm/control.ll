; Branches, switches, loops with phis that run forward and backward, recursion, unrolling hints.
target triple = "nvptx64-nvidia-cuda"

define i32 @sum(ptr %p, i32 %n) {
entry:
  %empty = icmp sle i32 %n, 0
  br i1 %empty, label %done, label %loop

loop:
  %i = phi i32 [ 0, %entry ], [ %i.next, %loop ]
  %total = phi i32 [ 0, %entry ], [ %total.next, %loop ]
  %at = phi ptr [ %p, %entry ], [ %at.next, %loop ]
  %v = load i32, ptr %at, align 4
  %total.next = add nsw i32 %total, %v
  %at.next = getelementptr inbounds i32, ptr %at, i64 1
  %i.next = add nuw nsw i32 %i, 1
  %more = icmp slt i32 %i.next, %n
  br i1 %more, label %loop, label %done, !llvm.loop !0

done:
  %r = phi i32 [ 0, %entry ], [ %total.next, %loop ]
  ret i32 %r
}

define ptr @choose(i32 %k, ptr %p) {
entry:
  %slot = alloca [2 x i64], align 8
  switch i32 %k, label %other [
    i32 0, label %a
    i32 -7, label %b
    i32 2, label %twice
    i32 3, label %twice
  ]

a:
  br label %end

b:
  %step = phi i32 [ %t, %twice ], [ 2, %entry ]
  %q = getelementptr i64, ptr %p, i32 %step
  br label %end

twice:
  %t = phi i32 [ 1, %entry ], [ 1, %entry ]
  br label %b

other:
  switch i64 9, label %stuck [
  ]

stuck:
  br label %end

end:
  %r = phi ptr [ null, %a ], [ %q, %b ], [ @choose, %stuck ]
  store i64 1, ptr %slot, align 8
  ret ptr %r
}

define i64 @fibonacci(i64 %n) #0 {
  %1 = icmp ult i64 %n, 2
  br i1 %1, label %2, label %3

2:
  ret i64 %n

3:
  %4 = sub i64 %n, 1
  %5 = call i64 @fibonacci(i64 %4)
  %6 = sub i64 %n, 2
  %7 = tail call i64 @fibonacci(i64 %6)
  %8 = add i64 %5, %7
  ret i64 %8
}

define void @never(ptr %p) noreturn {
entry:
  call void @llvm.trap()
  unreachable
}

declare void @llvm.trap()

attributes #0 = { noinline nounwind }

!0 = distinct !{!0, !1, !2}
!1 = !{!"llvm.loop.unroll.count", i32 4}
!2 = !{!"llvm.loop.mustprogress"}
