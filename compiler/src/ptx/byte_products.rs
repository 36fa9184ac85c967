//! Sums of products of bytes for LLVM's back end.
//!
//! `dp4a` adds the products of four bytes of a word with those of another to a sum (PTX ISA, "Integer Arithmetic Instructions:
//! dp4a"). LLVM has it as intrinsics only; libNVVM, and so nvcc, finds the sums in the program.

use std::collections::BTreeMap;

use inkwell::builder::BuilderError;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{
    AnyValue as _, AnyValueEnum, AsValueRef as _, BasicValue as _, BasicValueEnum, FunctionValue,
    InstructionOpcode, InstructionValue, IntValue,
};

use super::loops::{constant, instruction, instructions_of};
use super::nvptx::refused;
use crate::error::{Error, Result};

/// Writes `dp4a` where a sum has all four products of two words' bytes.
pub(super) fn join(module: &Module<'_>, machine: &TargetMachine) -> Result<()> {
    for function in module.get_functions() {
        if instructions_of(function).filter(|it| is_product(*it)).count() < 4 {
            continue;
        }
        // LLVM loads the bytes of a vector one by one until its back end does this.
        function
            .run_passes("load-store-vectorizer", machine, PassBuilderOptions::create())
            .map_err(|message| refused("optimising", message.to_string()))?;
        let sums = instructions_of(function).filter(|it| is_sum(*it) && !is_part(*it));
        for sum in sums.collect::<Vec<_>>() {
            join_one(module, sum)
                .map_err(|error| Error::internal("ptx", format!("products of bytes: {error}")))?;
        }
    }
    Ok(())
}

fn is_of_32_bits(instruction: InstructionValue<'_>) -> bool {
    matches!(instruction.get_type(), AnyTypeEnum::IntType(ty) if ty.get_bit_width() == 32)
}

/// Whether this may be a product of two bytes.
fn is_product(product: InstructionValue<'_>) -> bool {
    use InstructionOpcode::{AShr, And, LShr, Mul, SExt, ZExt};
    let is_byte = |at| {
        let value = product.get_operand(at).and_then(|operand| instruction(operand.value()?));
        value.is_some_and(|it| matches!(it.get_opcode(), AShr | And | LShr | SExt | ZExt))
    };
    product.get_opcode() == Mul && is_of_32_bits(product) && is_byte(0) && is_byte(1)
}

fn is_sum(sum: InstructionValue<'_>) -> bool {
    sum.get_opcode() == InstructionOpcode::Add && is_of_32_bits(sum)
}

/// Whether a sum is used once, by another sum of the same block.
fn is_part(sum: InstructionValue<'_>) -> bool {
    let Some(used) = sum.get_first_use().filter(|used| used.get_next_use().is_none()) else {
        return false;
    };
    let AnyValueEnum::IntValue(user) = used.get_user().as_any_value_enum() else { return false };
    let user = user.as_instruction_value();
    user.is_some_and(|user| is_sum(user) && user.get_parent() == sum.get_parent())
}

/// A byte as a number of 32 bits.
#[derive(Clone, Copy)]
struct Byte<'ctx> {
    /// The word or the vector of four bytes that it is of.
    whole: BasicValueEnum<'ctx>,
    /// The number of bytes below it.
    at: u32,
    is_signed: bool,
}

