; Exceptions, in a module for GPUs.
declare i32 @__gxx_personality_v0(...)

define void @throws() {
  unreachable
}

define ptx_kernel void @k(ptr %p) personality ptr @__gxx_personality_v0 {
  invoke void @throws() to label %done unwind label %caught
done:
  ret void
caught:
  %pad = landingpad { ptr, i32 } cleanup
  resume { ptr, i32 } %pad
}
