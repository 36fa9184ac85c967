//! The order in which a block of code reads the hardware's geometry.
//!
//! LLVM's back end keeps it. If `%ctaid` comes before `%ntid`, ptxas reads it into a uniform register, which takes longer, and then moves
//! `%ntid` to another for their product: short kernels took up to 4 % longer (H200, CUDA 13.0).

use inkwell::basic_block::BasicBlock;
use inkwell::module::Module;
use inkwell::values::InstructionValue;

use super::loops;

/// Reads `%ntid` before `%ctaid`.
pub(super) fn order(module: &Module<'_>) {
    let builder = module.get_context().create_builder();
    let blocks = module.get_functions().flat_map(|function| function.get_basic_block_iter());
    for block in blocks {
        let Some(first) = reads(block, "ctaid").next() else { continue };
        // Those that are there already keep their order.
        for read in reads(block, "ntid").collect::<Vec<_>>() {
            read.remove_from_basic_block();
            builder.position_before(&first);
            builder.insert_instruction(&read, None);
        }
    }
}

/// The reads of a special register's parts.
fn reads<'ctx>(
    block: BasicBlock<'ctx>,
    register: &'static str,
) -> impl Iterator<Item = InstructionValue<'ctx>> {
    let is_read = move |instruction: &InstructionValue<'ctx>| {
        let name = loops::callee(*instruction).map(|callee| callee.get_name().to_owned());
        let part = name
            .as_ref()
            .and_then(|name| name.to_str().ok())
            .and_then(|name| name.strip_prefix("llvm.nvvm.read.ptx.sreg.")?.strip_prefix(register));
        part.is_some_and(|part| part.starts_with('.'))
    };
    block.get_instructions().filter(is_read)
}
