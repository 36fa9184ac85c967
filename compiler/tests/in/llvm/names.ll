; Names: numbers, quotes, names that collide with those of casts, and unnamed blocks.
target triple = "nvptx64-nvidia-cuda"

@"1 odd variable" = internal addrspace(1) global ptr @"odd function", align 8
@used.by = internal addrspace(1) global ptr addrspace(1) @"1 odd variable", align 8

%"odd type" = type { i32 }

define internal void @"odd function"(ptr %0, ptr %p, ptr %p.cast, i32 %"a b") {
  %q = alloca i32, align 4
  %q.i8 = alloca i64, align 8
  store i32 %"a b", ptr %p, align 4
  store i64 0, ptr %p.cast, align 8
  store ptr %q, ptr %0, align 8
  store ptr %q.i8, ptr %0, align 8
  br label %2

2:
  %v3 = load i32, ptr %p, align 4
  %3 = load i32, ptr %p, align 4
  %4 = load i64, ptr %p, align 8
  %"1 2" = getelementptr %"odd type", ptr %p, i64 1
  %5 = load i64, ptr %"1 2", align 8
  br label %"next block"

"next block":
  %6 = load i32, ptr %p, align 4
  ret void
}

define void @main_function(ptr %p) {
  %f = load ptr, ptr addrspace(1) @"1 odd variable", align 8
  call void @"odd function"(ptr %p, ptr %p, ptr %f, i32 1)
  %u = load volatile ptr addrspace(1), ptr addrspace(1) @used.by, align 8
  ret void
}
