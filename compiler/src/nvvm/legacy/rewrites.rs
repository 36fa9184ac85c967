//! Intrinsics that LLVM 7 or libNVVM lacks, rewritten as instructions.

use super::body::{Argument, Body};
use super::llvm::{Shape, Type, Value};
use super::refusal::{Written, refuse};

impl<'m> Body<'_, 'm, '_> {
    /// Writes instructions equivalent to `name`; returns false if this file does not know it.
    pub(super) fn rewritten(&mut self, value: Value<'m>, name: &str) -> Written<bool> {
        match name.trim_start_matches("llvm.") {
            "smax" => self.extreme(value, "sgt")?,
            "smin" => self.extreme(value, "slt")?,
            "umax" => self.extreme(value, "ugt")?,
            "umin" => self.extreme(value, "ult")?,
            "abs" => self.absolute(value)?,
            "scmp" => self.three_way(value, "sgt", "slt")?,
            "ucmp" => self.three_way(value, "ugt", "ult")?,
            "uadd.sat" => self.unsigned_saturating(value, "add")?,
            "usub.sat" => self.unsigned_saturating(value, "sub")?,
            "sadd.sat" => self.signed_saturating(value, "add")?,
            "ssub.sat" => self.signed_saturating(value, "sub")?,
            "sadd.with.overflow" => self.overflowing(value, name, "add", "sext")?,
            "ssub.with.overflow" => self.overflowing(value, name, "sub", "sext")?,
            "smul.with.overflow" => self.overflowing(value, name, "mul", "sext")?,
            "uadd.with.overflow" => self.overflowing(value, name, "add", "zext")?,
            "usub.with.overflow" => self.overflowing(value, name, "sub", "zext")?,
            "umul.with.overflow" => self.overflowing(value, name, "mul", "zext")?,
            "fptosi.sat" => self.lanes(value, |body, source, operand| {
                body.saturated(value, source, operand, true)
            })?,
            "fptoui.sat" => self.lanes(value, |body, source, operand| {
                body.saturated(value, source, operand, false)
            })?,
            "fabs" => self.lanes(value, |body, ty, operand| body.magnitude(value, ty, operand))?,
            "trunc" => {
                self.lanes(value, |body, ty, operand| body.rounded(value, ty, operand, "trunc"))?
            }
            // `llvm.nvvm.round` is `cvt.rni`, which rounds to nearest, ties to even, as these three
            // do.
            "rint" | "nearbyint" | "roundeven" => {
                self.lanes(value, |body, ty, operand| body.rounded(value, ty, operand, "round"))?;
            }
            "round" => self.lanes(value, |body, ty, operand| body.half_away(value, ty, operand))?,
            "ptrmask" => self.pointer_mask(value)?,
            "readcyclecounter" => {
                let call = self.declared_call("llvm.nvvm.read.ptx.sreg.clock64", "i64", &[]);
                self.define(value, &call);
            }
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn extreme(&mut self, value: Value<'m>, predicate: &str) -> Written<()> {
        let (left, right) = (self.argument(value.operand(0))?, self.argument(value.operand(1))?);
        let condition =
            self.step(value, "first", &format!("icmp {predicate} {left}, {}", right.text));
        self.choose(value, &condition, &left, &right);
        Ok(())
    }

    /// Defines `value` by a `select`.
    fn choose(&mut self, value: Value<'m>, condition: &str, yes: &Argument, no: &Argument) {
        let text = format!("select {} {condition}, {yes}, {no}", truth(value.ty()));
        self.define(value, &text);
    }

    fn absolute(&mut self, value: Value<'m>) -> Written<()> {
        let operand = self.argument(value.operand(0))?;
        let zero = zero(value.ty());
        let negative =
            self.step(value, "negative", &format!("sub {} {zero}, {}", operand.ty, operand.text));
        let below = self.step(value, "below", &format!("icmp slt {operand}, {zero}"));
        let negative = Argument::new(operand.ty.as_str(), negative);
        self.choose(value, &below, &negative, &operand);
        Ok(())
    }

    fn three_way(&mut self, value: Value<'m>, above: &str, below: &str) -> Written<()> {
        let (left, right) = (self.argument(value.operand(0))?, self.operand(value.operand(1))?);
        let ty = self.ty(value.ty())?;
        let truth = truth(value.ty());
        let above = self.step(value, "above", &format!("icmp {above} {left}, {right}"));
        let below = self.step(value, "below", &format!("icmp {below} {left}, {right}"));
        let above = self.step(value, "plus", &format!("zext {truth} {above} to {ty}"));
        let below = self.step(value, "minus", &format!("zext {truth} {below} to {ty}"));
        self.define(value, &format!("sub {ty} {above}, {below}"));
        Ok(())
    }

    /// `uadd.sat` and `usub.sat`: a sum below an operand becomes all ones; a difference with a
    /// larger subtrahend becomes zero.
    fn unsigned_saturating(&mut self, value: Value<'m>, word: &str) -> Written<()> {
        let (left, right) = (self.argument(value.operand(0))?, self.operand(value.operand(1))?);
        let ty = left.ty.as_str();
        let exact = self.step(value, "exact", &format!("{word} {left}, {right}"));
        let (compared, with, limit) = match word {
            "add" => (exact.as_str(), left.text.as_str(), self.constant_of(value.ty(), -1)?),
            _ => (left.text.as_str(), right.as_str(), zero(value.ty()).to_owned()),
        };
        let wrapped = self.step(value, "wrapped", &format!("icmp ult {ty} {compared}, {with}"));
        self.choose(value, &wrapped, &Argument::new(ty, limit), &Argument::new(ty, exact.as_str()));
        Ok(())
    }

    /// `sadd.sat` and `ssub.sat`: the result wrapped if its sign contradicts the operands' signs;
    /// it then becomes the limit with the first operand's sign.
    fn signed_saturating(&mut self, value: Value<'m>, word: &str) -> Written<()> {
        let (left, right) = (self.argument(value.operand(0))?, self.operand(value.operand(1))?);
        let (ty, width) = (left.ty.clone(), scalar_width(value.ty())?);
        let exact = self.step(value, "exact", &format!("{word} {left}, {right}"));
        let from_left = self.step(value, "changed", &format!("xor {left}, {exact}"));
        let other = match word {
            "add" => self.step(value, "other", &format!("xor {ty} {right}, {exact}")),
            _ => self.step(value, "other", &format!("xor {left}, {right}")),
        };
        let both = self.step(value, "signs", &format!("and {ty} {from_left}, {other}"));
        let wrapped =
            self.step(value, "wrapped", &format!("icmp slt {ty} {both}, {}", zero(value.ty())));
        let shift = self.constant_of(value.ty(), i64::from(width) - 1)?;
        let sign = self.step(value, "sign", &format!("ashr {left}, {shift}"));
        let highest = self.constant_of(value.ty(), highest(width)?)?;
        let limit = self.step(value, "limit", &format!("xor {ty} {sign}, {highest}"));
        self.choose(
            value,
            &wrapped,
            &Argument::new(ty.as_str(), limit),
            &Argument::new(ty.as_str(), exact),
        );
        Ok(())
    }

    /// libNVVM has the overflow intrinsics for 16, 32 and 64 bits. Narrower operands are extended
    /// to at least twice their width, where nothing overflows, and the result is compared with its
    /// truncation.
    fn overflowing(
        &mut self,
        value: Value<'m>,
        name: &str,
        word: &str,
        extension: &str,
    ) -> Written<()> {
        let operand = value.operand(0).ty();
        let width = match operand.shape() {
            Shape::Int(16 | 32 | 64) => {
                return self.known(value, &format!("{name}.{}", super::types::mangled(operand)?));
            }
            Shape::Int(width) if width <= 16 => width,
            _ => {
                return refuse(
                    "libNVVM checks 16, 32 and 64 bits for overflow",
                    "widen the operands",
                );
            }
        };
        let wide = "i32";
        let narrow = format!("i{width}");
        let (left, right) = (self.typed(value.operand(0))?, self.typed(value.operand(1))?);
        let left = self.step(value, "left", &format!("{extension} {left} to {wide}"));
        let right = self.step(value, "right", &format!("{extension} {right} to {wide}"));
        let exact = self.step(value, "exact", &format!("{word} {wide} {left}, {right}"));
        let kept = self.step(value, "kept", &format!("trunc {wide} {exact} to {narrow}"));
        let back = self.step(value, "back", &format!("{extension} {narrow} {kept} to {wide}"));
        let lost = self.step(value, "lost", &format!("icmp ne {wide} {exact}, {back}"));
        let pair = self.ty(value.ty())?;
        let first =
            self.step(value, "pair", &format!("insertvalue {pair} undef, {narrow} {kept}, 0"));
        self.define(value, &format!("insertvalue {pair} {first}, i1 {lost}, 1"));
        Ok(())
    }

    /// Applies `scalar` to the value, or to each lane of a vector. `scalar` gets the type and the
    /// name of the operand, and returns the instruction that computes the result.
    fn lanes(
        &mut self,
        value: Value<'m>,
        mut scalar: impl FnMut(&mut Self, Type<'m>, &str) -> Written<String>,
    ) -> Written<()> {
        let source = value.operand(0);
        let (Shape::Vector(element, count), Shape::Vector(result, _)) =
            (source.ty().shape(), value.ty().shape())
        else {
            let operand = self.operand(source)?;
            let text = scalar(self, source.ty(), &operand)?;
            self.define(value, &text);
            return Ok(());
        };
        let (result, typed) = (self.ty(result)?, self.typed(source)?);
        let mut built = "undef".to_owned();
        for lane in 0..count {
            let taken = self.step(value, "lane", &format!("extractelement {typed}, i32 {lane}"));
            let text = scalar(self, element, &taken)?;
            let done = self.step(value, "done", &text);
            let done = format!("{result} {done}");
            let insert = self.inserted(value, &built, &done, &format!("i32 {lane}"))?;
            if lane + 1 == count {
                self.define(value, &insert);
            } else {
                built = self.step(value, "vector", &insert);
            }
        }
        Ok(())
    }

    /// A saturating conversion. `cvt.rzi` saturates, but its result for NaN depends on the types,
    /// so a `select` makes it 0 (PTX ISA, "cvt").
    fn saturated(
        &mut self,
        value: Value<'m>,
        source: Type<'m>,
        operand: &str,
        signed: bool,
    ) -> Written<String> {
        let to = match value.ty().shape() {
            Shape::Vector(element, _) => element,
            _ => value.ty(),
        };
        let width = scalar_width(to)?;
        let (from, letter, operand) = match source.shape() {
            Shape::Half => {
                ("float", 'f', self.step(value, "wide", &format!("fpext half {operand} to float")))
            }
            Shape::Float => ("float", 'f', operand.to_owned()),
            Shape::Double => ("double", 'd', operand.to_owned()),
            _ => {
                return refuse(
                    "libNVVM converts `half`, `float` and `double`",
                    "convert to one of them first",
                );
            }
        };
        let (register, suffix) = match (width, signed) {
            (1..=32, true) => (32, "i"),
            (1..=32, false) => (32, "ui"),
            (33..=64, true) => (64, "ll"),
            (33..=64, false) => (64, "ull"),
            _ => return refuse("PTX converts to at most 64 bits", "convert to `i64`"),
        };
        let wide = format!("i{register}");
        let name = format!("llvm.nvvm.{letter}2{suffix}.rz");
        let call = self.declared_call(&name, &wide, &[Argument::new(from, operand.as_str())]);
        let mut number = self.step(value, "number", &call);
        if width < register {
            let (least, most) = match (signed, highest(width)?) {
                (true, most) => (Some(-most - 1), most),
                (false, most) => (None, 2 * most + 1),
            };
            number = self.clamp(value, &wide, &number, if signed { "sgt" } else { "ugt" }, most);
            if let Some(least) = least {
                number = self.clamp(value, &wide, &number, "slt", least);
            }
            number = self.step(value, "narrow", &format!("trunc {wide} {number} to i{width}"));
        }
        let nan = self.step(value, "nan", &format!("fcmp uno {from} {operand}, {operand}"));
        Ok(format!("select i1 {nan}, i{width} 0, i{width} {number}"))
    }

    fn clamp(
        &mut self,
        value: Value<'m>,
        ty: &str,
        number: &str,
        beyond: &str,
        limit: i64,
    ) -> String {
        let outside = self.step(value, "outside", &format!("icmp {beyond} {ty} {number}, {limit}"));
        self.step(value, "clamped", &format!("select i1 {outside}, {ty} {limit}, {ty} {number}"))
    }

    fn magnitude(&mut self, value: Value<'m>, ty: Type<'m>, operand: &str) -> Written<String> {
        let (text, letter) = match ty.shape() {
            Shape::Float => ("float", 'f'),
            Shape::Double => ("double", 'd'),
            Shape::Half => {
                let bits = self.step(value, "bits", &format!("bitcast half {operand} to i16"));
                let bits = self.step(value, "unsigned", &format!("and i16 {bits}, 32767"));
                return Ok(format!("bitcast i16 {bits} to half"));
            }
            _ => return refuse("libNVVM has no such float", "use `half`, `float` or `double`"),
        };
        Ok(self.declared_call(
            &format!("llvm.nvvm.fabs.{letter}"),
            text,
            &[Argument::new(text, operand)],
        ))
    }

    /// `llvm.nvvm.trunc` or `llvm.nvvm.round`; a `half` is computed as a `float`, which loses
    /// nothing.
    fn rounded(
        &mut self,
        value: Value<'m>,
        ty: Type<'m>,
        operand: &str,
        word: &str,
    ) -> Written<String> {
        match ty.shape() {
            Shape::Float => Ok(self.round_call(word, "float", operand)),
            Shape::Double => Ok(self.round_call(word, "double", operand)),
            Shape::Half => {
                let wide = self.step(value, "wide", &format!("fpext half {operand} to float"));
                let call = self.round_call(word, "float", &wide);
                let whole = self.step(value, "whole", &call);
                Ok(format!("fptrunc float {whole} to half"))
            }
            _ => refuse("libNVVM has no such float", "use `half`, `float` or `double`"),
        }
    }

    fn round_call(&mut self, word: &str, ty: &str, operand: &str) -> String {
        let letter = if ty == "float" { 'f' } else { 'd' };
        self.declared_call(&format!("llvm.nvvm.{word}.{letter}"), ty, &[Argument::new(ty, operand)])
    }

    /// `llvm.round`: ties away from zero. The fractional part is exact, and so is its comparison
    /// with a half; for NaN and infinity the comparison is false and the value stays.
    fn half_away(&mut self, value: Value<'m>, ty: Type<'m>, operand: &str) -> Written<String> {
        let text = match ty.shape() {
            Shape::Float => "float",
            Shape::Double => "double",
            _ => return refuse("libNVVM rounds `float` and `double`", "convert to `float` first"),
        };
        let call = self.round_call("trunc", text, operand);
        let whole = self.step(value, "whole", &call);
        let rest = self.step(value, "rest", &format!("fsub {text} {operand}, {whole}"));
        let size = self.magnitude(value, ty, &rest)?;
        let size = self.step(value, "size", &size);
        let far = self.step(value, "far", &format!("fcmp oge {text} {size}, 5.000000e-01"));
        let suffix = if text == "float" { "f32" } else { "f64" };
        let arguments = [Argument::new(text, "1.000000e+00"), Argument::new(text, operand)];
        let one = self.declared_call(&format!("llvm.copysign.{suffix}"), text, &arguments);
        let one = self.step(value, "one", &one);
        let next = self.step(value, "next", &format!("fadd {text} {whole}, {one}"));
        Ok(format!("select i1 {far}, {text} {next}, {text} {whole}"))
    }

    fn pointer_mask(&mut self, value: Value<'m>) -> Written<()> {
        let mask = self.argument(value.operand(1))?;
        let pointer = self.any(value.operand(0))?;
        let ty = self.ty(value.ty())?;
        if mask.ty != "i64" {
            return refuse("the mask is not as wide as a pointer", "use an `i64`");
        }
        let bits = self.step(value, "bits", &format!("ptrtoint {pointer} to i64"));
        let kept = self.step(value, "kept", &format!("and i64 {bits}, {}", mask.text));
        self.define(value, &format!("inttoptr i64 {kept} to {ty}"));
        Ok(())
    }

    /// An integer constant of `ty`, in every lane of a vector.
    fn constant_of(&mut self, ty: Type<'m>, number: i64) -> Written<String> {
        match ty.shape() {
            Shape::Vector(element, count) => {
                let one = format!("{} {number}", self.ty(element)?);
                Ok(format!("<{}>", vec![one; count as usize].join(", ")))
            }
            _ => Ok(number.to_string()),
        }
    }
}

/// The type of a comparison's result.
fn truth(ty: Type<'_>) -> String {
    match ty.shape() {
        Shape::Vector(_, count) => format!("<{count} x i1>"),
        _ => "i1".to_owned(),
    }
}

fn zero(ty: Type<'_>) -> &'static str {
    if matches!(ty.shape(), Shape::Vector(..)) { "zeroinitializer" } else { "0" }
}

fn scalar_width(ty: Type<'_>) -> Written<u32> {
    match ty.shape() {
        Shape::Int(width) => Ok(width),
        Shape::Vector(element, _) => scalar_width(element),
        _ => refuse("it is not an integer", "use integers"),
    }
}

/// The highest signed number of `width` bits.
fn highest(width: u32) -> Written<i64> {
    match width {
        1..=63 => Ok((1 << (width - 1)) - 1),
        64 => Ok(i64::MAX),
        _ => refuse("libNVVM has no such arithmetic on more than 64 bits", "use `i64`"),
    }
}
