//! `freeze`, which LLVM 7 lacks.
//!
//! An undefined value may differ at each use, and `freeze` fixes it. So does a `mov` in assembly:
//! it has one result whatever its operand is, no optimiser looks into it, and ptxas removes it.

use super::body::Body;
use super::llvm::{Kind, Shape, Type, Value};
use super::refusal::{Written, refuse};

impl<'m> Body<'_, 'm, '_> {
    pub(super) fn freeze(&mut self, value: Value<'m>) -> Written<()> {
        let operand = value.operand(0);
        let ty = self.ty(value.ty())?;
        match operand.kind() {
            // Any fixed value will do.
            Kind::Undefined => {
                let zero = zero(value.ty())?;
                self.define(value, &format!("bitcast {ty} {zero} to {ty}"));
                return Ok(());
            }
            Kind::Int | Kind::Real | Kind::Null => {
                let settled = self.typed(operand)?;
                self.define(value, &format!("bitcast {settled} to {ty}"));
                return Ok(());
            }
            _ => {}
        }
        let Shape::Vector(element, count) = value.ty().shape() else {
            let name = self.operand(operand)?;
            let settled = self.settle(value, value.ty(), &name)?;
            self.define(value, &settled);
            return Ok(());
        };
        let (source, element_text) = (self.typed(operand)?, self.ty(element)?);
        let mut frozen = "undef".to_owned();
        for lane in 0..count {
            let taken = self.step(value, "lane", &format!("extractelement {source}, i32 {lane}"));
            let settled = self.settle(value, element, &taken)?;
            let settled = self.step(value, "settled", &settled);
            let settled = format!("{element_text} {settled}");
            let insert = self.inserted(value, &frozen, &settled, &format!("i32 {lane}"))?;
            if lane + 1 == count {
                self.define(value, &insert);
            } else {
                frozen = self.step(value, "vector", &insert);
            }
        }
        Ok(())
    }

    /// The instruction that yields the scalar `name` after passing it through a register.
    fn settle(&mut self, owner: Value<'m>, ty: Type<'m>, name: &str) -> Written<String> {
        let text = self.ty(ty)?;
        // The width of the register in bits, and the conversions to and from it.
        let (bits, there, back) = match ty.shape() {
            Shape::Int(width @ (16 | 32 | 64)) => (width, "", ""),
            Shape::Int(width) if width < 16 => (16, "zext", "trunc"),
            Shape::Int(width) if width < 32 => (32, "zext", "trunc"),
            Shape::Int(width) if width < 64 => (64, "zext", "trunc"),
            Shape::Half => (16, "bitcast", "bitcast"),
            Shape::Float => (32, "bitcast", "bitcast"),
            Shape::Double => (64, "bitcast", "bitcast"),
            Shape::Pointer(_) => (64, "ptrtoint", "inttoptr"),
            _ => {
                return refuse(
                    format!("LLVM 7 has no `freeze`, and `{text}` fits no register"),
                    "freeze its parts",
                );
            }
        };
        let letter = match bits {
            16 => 'h',
            32 => 'r',
            _ => 'l',
        };
        let mut held = name.to_owned();
        if !there.is_empty() {
            held = self.step(owner, "bits", &format!("{there} {text} {held} to i{bits}"));
        }
        let asm = format!(
            "call i{bits} asm \"mov.b{bits} $0, $1;\", \"={letter},{letter}\"(i{bits} {held})"
        );
        if back.is_empty() {
            return Ok(asm);
        }
        let moved = self.step(owner, "moved", &asm);
        Ok(format!("{back} i{bits} {moved} to {text}"))
    }
}

/// A zero of `ty`.
fn zero(ty: Type<'_>) -> Written<&'static str> {
    Ok(match ty.shape() {
        Shape::Pointer(_) => "null",
        Shape::Half => "0xH0000",
        Shape::Float | Shape::Double => "0.000000e+00",
        Shape::Vector(..) => "zeroinitializer",
        Shape::Int(_) => "0",
        _ => return refuse("a whole aggregate is frozen", "freeze its parts"),
    })
}
