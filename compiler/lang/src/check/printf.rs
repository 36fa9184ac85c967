//! `printf`: checks the arguments against the format.

use super::body::Body;
use super::calls::counted_arguments;
use super::expressions::typed;
use super::tree::{Expr, ExprKind};
use crate::builtins::Builtin;
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{Scalar, Type};

/// The maximum number of arguments after the format in device-side `printf` (CUDA C++ Programming Guide,
/// "Formatted Output", "Limitations").
const MAX_ARGUMENTS: usize = 32;

/// The argument that a conversion needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    /// `*`: a width.
    Width,
    /// `%d`, `%i`; true if long.
    Signed(bool),
    /// `%u`; true if long.
    Unsigned(bool),
    /// `%x`, `%o`: bits of either signedness; true if long.
    Bits(bool),
    /// `%c`
    Character,
    /// `%f` and its variants.
    Float,
    /// `%p`
    Pointer,
    /// `%s`
    Text,
}

/// A conversion in a format.
struct Conversion {
    wanted: Wanted,
    /// Its range in the format, in bytes.
    range: std::ops::Range<usize>,
}

/// Finds the conversions of a format (CUDA C++ Programming Guide, "Format Specifiers":
/// `%[flags][width][.precision][size]type`), and invalid ones with their range and a message.
fn conversions(format: &str) -> (Vec<Conversion>, Vec<(std::ops::Range<usize>, String)>) {
    let bytes = format.as_bytes();
    let (mut found, mut wrong) = (vec![], vec![]);
    let mut at = 0;
    while let Some(offset) = format[at..].find('%') {
        let start = at + offset;
        let run = |from: usize, set: &[u8]| {
            from + bytes[from..].iter().take_while(|byte| set.contains(byte)).count()
        };
        at = run(start + 1, b"#0+- ");
        if bytes.get(at) == Some(&b'*') {
            found.push(Conversion { wanted: Wanted::Width, range: at..at + 1 });
            at += 1;
        } else {
            at = run(at, b"0123456789");
        }
        if bytes.get(at) == Some(&b'.') {
            at = run(at + 1, b"0123456789");
        }
        let size_end = run(at, b"hl");
        let size = &format[at..size_end];
        let conversion = format[size_end..].chars().next();
        at = size_end + conversion.map_or(0, char::len_utf8);
        let range = start..at;
        let long = matches!(size, "l" | "ll");
        let wanted = match conversion {
            Some('%') if range.len() == 2 => continue,
            Some('d' | 'i') => Wanted::Signed(long),
            Some('u') => Wanted::Unsigned(long),
            Some('x' | 'X' | 'o') => Wanted::Bits(long),
            Some('c') if size.is_empty() => Wanted::Character,
            Some('f' | 'F' | 'e' | 'E' | 'g' | 'G' | 'a' | 'A') if matches!(size, "" | "l") => {
                Wanted::Float
            }
            Some('p') if size.is_empty() => Wanted::Pointer,
            Some('s') if size.is_empty() => Wanted::Text,
            None => {
                wrong.push((
                    range,
                    "incomplete conversion; write `%%` for a percent sign".to_string(),
                ));
                continue;
            }
            _ => {
                let text = format[range.clone()].escape_debug();
                wrong.push((range, format!("`{text}` is not a conversion")));
                continue;
            }
        };
        if !matches!(size, "" | "h" | "l" | "ll") {
            wrong.push((range, format!("`{size}` is not a size; the sizes are `h`, `l` and `ll`")));
            continue;
        }
        found.push(Conversion { wanted, range });
    }
    (found, wrong)
}

