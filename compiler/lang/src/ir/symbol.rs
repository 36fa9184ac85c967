//! The symbols of functions and variables, as seen by other modules, the host and tools.

/// The symbol of an externally visible function or variable: PTX allows `[A-Za-z0-9_$]`. A `.` becomes `$`,
/// and so do the marks around const arguments: `k::<8, true>` is `k$8$true`, and `k::<-1>` is `k$m1`. Any
/// other byte becomes `$` and its two hexadecimal digits. Names in the language never contain `$`.
pub fn external(name: &str) -> String {
    internal(name).replace('.', "$")
}

/// The symbol of a function or variable internal to its module. LLVM and libNVVM themselves rename a `.` in
/// these, and it reads better in LLVM's text form.
pub fn internal(name: &str) -> String {
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

/// Whether a name must not be the symbol of a kernel or a device function, because the device runtime, C's
/// device library, libdevice or Gridlet's own record has a symbol of that name, or may get one.
pub fn is_reserved(name: &str) -> bool {
    const PREFIXES: [&str; 5] = ["__cuda", "__nv", "__gridlet", "__assertfail", "llvm."];
    const NAMES: [&str; 7] = ["vprintf", "printf", "malloc", "free", "memcpy", "memset", "memmove"];
    let in_device_runtime = name
        .strip_prefix("cuda")
        .is_some_and(|rest| rest.starts_with(|first: char| first.is_ascii_uppercase()));
    in_device_runtime
        || PREFIXES.iter().any(|prefix| name.starts_with(prefix))
        || NAMES.contains(&name)
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
    use super::{external, internal, nested, source_name};

    #[test]
    fn symbols_are_legal_in_ptx() {
        assert_eq!(external("fill.serial"), "fill$serial");
        assert_eq!(internal("fill.body"), "fill.body");
        assert_eq!(external("a_1"), "a_1");
        assert_eq!(external("a b"), "a$20b");
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
        assert_eq!(internal("k::<8>.body"), "k$8.body");
        assert_eq!(internal("k::<8>.tile.2"), "k$8.tile.2");
    }
}
