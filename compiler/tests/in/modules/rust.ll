; In the style of Rust-CUDA and cuda-oxide: slices as two parameters, a loop with phi, panics, shared memory and a barrier.
target datalayout = "e-p:64:64:64-i1:8:8-i8:8:8-i16:16:16-i32:32:32-i64:64:64-i128:128:128-f32:32:32-f64:64:64-v16:16:16-v32:32:32-v64:64:64-v128:128:128-n16:32:64"
target triple = "nvptx64-nvidia-cuda"

@tile = internal addrspace(3) global [64 x i32] undef, align 4

define internal fastcc i32 @total(ptr addrspace(3) %values, i32 %count) {
start:
  br label %head

head:
  %i = phi i32 [ 0, %start ], [ %next, %body ]
  %sum = phi i32 [ 0, %start ], [ %more, %body ]
  %go = icmp ult i32 %i, %count
  br i1 %go, label %body, label %end

body:
  %wide = zext i32 %i to i64
  %at = getelementptr inbounds i32, ptr addrspace(3) %values, i64 %wide
  %value = load i32, ptr addrspace(3) %at, align 4
  %more = add i32 %sum, %value
  %next = add nuw i32 %i, 1
  br label %head

end:
  ret i32 %sum
}

define ptx_kernel void @reduce(ptr noalias nocapture readonly %input.ptr, i64 %input.len, ptr noalias %output) {
start:
  %thread = call i32 @llvm.nvvm.read.ptx.sreg.tid.x()
  %i = zext i32 %thread to i64
  %inside = icmp ult i64 %i, %input.len
  br i1 %inside, label %read, label %panic

panic:
  call void @llvm.trap()
  unreachable

read:
  %from = getelementptr inbounds i32, ptr %input.ptr, i64 %i
  %value = load i32, ptr %from, align 4
  %to = getelementptr inbounds [64 x i32], ptr addrspace(3) @tile, i64 0, i64 %i
  store i32 %value, ptr addrspace(3) %to, align 4
  call void @llvm.nvvm.barrier0()
  %first = icmp eq i32 %thread, 0
  br i1 %first, label %sum, label %end

sum:
  %count = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
  %all = call fastcc i32 @total(ptr addrspace(3) @tile, i32 %count)
  %old = atomicrmw add ptr %output, i32 %all syncscope("device") monotonic
  br label %end

end:
  ret void
}

declare void @llvm.trap()
declare void @llvm.nvvm.barrier0()
declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
declare i32 @llvm.nvvm.read.ptx.sreg.tid.x()

!nvvm.annotations = !{!0}
!0 = !{ptr @reduce, !"kernel", i32 1}
