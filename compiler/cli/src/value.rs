//! Values as text: the arguments of `--arg`, and the elements that `--print` shows.
//!
//! Bytes are little-endian and laid out according to the manifest.

use gridlet::float;
use gridlet_runtime::manifest::{Manifest, Type};
use half::{bf16, f16};
use serde_json::{Map, Value};

/// Encodes `text` as a scalar of the named type.
pub(crate) fn encode_scalar(text: &str, scalar: &str) -> Result<Vec<u8>, String> {
    fn integer<T: TryFrom<i128>>(text: &str, scalar: &str) -> Result<T, String> {
        let plain = text.replace('_', "");
        let (negative, digits) = match plain.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, plain.as_str()),
        };
        let parsed = match digits.strip_prefix("0x").or_else(|| digits.strip_prefix("0X")) {
            Some(hex) => i128::from_str_radix(hex, 16),
            None => digits.parse(),
        };
        let value =
            parsed.map_err(|_| format!("`{text}` is not an integer; the type is {scalar}"))?;
        let value = if negative { -value } else { value };
        T::try_from(value).map_err(|_| format!("{text} does not fit {scalar}"))
    }
    fn float(text: &str, scalar: &str) -> Result<f64, String> {
        text.replace('_', "")
            .parse()
            .map_err(|_| format!("`{text}` is not a number; the type is {scalar}"))
    }
    Ok(match scalar {
        "bool" => match text {
            "true" => vec![1],
            "false" => vec![0],
            _ => return Err(format!("`{text}` is not `true` or `false`; the type is bool")),
        },
        "i8" => integer::<i8>(text, scalar)?.to_le_bytes().to_vec(),
        "i16" => integer::<i16>(text, scalar)?.to_le_bytes().to_vec(),
        "i32" => integer::<i32>(text, scalar)?.to_le_bytes().to_vec(),
        "i64" => integer::<i64>(text, scalar)?.to_le_bytes().to_vec(),
        "u8" => integer::<u8>(text, scalar)?.to_le_bytes().to_vec(),
        "u16" => integer::<u16>(text, scalar)?.to_le_bytes().to_vec(),
        "u32" => integer::<u32>(text, scalar)?.to_le_bytes().to_vec(),
        "u64" => integer::<u64>(text, scalar)?.to_le_bytes().to_vec(),
        other => encode_float(float(text, scalar)?, other)
            .ok_or_else(|| format!("the manifest names an unknown scalar type `{other}`"))?,
    })
}

/// Encodes a float of the named type, rounded; `None` if that is not a float type.
pub(crate) fn encode_float(value: f64, scalar: &str) -> Option<Vec<u8>> {
    Some(match scalar {
        "f16" => float::to_f16(value).to_le_bytes().to_vec(),
        "bf16" => float::to_bf16(value).to_le_bytes().to_vec(),
        "f32" => (value as f32).to_le_bytes().to_vec(),
        "f64" => value.to_le_bytes().to_vec(),
        _ => return None,
    })
}

/// A value as JSON: structs by field name, vectors and arrays as arrays, pointers as `0x…` strings,
/// and floats that JSON cannot represent as `"NaN"`, `"inf"`, `"-inf"`.
pub(crate) fn decode(bytes: &[u8], ty: &Type, manifest: &Manifest) -> Value {
    match ty {
        Type::Scalar(scalar) => decode_scalar(bytes, scalar),
        Type::Vector { element, count } => {
            let size = bytes.len() / (*count).max(1) as usize;
            bytes.chunks_exact(size.max(1)).map(|part| decode_scalar(part, element)).collect()
        }
        Type::Array { element, count } => {
            let size = bytes.len() / usize::try_from(*count).unwrap_or(usize::MAX).max(1);
            bytes.chunks_exact(size.max(1)).map(|part| decode(part, element, manifest)).collect()
        }
        Type::Struct(name) => {
            let Some(item) = manifest.structs.iter().find(|item| item.name == *name) else {
                return Value::Null;
            };
            let fields = item.fields.iter().filter_map(|field| {
                let start = usize::try_from(field.offset).ok()?;
                let size = usize::try_from(manifest.size_of(&field.ty)?).ok()?;
                Some((
                    field.name.clone(),
                    decode(bytes.get(start..start + size)?, &field.ty, manifest),
                ))
            });
            Value::Object(fields.collect::<Map<_, _>>())
        }
        Type::Pointer { .. } | Type::Stream => match bytes.try_into() {
            Ok(word) => Value::String(format!("{:#x}", u64::from_le_bytes(word))),
            Err(_) => Value::Null,
        },
    }
}

