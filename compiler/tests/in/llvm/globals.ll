; Variables in every state space, their initial values, linkages, and constant expressions over them.
target triple = "nvptx64-nvidia-cuda"

%node = type { i32, ptr, [2 x half] }
%packed = type <{ i8, i32 }>
%0 = type { i64 }

@counter = addrspace(1) global i64 0, align 8
@shared = internal addrspace(3) global [64 x float] undef, align 4
@shared.poison = internal addrspace(3) global i32 poison, align 4
@dynamic = external addrspace(3) global [0 x i8], align 16
@table = internal unnamed_addr addrspace(4) constant [4 x i32] [i32 1, i32 -2, i32 3, i32 4], align 16
@text = private unnamed_addr addrspace(1) constant [9 x i8] c"a\09\22b\22\\\C3\A9\00", align 1
@list = addrspace(1) global %node { i32 7, ptr addrspacecast (ptr addrspace(1) @counter to ptr), [2 x half] [half 1.0, half 0xH7C00] }, align 8
@packed = weak addrspace(1) global %packed <{ i8 1, i32 2 }>, align 1
@literal = linkonce_odr addrspace(1) global { i8, { i16, [2 x i1] } } { i8 0, { i16, [2 x i1] } { i16 5, [2 x i1] [i1 true, i1 false] } }, align 2
@numbered = internal addrspace(1) global %0 { i64 1 }, align 8
@zero = common addrspace(1) global [3 x %node] zeroinitializer, align 8
@there = external addrspace(1) global i32, align 4
@host = addrspace(1) externally_initialized global [2 x i32] zeroinitializer, align 4
@generic = global i32 3, align 4
@vector = addrspace(1) global <4 x i32> splat (i32 9), align 16
@functions = addrspace(1) constant [2 x ptr] [ptr @first, ptr @second], align 8
@address = addrspace(1) global ptr getelementptr inbounds (i8, ptr addrspacecast (ptr addrspace(1) @table.copy to ptr), i64 4), align 8
@table.copy = internal addrspace(1) global [4 x i32] zeroinitializer, align 4
@distance = addrspace(1) global i64 0, align 8
@fields = addrspace(1) global ptr addrspace(1) getelementptr inbounds (%node, ptr addrspace(1) @list, i32 0, i32 2, i32 1), align 8
@copy = available_externally addrspace(1) global i32 5, align 4
@0 = private addrspace(1) constant i16 77, align 2
@"odd name" = internal addrspace(1) global i8 1, align 1
@llvm.used = appending global [1 x ptr] [ptr addrspacecast (ptr addrspace(1) @counter to ptr)], section "llvm.metadata"

define internal void @first() noinline {
  ret void
}

define internal void @second() noinline {
  ret void
}

define ptx_kernel void @touch(i32 %i) {
entry:
  %1 = atomicrmw add ptr addrspace(1) @counter, i64 1 syncscope("device") monotonic
  %at = getelementptr inbounds [64 x float], ptr addrspace(3) @shared, i32 0, i32 %i
  store float 1.0, ptr addrspace(3) %at, align 4
  store float 2.0, ptr addrspace(3) @shared, align 4
  store i32 3, ptr addrspace(3) @shared.poison, align 4
  store i32 4, ptr addrspace(3) getelementptr inbounds (i8, ptr addrspace(3) @dynamic, i32 8), align 4
  %2 = load i32, ptr addrspace(4) getelementptr inbounds ([4 x i32], ptr addrspace(4) @table, i32 0, i32 2), align 4
  %3 = load i8, ptr addrspace(1) @text, align 1
  %4 = load i16, ptr addrspace(1) @0, align 2
  %5 = load i8, ptr addrspace(1) @"odd name", align 1
  %6 = load i32, ptr addrspace(1) @copy, align 4
  %7 = load i32, ptr addrspace(1) @there, align 4
  %8 = load ptr, ptr addrspace(1) getelementptr inbounds ([2 x ptr], ptr addrspace(1) @functions, i32 0, i32 1), align 8
  call void %8()
  call void @first()
  store i32 %2, ptr @generic, align 4
  store i32 %6, ptr addrspacecast (ptr addrspace(1) @host to ptr), align 4
  store i32 %7, ptr addrspace(1) @vector, align 4
  %9 = load i64, ptr addrspace(1) @numbered, align 8
  store i64 %9, ptr addrspace(1) @counter, align 8
  store i64 sub (i64 ptrtoint (ptr addrspace(1) @text to i64), i64 ptrtoint (ptr addrspace(1) @counter to i64)), ptr addrspace(1) @distance, align 8
  ret void
}
