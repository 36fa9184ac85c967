//! LLVM's intrinsics that libNVVM lacks.
//!
//! Source of the tables for the modern dialect: the intrinsics of LLVM 22 for all targets, on the types that they take and with and
//! without fast-math flags, in modules for `compute_100` that libNVVM of CUDA 12.8.93, 13.0.88 and 13.5.37 verified and compiled. An
//! intrinsic is missing where a step fails or crashes, and where the PTX has a call: 13.0 makes one of no function. What 13.0 and
//! 13.5 refuse is missing, although 12.8 verifies less. Intrinsics for coroutines, GC and exceptions were left out.

use gridlet_lang::arch::Dialect;

use super::names;

/// Functions of libdevice that do the work of an intrinsic, without the letter that marks `float`. The legacy dialect lacks all of
/// these intrinsics, the modern one all but `ldexp`.
const LIBDEVICE: [(&str, &str); 21] = [
    ("llvm.acos", "acos"),
    ("llvm.asin", "asin"),
    ("llvm.atan", "atan"),
    ("llvm.atan2", "atan2"),
    ("llvm.cos", "cos"),
    ("llvm.cosh", "cosh"),
    ("llvm.exp", "exp"),
    ("llvm.exp10", "exp10"),
    ("llvm.exp2", "exp2"),
    (LDEXP, "ldexp"),
    ("llvm.log", "log"),
    ("llvm.log10", "log10"),
    ("llvm.log2", "log2"),
    ("llvm.pow", "pow"),
    ("llvm.powi", "powi"),
    ("llvm.sin", "sin"),
    ("llvm.sincos", "sincos"),
    ("llvm.sincospi", "sincospi"),
    ("llvm.sinh", "sinh"),
    ("llvm.tan", "tan"),
    ("llvm.tanh", "tanh"),
];

const LDEXP: &str = "llvm.ldexp";

/// Of [`LIBDEVICE`], those that LLVM's own back end takes on `half` and `float`: on their own, or with the flag `afn`.
const TAKEN_BY_LLVM: [&str; 1] = ["llvm.exp2"];
const APPROXIMATED_BY_LLVM: [&str; 4] = ["llvm.cos", "llvm.sin", "llvm.sincos", "llvm.tanh"];

/// How the names of intrinsics begin that only architectures with a suffix have, such as `sm_90a`.
const SUFFIXED: [&str; 4] =
    ["llvm.nvvm.redux.sync.f", "llvm.nvvm.setmaxnreg.", "llvm.nvvm.tcgen05.", "llvm.nvvm.wgmma."];

/// Of [`LIBDEVICE`], those that CUDA 13.5 takes with the flag `afn`, except on `double`.
const APPROXIMATE: [&str; 2] = ["llvm.sincos", "llvm.tanh"];

const REMOVE: &str = "leave it out, because GPUs have nothing like it";
const MODES: &str =
    "leave it out, because rounding is part of a GPU's instruction, as in `llvm.nvvm.add.rz.f`";
const NEAREST: &str = "use `llvm.roundeven` and `fptosi`";
const SHIFTED: &str = "divide integers that are shifted before";
const ONE_BY_ONE: &str = "load and store the elements one by one";
const SHUFFLE: &str = "use `shufflevector`";
const FIXED: &str =
    "leave it out, and use an `alloca` of a constant size at the start of the function";

/// Other intrinsics that the modern dialect lacks, on all types or on those that the name has, and what to do instead.
const LACKING: [(&str, &str); 38] = [
    ("llvm.addressofreturnaddress", REMOVE),
    ("llvm.adjust.trampoline", REMOVE),
    ("llvm.clear_cache", REMOVE),
    ("llvm.eh.typeid.for", REMOVE),
    ("llvm.frameaddress", REMOVE),
    ("llvm.get.fpenv", MODES),
    ("llvm.get.fpmode", MODES),
    ("llvm.init.trampoline", REMOVE),
    ("llvm.llrint", NEAREST),
    ("llvm.localaddress", REMOVE),
    ("llvm.lrint", NEAREST),
    ("llvm.matrix", "compute with the elements"),
    ("llvm.memcpy.element.unordered.atomic", ONE_BY_ONE),
    ("llvm.memmove.element.unordered.atomic", ONE_BY_ONE),
    ("llvm.memset.element.unordered.atomic", ONE_BY_ONE),
    ("llvm.objectsize", "write the size as a number"),
    ("llvm.pcmarker", REMOVE),
    ("llvm.prefetch", "leave it out, or use `llvm.nvvm.prefetch.global.L2`"),
    ("llvm.read_register", REMOVE),
    ("llvm.readcyclecounter", "use `llvm.nvvm.read.ptx.sreg.clock64`"),
    ("llvm.reset.fpenv", MODES),
    ("llvm.reset.fpmode", MODES),
    ("llvm.returnaddress", REMOVE),
    ("llvm.round", "call `__nv_round` or `__nv_roundf` of libdevice"),
    ("llvm.sdiv.fix", SHIFTED),
    ("llvm.set.fpenv", MODES),
    ("llvm.set.fpmode", MODES),
    ("llvm.set.rounding", MODES),
    ("llvm.stackaddress", REMOVE),
    ("llvm.stackguard", REMOVE),
    ("llvm.stackprotector", REMOVE),
    ("llvm.stackrestore", FIXED),
    ("llvm.stacksave", FIXED),
    ("llvm.thread.pointer", REMOVE),
    ("llvm.udiv.fix.i64", SHIFTED),
    ("llvm.udiv.fix.sat.i64", SHIFTED),
    ("llvm.vector.interleave3", SHUFFLE),
    ("llvm.vscale", "use vectors of a fixed length"),
];

