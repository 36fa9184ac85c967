; GPUs have no exceptions.
target triple = "nvptx64-nvidia-cuda"

declare void @g()
declare i32 @personality()
define void @f() personality ptr @personality {
entry:
  invoke void @g() to label %a unwind label %b
a:
  ret void
b:
  %l = landingpad { ptr, i32 } cleanup
  ret void
}