/// The types that C passes for the conversions of a format, in order; `None` if one of them is invalid.
pub fn passed_types(format: &str) -> Option<Vec<Type>> {
    let (found, wrong) = conversions(format);
    let ty = |conversion: &Conversion| match conversion.wanted {
        Wanted::Width | Wanted::Signed(false) | Wanted::Character => Type::I32,
        Wanted::Signed(true) => Type::I64,
        Wanted::Unsigned(false) | Wanted::Bits(false) => Type::U32,
        Wanted::Unsigned(true) | Wanted::Bits(true) => Type::U64,
        Wanted::Float => Type::F64,
        Wanted::Pointer | Wanted::Text => Type::pointer_const(Type::Scalar(Scalar::U8)),
    };
    wrong.is_empty().then(|| found.iter().map(ty).collect())
}

impl Wanted {
    /// Its name in messages.
    fn describe(self) -> &'static str {
        match self {
            Wanted::Width => "an `i32`",
            Wanted::Signed(false) => "a signed integer of up to 32 bits",
            Wanted::Signed(true) => "an `i64`",
            Wanted::Unsigned(false) => "an unsigned integer of up to 32 bits",
            Wanted::Unsigned(true) => "a `u64`",
            Wanted::Bits(false) => "an integer of up to 32 bits",
            Wanted::Bits(true) => "an integer of 64 bits",
            Wanted::Character => "a `u8`, `i8`, `u32` or `i32`",
            Wanted::Float => "a float",
            Wanted::Pointer => "a pointer",
            Wanted::Text => "a string or a pointer to `i8` or `u8`",
        }
    }

    /// The type for an open literal.
    fn hint(self) -> Type {
        match self {
            Wanted::Signed(true) => Type::I64,
            Wanted::Unsigned(false) | Wanted::Bits(false) => Type::U32,
            Wanted::Unsigned(true) | Wanted::Bits(true) => Type::U64,
            Wanted::Float => Type::F64,
            _ => Type::I32,
        }
    }

    /// The type that a value of type `ty` is passed as, after C's promotions; `None` if it is not accepted.
    fn passed(self, ty: &Type) -> Option<Type> {
        let scalar = match (self, ty) {
            (Wanted::Pointer, Type::Pointer { .. }) => return Some(ty.clone()),
            (Wanted::Text, Type::Pointer { pointee, .. }) => {
                let is_text = matches!(**pointee, Type::Scalar(Scalar::I8 | Scalar::U8));
                return is_text.then(|| ty.clone());
            }
            (_, Type::Scalar(scalar)) => *scalar,
            _ => return None,
        };
        let fits = match self {
            Wanted::Width => scalar == Scalar::I32,
            Wanted::Signed(long) => scalar.is_signed() && (scalar.size() == 8) == long,
            Wanted::Unsigned(long) => scalar.is_unsigned() && (scalar.size() == 8) == long,
            Wanted::Bits(long) => scalar.is_integer() && (scalar.size() == 8) == long,
            Wanted::Character => scalar.is_integer() && matches!(scalar.size(), 1 | 4),
            Wanted::Float => scalar.is_float(),
            Wanted::Pointer | Wanted::Text => false,
        };
        let promoted = match scalar {
            scalar if scalar.is_float() => Scalar::F64,
            Scalar::I8 | Scalar::I16 => Scalar::I32,
            Scalar::U8 | Scalar::U16 => Scalar::U32,
            other => other,
        };
        fits.then_some(Type::Scalar(promoted))
    }
}

/// The conversion that prints a value of type `ty`.
fn conversion_for(ty: &Type) -> Option<&'static str> {
    Some(match ty {
        Type::Pointer { .. } => "%p",
        Type::Scalar(scalar) if scalar.is_float() => "%f",
        Type::Scalar(Scalar::I64) => "%lld",
        Type::Scalar(Scalar::U64) => "%llu",
        Type::Scalar(scalar) if scalar.is_signed() => "%d",
        Type::Scalar(scalar) if scalar.is_unsigned() => "%u",
        _ => return None,
    })
}