impl<'ctx> Byte<'ctx> {
    fn of(value: InstructionValue<'ctx>) -> Option<Byte<'ctx>> {
        use InstructionOpcode::{AShr, And, ExtractElement, LShr, SExt, Shl, Trunc, ZExt};
        let first = value.get_operand(0)?.value()?;
        let second = || constant(value.get_operand(1)?.value()?);
        match value.get_opcode() {
            // The topmost byte, or one that is shifted to the top.
            AShr | LShr => {
                let (whole, above) = shifted(first, Shl)?;
                let is_signed = value.get_opcode() == AShr;
                (second()? == 24).then_some(Byte { whole, at: 3 - above, is_signed })
            }
            And => {
                let (whole, at) = shifted(first, LShr)?;
                (second()? == 255).then_some(Byte { whole, at, is_signed: false })
            }
            SExt | ZExt => {
                let is_signed = value.get_opcode() == SExt;
                let byte = instruction(first).filter(|_| bits(first) == Some(8))?;
                let of = byte.get_operand(0)?.value()?;
                let (whole, at) = match byte.get_opcode() {
                    Trunc => shifted(of, LShr)?,
                    ExtractElement => {
                        let BasicValueEnum::VectorValue(vector) = of else { return None };
                        let at = constant(byte.get_operand(1)?.value()?)?;
                        let is_word = vector.get_type().get_size() == 4;
                        (of, u32::try_from(at).ok().filter(|at| is_word && *at < 4)?)
                    }
                    _ => return None,
                };
                Some(Byte { whole, at, is_signed })
            }
            _ => None,
        }
    }
}

fn bits(value: BasicValueEnum<'_>) -> Option<u32> {
    match value {
        BasicValueEnum::IntValue(value) => Some(value.get_type().get_bit_width()),
        _ => None,
    }
}

/// A word, and by how many bytes it is shifted.
fn shifted(value: BasicValueEnum<'_>, by: InstructionOpcode) -> Option<(BasicValueEnum<'_>, u32)> {
    let shift = instruction(value).filter(|it| it.get_opcode() == by);
    let found = shift.and_then(|shift| {
        let distance = u32::try_from(constant(shift.get_operand(1)?.value()?)?).ok()?;
        (distance % 8 == 0 && distance < 32)
            .then_some((shift.get_operand(0)?.value()?, distance / 8))
    });
    found.or(Some((value, 0))).filter(|(word, _)| bits(*word) == Some(32))
}

/// A product of bytes at the same place of two words.
struct Product<'ctx> {
    bytes: [Byte<'ctx>; 2],
}

impl<'ctx> Product<'ctx> {
    fn of(value: IntValue<'ctx>) -> Option<Product<'ctx>> {
        let product = value.as_instruction_value().filter(|it| is_product(*it))?;
        let byte = |at| Byte::of(instruction(product.get_operand(at)?.value()?)?);
        let bytes = [byte(0)?, byte(1)?];
        (bytes[0].at == bytes[1].at).then_some(Product { bytes })
    }

    /// Tells the words from others, in either order.
    fn words(&self) -> [(usize, bool); 2] {
        let mut words = self.bytes.map(|byte| (byte.whole.as_value_ref() as usize, byte.is_signed));
        words.sort_unstable();
        words
    }
}

/// Two words, and where a sum has the products of their bytes, by the byte.
struct Words<'ctx> {
    bytes: [Byte<'ctx>; 2],
    places: [Option<usize>; 4],
}

fn join_one<'ctx>(
    module: &Module<'ctx>,
    sum: InstructionValue<'ctx>,
) -> std::result::Result<(), BuilderError> {
    let parts = parts(sum);
    let mut known = BTreeMap::new();
    let mut pairs: Vec<Words<'ctx>> = vec![];
    for (place, part) in parts.iter().enumerate() {
        let Some(product) = Product::of(*part) else { continue };
        let pair = *known.entry(product.words()).or_insert(pairs.len());
        if pair == pairs.len() {
            pairs.push(Words { bytes: product.bytes, places: [None; 4] });
        }
        pairs[pair].places[product.bytes[0].at as usize].get_or_insert(place);
    }
    pairs.retain(|pair| pair.places.iter().all(Option::is_some));
    if pairs.is_empty() {
        return Ok(());
    }
    let mut is_joined = vec![false; parts.len()];
    pairs.iter().flat_map(|pair| pair.places).flatten().for_each(|place| is_joined[place] = true);
    let builder = module.get_context().create_builder();
    builder.position_before(&sum);
    let word = module.get_context().i32_type();
    let mut all: Option<IntValue<'ctx>> = None;
    for (part, _) in parts.iter().zip(is_joined).filter(|(_, is_joined)| !is_joined) {
        all = Some(match all {
            Some(all) => builder.build_int_add(all, *part, "")?,
            None => *part,
        });
    }
    let mut all = all.unwrap_or_else(|| word.const_zero());
    for Words { bytes: [a, b], .. } in pairs {
        let dp4a = dp4a(module, a.is_signed, b.is_signed);
        let a = builder.build_bit_cast(a.whole, word, "")?;
        let b = builder.build_bit_cast(b.whole, word, "")?;
        let next = builder.build_call(dp4a, &[a.into(), b.into(), all.into()], "")?;
        all = next.try_as_basic_value().basic().map_or(all, BasicValueEnum::into_int_value);
    }
    if let Some(all) = all.as_instruction_value() {
        sum.replace_all_uses_with(&all);
    }
    Ok(())
}

/// The values that a sum adds, in the program's order.
fn parts(sum: InstructionValue<'_>) -> Vec<IntValue<'_>> {
    // A stack, because a sum may have any length.
    let (mut open, mut parts) = (operands(sum), vec![]);
    while let Some(value) = open.pop() {
        match value.as_instruction_value().filter(|part| is_sum(*part) && is_part(*part)) {
            Some(part) => open.append(&mut operands(part)),
            None => parts.push(value),
        }
    }
    parts
}

/// The operands of a sum, the first one last.
fn operands(sum: InstructionValue<'_>) -> Vec<IntValue<'_>> {
    let operand = |at| match sum.get_operand(at)?.value()? {
        BasicValueEnum::IntValue(value) => Some(value),
        _ => None,
    };
    [operand(1), operand(0)].into_iter().flatten().collect()
}

fn dp4a<'ctx>(module: &Module<'ctx>, a: bool, b: bool) -> FunctionValue<'ctx> {
    let [a, b] = [a, b].map(|is_signed| if is_signed { 's' } else { 'u' });
    let name = format!("llvm.nvvm.idp4a.{a}.{b}");
    module.get_function(&name).unwrap_or_else(|| {
        let word = module.get_context().i32_type();
        module.add_function(&name, word.fn_type(&[word.into(); 3], false), None)
    })
}
