//! Constants, and constant pointers with their pointee types.

use inkwell::llvm_sys::LLVMOpcode as Op;

use super::llvm::{Kind, Shape, Type, Value};
use super::names::escape;
use super::refusal::{Written, refuse};
use super::types::ERASED;
use super::writer::Writer;

impl<'m> Writer<'m, '_> {
    /// A constant without its type; pointers as `i8*`.
    pub(super) fn constant(&mut self, value: Value<'m>) -> Written<String> {
        let ty = value.ty();
        if is_pointer(ty) {
            return self.pointer_constant(value, ERASED);
        }
        match value.kind() {
            // LLVM 7 has no poison constant. `undef` replaces it: poison may be refined to any
            // value.
            Kind::Undefined => Ok("undef".to_owned()),
            Kind::Zero => Ok("zeroinitializer".to_owned()),
            Kind::Int | Kind::Real if matches!(ty.shape(), Shape::Vector(..)) => {
                self.elements(value)
            }
            Kind::Int => Ok(integer(value)),
            Kind::Real => real(value),
            Kind::Aggregate => match value.string() {
                Some(string) => Ok(format!("c\"{}\"", escape(string))),
                None => self.elements(value),
            },
            Kind::Expression => self.expression(value),
            _ => refuse(
                "LLVM 7 for NVPTX has no such constant",
                "use numbers, aggregates and addresses of globals",
            ),
        }
    }

    /// A constant preceded by its type; pointers as `i8*`.
    pub(super) fn typed_constant(&mut self, value: Value<'m>) -> Written<String> {
        let ty = self.types.text(value.ty())?;
        Ok(format!("{ty} {}", self.constant(value)?))
    }

    /// A constant preceded by its type; a pointer has its real pointee type.
    pub(super) fn natural_constant(&mut self, value: Value<'m>) -> Written<String> {
        if !is_pointer(value.ty()) {
            return self.typed_constant(value);
        }
        let (text, pointee) = self.natural_pointer(value)?;
        Ok(format!("{} {text}", self.types.pointer(value.ty(), &pointee)?))
    }

    fn elements(&mut self, value: Value<'m>) -> Written<String> {
        let ty = value.ty();
        let (open, close, count) = match ty.shape() {
            Shape::Array(_, count) => ("[", "]", count),
            Shape::Vector(_, count) => ("<", ">", u64::from(count)),
            Shape::Struct if ty.is_packed() => ("<{ ", " }>", ty.fields().len() as u64),
            _ => ("{ ", " }", ty.fields().len() as u64),
        };
        let mut elements = Vec::new();
        for index in 0..count {
            let Some(element) = u32::try_from(index).ok().and_then(|index| value.element(index))
            else {
                return refuse("an element of the constant cannot be read", "list its elements");
            };
            elements.push(self.typed_constant(element)?);
        }
        Ok(format!("{open}{}{close}", elements.join(", ")))
    }

    /// A constant expression that is not a pointer.
    fn expression(&mut self, value: Value<'m>) -> Written<String> {
        let opcode = value.constant_opcode();
        let word = match opcode {
            Op::LLVMAdd => "add",
            Op::LLVMSub => "sub",
            Op::LLVMMul => "mul",
            Op::LLVMXor => "xor",
            Op::LLVMTrunc => "trunc",
            Op::LLVMBitCast => "bitcast",
            Op::LLVMExtractElement => "extractelement",
            Op::LLVMInsertElement => "insertelement",
            Op::LLVMPtrToInt | Op::LLVMPtrToAddr => "ptrtoint",
            _ => {
                return refuse(
                    "LLVM 7 has no such constant expression",
                    "compute it with an instruction",
                );
            }
        };
        let mut operands = Vec::new();
        for operand in value.operands() {
            operands.push(self.natural_constant(operand)?);
        }
        if operands.len() == 1 {
            return Ok(format!("{word} ({} to {})", operands[0], self.types.text(value.ty())?));
        }
        Ok(format!("{word} ({})", operands.join(", ")))
    }

    /// A constant pointer, or vector of pointers, cast to `pointee`, without its type.
    pub(super) fn pointer_constant(&mut self, value: Value<'m>, pointee: &str) -> Written<String> {
        let wanted = self.types.pointer(value.ty(), pointee)?;
        if value.kind() == Kind::Expression {
            let word = match value.constant_opcode() {
                Op::LLVMAddrSpaceCast => "addrspacecast",
                Op::LLVMIntToPtr => "inttoptr",
                Op::LLVMGetElementPtr => "",
                _ => {
                    return refuse(
                        "LLVM 7 has no such constant expression",
                        "compute it with an instruction",
                    );
                }
            };
            if !word.is_empty() {
                return Ok(format!(
                    "{word} ({} to {wanted})",
                    self.natural_constant(value.operand(0))?
                ));
            }
        }
        match value.kind() {
            Kind::Null => return Ok("null".to_owned()),
            Kind::Undefined => return Ok("undef".to_owned()),
            Kind::Zero => return Ok("zeroinitializer".to_owned()),
            _ => {}
        }
        let (text, natural) = self.natural_pointer(value)?;
        if natural == pointee {
            return Ok(text);
        }
        Ok(format!("bitcast ({} {text} to {wanted})", self.types.pointer(value.ty(), &natural)?))
    }

    /// A constant pointer without its type, and its pointee type without a cast.
    fn natural_pointer(&mut self, value: Value<'m>) -> Written<(String, String)> {
        match value.kind() {
            Kind::Variable => Ok((self.global_name(value), self.types.text(value.value_type())?)),
            Kind::Function => Ok((self.global_name(value), self.signature(value)?.pointee())),
            Kind::Expression if value.constant_opcode() == Op::LLVMGetElementPtr => {
                self.gep_constant(value)
            }
            Kind::Aggregate => Ok((self.elements(value)?, ERASED.to_owned())),
            Kind::Foreign | Kind::Alias | Kind::Asm | Kind::Metadata | Kind::Block => refuse(
                "libNVVM has no such pointer constant",
                "use the address of a global or function",
            ),
            _ => Ok((self.pointer_constant(value, ERASED)?, ERASED.to_owned())),
        }
    }

    fn gep_constant(&mut self, value: Value<'m>) -> Written<(String, String)> {
        let operands = value.operands();
        let source = value.gep_source();
        let source_text = self.types.text(source)?;
        let base_type = self.types.pointer(operands[0].ty(), &source_text)?;
        let base = self.pointer_constant(operands[0], &source_text)?;
        let mut indices = String::new();
        for &index in &operands[1..] {
            indices.push_str(&format!(", {}", self.typed_constant(index)?));
        }
        let steps: Vec<Option<u64>> =
            operands.iter().skip(2).map(|index| constant_index(*index)).collect();
        let inbounds = if value.is_inbounds() { " inbounds" } else { "" };
        let text = format!("getelementptr{inbounds} ({source_text}, {base_type} {base}{indices})");
        Ok((text, self.types.indexed(source, &steps)?))
    }
}

