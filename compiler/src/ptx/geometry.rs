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
        // Those before may be used before it.
        let after = block.get_instructions().skip_while(|instruction| *instruction != first);
        for read in after.filter(|after| is_read(*after, "ntid")).collect::<Vec<_>>() {
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
    block.get_instructions().filter(move |instruction| is_read(*instruction, register))
}

fn is_read(instruction: InstructionValue<'_>, register: &str) -> bool {
    let name = loops::callee(instruction).map(|callee| callee.get_name().to_owned());
    let part = name
        .as_ref()
        .and_then(|name| name.to_str().ok())
        .and_then(|name| name.strip_prefix("llvm.nvvm.read.ptx.sreg.")?.strip_prefix(register));
    part.is_some_and(|part| part.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;

    use super::super::loops::module_of;
    use super::order;

    #[test]
    fn sizes_are_read_before_indices_and_before_their_uses() {
        let text = "
            declare i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
            declare i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
            declare i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
            define i32 @f(i32 %n) {
              %early = call i32 @llvm.nvvm.read.ptx.sreg.ntid.x()
              %left = sub i32 %n, %early
              %index = call i32 @llvm.nvvm.read.ptx.sreg.ctaid.x()
              %late = call i32 @llvm.nvvm.read.ptx.sreg.ntid.y()
              %a = mul i32 %index, %late
              %b = add i32 %a, %left
              ret i32 %b
            }";
        let context = Context::create();
        let module = module_of(&context, text);
        order(&module);
        module.verify().expect("a right module");
        insta::assert_snapshot!(module.print_to_string().to_string());
    }
}