/// Intrinsics that the modern dialect has on these types only.
const TYPES: [(&str, &[&str]); 7] = [
    ("llvm.bswap", &WORDS),
    ("llvm.sadd.with.overflow", &WORDS),
    ("llvm.smul.with.overflow", &WORDS),
    ("llvm.ssub.with.overflow", &WORDS),
    ("llvm.uadd.with.overflow", &WORDS),
    ("llvm.umul.with.overflow", &WORDS),
    ("llvm.usub.with.overflow", &WORDS),
];

const WORDS: [&str; 3] = ["i16", "i32", "i64"];

/// Intrinsics that libNVVM of CUDA 12.8 or 13.0 lacks, at least on some types, and that of CUDA 13.5 has.
const NEWER: [&str; 13] = [
    "llvm.canonicalize",
    "llvm.clmul",
    "llvm.llround",
    "llvm.lround",
    "llvm.masked.load",
    "llvm.masked.store",
    "llvm.maximumnum",
    "llvm.minimumnum",
    "llvm.modf",
    "llvm.trunc",
    "llvm.vector.partial.reduce.add",
    "llvm.vector.splice.left",
    "llvm.vector.splice.right",
];

/// The types behind the name of an intrinsic, if a symbol is that intrinsic.
fn types_of<'s>(symbol: &'s str, intrinsic: &str) -> Option<&'s str> {
    let types = symbol.strip_prefix(intrinsic)?;
    (types.is_empty() || types.starts_with('.')).then_some(types)
}

/// The name of the form without rounding mode.
fn plain(symbol: &str) -> String {
    symbol.replacen("llvm.experimental.constrained.", "llvm.", 1)
}

/// The function of libdevice that does the work of an intrinsic, and the types behind the intrinsic's name.
pub(crate) fn libdevice(symbol: &str) -> Option<(String, &str)> {
    let find = |(known, function)| Some((function, types_of(symbol, known)?));
    let (function, types) = LIBDEVICE.into_iter().find_map(find)?;
    Some((format!("__nv_{function}{}", if types.contains("f64") { "" } else { "f" }), types))
}

/// Whether only the flag `afn` makes libNVVM of CUDA 13.5 take an intrinsic.
fn needs_approximation(symbol: &str) -> bool {
    APPROXIMATE.iter().any(|known| types_of(symbol, known).is_some()) && !symbol.contains("f64")
}

/// Whether only architectures with a suffix have an intrinsic. Gridlet compiles for none of them.
pub(crate) fn needs_suffix(symbol: &str) -> bool {
    SUFFIXED.iter().any(|known| symbol.starts_with(known))
}

/// What to do in place of a call of an intrinsic that LLVM's own back end lacks. `is_approximate` as for [`instead`].
pub(crate) fn instead_for_llvm(symbol: &str, is_approximate: bool) -> Option<String> {
    let symbol = plain(symbol);
    let is_one_of = |list: &[&str]| list.iter().any(|known| types_of(&symbol, known).is_some());
    let is_narrow = !symbol.contains("f64");
    let is_taken = is_one_of(&[LDEXP])
        || is_narrow
            && (is_one_of(&TAKEN_BY_LLVM) || is_approximate && is_one_of(&APPROXIMATED_BY_LLVM));
    if is_taken { None } else { by_libdevice(&symbol) }
}

/// The call of libdevice in place of an intrinsic.
fn by_libdevice(symbol: &str) -> Option<String> {
    let (function, types) = libdevice(symbol)?;
    let on = if types.contains("f16") { ", on `float`" } else { "" };
    let each = if types.contains(".v") { ", for each element" } else { "" };
    Some(format!("call `{function}` of libdevice{on}{each}"))
}