/// The value of an index; for a vector, of its first element.
pub(super) fn constant_index(index: Value<'_>) -> Option<u64> {
    match index.kind() {
        Kind::Int => index.unsigned(),
        Kind::Zero => Some(0),
        Kind::Aggregate => index.element(0).and_then(Value::unsigned),
        _ => None,
    }
}

/// Whether a type is a pointer or a vector of pointers.
pub(super) fn is_pointer(ty: Type<'_>) -> bool {
    match ty.shape() {
        Shape::Pointer(_) => true,
        Shape::Vector(element, _) => matches!(element.shape(), Shape::Pointer(_)),
        _ => false,
    }
}

fn integer(value: Value<'_>) -> String {
    match value.int() {
        Some(bit) if value.ty().shape() == Shape::Int(1) => {
            if bit == 0 { "false" } else { "true" }.to_owned()
        }
        Some(value) => value.to_string(),
        // LLVM prints the type, a space and the value in decimal, which LLVM 7 reads at every
        // width.
        None => after_type(&value.print()).to_owned(),
    }
}

/// A float in LLVM's own spelling: in decimal if that is exact, else the bits in hexadecimal (`0x…`
/// in double precision, also for `float`; `0xH…` for `half`). LLVM 7 reads both.
fn real(value: Value<'_>) -> Written<String> {
    let printed = value.print();
    let text = after_type(&printed);
    let digits = text.strip_prefix("0x").map(|digits| digits.strip_prefix('H').unwrap_or(digits));
    let hexadecimal =
        digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_hexdigit()));
    let decimal =
        text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'+' | b'-' | b'.' | b'e'));
    if hexadecimal || decimal {
        return Ok(text.to_owned());
    }
    refuse(format!("LLVM 7 cannot read the number `{text}`"), "use `half`, `float` or `double`")
}

fn after_type(printed: &str) -> &str {
    printed.split_once(' ').map_or(printed, |(_, text)| text)
}
