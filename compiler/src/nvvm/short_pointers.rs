//! LLVM's data layout with short pointers (`--nvptx-short-ptr`), which Triton uses: those to shared, constant and local memory have 32
//! bits.

use inkwell::llvm_sys::LLVMOpcode;
use inkwell::module::Module;
use inkwell::targets::TargetData;

use super::legacy::foreign_layout;
use super::legacy::llvm::{self, Shape, Type, Value};
use crate::codegen::DATA_LAYOUT;

/// The address spaces whose pointers are short: shared, constant, local, tensor and cluster memory, and parameters.
const SPACES: [u32; 6] = [3, 4, 5, 6, 7, 101];

/// Gives a module with short pointers libNVVM's layout, unless such a pointer is in memory, where it would have another size. Those in
/// registers are computed alike.
pub(crate) fn settle(module: &Module<'_>) {
    let view = llvm::Module::new(module);
    if is_short(&view.data_layout()) && !has_short_in_memory(view) {
        // Not through LLVM's C interface: inkwell keeps the address of the old layout.
        module.set_data_layout(&TargetData::create(DATA_LAYOUT).get_data_layout());
    }
}

/// Whether a layout differs from libNVVM's by short pointers only.
fn is_short(layout: &str) -> bool {
    let is_short = |part: &&str| SPACES.iter().any(|space| *part == format!("p{space}:32:32"));
    let others: Vec<&str> = layout.split('-').filter(|part| !is_short(part)).collect();
    others.len() < layout.split('-').count() && foreign_layout(&others.join("-")).is_none()
}

fn has_short_in_memory(module: llvm::Module<'_>) -> bool {
    let functions = module.functions();
    // Those that others pass: the host, and other modules.
    let is_met = |one: &&Value<'_>| match one.is_declaration() {
        true => !one.text_name().starts_with("llvm."),
        false => one.users().is_empty(),
    };
    let parameters = functions.iter().filter(is_met).flat_map(|one| one.parameters());
    let instructions =
        functions.iter().flat_map(|one| one.blocks()).flat_map(|one| one.instructions());
    module.variables().into_iter().any(|one| has_short(one.value_type()))
        || parameters.into_iter().any(|one| has_short(one.ty()))
        || instructions.into_iter().any(accesses_short)
}

/// Whether an instruction accesses memory that holds such pointers, or computes addresses there.
fn accesses_short(instruction: Value<'_>) -> bool {
    match instruction.opcode() {
        LLVMOpcode::LLVMAlloca => has_short(instruction.allocated()),
        LLVMOpcode::LLVMLoad => has_short(instruction.ty()),
        LLVMOpcode::LLVMStore => has_short(instruction.operand(0).ty()),
        LLVMOpcode::LLVMGetElementPtr => has_short(instruction.gep_source()),
        LLVMOpcode::LLVMAtomicRMW | LLVMOpcode::LLVMAtomicCmpXchg => {
            has_short(instruction.operand(1).ty())
        }
        _ => false,
    }
}

fn has_short(ty: Type<'_>) -> bool {
    match ty.shape() {
        Shape::Pointer(space) => SPACES.contains(&space),
        Shape::Array(element, _) => has_short(element),
        Shape::Vector(element, _) => has_short(element),
        Shape::Struct => !ty.is_opaque() && ty.fields().into_iter().any(has_short),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;
    use inkwell::memory_buffer::MemoryBuffer;

    use super::*;

    const TRITON: &str = "e-p3:32:32-p4:32:32-p5:32:32-p6:32:32-p7:32:32-p101:32:32-i64:64-i128:128-i256:256-v16:16-v32:32-n16:32:64";

    fn layout_of(layout: &str, body: &str) -> String {
        let context = Context::create();
        let text = format!(
            "target datalayout = \"{layout}\"\n@tile = external addrspace(3) global [0 x i8]\n\
             define ptx_kernel void @k(ptr addrspace(1) %p, i32 %i) {{\n{body}\nret void }}"
        );
        let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "k.ll");
        let module = context.create_module_from_ir(buffer).unwrap();
        settle(&module);
        module.get_data_layout().as_str().to_string_lossy().into_owned()
    }

    #[test]
    fn short_pointers_become_long_where_none_is_in_memory() {
        let element = "%a = getelementptr i8, ptr addrspace(3) @tile, i32 %i\n\
            %v = load i32, ptr addrspace(3) %a\nstore i32 %v, ptr addrspace(1) %p";
        assert_eq!(layout_of(TRITON, element), DATA_LAYOUT);
        for stored in [
            "store ptr addrspace(3) @tile, ptr addrspace(1) %p",
            "%v = load { i32, ptr addrspace(5) }, ptr addrspace(1) %p",
            "%v = alloca [2 x ptr addrspace(4)]",
            "%v = getelementptr ptr addrspace(3), ptr addrspace(1) %p, i32 %i",
            "ret void\n}\ndefine ptx_kernel void @other(ptr addrspace(3) %q) {",
            "call void @f(ptr addrspace(3) @tile)\nret void\n}\ndeclare void @f(ptr addrspace(3))\ndefine void @g() {",
        ] {
            assert_eq!(layout_of(TRITON, stored), TRITON, "{stored}");
        }
        let other = TRITON.replace("p3:32:32", "p3:16:16");
        assert_eq!(layout_of(&other, element), other);
    }
}
