; A branch to an address.
target triple = "nvptx64-nvidia-cuda"

define void @f(ptr %p) {
entry:
  indirectbr ptr %p, [label %a]
a:
  ret void
}
