; A name that PTX cannot spell.
target triple = "nvptx64-nvidia-cuda"

define void @"a.b"() {
  ret void
}
