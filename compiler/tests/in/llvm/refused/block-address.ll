; The address of a block.
target triple = "nvptx64-nvidia-cuda"

define ptr @f() {
entry:
  br label %a
a:
  ret ptr blockaddress(@f, %a)
}
