; One thread of each block adds to a number that a lock protects, 200 times. The accesses to the number are plain.
@lock = internal addrspace(1) global i32 0, align 4
@number = internal addrspace(1) global i32 0, align 4

define ptx_kernel void @test(ptr %out) {
  br label %take
take:
  %round = phi i32 [ 0, %0 ], [ %round, %take ], [ %next, %hold ]
  %pair = cmpxchg ptr addrspace(1) @lock, i32 0, i32 1 syncscope("device") acquire monotonic
  %got = extractvalue { i32, i1 } %pair, 1
  br i1 %got, label %hold, label %take
hold:
  %old = load i32, ptr addrspace(1) @number, align 4
  %new = add i32 %old, 1
  store i32 %new, ptr addrspace(1) @number, align 4
  store atomic i32 0, ptr addrspace(1) @lock syncscope("device") release, align 4
  %next = add i32 %round, 1
  %end = icmp eq i32 %next, 200
  br i1 %end, label %return, label %take
return:
  ret void
}

; Word 0 of `out`: the number.
define ptx_kernel void @check(ptr %out) {
  %number = load i32, ptr addrspace(1) @number, align 4
  store i32 %number, ptr %out, align 4
  ret void
}
