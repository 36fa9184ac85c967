//! The names of instances, as written by programs and hosts.

use std::str::FromStr;

use crate::syntax;

/// A kernel with const arguments as named by a host: `k::<8, true>`; without arguments, just the kernel's
/// name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelName {
    /// The kernel.
    pub kernel: String,
    /// Each value, and whether it is a `bool` (0 or 1) rather than an integer.
    pub(super) arguments: Vec<(i128, bool)>,
}

impl FromStr for KernelName {
    type Err = String;

    /// Parses the name in the language's syntax, with literals as arguments.
    fn from_str(text: &str) -> Result<Self, String> {
        let wrong =
            |what: &str| format!("`{text}` is not a kernel name: {what}; write `k` or `k::<8>`");
        let (kernel, rest) = match text.split_once("::") {
            None => (text, None),
            Some((kernel, rest)) => (kernel, Some(rest)),
        };
        let kernel = kernel.trim();
        // Kernels of NVVM IR may have a `$`.
        let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_$".contains(&byte);
        if kernel.is_empty() || !kernel.bytes().all(is_plain) {
            return Err(wrong("a name consists of letters, digits, `_` and `$`"));
        }
        let Some(rest) = rest else {
            return Ok(KernelName { kernel: kernel.into(), arguments: vec![] });
        };
        let list = rest.trim().strip_prefix('<').and_then(|rest| rest.strip_suffix('>'));
        let list = list.ok_or_else(|| wrong("constants go between `::<` and `>`"))?;
        let argument = |text: &str| {
            let text = text.trim();
            if let Ok(value) = text.parse::<bool>() {
                return Ok((i128::from(value), true));
            }
            let (sign, digits) = match text.strip_prefix('-') {
                Some(digits) => (-1, digits),
                None => (1, text),
            };
            let value = syntax::integer_literal(digits)
                .ok_or_else(|| wrong(&format!("`{text}` is neither an integer nor a `bool`")))?;
            Ok((sign * value, false))
        };
        let arguments = list.split(',').map(argument).collect::<Result<_, String>>()?;
        Ok(KernelName { kernel: kernel.into(), arguments })
    }
}

impl std::fmt::Display for KernelName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let values = self.arguments.iter().map(|(value, is_bool)| show(*value, *is_bool));
        f.write_str(&instance_name(&self.kernel, values))
    }
}

fn show(value: i128, is_bool: bool) -> String {
    if is_bool { (value != 0).to_string() } else { value.to_string() }
}

/// `f::<8, true>`, or `f` without arguments.
pub(super) fn instance_name(name: &str, arguments: impl Iterator<Item = String>) -> String {
    let arguments: Vec<String> = arguments.collect();
    if arguments.is_empty() { name.into() } else { format!("{name}::<{}>", arguments.join(", ")) }
}

#[cfg(test)]
mod tests {
    use super::KernelName;

    #[test]
    fn kernels_of_nvvm_ir_may_have_a_dollar_sign() {
        for name in ["a$b", "k", "k::<-1, true>"] {
            assert_eq!(name.parse::<KernelName>().unwrap().to_string(), name);
        }
        let error = "a.b".parse::<KernelName>().unwrap_err();
        assert!(error.contains("letters, digits, `_` and `$`"), "{error}");
    }
}
