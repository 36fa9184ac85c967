; Kernels: by-value parameters, launch bounds, attributes, and the module's own annotations.
target triple = "nvptx64-nvidia-cuda"

%big = type { i32, double }

define ptx_kernel void @bounds(ptr noalias nocapture readonly %in, ptr noundef nonnull align 16 %out) #0 {
  %1 = load i32, ptr %in, align 4
  store i32 %1, ptr %out, align 4
  ret void
}

define ptx_kernel void @by_value(ptr byval([16 x i8]) align 8 %s, ptr byval(%big) align 8 "nvvm.grid_constant" %t, i8 zeroext %flag) #1 {
  %first = load i32, ptr %s, align 8
  %at = getelementptr inbounds i8, ptr %s, i64 8
  %second = load double, ptr %at, align 8
  %third = getelementptr inbounds %big, ptr %t, i32 0, i32 1
  %old = load double, ptr %third, align 8
  %sum = fadd double %second, %old
  %small = fptosi double %sum to i32
  %total = add i32 %small, %first
  %on = trunc i8 %flag to i1
  %kept = select i1 %on, i32 %total, i32 0
  %result = call i32 @copied(ptr byval([16 x i8]) align 8 %s, i32 %kept)
  call void @sink(i32 %result)
  ret void
}

define ptx_kernel void @ranked() "nvvm.maxclusterrank"="4" {
  ret void
}

define internal i32 @copied(ptr byval([16 x i8]) align 8 %s, i32 %x) #2 {
  store i32 %x, ptr %s, align 8
  %again = load i32, ptr %s, align 8
  ret i32 %again
}

declare void @sink(i32) #3
declare i32 @pure(i32) #4
declare signext i8 @reads(ptr) #5

define void @calls(ptr %p) #6 {
  %1 = call i32 @pure(i32 1)
  %2 = call signext i8 @reads(ptr %p) #3
  call void @sink(i32 %1)
  ret void
}

define void @old_style(ptr %p) {
  ret void
}

define void @structure_result(ptr sret(%big) align 8 %result) {
  store %big { i32 1, double 2.0 }, ptr %result, align 8
  ret void
}

attributes #0 = { nounwind "nvvm.maxntid"="128" "nvvm.minctasm"="2" "target-cpu"="sm_90" }
attributes #1 = { convergent "nvvm.reqntid"="8,4,2" "nvvm.maxnreg"="64" "nvvm.cluster_dim"="2,1,1" }
attributes #2 = { noinline nounwind willreturn memory(argmem: readwrite) }
attributes #3 = { convergent nounwind }
attributes #4 = { nounwind willreturn memory(none) speculatable }
attributes #5 = { nounwind willreturn memory(argmem: read) }
attributes #6 = { alwaysinline mustprogress null_pointer_is_valid uwtable }

!nvvm.annotations = !{!0, !1}
!llvm.module.flags = !{!2, !3, !4}
!llvm.ident = !{!5}
!unknown.list = !{!5}

!0 = !{ptr @old_style, !"kernel", i32 1}
!1 = !{ptr @old_style, !"maxntidx", i32 32}
!2 = !{i32 4, !"nvvm-reflect-ftz", i32 1}
!3 = !{i32 8, !"PIC Level", i32 2}
!4 = !{i32 1, !"wchar_size", i32 4}
!5 = !{!"a compiler"}