impl<'a> Body<'_, 'a> {
    /// `printf(format, arguments)`
    pub(super) fn printf(
        &mut self,
        callee: ast::Name,
        arguments: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        let Some((first, rest)) = arguments.split_first() else {
            let message = "`printf` needs a format";
            self.cx.report(Diagnostic::error(ids::PRINTF_ARGUMENTS, span, message));
            return None;
        };
        let ast::ExprKind::Str(format) = &first.kind else {
            if !matches!(first.kind, ast::ExprKind::Error) {
                let message = "the format of `printf` must be a string literal";
                self.cx.report(Diagnostic::error(ids::PRINTF_FORMAT, first.span, message));
            }
            self.check_all(rest);
            return None;
        };
        let (wanted, wrong) = conversions(&format.text);
        let is_wrong = format.damaged || !wrong.is_empty();
        for (range, message) in wrong {
            let at = range_in(first.span, format, range);
            self.cx.report(
                Diagnostic::error(ids::PRINTF_FORMAT, at, message)
                    .note("conversions are `%d %i %u %x %X %o %c %f %e %g %a %p %s %%`"),
            );
        }
        if is_wrong {
            self.check_all(rest);
            return None;
        }
        let mut values = Vec::with_capacity(rest.len());
        for (at, argument) in rest.iter().enumerate() {
            let value = match wanted.get(at) {
                Some(conversion) => {
                    let place = range_in(first.span, format, conversion.range.clone());
                    self.printf_argument(argument, conversion.wanted, place)
                }
                None if matches!(argument.kind, ast::ExprKind::Str(_)) => None,
                None => self.infer(argument, None),
            };
            values.push(value);
        }
        self.printf_count(callee, first, &wanted, rest)?;
        let arguments = values.into_iter().collect::<Option<Vec<_>>>()?;
        let kind = ExprKind::Builtin {
            builtin: Builtin::Printf,
            arguments,
            format: Some(format.text.clone()),
        };
        Some(typed(kind, Type::I32, span))
    }

    fn printf_argument(
        &mut self,
        argument: &'a ast::Expr,
        wanted: Wanted,
        place: Span,
    ) -> Option<Expr> {
        if let ast::ExprKind::Str(text) = &argument.kind {
            return self.printf_text(argument, text, wanted, place);
        }
        let hint = wanted.hint();
        let hint = match argument.literal {
            // An integer for `%f` should be reported as a mismatch with the format.
            ast::Literal::Int if wanted == Wanted::Float => None,
            _ => Some(&hint),
        };
        let value = self.infer(argument, hint)?;
        match wanted.passed(&value.ty) {
            Some(ty) if ty == value.ty => Some(value),
            Some(ty) => {
                let span = value.span;
                Some(typed(ExprKind::Cast(Box::new(value)), ty, span))
            }
            None => {
                let shown = self.cx.show(&value.ty);
                let message = format!("this conversion takes {}, not {shown}", wanted.describe());
                let mut error = Diagnostic::error(ids::PRINTF_ARGUMENTS, value.span, message)
                    .at_caret(format!("this is {shown}"))
                    .label(place, "the conversion");
                if value.ty == Type::BOOL {
                    error = error.hint("print it as a number: `as i32` and `%d`");
                } else if let Some(better) = conversion_for(&value.ty) {
                    error =
                        error.hint(format!("print it with `{better}`, or convert it with `as`"));
                }
                self.cx.report(error);
                None
            }
        }
    }

    /// A string argument, which only `%s` accepts.
    fn printf_text(
        &mut self,
        argument: &'a ast::Expr,
        text: &ast::Str,
        wanted: Wanted,
        place: Span,
    ) -> Option<Expr> {
        if wanted == Wanted::Text {
            let ty = Type::pointer_const(Type::Scalar(Scalar::U8));
            let value = typed(ExprKind::Text(text.text.clone()), ty, argument.span);
            return (!text.damaged).then_some(value);
        }
        let message = format!("this conversion takes {}, not a string", wanted.describe());
        let error = Diagnostic::error(ids::PRINTF_ARGUMENTS, argument.span, message)
            .at_caret("this is a string")
            .label(place, "the conversion");
        self.cx.report(error.hint("print it with `%s`"));
        None
    }

    fn printf_count(
        &mut self,
        callee: ast::Name,
        format: &'a ast::Expr,
        wanted: &[Conversion],
        rest: &'a [ast::Expr],
    ) -> Option<()> {
        let (needed, given) = (wanted.len(), rest.len());
        let error = if needed > given {
            let message =
                format!("the format takes {}, but {given} follow", counted_arguments(needed));
            Diagnostic::error(ids::PRINTF_ARGUMENTS, format.span, message)
        } else if let Some(extra) = rest.get(needed) {
            let message =
                format!("the format takes {}, but {given} follow", counted_arguments(needed));
            Diagnostic::error(ids::PRINTF_ARGUMENTS, extra.span, message)
                .at_caret("no conversion prints this")
                .label(format.span, "the format")
        } else if given > MAX_ARGUMENTS {
            let message =
                format!("`printf` on a GPU takes at most {MAX_ARGUMENTS} values, not {given}");
            Diagnostic::error(ids::PRINTF_ARGUMENTS, callee.span, message)
        } else {
            return Some(());
        };
        self.cx.report(error);
        None
    }
}

