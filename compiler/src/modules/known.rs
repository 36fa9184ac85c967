//! Functions that CUDA defines for every program, and their types. Tools link a declaration with another type all the same, and the
//! function then reads registers that nobody set.

use super::check::Finding;
use super::kernels::name;
use crate::nvvm::legacy::llvm::{Module, Value};

/// CUDA's functions for device code beside the device runtime's (CUDA Programming Guide, "Formatted Output", "Assertion" and
/// "Dynamic Global Memory Allocation"; the names and types are those that nvcc writes).
const CUDAS: [(&str, &str); 4] = [
    ("__assertfail", "void (ptr, ptr, i32, ptr, i64)"),
    ("free", "void (ptr)"),
    ("malloc", "ptr (i64)"),
    ("vprintf", "i32 (ptr, ptr)"),
];

const CUDA: &str = "CUDA";

/// How the names of libdevice's functions begin.
const PREFIX: &str = "__nv_";

/// The functions that the module declares with other types than they have.
pub(super) fn check(module: Module<'_>) -> Vec<Finding<'_>> {
    let functions = module.functions().into_iter();
    let declared = functions.filter(|function| function.is_declaration());
    declared
        .filter_map(|function| Some(Finding { at: Some(function), message: wrong(function)? }))
        .collect()
}

fn wrong(function: Value<'_>) -> Option<String> {
    let symbol = name(function);
    let (wanted, whose) = match symbol.strip_prefix(PREFIX) {
        Some(of) => (libdevice(of)?, "libdevice"),
        None => (CUDAS.iter().find(|(known, _)| *known == symbol)?.1, CUDA),
    };
    let given = function.value_type().print();
    // libdevice is linked as LLVM's code; the others are called in PTX, where a pointer is a number.
    let is_number = whose == CUDA && given.replace("i64", "ptr") == wanted.replace("i64", "ptr");
    (given != wanted && !is_number).then(|| {
        format!(
            "`{symbol}` is declared as `{given}`, but {whose} has it as `{wanted}`; declare and call it so"
        )
    })
}

/// The type of a function of libdevice, by its name without the prefix.
fn libdevice(function: &str) -> Option<&'static str> {
    let has = |(_, names): &&(&str, &str)| names.split(' ').any(|known| known == function);
    LIBDEVICE.iter().find(has).map(|(ty, _)| *ty)
}

