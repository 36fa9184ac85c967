; Scopes of other targets, and operations that libNVVM lacks.
define ptx_kernel void @k(ptr %p, i32 %n, i8 %byte, float %f) {
  %a = atomicrmw add ptr %p, i32 %n syncscope("agent") monotonic
  fence syncscope("workgroup") seq_cst
  %b = cmpxchg ptr %p, i32 0, i32 %n syncscope("agent") monotonic monotonic
  %c = atomicrmw usub_sat ptr %p, i32 %n syncscope("device") monotonic
  %d = atomicrmw fmaximum ptr %p, float %f monotonic
  %e = atomicrmw xchg ptr %p, i8 %byte monotonic
  %g = cmpxchg ptr %p, i8 0, i8 %byte monotonic monotonic
  ret void
}
