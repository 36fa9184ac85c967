//! Fused multiply-adds in the PTX of LLVM's back end.
//!
//! In PTX, `mul.f32` and `add.f32` may be fused, `mul.rn.f32` and `add.rn.f32` must not. libNVVM writes the former, and fuses a part
//! of them itself by rules much like those of ptxas, which fuses the rest. LLVM would fuse more, also products with other uses.
//! So LLVM may fuse nothing, and ptxas fuses everything: the rounding is taken out of the text. Products and sums that
//! codegen or libdevice asks to be rounded become assembly first, so that they stay as they are.

use inkwell::attributes::AttributeLoc;
use inkwell::module::{Linkage, Module};
use inkwell::values::BasicMetadataValueEnum;

use super::workarounds::instruction;
use crate::error::{Error, Result};

/// The operations that are rounded on request: intrinsic, instruction, register.
const ROUNDED: [(&str, &str, &str); 6] = [
    ("llvm.nvvm.add.rn.f", "add.rn.f32", "f"),
    ("llvm.nvvm.add.rn.ftz.f", "add.rn.ftz.f32", "f"),
    ("llvm.nvvm.add.rn.d", "add.rn.f64", "d"),
    ("llvm.nvvm.mul.rn.f", "mul.rn.f32", "f"),
    ("llvm.nvvm.mul.rn.ftz.f", "mul.rn.ftz.f32", "f"),
    ("llvm.nvvm.mul.rn.d", "mul.rn.f64", "d"),
];

/// The operations that [`relax`] changes: libNVVM fuses those of `f32` and `f64` alone.
const RELAXED: [(&str, &str); 9] = [
    ("add.rn.f32", "add.f32"),
    ("sub.rn.f32", "sub.f32"),
    ("mul.rn.f32", "mul.f32"),
    ("add.rn.ftz.f32", "add.ftz.f32"),
    ("sub.rn.ftz.f32", "sub.ftz.f32"),
    ("mul.rn.ftz.f32", "mul.ftz.f32"),
    ("add.rn.f64", "add.f64"),
    ("sub.rn.f64", "sub.f64"),
    ("mul.rn.f64", "mul.f64"),
];

/// Makes assembly of the operations that must stay rounded.
pub(super) fn keep_rounded(module: &Module<'_>) -> Result<()> {
    ROUNDED.iter().try_for_each(|(name, text, register)| keep(module, name, text, register))
}

/// Replaces an intrinsic by a function of one assembly instruction.
fn keep(module: &Module<'_>, name: &str, text: &str, register: &str) -> Result<()> {
    let Some(intrinsic) = module.get_function(name) else { return Ok(()) };
    let failed = |error: String| Error::internal("ptx", format!("{name}: {error}"));
    let context = module.get_context();
    let ty = intrinsic.get_type();
    let function = module.add_function(&format!("gridlet.{text}"), ty, Some(Linkage::Internal));
    let kind = inkwell::attributes::Attribute::get_named_enum_kind_id("alwaysinline");
    function.add_attribute(AttributeLoc::Function, context.create_enum_attribute(kind, 0));
    let builder = context.create_builder();
    builder.position_at_end(context.append_basic_block(function, "entry"));
    let assembly = context.create_inline_asm(
        ty,
        format!("{text} $0, $1, $2;"),
        format!("={register},{register},{register}"),
        false,
        false,
        None,
        false,
    );
    let arguments: Vec<BasicMetadataValueEnum<'_>> =
        function.get_param_iter().map(|argument| argument.into()).collect();
    let call = builder
        .build_indirect_call(ty, assembly, &arguments, "")
        .map_err(|error| failed(error.to_string()))?;
    let value = call.try_as_basic_value().basic();
    let value = value.ok_or_else(|| failed("the assembly has no result".into()))?;
    builder.build_return(Some(&value)).map_err(|error| failed(error.to_string()))?;
    intrinsic.replace_all_uses_with(function);
    Ok(())
}

/// Lets ptxas fuse the products and sums outside assembly.
pub(super) fn relax(ptx: &str) -> String {
    let mut is_assembly = false;
    ptx.split_inclusive('\n')
        .map(|line| {
            let text = line.trim_start();
            match text.trim_end() {
                "// begin inline asm" => is_assembly = true,
                "// end inline asm" => is_assembly = false,
                _ => {}
            }
            let found =
                RELAXED.iter().find(|(rounded, _)| !is_assembly && text.starts_with(rounded));
            match found {
                Some((rounded, relaxed)) => product_of_two(&line.replacen(rounded, relaxed, 1)),
                None => line.to_owned(),
            }
        })
        .collect()
}

/// A sum of a number with itself as its product with 2, as which LLVM got it: ptxas fuses a product with a sum.
fn product_of_two(line: &str) -> String {
    let product = instruction(line).and_then(|[indent, word, operands, end]| {
        let two = match word.strip_prefix("add.")? {
            "f32" | "ftz.f32" => "0f40000000",
            "f64" => "0d4000000000000000",
            _ => return None,
        };
        let word = word.replacen("add", "mul", 1);
        let [result, left, right] = operands.split(", ").collect::<Vec<_>>().try_into().ok()?;
        (left == right).then(|| format!("{indent}{word} {result}, {left}, {two};{end}"))
    });
    product.unwrap_or_else(|| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::relax;

    #[test]
    fn only_operations_outside_assembly_are_relaxed() {
        let ptx = "\
\tmul.rn.f32 \t%r1, %r2, %r3;
\tadd.rn.f64 \t%rd1, %rd2, %rd3;
\tadd.rn.f16 \t%rs1, %rs2, %rs3;
\tfma.rn.f32 \t%r1, %r2, %r3, %r4;
\tdiv.rn.f32 \t%r1, %r2, %r3;
\t// begin inline asm
\tmul.rn.f32 %r5, %r2, %r3;
\t// end inline asm
\tsub.rn.f32 \t%r6, %r5, %r1;
\tadd.rn.f32 \t%r7, %r6, %r6;
\tadd.rn.f64 \t%rd4, %rd1, %rd1; // twice
\tsub.rn.f64 \t%rd5, %rd1, %rd1;
";
        insta::assert_snapshot!(relax(ptx));
    }
}