/// The source span of a range of a string's text.
fn range_in(token: Span, string: &ast::Str, range: std::ops::Range<usize>) -> Span {
    // The last byte ends at the closing quote.
    let end_of_text = token.end - token.start - 1;
    let offset = |at: usize| string.offsets.get(at).copied().unwrap_or(end_of_text);
    Span {
        file: token.file,
        start: token.start + offset(range.start),
        end: token.start + offset(range.end),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(format: &str) -> Vec<Wanted> {
        let (found, wrong) = conversions(format);
        assert!(wrong.is_empty(), "{wrong:?}");
        found.into_iter().map(|conversion| conversion.wanted).collect()
    }

    #[test]
    fn conversions_are_found_with_flags_width_precision_and_size() {
        assert_eq!(wanted("100%% of %u"), [Wanted::Unsigned(false)]);
        assert_eq!(wanted("%-08.3lld|%+5d"), [Wanted::Signed(true), Wanted::Signed(false)]);
        assert_eq!(wanted("%*x"), [Wanted::Width, Wanted::Bits(false)]);
        assert_eq!(
            wanted("%hd%c%s%p%.2f"),
            [
                Wanted::Signed(false),
                Wanted::Character,
                Wanted::Text,
                Wanted::Pointer,
                Wanted::Float
            ]
        );
    }

    #[test]
    fn invalid_conversions_are_found_with_their_range() {
        let wrong = |format: &str| conversions(format).1[0].0.clone();
        assert_eq!(wrong("a%q"), 1..3);
        assert_eq!(wrong("%n"), 0..2);
        assert_eq!(wrong("50%"), 2..3);
        assert_eq!(wrong("%hhd"), 0..4);
        assert_eq!(wrong("%é"), 0..3);
        assert_eq!(wrong("%5%"), 0..3);
    }

    #[test]
    fn small_types_are_promoted_and_signs_must_fit() {
        let scalar = Type::Scalar;
        assert_eq!(Wanted::Signed(false).passed(&scalar(Scalar::I8)), Some(Type::I32));
        assert_eq!(Wanted::Unsigned(false).passed(&scalar(Scalar::U16)), Some(Type::U32));
        assert_eq!(Wanted::Float.passed(&Type::F32), Some(Type::F64));
        assert_eq!(Wanted::Float.passed(&Type::Scalar(Scalar::Bf16)), Some(Type::F64));
        assert_eq!(Wanted::Signed(false).passed(&Type::U32), None);
        assert_eq!(Wanted::Signed(false).passed(&Type::I64), None);
        assert_eq!(Wanted::Bits(true).passed(&Type::I64), Some(Type::I64));
        assert_eq!(Wanted::Signed(false).passed(&Type::BOOL), None);
    }
}
