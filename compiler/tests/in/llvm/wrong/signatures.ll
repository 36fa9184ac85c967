target triple = "nvptx64-nvidia-cuda"

declare double @__nv_sinf(double)
declare float @__nv_powf(float)
declare i32 @__nv_sqrtf(float)
declare float @__nv_cosf(float)
declare i32 @vprintf(ptr, i32)
declare void @__assertfail(ptr)
declare ptr @malloc(i32)
declare void @free(ptr addrspace(1))

define ptx_kernel void @k(ptr %p) {
  %sine = call double @__nv_sinf(double 1.0)
  store double %sine, ptr %p
  %power = call float @__nv_powf(float 2.0)
  store float %power, ptr %p
  %root = call i32 @__nv_sqrtf(float 2.0)
  store i32 %root, ptr %p
  %cosine = call float @__nv_cosf(float 2.0)
  store float %cosine, ptr %p
  %count = call i32 @vprintf(ptr %p, i32 1)
  call void @__assertfail(ptr %p)
  %memory = call ptr @malloc(i32 64)
  %global = addrspacecast ptr %memory to ptr addrspace(1)
  call void @free(ptr addrspace(1) %global)
  ret void
}
