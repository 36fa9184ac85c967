//! Compares the kernels that a program declares and other modules define with their declarations.

use super::cubin::{KernelRecords, parameter_records};
use super::{Cubin, check::difference};
use crate::error::{Error, Result};
use crate::inputs::externs::{defines_entry, launched, mismatch, not_a_kernel};
use crate::inputs::{InputKind, LinkInput};
use gridlet_lang::ir::{KernelId, symbol};
use gridlet_lang::program::Checked;

/// Compares the kernels that a program declares and other modules define with their declarations, by the records of the linked
/// image. One that the program does not launch may be missing: then the host cannot launch it either.
///
/// # Errors
/// [`Error::Program`] for each kernel that is launched and the image lacks, or that has other parameters.
pub(crate) fn check(
    program: &Checked,
    records: &[KernelRecords],
    inputs: &[LinkInput],
) -> Result<()> {
    let module = &program.module;
    if module.extern_kernels().next().is_none() {
        return Ok(());
    }
    let launched = launched(module);
    let mut wrong = vec![];
    let kernels = (0..).map(KernelId).zip(&module.kernels);
    for (id, kernel) in kernels.filter(|(_, kernel)| kernel.is_extern()) {
        let symbol = symbol::external(&kernel.name);
        let Some(found) = records.iter().find(|records| records.kernel == symbol) else {
            if launched.iter().any(|(_, other)| *other == id) {
                wrong.push(not_a_kernel(kernel));
            }
            continue;
        };
        let layout = program.layouts.parameters(id);
        let Some(difference) = difference(found, layout, ["the definition", "the declaration"])
        else {
            continue;
        };
        let structs = &program.module.structs;
        let declared = layout.slots.iter().map(|slot| {
            let ty = slot.ty.display(structs);
            format!("{} (`{}: {ty}`)", bytes(slot.offset, slot.size), slot.name)
        });
        let defined = found.parameters.iter();
        let defined = defined.map(|record| bytes(record.offset, record.size));
        let list = |all: Vec<String>| match all.is_empty() {
            true => "no parameters".to_owned(),
            false => format!("bytes {}", all.join(", ")),
        };
        let file = defining_file(&symbol, inputs);
        let file = file.map_or("a linked module".into(), |name| format!("`{name}`"));
        let (declared, defined) = (list(declared.collect()), list(defined.collect()));
        let error = mismatch(&kernel.name, kernel.span, &file, &declared, &defined);
        wrong.push(error.note(difference));
    }
    if wrong.is_empty() { Ok(()) } else { Err(Error::Program(wrong)) }
}

/// The bytes of a parameter buffer: `8..12`.
fn bytes(offset: u32, size: u32) -> String {
    format!("{offset}..{}", offset.saturating_add(size))
}

/// The input that evidently defines a kernel.
fn defining_file<'i>(symbol: &str, inputs: &'i [LinkInput]) -> Option<&'i str> {
    let defines = |input: &&LinkInput| match input.kind {
        InputKind::Cubin => parameter_records(&Cubin(input.bytes.clone()))
            .is_ok_and(|records| records.iter().any(|records| records.kernel == symbol)),
        _ => defines_entry(input, symbol),
    };
    inputs.iter().find(defines).map(|input| input.name.as_str())
}
