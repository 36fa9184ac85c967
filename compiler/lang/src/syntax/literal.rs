//! The values of numbers and strings.

use half::{bf16, f16};

use crate::float::decimal_to_halves;
use crate::types::Scalar;

/// A number literal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Number {
    /// An integer and its suffix.
    Int(u128, Option<Scalar>),
    /// A float and its suffix.
    Float {
        /// The nearest `f64`.
        double: f64,
        /// The nearest `f32`; not always the nearest to `double`.
        single: f32,
        /// The nearest `f16`.
        half: f16,
        /// The nearest `bf16`.
        bfloat: bf16,
        /// The suffix.
        suffix: Option<Scalar>,
    },
}

/// The value of a number token, or a message saying why it is invalid.
pub(super) fn number(text: &str, is_float: bool) -> Result<Number, String> {
    if is_float { float(text) } else { integer(text) }
}

fn integer(text: &str) -> Result<Number, String> {
    let (radix, digits_and_suffix) = match text.get(..2) {
        Some("0x") => (16, &text[2..]),
        Some("0o") => (8, &text[2..]),
        Some("0b") => (2, &text[2..]),
        _ => (10, text),
    };
    let suffix_at = digits_and_suffix
        .find(|c: char| c != '_' && !c.is_digit(radix.max(10)))
        .unwrap_or(digits_and_suffix.len());
    let (digits, suffix) = digits_and_suffix.split_at(suffix_at);
    let suffix = suffix_type(suffix)?;
    if let Some(suffix) = suffix.filter(|suffix| !suffix.is_integer()) {
        return Err(format!("an integer in base {radix} cannot be `{}`", suffix.name()));
    }
    let mut value: u128 = 0;
    let mut seen = false;
    for digit in digits.chars().filter(|c| *c != '_') {
        let Some(digit) = digit.to_digit(radix) else {
            return Err(format!("`{digit}` is not a digit in base {radix}"));
        };
        // Far above the range of every type; the range check reports it.
        value = value.saturating_mul(radix.into()).saturating_add(digit.into());
        seen = true;
    }
    if seen { Ok(Number::Int(value, suffix)) } else { Err("this number has no digits".into()) }
}

fn float(text: &str) -> Result<Number, String> {
    let bytes = text.as_bytes();
    let mut at = 0;
    let digits = |from: usize| {
        from + bytes[from..].iter().take_while(|b| b.is_ascii_digit() || **b == b'_').count()
    };
    at = digits(at);
    if bytes.get(at) == Some(&b'.') {
        at = digits(at + 1);
    }
    if matches!(bytes.get(at), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(bytes.get(at + 1), Some(b'+' | b'-')));
        let end = digits(at + 1 + sign);
        if !bytes[at + 1 + sign..end].iter().any(u8::is_ascii_digit) {
            return Err("this exponent has no digits".into());
        }
        at = end;
    }
    let suffix = suffix_type(&text[at..])?;
    if let Some(suffix) = suffix.filter(|suffix| !suffix.is_float()) {
        return Err(format!(
            "a number with a fraction or an exponent cannot be `{}`",
            suffix.name()
        ));
    }
    let digits: String = text[..at].chars().filter(|c| *c != '_').collect();
    match (digits.parse(), digits.parse()) {
        (Ok(double), Ok(single)) => {
            let (half, bfloat) = decimal_to_halves(&digits, double);
            Ok(Number::Float { double, single, half, bfloat, suffix })
        }
        _ => Err("this is not a number".into()),
    }
}

fn suffix_type(suffix: &str) -> Result<Option<Scalar>, String> {
    if suffix.is_empty() {
        return Ok(None);
    }
    match Scalar::from_name(suffix) {
        Some(scalar) if scalar != Scalar::Bool => Ok(Some(scalar)),
        _ => Err(match suffix {
            // Suffixes from C.
            "f" | "F" => format!("`{suffix}` is not a numeric type; `f32` is, and needs no suffix"),
            "u" | "U" => format!("`{suffix}` is not a numeric type; `u32` is"),
            _ => format!("`{suffix}` is not a numeric type"),
        }),
    }
}

/// The value of a byte literal token, or the invalid part of it with a message. The part starts with `\` if
/// it is an escape.
pub(super) fn byte(token: &str) -> Result<u8, (std::ops::Range<usize>, &'static str)> {
    let body =
        token.strip_prefix("b'").and_then(|rest| rest.strip_suffix('\'')).unwrap_or_default();
    let whole = 2..2 + body.len();
    let value = match body.strip_prefix('\\') {
        None => match body.as_bytes() {
            [byte] if byte.is_ascii() && *byte != b'\'' => Some(*byte),
            _ => return Err((0..token.len(), "a byte literal is one ASCII character")),
        },
        Some("n") => Some(b'\n'),
        Some("r") => Some(b'\r'),
        Some("t") => Some(b'\t'),
        Some("0") => Some(0),
        Some(same @ ("\\" | "'" | "\"")) => same.bytes().next(),
        Some(escape) => match escape.strip_prefix('x').map(str::as_bytes) {
            Some([high, low]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                u8::from_str_radix(&escape[1..], 16).ok()
            }
            _ => None,
        },
    };
    value.ok_or((whole, "there is no such escape"))
}

