; A name that PTX cannot say.
target triple = "nvptx64-nvidia-cuda"

define void @"a.b"() {
  ret void
}
