; Atomic operations of every kind, ordering and scope; atomic loads and stores; fences.
target triple = "nvptx64-nvidia-cuda"

define i32 @operations(ptr %p, i32 %v) {
  %1 = atomicrmw xchg ptr %p, i32 %v syncscope("device") monotonic
  %2 = atomicrmw add ptr %p, i32 %1 syncscope("device") monotonic
  %3 = atomicrmw sub ptr %p, i32 %2 syncscope("device") monotonic
  %4 = atomicrmw and ptr %p, i32 %3 syncscope("device") monotonic
  %5 = atomicrmw or ptr %p, i32 %4 syncscope("device") monotonic
  %6 = atomicrmw xor ptr %p, i32 %5 syncscope("device") monotonic
  %7 = atomicrmw max ptr %p, i32 %6 syncscope("device") monotonic
  %8 = atomicrmw min ptr %p, i32 %7 syncscope("device") monotonic
  %9 = atomicrmw umax ptr %p, i32 %8 syncscope("device") monotonic
  %10 = atomicrmw volatile umin ptr %p, i32 %9 syncscope("device") monotonic
  %11 = atomicrmw uinc_wrap ptr %p, i32 %10 syncscope("device") monotonic
  %12 = atomicrmw udec_wrap ptr %p, i32 %11 syncscope("device") monotonic
  ret i32 %12
}

define void @floats(ptr %p, ptr addrspace(3) %s, float %f, double %d) {
  %1 = atomicrmw fadd ptr %p, float %f syncscope("device") monotonic
  %2 = atomicrmw fsub ptr %p, float %1 syncscope("block") monotonic
  %3 = atomicrmw fadd ptr %p, double %d monotonic
  %4 = atomicrmw fadd ptr addrspace(3) %s, double %3 monotonic
  %5 = atomicrmw xchg ptr %p, float %2 syncscope("device") monotonic
  %6 = atomicrmw xchg ptr %p, ptr %p syncscope("device") monotonic
  ret void
}

define i64 @scopes(ptr %p, ptr addrspace(1) %g, ptr addrspace(3) %s, i64 %v, i32 %w) {
  %1 = atomicrmw add ptr %p, i64 %v syncscope("block") monotonic
  %2 = atomicrmw add ptr %p, i64 %1 monotonic
  %3 = atomicrmw umax ptr %p, i64 %2 monotonic
  %4 = atomicrmw umin ptr %p, i64 %3 syncscope("block") monotonic
  %5 = atomicrmw xor ptr addrspace(1) %g, i64 %4 monotonic
  %6 = atomicrmw add ptr addrspace(3) %s, i64 %5 monotonic
  %7 = atomicrmw sub ptr %p, i64 %6 monotonic
  %8 = atomicrmw add ptr %p, i64 %7 syncscope("cluster") monotonic
  %9 = atomicrmw add ptr %p, i64 %8 syncscope("singlethread") seq_cst
  %10 = atomicrmw uinc_wrap ptr %p, i32 %w monotonic
  %11 = atomicrmw umin ptr addrspace(1) %g, i32 %10 monotonic
  ret i64 %9
}

define void @orderings(ptr %p, i32 %v) {
  %1 = atomicrmw add ptr %p, i32 %v syncscope("device") acquire
  %2 = atomicrmw add ptr %p, i32 %1 syncscope("block") release
  %3 = atomicrmw add ptr %p, i32 %2 acq_rel
  %4 = atomicrmw add ptr %p, i32 %3 seq_cst
  fence syncscope("block") acquire
  fence syncscope("device") release
  fence syncscope("cluster") acq_rel
  fence seq_cst
  fence syncscope("singlethread") seq_cst
  ret void
}

define i32 @exchanges(ptr %p, ptr addrspace(3) %s, i32 %a, i32 %b, ptr %q) {
  %1 = cmpxchg ptr %p, i32 %a, i32 %b syncscope("device") monotonic monotonic
  %2 = extractvalue { i32, i1 } %1, 0
  %3 = cmpxchg weak ptr addrspace(3) %s, i32 %2, i32 %b acquire monotonic
  %4 = extractvalue { i32, i1 } %3, 1
  %5 = cmpxchg volatile ptr %p, i32 %2, i32 %b syncscope("block") release acquire
  %6 = extractvalue { i32, i1 } %5, 0
  %7 = cmpxchg ptr %p, i64 1, i64 2 seq_cst seq_cst
  %8 = extractvalue { i64, i1 } %7, 1
  %9 = cmpxchg ptr %p, ptr null, ptr %q syncscope("device") monotonic monotonic
  %10 = extractvalue { ptr, i1 } %9, 0
  %11 = cmpxchg ptr %p, ptr %10, ptr %q acq_rel monotonic
  %12 = extractvalue { ptr, i1 } %11, 1
  %13 = and i1 %4, %8
  %14 = and i1 %13, %12
  %15 = zext i1 %14 to i32
  %16 = add i32 %6, %15
  ret i32 %16
}

define i32 @loads_and_stores(ptr %p, ptr addrspace(3) %s, i32 %v) {
  %1 = load atomic i32, ptr %p syncscope("device") monotonic, align 4
  %2 = load atomic i32, ptr %p syncscope("block") acquire, align 4
  %3 = load atomic volatile i64, ptr %p seq_cst, align 8
  %4 = load atomic i32, ptr addrspace(3) %s unordered, align 4
  store atomic i32 %1, ptr %p syncscope("device") monotonic, align 4
  store atomic i32 %2, ptr addrspace(3) %s syncscope("device") release, align 4
  store atomic i64 %3, ptr %p seq_cst, align 8
  store atomic ptr %p, ptr %p monotonic, align 8
  store atomic float 1.0, ptr %p monotonic, align 4
  ret i32 %4
}
