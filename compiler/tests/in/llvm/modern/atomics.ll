; Atomic operations of every order and scope: libNVVM and LLVM drop both, or refuse them.
@s = internal addrspace(3) global i32 undef
define ptx_kernel void @k(ptr %p, i32 %x, i64 %l, float %f, double %d) {
  fence seq_cst
  fence syncscope("block") acquire
  fence syncscope("singlethread") seq_cst
  %a = atomicrmw add ptr %p, i32 %x seq_cst
  %b = atomicrmw fsub ptr %p, float %f syncscope("device") acq_rel
  %c = atomicrmw fadd ptr %p, double %d monotonic
  %e = atomicrmw sub ptr addrspace(3) @s, i32 %x seq_cst
  %g = atomicrmw xchg ptr %p, ptr %p release
  %h = atomicrmw xchg ptr %p, float %f monotonic
  %i = cmpxchg ptr %p, ptr null, ptr %p syncscope("device") acq_rel monotonic
  %j = cmpxchg ptr %p, i64 0, i64 %l acquire monotonic
  %k = load atomic i32, ptr %p acquire, align 4
  store atomic i32 %k, ptr %p release, align 4
  %m = load atomic float, ptr %p syncscope("block") monotonic, align 4
  store atomic ptr %p, ptr %p seq_cst, align 8
  %n = atomicrmw nand ptr %p, i32 %x seq_cst
  %i0 = extractvalue { ptr, i1 } %i, 0
  %j1 = extractvalue { i64, i1 } %j, 1
  %q = select i1 %j1, ptr %i0, ptr %g
  store volatile i32 %a, ptr %q
  store volatile float %b, ptr %q
  store volatile double %c, ptr %q
  store volatile i32 %e, ptr %q
  store volatile float %h, ptr %q
  store volatile float %m, ptr %q
  store volatile i32 %n, ptr %q
  ret void
}
