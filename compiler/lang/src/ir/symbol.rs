//! The symbols of functions and variables, as seen by other modules, the host and tools.
//!
//! Only kernels for GPUs and `extern fn`s have their names in the source as symbols, because hosts and other modules
//! find them by name; [`is_reserved`] says which names they must not have. Every other symbol of a program has a prefix
//! with a character that no name in C, LLVM or PTX has at that place, so it never meets a symbol of the C library, the
//! linker, LLVM or CUDA.

/// The prefix of `static` variables.
const STATIC: &str = "static$";

/// The prefix of symbols internal to a module.
pub const OWN: &str = "own.";

/// The prefix of the internal functions and variables that later stages add.
pub(crate) const GRIDLET: &str = "gridlet.";

/// The symbol of a kernel or an `extern fn`: PTX allows `[A-Za-z0-9_$]`. A `.` becomes `$`,
/// and so do the marks around const arguments: `k::<8, true>` is `k$8$true`, and `k::<-1>` is `k$m1`. Any
/// other byte becomes `$` and its two hexadecimal digits. Names in the language never contain `$`.
pub fn external(name: &str) -> String {
    readable(name).replace('.', "$")
}

/// The symbol of a variable that the host sees: a `static` of the program, or one of Gridlet's own, whose name is
/// reserved and is the symbol.
pub fn variable(name: &str) -> String {
    if is_reserved(name) { external(name) } else { format!("{STATIC}{}", external(name)) }
}

/// The symbol of a function or variable internal to its module. LLVM and libNVVM themselves rename a `.` in
/// these, and it reads better in LLVM's text form.
pub fn internal(name: &str) -> String {
    format!("{OWN}{}", readable(name.strip_prefix(OWN).unwrap_or(name)))
}

/// How PTX spells a symbol of LLVM's that is internal to its module (LLVM's pass `NVPTXAssignValidGlobalNames`).
pub fn in_ptx(symbol: &str) -> String {
    symbol.replace(['.', '@', '<', '>'], "_$_")
}

/// The name of an internal function that the source calls `name`, which is reserved.
pub fn own(name: &str) -> String {
    format!("{OWN}{name}")
}

fn readable(name: &str) -> String {
    let (before, rest) = match name.split_once("::<") {
        Some((before, rest)) => (before, Some(rest)),
        None => (name, None),
    };
    let mut symbol = plain(before);
    if let Some((arguments, after)) = rest.and_then(|rest| rest.split_once('>')) {
        for argument in arguments.split(", ") {
            symbol.push('$');
            symbol.push_str(&plain(&argument.replace('-', "m")));
        }
        symbol.push_str(&plain(after));
    }
    symbol
}

fn plain(name: &str) -> String {
    let mut symbol = String::with_capacity(name.len());
    for byte in name.bytes() {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'.' | b'$') {
            symbol.push(char::from(byte));
        } else {
            symbol.push_str(&format!("${byte:02x}"));
        }
    }
    symbol
}

/// Whether a kernel, a `static` variable or an `extern fn` must not have this name. The rule is in the reference
/// (docs/language.md, "Tokens"):
///
/// - `__…`: C reserves these names; CUDA's, libdevice's, ptxas's (`__UFT`) and Gridlet's own begin so.
/// - `cuda` or `cnp` and a capital letter: the device runtime's functions and those that it calls.
/// - `gridlet_cpu_…`: the interface of CPU images.
/// - C functions that CUDA defines on a GPU.
/// - Names that are [predefined in PTX](is_predefined).
pub fn is_reserved(name: &str) -> bool {
    const PREFIXES: [&str; 2] = ["__", "gridlet_cpu_"];
    const DEVICE_RUNTIME: [&str; 2] = ["cuda", "cnp"];
    const NAMES: [&str; 7] = ["vprintf", "printf", "malloc", "free", "memcpy", "memset", "memmove"];
    let in_device_runtime = |prefix: &&str| {
        let rest = name.strip_prefix(prefix);
        rest.is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()))
    };
    PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || DEVICE_RUNTIME.iter().any(in_device_runtime)
        || NAMES.contains(&name)
        || is_predefined(name)
}

/// Whether no kernel can have this name, because it is no identifier in PTX: `_` and `WARP_SZ` (PTX ISA, "Identifiers" and
/// "Predefined Identifiers"). ptxas 13.0 also predefines `A7`, and nvJitLink crashes on it.
pub fn is_predefined(name: &str) -> bool {
    ["_", "A7", "WARP_SZ"].contains(&name)
}

/// The prefix of kernels that are launch targets in instrumented builds.
const NESTED: &str = "gridlet.nested.";

/// The name of the launch target for `kernel` in instrumented builds.
pub fn nested(kernel: &str) -> String {
    format!("{NESTED}{kernel}")
}

/// The name of the function that does the work of `kernel` in instrumented builds.
pub fn work(kernel: &str) -> String {
    format!("gridlet.work.{kernel}")
}

/// The name of a kernel in the source, for messages.
pub fn source_name(kernel: &str) -> &str {
    kernel.strip_prefix(NESTED).unwrap_or(kernel)
}

#[cfg(test)]
mod tests {
    use super::{external, internal, is_reserved, nested, own, source_name, variable};

    #[test]
    fn symbols_are_legal_in_ptx() {
        assert_eq!(external("fill.serial"), "fill$serial");
        assert_eq!(internal("fill.body"), "own.fill.body");
        assert_eq!(external("a_1"), "a_1");
        assert_eq!(external("a b"), "a$20b");
    }

    #[test]
    fn only_kernels_and_externs_have_symbols_that_a_name_can_spell() {
        assert_eq!(internal("llvm"), "own.llvm");
        assert_eq!(internal(&own("malloc")), "own.malloc");
        assert_eq!(variable("sincosf"), "static$sincosf");
        assert_eq!(variable("__gridlet_lost_launches"), "__gridlet_lost_launches");
    }

    #[test]
    fn reserved_names_are_those_of_other_tools() {
        for name in [
            "cudaGetParameterBufferV2",
            "__cudaCDP2LaunchDeviceV2",
            "cnpGetLastError",
            "vprintf",
            "malloc",
            "__nv_sinf",
            "__UFT",
            "_",
            "A7",
            "WARP_SZ",
            "gridlet_cpu_kernels",
        ] {
            assert!(is_reserved(name), "{name}");
        }
        for name in [
            "cuda_sort",
            "cudalaunch",
            "cnp",
            "mallocs",
            "fill",
            "_cuda",
            "A8",
            "_x",
            "sinf",
            "_init",
            "llvm",
        ] {
            assert!(!is_reserved(name), "{name}");
        }
    }

    #[test]
    fn wrappers_are_named_after_their_kernel() {
        assert_eq!(external(&nested("k::<-1>")), "gridlet$nested$k$m1");
        assert_eq!([source_name(&nested("k::<8>")), source_name("k")], ["k::<8>", "k"]);
    }

    #[test]
    fn const_arguments_are_readable_in_symbols() {
        assert_eq!(external("f::<8>"), "f$8");
        assert_eq!(external("f::<-1, true, 20>"), "f$m1$true$20");
        assert_eq!(internal("k::<8>.body"), "own.k$8.body");
        assert_eq!(internal("k::<8>.tile.2"), "own.k$8.tile.2");
    }
}