/// The functions of libdevice by their type: all that `libdevice.10.bc` of CUDA 13.0 defines.
#[rustfmt::skip]
const LIBDEVICE: [(&str, &str); 40] = [
    (
        "i32 (i32)",
        "abs brev clz ffs popc",
    ),
    (
        "i32 (i64)",
        "clzll ffsll popcll",
    ),
    (
        "i32 (i32, i32, i32)",
        "byte_perm sad usad",
    ),
    (
        "i32 (i32, i32)",
        "hadd max min mul24 mulhi rhadd uhadd umax umin umul24 umulhi urhadd",
    ),
    (
        "i64 (i64, i64)",
        "llmax llmin mul64hi ullmax ullmin umul64hi",
    ),
    (
        "i64 (i64)",
        "brevll llabs",
    ),
    (
        "float (float)",
        "acosf acoshf asinf asinhf atanf atanhf cbrtf ceilf cosf coshf cospif cyl_bessel_i0f cyl_bessel_i1f erfcf \
         erfcinvf erfcxf erff erfinvf exp10f exp2f expf expm1f fabsf fast_cosf fast_exp10f fast_expf fast_log10f \
         fast_log2f fast_logf fast_sinf fast_tanf fast_tanhf floorf frcp_rd frcp_rn frcp_ru frcp_rz frsqrt_rn \
         fsqrt_rd fsqrt_rn fsqrt_ru fsqrt_rz j0f j1f lgammaf log10f log1pf log2f logbf logf nearbyintf normcdff \
         normcdfinvf rcbrtf rintf roundf rsqrtf saturatef sinf sinhf sinpif sqrtf tanf tanhf tgammaf truncf y0f y1f",
    ),
    (
        "double (double)",
        "acos acosh asin asinh atan atanh cbrt ceil cos cosh cospi cyl_bessel_i0 cyl_bessel_i1 drcp_rd drcp_rn \
         drcp_ru drcp_rz dsqrt_rd dsqrt_rn dsqrt_ru dsqrt_rz erf erfc erfcinv erfcx erfinv exp exp10 exp2 expm1 fabs \
         floor j0 j1 lgamma log log10 log1p log2 logb nearbyint normcdf normcdfinv rcbrt rcp64h rint round rsqrt sin \
         sinh sinpi sqrt tan tanh tgamma trunc y0 y1",
    ),
    (
        "float (float, float)",
        "atan2f copysignf fadd_rd fadd_rn fadd_ru fadd_rz fast_fdividef fast_powf fdimf fdiv_rd fdiv_rn fdiv_ru \
         fdiv_rz fmaxf fminf fmodf fmul_rd fmul_rn fmul_ru fmul_rz fsub_rd fsub_rn fsub_ru fsub_rz hypotf nextafterf \
         powf remainderf rhypotf",
    ),
    (
        "double (double, double)",
        "atan2 copysign dadd_rd dadd_rn dadd_ru dadd_rz ddiv_rd ddiv_rn ddiv_ru ddiv_rz dmul_rd dmul_rn dmul_ru \
         dmul_rz dsub_rd dsub_rn dsub_ru dsub_rz fdim fmax fmin fmod hypot nextafter pow remainder rhypot",
    ),
    (
        "float (float, float, float)",
        "fmaf fmaf_ieee_rd fmaf_ieee_rn fmaf_ieee_ru fmaf_ieee_rz fmaf_rd fmaf_rn fmaf_ru fmaf_rz norm3df rnorm3df",
    ),
    (
        "double (double, double, double)",
        "fma fma_rd fma_rn fma_ru fma_rz norm3d rnorm3d",
    ),
    (
        "float (double)",
        "double2float_rd double2float_rn double2float_ru double2float_rz",
    ),
    (
        "i32 (double)",
        "double2hiint double2int_rd double2int_rn double2int_ru double2int_rz double2loint double2uint_rd \
         double2uint_rn double2uint_ru double2uint_rz ilogb isfinited isinfd isnand signbitd",
    ),
    (
        "double (i32)",
        "int2double_rn uint2double_rn",
    ),
    (
        "i32 (float)",
        "finitef float2int_rd float2int_rn float2int_ru float2int_rz float2uint_rd float2uint_rn float2uint_ru \
         float2uint_rz float_as_int float_as_uint ilogbf isinff isnanf signbitf",
    ),
    (
        "float (i32)",
        "int2float_rd int2float_rn int2float_ru int2float_rz int_as_float uint2float_rd uint2float_rn uint2float_ru \
         uint2float_rz uint_as_float",
    ),
    (
        "double (i32, i32)",
        "hiloint2double",
    ),
    (
        "i64 (float)",
        "float2ll_rd float2ll_rn float2ll_ru float2ll_rz float2ull_rd float2ull_rn float2ull_ru float2ull_rz llrintf \
         llroundf",
    ),
    (
        "i64 (double)",
        "double2ll_rd double2ll_rn double2ll_ru double2ll_rz double2ull_rd double2ull_rn double2ull_ru double2ull_rz \
         double_as_longlong llrint llround",
    ),
    (
        "float (i64)",
        "ll2float_rd ll2float_rn ll2float_ru ll2float_rz ull2float_rd ull2float_rn ull2float_ru ull2float_rz",
    ),
    (
        "double (i64)",
        "ll2double_rd ll2double_rn ll2double_ru ll2double_rz longlong_as_double ull2double_rd ull2double_rn \
         ull2double_ru ull2double_rz",
    ),
    (
        "i16 (float)",
        "float2half_rn",
    ),
    (
        "float (i16)",
        "half2float",
    ),
    (
        "void (float, ptr, ptr)",
        "fast_sincosf sincosf sincospif",
    ),
    (
        "float (ptr)",
        "nanf",
    ),
    (
        "float (float, float, float, float)",
        "norm4df rnorm4df",
    ),
    (
        "float (i32, ptr)",
        "normf rnormf",
    ),
    (
        "float (i32, float)",
        "jnf ynf",
    ),
    (
        "float (float, i32)",
        "ldexpf powif scalbnf",
    ),
    (
        "float (float, ptr)",
        "frexpf modff",
    ),
    (
        "float (float, float, ptr)",
        "remquof",
    ),
    (
        "double (double, i32)",
        "ldexp powi scalbn",
    ),
    (
        "void (double, ptr, ptr)",
        "sincos sincospi",
    ),
    (
        "double (double, double, double, double)",
        "norm4d rnorm4d",
    ),
    (
        "double (i32, ptr)",
        "norm rnorm",
    ),
    (
        "double (i32, double)",
        "jn yn",
    ),
    (
        "double (double, ptr)",
        "frexp modf",
    ),
    (
        "double (double, double, ptr)",
        "remquo",
    ),
    (
        "double (ptr)",
        "nan",
    ),
];
