; A module for a CPU.
target triple = "x86_64-unknown-linux-gnu"

define void @f() {
  ret void
}
