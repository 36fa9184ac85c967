; Each thread of 4 blocks of 64 takes part in each operation. The orders and scopes are those that back ends lack; each cell of `out`
; says what its operation must give.
@sum = internal addrspace(3) global i32 undef, align 4

define ptx_kernel void @test(ptr %out) {
  %tid = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %block = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
  %first = icmp eq i32 %tid, 0
  br i1 %first, label %clear, label %cleared
clear:
  store atomic i32 0, ptr addrspace(3) @sum syncscope("block") release, align 4
  br label %cleared
cleared:
  call void @llvm.nvvm.barrier0()

; Word 0: 256
  %a = atomicrmw add ptr %out, i32 1 seq_cst
; Word 1: -256
  %p1 = getelementptr i32, ptr %out, i64 1
  %b = atomicrmw sub ptr %p1, i32 1 syncscope("device") acq_rel
; Word 2: all bits
  %p2 = getelementptr i32, ptr %out, i64 2
  %lane = and i32 %tid, 31
  %bit = shl i32 1, %lane
  %c = atomicrmw or ptr %p2, i32 %bit release
; Word 3: 256, which is 1 ^ 2 ^ ... ^ 256
  %p3 = getelementptr i32, ptr %out, i64 3
  %base = mul i32 %block, 64
  %index = add i32 %base, %tid
  %from.one = add i32 %index, 1
  %d = atomicrmw xor ptr %p3, i32 %from.one acquire
; Word 4: 63, word 5: -63 as a signed number
  %p4 = getelementptr i32, ptr %out, i64 4
  %e = atomicrmw umax ptr %p4, i32 %tid syncscope("device") release
  %p5 = getelementptr i32, ptr %out, i64 5
  %minus = sub i32 0, %tid
  %f = atomicrmw min ptr %p5, i32 %minus seq_cst
; Word 6: 128.0, word 7: -128.0
  %p6 = getelementptr i32, ptr %out, i64 6
  %g = atomicrmw fadd ptr %p6, float 0.5 monotonic
  %p7 = getelementptr i32, ptr %out, i64 7
  %h = atomicrmw fsub ptr %p7, float 0.5 syncscope("device") acq_rel
; Words 8 and 9: 2^41
  %p8 = getelementptr i32, ptr %out, i64 8
  %i = atomicrmw add ptr %p8, i64 8589934592 seq_cst
; Words 10 and 11: 64.0
  %p10 = getelementptr i32, ptr %out, i64 10
  %j = atomicrmw fadd ptr %p10, double 0.25 acquire
; Word 12: 256, the sum of what the threads of each block counted in shared memory
  %k = atomicrmw add ptr addrspace(3) @sum, i32 1 seq_cst
  call void @llvm.nvvm.barrier0()
  br i1 %first, label %add, label %added
add:
  %of_block = load atomic i32, ptr addrspace(3) @sum syncscope("block") acquire, align 4
  %p12 = getelementptr i32, ptr %out, i64 12
  %l = atomicrmw add ptr %p12, i32 %of_block release
  br label %added
added:
; Word 13: 512, by compare and exchange
  %p13 = getelementptr i32, ptr %out, i64 13
  %start = load atomic i32, ptr %p13 monotonic, align 4
  br label %try
try:
  %old = phi i32 [ %start, %added ], [ %seen, %try ]
  %new = add i32 %old, 2
  %pair = cmpxchg ptr %p13, i32 %old, i32 %new seq_cst acquire
  %seen = extractvalue { i32, i1 } %pair, 0
  %done = extractvalue { i32, i1 } %pair, 1
  br i1 %done, label %swap, label %try
swap:
; Words 14 and 15: the address of `out`; word 16: 1.5
  %p14 = getelementptr i32, ptr %out, i64 14
  %m = atomicrmw xchg ptr %p14, ptr %out seq_cst
  %p16 = getelementptr i32, ptr %out, i64 16
  %n = atomicrmw xchg ptr %p16, float 1.5 syncscope("device") release
; Word 17: 252
  %p17 = getelementptr i32, ptr %out, i64 17
  %four = mul i32 %tid, 4
  %o = atomicrmw max ptr %p17, i32 %four syncscope("device") acq_rel
; Word 18: 0, as the least of 256 numbers
  %p18 = getelementptr i32, ptr %out, i64 18
  %q = atomicrmw umin ptr %p18, i32 %index seq_cst
; Words 20 and 21: a pointer by compare and exchange, from null
  %p20 = getelementptr i32, ptr %out, i64 20
  %r = cmpxchg ptr %p20, ptr null, ptr %p20 syncscope("device") acq_rel monotonic
; Word 22: 7
  %p22 = getelementptr i32, ptr %out, i64 22
  store atomic i32 7, ptr %p22 seq_cst, align 4
  ret void
}

; Word 23: 3, if both addresses are right.
define ptx_kernel void @check(ptr %out) {
  %p14 = getelementptr i32, ptr %out, i64 14
  %a = load atomic ptr, ptr %p14 acquire, align 8
  %a.right = icmp eq ptr %a, %out
  %p20 = getelementptr i32, ptr %out, i64 20
  %b = load atomic ptr, ptr %p20 seq_cst, align 8
  %b.right = icmp eq ptr %b, %p20
  %one = zext i1 %a.right to i32
  %two = select i1 %b.right, i32 2, i32 0
  %both = or i32 %one, %two
  %p23 = getelementptr i32, ptr %out, i64 23
  store i32 %both, ptr %p23, align 4
  store ptr null, ptr %p14, align 8
  store ptr null, ptr %p20, align 8
  ret void
}

declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
declare void @llvm.nvvm.barrier0()
