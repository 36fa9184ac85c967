; Types of other targets.
@quad = addrspace(1) global fp128 0xL00000000000000000000000000000000

define ptx_kernel void @k(ptr %p, float %f, double %d) {
  %quad = fpext double %d to fp128
  %extended = fpext float %f to x86_fp80
  %scaled = insertelement <vscale x 4 x float> poison, float %f, i32 0
  ret void
}
