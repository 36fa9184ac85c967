//! Compares a cubin's parameter records with the layout pass.

use std::collections::BTreeMap;

use super::Cubin;
use super::cubin::{KernelRecords, parameter_records};
use crate::{Error, Result};
use gridlet_lang::ir::symbol;
use gridlet_lang::layout::ParamLayout;

/// Checks that every kernel's parameters lie in the cubin where the layout pass placed them.
/// Ignores kernels that `layouts` lacks: they belong to the device runtime or to linked modules.
///
/// # Errors
/// `Internal`, with the kernel, the parameter and both values, for the first difference; `Invalid`
/// if the cubin cannot be read.
pub fn check_parameters<'a>(
    cubin: &Cubin,
    layouts: impl IntoIterator<Item = &'a ParamLayout>,
) -> Result<()> {
    check_records(&parameter_records(cubin)?, layouts)
}

/// As [`check_parameters`], with the records of a cubin.
pub(crate) fn check_records<'a>(
    records: &[KernelRecords],
    layouts: impl IntoIterator<Item = &'a ParamLayout>,
) -> Result<()> {
    let mut by_kernel = BTreeMap::new();
    for records in records {
        by_kernel.entry(records.kernel.as_str()).or_insert(records);
    }
    for layout in layouts {
        let found = by_kernel.get(symbol::external(&layout.kernel).as_str());
        let found = found.ok_or_else(|| {
            Error::internal("link", format!("the cubin has no kernel `{}`", layout.kernel))
        })?;
        if let Some(difference) = difference(found, layout, ["the cubin", "the layout pass"]) {
            return Err(Error::internal(
                "link",
                format!("kernel `{}`: {difference}", layout.kernel),
            ));
        }
    }
    Ok(())
}

/// The first difference between the records of a kernel and its layout, which the message calls `theirs` and `ours`.
pub(crate) fn difference(
    records: &KernelRecords,
    layout: &ParamLayout,
    [theirs, ours]: [&str; 2],
) -> Option<String> {
    if records.parameters.len() != layout.slots.len() {
        return Some(format!(
            "{theirs} has {} parameters, {ours} {}",
            records.parameters.len(),
            layout.slots.len()
        ));
    }
    for (ordinal, (record, slot)) in (0_u16..).zip(records.parameters.iter().zip(&layout.slots)) {
        let values = [
            ("ordinal", u32::from(record.ordinal), u32::from(ordinal)),
            ("offset", record.offset, slot.offset),
            ("size", record.size, slot.size),
        ];
        for (what, found, wanted) in values {
            if found != wanted {
                return Some(format!(
                    "parameter {ordinal} `{}` has {what} {found} in {theirs}, but {wanted} in {ours}",
                    slot.name
                ));
            }
        }
    }
    (records.parameter_bytes != layout.size).then(|| {
        format!(
            "the parameters take {} bytes in {theirs}, but {} in {ours}",
            records.parameter_bytes, layout.size
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::link::cubin::ParameterRecord;
    use gridlet_lang::layout::ParamSlot;
    use gridlet_lang::types::Type;

    fn difference(records: &KernelRecords, layout: &ParamLayout) -> Option<String> {
        super::difference(records, layout, ["the cubin", "the layout pass"])
    }

    fn layout() -> ParamLayout {
        let slot = |name: &str, ty, offset, size| ParamSlot {
            name: String::from(name),
            ty,
            offset,
            size,
            alignment: size,
        };
        let slots = vec![slot("n", Type::U32, 0, 4), slot("x", Type::F64, 8, 8)];
        ParamLayout { kernel: "k".into(), slots, size: 16 }
    }

    fn records() -> KernelRecords {
        let parameters = vec![
            ParameterRecord { ordinal: 0, offset: 0, size: 4 },
            ParameterRecord { ordinal: 1, offset: 8, size: 8 },
        ];
        KernelRecords { kernel: "k".into(), parameters, parameter_bytes: 16 }
    }

    #[test]
    fn equal_records_pass_and_every_difference_is_named() {
        assert_eq!(difference(&records(), &layout()), None);

        let mut offset = records();
        offset.parameters[1].offset = 4;
        insta::assert_snapshot!(difference(&offset, &layout()).unwrap(), @"parameter 1 `x` has offset 4 in the cubin, but 8 in the layout pass");
        let mut size = records();
        size.parameters[0].size = 8;
        insta::assert_snapshot!(difference(&size, &layout()).unwrap(), @"parameter 0 `n` has size 8 in the cubin, but 4 in the layout pass");
        let mut ordinal = records();
        ordinal.parameters[1].ordinal = 2;
        insta::assert_snapshot!(difference(&ordinal, &layout()).unwrap(), @"parameter 1 `x` has ordinal 2 in the cubin, but 1 in the layout pass");
        let mut count = records();
        count.parameters.pop();
        insta::assert_snapshot!(difference(&count, &layout()).unwrap(), @"the cubin has 1 parameters, the layout pass 2");
        let bytes = KernelRecords { parameter_bytes: 24, ..records() };
        insta::assert_snapshot!(difference(&bytes, &layout()).unwrap(), @"the parameters take 24 bytes in the cubin, but 16 in the layout pass");
    }
}
