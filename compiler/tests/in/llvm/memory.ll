; Stack slots, loads and stores of every type, addresses through structures and arrays, pointers to pointers.
target triple = "nvptx64-nvidia-cuda"

%pair = type { i32, [4 x double], ptr }

define void @all_types(ptr %p, ptr addrspace(1) %g, ptr addrspace(3) %s) {
entry:
  %slot = alloca i32, align 4
  %bytes = alloca [16 x i8], align 8
  %many = alloca double, i32 7, align 16
  %i8 = load i8, ptr %p, align 1
  %i16 = load i16, ptr %p, align 2
  %i32 = load i32, ptr %p, align 4
  %i64 = load volatile i64, ptr %p, align 8
  %half = load half, ptr %p, align 2
  %float = load float, ptr addrspace(1) %g, align 4, !invariant.load !0
  %double = load double, ptr addrspace(3) %s, align 8
  %pointer = load ptr, ptr %p, align 8
  %bit = load i1, ptr %p, align 1
  %vector = load <4 x float>, ptr %p, align 16
  %aggregate = load %pair, ptr %p, align 8
  %small = load i32, ptr %p, align 4, !range !1
  store i32 %i32, ptr %slot, align 4
  store i8 %i8, ptr %bytes, align 1
  store i16 %i16, ptr %bytes, align 2
  store double %double, ptr %many, align 8
  store volatile i64 %i64, ptr %pointer, align 8
  store ptr %slot, ptr %bytes, align 8
  store ptr addrspace(3) %s, ptr %p, align 8
  store %pair %aggregate, ptr %p, align 8
  store i32 %small, ptr %p, align 4, !nontemporal !2
  store <4 x float> %vector, ptr %bytes, align 4
  ret void
}

define double @addresses(ptr %p, i64 %i, ptr addrspace(3) %s) {
  %1 = getelementptr inbounds %pair, ptr %p, i64 %i, i32 1, i64 2
  %2 = load double, ptr %1, align 8
  %next = getelementptr inbounds nuw i8, ptr %1, i64 8
  %3 = load double, ptr %next, align 8
  %shared = getelementptr float, ptr addrspace(3) %s, i32 3
  %4 = load float, ptr addrspace(3) %shared, align 4
  %link = getelementptr %pair, ptr %p, i64 0, i32 2
  %5 = load ptr, ptr %link, align 8
  %6 = load double, ptr %5, align 8
  %generic = addrspacecast ptr addrspace(3) %shared to ptr
  %7 = load i32, ptr %generic, align 4
  %number = ptrtoint ptr %link to i64
  %back = inttoptr i64 %number to ptr
  %8 = load double, ptr %back, align 8
  %same = icmp eq ptr %1, %link
  %chosen = select i1 %same, ptr %1, ptr %back
  %9 = load double, ptr %chosen, align 8
  %s1 = fadd double %2, %3
  %s2 = fpext float %4 to double
  %s3 = fadd double %s1, %s2
  %s4 = fadd double %s3, %6
  %s5 = sitofp i32 %7 to double
  %s6 = fadd double %s4, %s5
  %s7 = fadd double %s6, %8
  %s8 = fadd double %s7, %9
  ret double %s8
}

define void @blocks_of_bytes(ptr %to, ptr addrspace(3) %from, i64 %n) {
  call void @llvm.memcpy.p0.p3.i64(ptr align 8 %to, ptr addrspace(3) align 4 %from, i64 %n, i1 false)
  call void @llvm.memmove.p0.p0.i32(ptr %to, ptr align 2 %to, i32 64, i1 true)
  call void @llvm.memset.p3.i32(ptr addrspace(3) align 16 %from, i8 0, i32 256, i1 false)
  call void @llvm.memcpy.inline.p0.p0.i64(ptr align 8 %to, ptr align 8 %to, i64 24, i1 false)
  %slot = alloca [4 x i32], align 4
  call void @llvm.lifetime.start.p0(ptr %slot)
  call void @llvm.memset.p0.i64(ptr align 4 %slot, i8 1, i64 16, i1 false)
  call void @llvm.memcpy.p0.p0.i64(ptr align 4 %to, ptr align 4 %slot, i64 16, i1 false)
  call void @llvm.lifetime.end.p0(ptr %slot)
  ret void
}

!0 = !{}
!1 = !{i32 0, i32 1024}
!2 = !{i32 1}
