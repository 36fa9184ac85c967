; Floats of every type, in decimal and as bits, including special values.
target triple = "nvptx64-nvidia-cuda"

@floats = addrspace(1) constant [9 x float] [float 0.0, float -0.0, float 1.0, float 0x3FB99999A0000000, float 0x7FF0000000000000, float 0xFFF0000000000000, float 0x7FF8000000000000, float 0x36A0000000000000, float 0x47EFFFFFE0000000]
@doubles = addrspace(1) constant [7 x double] [double -1.5, double 0x3FB999999999999A, double 0x7FF0000000000000, double 0x7FF8000000000000, double 0x7FF4000000000000, double 4.9406564584124654e-324, double 1.0e300]
@halves = addrspace(1) constant [5 x half] [half 1.0, half 0xH7C00, half 0xH7E01, half 0xH0001, half -2.0]
@integers = addrspace(1) constant [4 x i64] [i64 -9223372036854775808, i64 9223372036854775807, i64 -1, i64 undef]
@wide = addrspace(1) constant i128 -170141183460469231731687303715884105728
@narrow = addrspace(1) constant [3 x i8] [i8 -128, i8 127, i8 poison]

define float @in_code(float %x) {
  %1 = fadd float %x, 0x3FB99999A0000000
  %2 = fcmp oeq float %1, 0x7FF0000000000000
  %3 = select i1 %2, float 0x7FF8000000000000, float 2.5
  %4 = fadd float %3, undef
  ret float %4
}
