//! The text of `printf`.

use gridlet_lang::types::Scalar;

use crate::number;

/// The text of a format and its arguments: the conversions `d i u x X o c s p f e g %`, with flags, width and precision.
pub(super) fn format(
    format: &str,
    arguments: &[(Scalar, u64)],
    string: impl Fn(u64) -> Option<String>,
) -> String {
    let mut text = String::new();
    let mut rest = format.chars().peekable();
    let mut arguments = arguments.iter();
    while let Some(character) = rest.next() {
        if character != '%' {
            text.push(character);
            continue;
        }
        let mut spec = String::new();
        while let Some(next) = rest.next_if(|next| !next.is_ascii_alphabetic() && *next != '%') {
            spec.push(next);
        }
        while rest.next_if(|next| matches!(next, 'l' | 'h' | 'z' | 'j' | 't')).is_some() {}
        let conversion = rest.next().unwrap_or('%');
        if conversion == '%' {
            text.push('%');
            continue;
        }
        let Some((scalar, bits)) = arguments.next().copied() else { break };
        let flags = spec.find(|flag: char| !"-+ #0".contains(flag)).unwrap_or(spec.len());
        let (flags, sizes) = spec.split_at(flags);
        let (width, precision) = sizes.split_once('.').unwrap_or((sizes, ""));
        let has_precision = sizes.contains('.');
        let precision = precision.parse().unwrap_or(if has_precision { 0 } else { 6 });
        let body = match conversion {
            'd' | 'i' => (number::extend(scalar, bits) as i64).to_string(),
            'u' => bits.to_string(),
            'x' => format!("{bits:x}"),
            'X' => format!("{bits:X}"),
            'o' => format!("{bits:o}"),
            'p' => format!("{bits:#x}"),
            'c' => char::from(bits as u8).to_string(),
            's' => string(bits).unwrap_or_default(),
            'e' => format!("{:.precision$e}", number::to_f64(scalar, bits)),
            'g' => number::to_f64(scalar, bits).to_string(),
            _ => format!("{:.precision$}", number::to_f64(scalar, bits)),
        };
        let width: usize = width.parse().unwrap_or(0);
        if flags.contains('-') {
            text.push_str(&format!("{body:<width$}"));
        } else if flags.contains('0') {
            text.push_str(&format!("{body:0>width$}"));
        } else {
            text.push_str(&format!("{body:>width$}"));
        }
    }
    text
}