/// What to do in place of a call of an intrinsic that libNVVM lacks. In the legacy dialect these are only those with a function of
/// libdevice and those of the stack; its writer knows the others. `is_approximate`: the call has the flag `afn`.
pub(crate) fn instead(symbol: &str, dialect: Dialect, is_approximate: bool) -> Option<String> {
    let symbol = plain(symbol);
    let is_modern = dialect == Dialect::Modern;
    let is_taken = is_modern
        && (types_of(&symbol, LDEXP).is_some() || is_approximate && needs_approximation(&symbol));
    if is_taken {
        return None;
    }
    if let Some(instead) = by_libdevice(&symbol) {
        return Some(instead);
    }
    if types_of(&symbol, "llvm.stacksave").or(types_of(&symbol, "llvm.stackrestore")).is_some() {
        return Some(FIXED.into());
    }
    if !is_modern {
        return None;
    }
    let is_wrong_type = |(known, types): &(&str, &[&str])| {
        types_of(&symbol, known).is_some_and(|given| !types.contains(&&given[1..]))
    };
    if TYPES.iter().any(is_wrong_type) {
        return Some(format!("use it on {}", WORDS.map(|ty| format!("`{ty}`")).join(", ")));
    }
    let find =
        |(known, instead): &(&str, &str)| types_of(&symbol, known).map(|_| (*instead).into());
    LACKING.iter().find_map(find)
}

/// Whether an older libNVVM lacks an intrinsic of the modern dialect that a newer one has. `is_approximate` as for [`instead`].
pub(crate) fn is_newer(symbol: &str, is_approximate: bool) -> bool {
    let symbol = plain(symbol);
    let is_newer = NEWER.iter().any(|known| types_of(&symbol, known).is_some());
    is_newer && !names::is_renamed(&symbol) || is_approximate && needs_approximation(&symbol)
}

#[cfg(test)]
mod tests {
    use gridlet_lang::arch::Dialect;

    use super::{instead, instead_for_llvm, is_newer};

    #[test]
    fn what_to_do_depends_on_the_types() {
        let modern = |symbol, is_approximate| instead(symbol, Dialect::Modern, is_approximate);
        for (symbol, wanted) in [
            ("llvm.sin.f32", "call `__nv_sinf` of libdevice"),
            ("llvm.sin.f64", "call `__nv_sin` of libdevice"),
            ("llvm.cos.f16", "call `__nv_cosf` of libdevice, on `float`"),
            ("llvm.pow.v2f64", "call `__nv_pow` of libdevice, for each element"),
            ("llvm.experimental.constrained.tan.f32", "call `__nv_tanf` of libdevice"),
            ("llvm.sdiv.fix.sat.i32", "divide integers that are shifted before"),
            ("llvm.uadd.with.overflow.i8", "use it on `i16`, `i32`, `i64`"),
        ] {
            assert_eq!(modern(symbol, false).as_deref(), Some(wanted), "{symbol}");
        }
        // Another intrinsic begins with the same letters, or it has other types.
        for symbol in [
            "llvm.experimental.widenable.condition",
            "llvm.uadd.with.overflow.i32",
            "llvm.sqrt.f32",
        ] {
            assert!(modern(symbol, false).is_none() && !is_newer(symbol, false), "{symbol}");
        }
        assert!(modern("llvm.tanh.f32", true).is_none() && is_newer("llvm.tanh.f32", true));
        assert!(modern("llvm.tanh.f64", true).is_some() && !is_newer("llvm.tanh.f64", true));
        assert!(is_newer("llvm.trunc.f16", false) && !is_newer("llvm.trunc.f32", false));
        assert!(modern("llvm.ldexp.f32.i32", false).is_none());
        let llvm = |symbol, is_approximate| instead_for_llvm(symbol, is_approximate);
        assert!(llvm("llvm.sin.f32", false).is_some() && llvm("llvm.sin.f32", true).is_none());
        assert!(llvm("llvm.sin.f64", true).is_some() && llvm("llvm.exp2.f32", false).is_none());
        assert!(
            llvm("llvm.exp2.f64", false).is_some() && llvm("llvm.ldexp.f64.i32", false).is_none()
        );
        assert!(llvm("llvm.sqrt.f32", false).is_none());
        let legacy = |symbol| instead(symbol, Dialect::Legacy, true);
        assert!(legacy("llvm.ldexp.f32.i32").is_some() && legacy("llvm.tanh.f32").is_some());
        assert!(legacy("llvm.round.f32").is_none() && legacy("llvm.bswap.v2i32").is_none());
    }
}