/// A string with its escapes resolved.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Unescaped {
    /// The text.
    pub(super) text: String,
    /// For each byte of `text`, its position in the token.
    pub(super) offsets: Vec<u32>,
    /// Invalid escapes, as byte ranges of the token.
    pub(super) wrong: Vec<std::ops::Range<usize>>,
}

/// Resolves the escapes of a string token, quotes included.
pub(super) fn unescape(token: &str) -> Unescaped {
    let mut result = Unescaped::default();
    let body = token.strip_prefix('"').unwrap_or(token);
    // An unterminated string has no closing quote; the lexer reports it.
    let body = body.strip_suffix('"').unwrap_or(body);
    let mut chars = body.char_indices().peekable();
    while let Some((at, c)) = chars.next() {
        let start = at + 1;
        let c = if c != '\\' {
            c
        } else {
            let escape = chars.next().map(|(_, c)| c);
            match escape {
                Some('n') => '\n',
                Some('r') => '\r',
                Some('t') => '\t',
                Some('\\') => '\\',
                Some('"') => '"',
                Some('\'') => '\'',
                Some('x') => {
                    let mut digit =
                        || chars.next_if(|(_, c)| c.is_ascii_hexdigit()).map(|(_, c)| c);
                    let value = match (digit(), digit()) {
                        (Some(high), Some(low)) => {
                            high.to_digit(16).unwrap_or(0) * 16 + low.to_digit(16).unwrap_or(0)
                        }
                        _ => 0,
                    };
                    match char::from_u32(value) {
                        Some(c) if ('\u{1}'..='\u{7f}').contains(&c) => c,
                        _ => {
                            let end = chars.peek().map_or(body.len(), |(at, _)| *at) + 1;
                            result.wrong.push(start..end);
                            continue;
                        }
                    }
                }
                _ => {
                    let end = chars.peek().map_or(body.len(), |(at, _)| *at) + 1;
                    result.wrong.push(start..end);
                    continue;
                }
            }
        };
        result.text.push(c);
        result.offsets.resize(result.text.len(), u32::try_from(start).unwrap_or(u32::MAX));
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(text: &str) -> Result<Number, String> {
        number(text, false)
    }

    #[test]
    fn integers_have_radix_separators_and_suffix() {
        assert_eq!(int("1_000u64"), Ok(Number::Int(1000, Some(Scalar::U64))));
        assert_eq!(int("0xffff_ffff"), Ok(Number::Int(0xffff_ffff, None)));
        assert_eq!(int("0x1u8"), Ok(Number::Int(1, Some(Scalar::U8))));
        assert_eq!(int("0b101i32"), Ok(Number::Int(5, Some(Scalar::I32))));
        assert_eq!(int("0o17"), Ok(Number::Int(15, None)));
        assert_eq!(int("0x1f32"), Ok(Number::Int(0x1f32, None)));
    }

    #[test]
    fn invalid_integers_are_explained() {
        assert_eq!(int("0b12"), Err("`2` is not a digit in base 2".into()));
        assert_eq!(int("0x"), Err("this number has no digits".into()));
        assert_eq!(int("1u7"), Err("`u7` is not a numeric type".into()));
        assert_eq!(int("1bool"), Err("`bool` is not a numeric type".into()));
        assert!(int("0b1f32").is_err());
    }

    #[test]
    fn floats_round_once_for_each_type() {
        let Ok(Number::Float { double, single, suffix, .. }) = number("1.5e-3f64", true) else {
            panic!("not a float");
        };
        assert_eq!((double, single, suffix), (1.5e-3, 1.5e-3, Some(Scalar::F64)));
        // Just above the midpoint of two f32: going through f64 it would become the tie and round down.
        let text = "1.00000005960464477540";
        let Ok(Number::Float { double, single, .. }) = number(text, true) else {
            panic!("not a float");
        };
        assert_eq!(single, 1.000_000_1);
        assert_eq!(double as f32, 1.0);
        // Just above the midpoint of two f16, which is the nearest f64.
        let text = "1.000488281250000000000000000001_f16";
        let Ok(Number::Float { half, suffix, .. }) = number(text, true) else {
            panic!("not a float");
        };
        assert_eq!((half.to_bits(), suffix), (0x3c01, Some(Scalar::F16)));
        assert!(matches!(
            number("2bf16", true),
            Ok(Number::Float { suffix: Some(Scalar::Bf16), .. })
        ));
    }

    #[test]
    fn invalid_floats_are_explained() {
        assert_eq!(number("1e", true), Err("this exponent has no digits".into()));
        assert!(number("1.5u32", true).is_err());
        assert_eq!(number("1.5x", true), Err("`x` is not a numeric type".into()));
    }

    #[test]
    fn escapes_are_resolved_and_keep_their_places() {
        let result = unescape(r#""a\n\x41é""#);
        assert_eq!(result.text, "a\nAé");
        assert_eq!(result.offsets, [1, 2, 4, 8, 8]);
        assert!(result.wrong.is_empty());
        assert_eq!(unescape(r#""\q\x0g""#).wrong, [1..3, 3..6]);
        assert_eq!(unescape(r#""\0""#).wrong.first(), Some(&(1..3)));
    }
}
