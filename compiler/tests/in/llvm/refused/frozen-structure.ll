; A freeze of a whole aggregate.
target triple = "nvptx64-nvidia-cuda"

define { i32, i32 } @f({ i32, i32 } %x) {
  %y = freeze { i32, i32 } %x
  ret { i32, i32 } %y
}