fn decode_scalar(bytes: &[u8], scalar: &str) -> Value {
    fn word<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.try_into().unwrap_or([0; N])
    }
    fn float(value: f64) -> Value {
        match serde_json::Number::from_f64(value) {
            Some(number) => Value::Number(number),
            None => Value::String(value.to_string()),
        }
    }
    match scalar {
        "bool" => Value::Bool(word::<1>(bytes)[0] != 0),
        "i8" => i8::from_le_bytes(word(bytes)).into(),
        "i16" => i16::from_le_bytes(word(bytes)).into(),
        "i32" => i32::from_le_bytes(word(bytes)).into(),
        "i64" => i64::from_le_bytes(word(bytes)).into(),
        "u8" => u8::from_le_bytes(word(bytes)).into(),
        "u16" => u16::from_le_bytes(word(bytes)).into(),
        "u32" => u32::from_le_bytes(word(bytes)).into(),
        "u64" => u64::from_le_bytes(word(bytes)).into(),
        "f16" => float(f16::from_le_bytes(word(bytes)).to_f64()),
        "bf16" => float(bf16::from_le_bytes(word(bytes)).to_f64()),
        // The shortest decimal that reads back as the same f32, instead of its f64 expansion.
        "f32" => {
            let value = f32::from_le_bytes(word(bytes));
            value.to_string().parse().map_or_else(|_| float(f64::from(value)), float)
        }
        "f64" => float(f64::from_le_bytes(word(bytes))),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn scalars_round_trip_at_their_limits() {
        for (scalar, texts) in [
            ("i8", vec!["-128", "127"]),
            ("u64", vec!["18446744073709551615", "0"]),
            ("i64", vec!["-9223372036854775808"]),
            ("bool", vec!["true", "false"]),
            ("f16", vec!["65504.0", "-0.5"]),
            ("bf16", vec!["1.5"]),
            ("f32", vec!["0.1", "-1e-45"]),
            ("f64", vec!["0.1"]),
        ] {
            for text in texts {
                let bytes = encode_scalar(text, scalar).unwrap();
                let shown = decode_scalar(&bytes, scalar);
                let same = match &shown {
                    Value::Number(number) if number.is_f64() => {
                        number.as_f64() == text.parse().ok()
                    }
                    Value::Bool(shown) => shown.to_string() == text,
                    Value::Number(shown) => shown.to_string() == text,
                    _ => false,
                };
                assert!(same, "{text} as {scalar} is shown as {shown}");
            }
        }
    }

    #[test]
    fn narrow_floats_round_once() {
        // Rounded to f32 first, it would lie halfway between two f16 values, and then become 1.
        let text = "1.000488281251";
        assert_eq!(encode_scalar(text, "f16").unwrap(), 0x3c01_u16.to_le_bytes());
        assert_eq!(encode_scalar("65519.99", "f16").unwrap(), 0x7bff_u16.to_le_bytes());
        assert_eq!(encode_scalar("1.00390625", "bf16").unwrap(), 0x3f80_u16.to_le_bytes());
    }

    #[test]
    fn values_out_of_range_are_refused() {
        assert_eq!(encode_scalar("256", "u8").unwrap_err(), "256 does not fit u8");
        assert_eq!(encode_scalar("-1", "u32").unwrap_err(), "-1 does not fit u32");
        assert_eq!(
            encode_scalar("1.5", "i32").unwrap_err(),
            "`1.5` is not an integer; the type is i32"
        );
        assert_eq!(
            encode_scalar("yes", "bool").unwrap_err(),
            "`yes` is not `true` or `false`; the type is bool"
        );
        assert_eq!(encode_scalar("0xff", "u8").unwrap(), [255]);
    }

    #[test]
    fn floats_without_a_json_number_are_strings() {
        assert_eq!(decode_scalar(&f32::NAN.to_le_bytes(), "f32"), Value::String("NaN".into()));
        assert_eq!(
            decode_scalar(&f64::NEG_INFINITY.to_le_bytes(), "f64"),
            Value::String("-inf".into())
        );
    }
}
