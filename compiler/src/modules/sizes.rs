//! Variables that are larger than the memory of a device.

use gridlet_lang::launch::MAX_LOCAL_BYTES;
use inkwell::llvm_sys::LLVMOpcode;

use super::check::Finding;
use super::kernels::name;
use super::layout::extent;
use crate::codegen::MAX_CPU_STATIC_BYTES;
use crate::nvvm::legacy::llvm::{Kind, Module, Shape, Value};

/// More bytes than the memory of any GPU.
const MAX_GLOBAL_BYTES: u64 = 1 << 40;

/// The most bytes of a local variable in an image for the CPU.
const MAX_CPU_LOCAL_BYTES: u64 = u32::MAX as u64;

/// The address space of shared memory, which [`super::shared`] counts.
const SHARED: u32 = 3;

/// Variables that no GPU can hold.
pub(super) fn for_gpus(module: Module<'_>) -> Vec<Finding<'_>> {
    let most = format!("a thread of a GPU has at most {MAX_LOCAL_BYTES} bytes of local memory");
    let mut findings = locals(module, MAX_LOCAL_BYTES, &most);
    findings.extend(globals(module, MAX_GLOBAL_BYTES, "no GPU has so much memory"));
    findings
}

/// Variables that an image for the CPU cannot hold.
pub(super) fn for_cpu(module: Module<'_>) -> Vec<Finding<'_>> {
    let most = format!("an image for the CPU has at most {MAX_CPU_LOCAL_BYTES}");
    let mut findings = locals(module, MAX_CPU_LOCAL_BYTES, &most);
    let most = format!("an image for the CPU has room for {MAX_CPU_STATIC_BYTES}");
    findings.extend(globals(module, MAX_CPU_STATIC_BYTES, &most));
    findings
}

/// The local variables of more bytes than there are. Those that nothing uses do not count.
fn locals<'m>(module: Module<'m>, most: u64, why: &str) -> Vec<Finding<'m>> {
    let blocks = module.functions().into_iter().flat_map(Value::blocks);
    let instructions = blocks.flat_map(|block| block.instructions());
    let too_large = |one: Value<'m>| {
        if one.opcode() != LLVMOpcode::LLVMAlloca {
            return None;
        }
        let count = Some(one.operand(0)).filter(|count| count.kind() == Kind::Int)?.unsigned()?;
        let bytes = extent(one.allocated())?.size.saturating_mul(count);
        if bytes <= most || one.users().is_empty() {
            return None;
        }
        let message = format!(
            "a local variable of {bytes} bytes is too large: {why}; let the host allocate a buffer, and pass it to the kernels"
        );
        Some(Finding { at: Some(one), message })
    };
    instructions.filter_map(too_large).collect()
}

/// The largest variable, if all of them take more bytes than there are.
fn globals<'m>(module: Module<'m>, most: u64, why: &str) -> Option<Finding<'m>> {
    let is_static =
        |one: &Value<'m>| !one.is_declaration() && one.ty().shape() != Shape::Pointer(SHARED);
    let sized = module.variables().into_iter().filter(is_static);
    let sized = sized.filter_map(|one| Some((one, extent(one.value_type())?.size)));
    let sized: Vec<_> = sized.collect();
    let bytes = sized.iter().fold(0_u64, |sum, (_, size)| sum.saturating_add(*size));
    let (largest, _) = sized.into_iter().max_by_key(|(_, size)| *size)?;
    (bytes > most).then(|| Finding {
        at: Some(largest),
        message: format!(
            "the variables of the module take {bytes} bytes, the largest of them `{}`, but {why}; let the host allocate a buffer, and pass \
             it to the kernels",
            name(largest)
        ),
    })
}
