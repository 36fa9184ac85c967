//! The legacy dialect: LLVM 7 text with typed pointers, as LLVM 22 reads it, and the changes to the module that keep its
//! meaning.
//!
//! LLVM 22 still reads typed pointers, as pointers without a type. It does not read `byval` and `sret` without a type,
//! which is that of the pointer, and does not know some intrinsics of libNVVM. Atomic operations in the legacy dialect
//! have device scope and no order, as PTX's; in LLVM 22 the same text means system scope.

use std::borrow::Cow;

use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::llvm_sys::LLVMAtomicOrdering;
use inkwell::llvm_sys::core::{
    LLVMGetSyncScopeID, LLVMInstructionEraseFromParent, LLVMReplaceAllUsesWith,
    LLVMSetAtomicSyncScopeID, LLVMSetCmpXchgFailureOrdering, LLVMSetCmpXchgSuccessOrdering,
    LLVMSetOrdering, LLVMTypeOf,
};
use inkwell::module::Module;
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::{
    AnyValue, AnyValueEnum, AsValueRef, BasicMetadataValueEnum, BasicValue as _, FunctionValue,
    InstructionOpcode, InstructionValue,
};

/// What one look at LLVM text shows.
#[derive(Default)]
pub(super) struct Look {
    /// Whether it has typed pointers: outside strings and comments, nothing else is written with `*`.
    pub(super) is_typed: bool,
    /// The place of the first bracket inside too many others.
    pub(super) too_deep: Option<usize>,
}

/// Looks at text, in which at most `max_nesting` brackets may be open.
pub(super) fn look(text: &[u8], max_nesting: usize) -> Look {
    let (mut look, mut depth) = (Look::default(), 0_usize);
    for (at, byte) in code_bytes(text) {
        match byte {
            b'*' => look.is_typed = true,
            b'{' | b'[' | b'(' | b'<' => {
                depth += 1;
                if depth > max_nesting {
                    look.too_deep.get_or_insert(at);
                }
            }
            b'}' | b']' | b')' | b'>' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    look
}

/// The bytes outside strings and comments, with their places.
fn code_bytes(text: &[u8]) -> impl Iterator<Item = (usize, u8)> {
    let (mut in_string, mut in_comment) = (false, false);
    let mut is_code = move |byte: u8| {
        match byte {
            b'\n' => in_comment = false,
            b'"' if !in_comment => {
                in_string = !in_string;
                return false;
            }
            b';' if !in_string => in_comment = true,
            _ => {}
        }
        !in_string && !in_comment
    };
    text.iter().copied().enumerate().filter(move |(_, byte)| is_code(*byte))
}

/// By byte, whether it is outside strings and comments.
fn code(text: &str) -> Vec<bool> {
    let mut code = vec![false; text.len()];
    code_bytes(text.as_bytes()).for_each(|(at, _)| code[at] = true);
    code
}

/// Gives `byval` and `sret` the types of their pointers: `%s* byval align 8 %p` becomes
/// `%s* byval(%s) align 8 %p`.
pub(super) fn with_types(text: &str) -> Cow<'_, str> {
    let code = code(text);
    let mut inserted = vec![];
    for word in ["byval", "sret"] {
        for (at, _) in text.match_indices(word) {
            let end = at + word.len();
            let is_name = |byte: u8| byte.is_ascii_alphanumeric() || b"_.$%@-".contains(&byte);
            let before = text.as_bytes()[..at].last();
            let after = text.as_bytes().get(end);
            let is_word = !before.is_some_and(|byte| is_name(*byte))
                && !after.is_some_and(|byte| is_name(*byte) || *byte == b'(');
            if is_word
                && code[at]
                && let Some(pointee) = pointee(text, at)
            {
                inserted.push((end, format!("({pointee})")));
            }
        }
    }
    if inserted.is_empty() {
        return Cow::Borrowed(text);
    }
    inserted.sort();
    let (mut whole, mut from) = (String::with_capacity(text.len()), 0);
    for (at, piece) in inserted {
        whole.push_str(&text[from..at]);
        whole.push_str(&piece);
        from = at;
    }
    whole.push_str(&text[from..]);
    Cow::Owned(whole)
}

/// The pointee of the pointer whose attributes include position `at`.
fn pointee(text: &str, at: usize) -> Option<&str> {
    let (mut depth, mut start) = (0u32, 0);
    for (place, byte) in text.as_bytes()[..at].iter().enumerate().rev() {
        match byte {
            b')' | b'}' | b']' | b'>' => depth += 1,
            b'(' | b',' if depth == 0 => {
                start = place + 1;
                break;
            }
            b'(' | b'{' | b'[' | b'<' => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    let (ty, _) = text[start..at].rsplit_once('*')?;
    let ty = ty.trim();
    Some(ty.rsplit_once(" addrspace(").map_or(ty, |(ty, _)| ty.trim_end()))
}

/// Gives a module that was read from text with typed pointers the meaning that it has in the legacy dialect.
pub(super) fn keep_meaning<'ctx>(module: &Module<'ctx>, context: &'ctx Context) {
    // SAFETY: the context is alive, and the name has that length.
    let device = unsafe { LLVMGetSyncScopeID(context.raw(), c"device".as_ptr(), 6) };
    let builder = context.create_builder();
    let old_shuffle = module.get_function(SHUFFLE);
    rename_barrier(module, context, &builder);
    for function in module.get_functions() {
        promise_return(context, function);
        for block in function.get_basic_blocks() {
            let mut next = block.get_first_instruction();
            while let Some(instruction) = next {
                next = instruction.get_next_instruction();
                match instruction.get_opcode() {
                    InstructionOpcode::BitCast => fold(instruction),
                    InstructionOpcode::AtomicRMW | InstructionOpcode::AtomicCmpXchg => {
                        weaken(instruction, device);
                    }
                    InstructionOpcode::Call => shuffle(module, context, &builder, instruction),
                    _ => {}
                }
            }
        }
    }
    if let Some(function) = old_shuffle
        && function.as_global_value().as_pointer_value().get_first_use().is_none()
    {
        // SAFETY: nothing uses it.
        unsafe { function.delete() };
    }
}

/// The first name of `__syncthreads`, which NVVM IR still has and LLVM never had.
const OLD_BARRIER: &str = "llvm.cuda.syncthreads";

/// Replaces [`OLD_BARRIER`] by LLVM's intrinsic.
fn rename_barrier<'ctx>(module: &Module<'ctx>, context: &'ctx Context, builder: &Builder<'ctx>) {
    let Some(old) = module.get_function(OLD_BARRIER) else { return };
    let word = context.i32_type();
    let name = "llvm.nvvm.barrier.cta.sync.aligned.all";
    let barrier = module.get_function(name).unwrap_or_else(|| {
        module.add_function(name, context.void_type().fn_type(&[word.into()], false), None)
    });
    let address = old.as_global_value().as_pointer_value();
    let mut next = address.get_first_use();
    while let Some(user) = next {
        next = user.get_next_use();
        let AnyValueEnum::InstructionValue(call) = user.get_user().as_any_value_enum() else {
            continue;
        };
        builder.position_before(&call);
        if builder.build_call(barrier, &[word.const_zero().into()], "").is_ok() {
            // SAFETY: it is a call without a result, because a use as an operand is not verified.
            unsafe { LLVMInstructionEraseFromParent(call.as_value_ref()) };
        }
    }
    if address.get_first_use().is_none() {
        // SAFETY: nothing uses it.
        unsafe { old.delete() };
    }
}

/// libNVVM's shuffle, whose second argument is the mode (NVVM IR Specification, "Data Movement").
const SHUFFLE: &str = "llvm.nvvm.shfl.sync.i32";

fn replace(instruction: InstructionValue<'_>, value: impl AsValueRef) {
    // SAFETY: both belong to one module, the value has the type of the instruction, and nothing uses the instruction
    // afterwards.
    unsafe {
        LLVMReplaceAllUsesWith(instruction.as_value_ref(), value.as_value_ref());
        LLVMInstructionEraseFromParent(instruction.as_value_ref());
    }
}

/// Removes a cast between pointers, which have no types any more.
fn fold(cast: InstructionValue<'_>) {
    let Some(operand) = cast.get_operand(0).and_then(|operand| operand.value()) else { return };
    // SAFETY: both values are alive.
    let is_same = unsafe { LLVMTypeOf(cast.as_value_ref()) == LLVMTypeOf(operand.as_value_ref()) };
    if is_same {
        replace(cast, operand);
    }
}

/// In LLVM 7, a function that does not write may be removed if nothing uses its result. LLVM 22 asks for a promise that it
/// returns.
fn promise_return(context: &Context, function: FunctionValue<'_>) {
    let kind = Attribute::get_named_enum_kind_id;
    let place = AttributeLoc::Function;
    let Some(memory) = function.get_enum_attribute(place, kind("memory")) else { return };
    // Two bits for each location: 1 reads, 2 writes.
    const WRITES: u64 = 0xaaaa_aaaa_aaaa_aaaa;
    if memory.get_enum_value() & WRITES == 0 {
        function.add_attribute(place, context.create_enum_attribute(kind("willreturn"), 0));
    }
}

fn weaken(atomic: InstructionValue<'_>, scope: u32) {
    let relaxed = LLVMAtomicOrdering::LLVMAtomicOrderingMonotonic;
    let value = atomic.as_value_ref();
    // SAFETY: it is an atomic operation of one of the two kinds.
    unsafe {
        LLVMSetAtomicSyncScopeID(value, scope);
        if atomic.get_opcode() == InstructionOpcode::AtomicRMW {
            LLVMSetOrdering(value, relaxed);
        } else {
            LLVMSetCmpXchgSuccessOrdering(value, relaxed);
            LLVMSetCmpXchgFailureOrdering(value, relaxed);
        }
    }
}

/// Replaces [`SHUFFLE`] by LLVM's intrinsic for its mode.
fn shuffle<'ctx>(
    module: &Module<'ctx>,
    context: &'ctx Context,
    builder: &Builder<'ctx>,
    call: InstructionValue<'ctx>,
) {
    const MODES: [&str; 4] = ["idx", "up", "down", "bfly"];
    let operand = |at| call.get_operand(at).and_then(|operand| operand.value());
    let is_shuffle = call.get_num_operands() == 6
        && operand(5).is_some_and(|callee| callee.is_pointer_value())
        && operand(5).is_some_and(|callee| {
            callee.into_pointer_value().get_name().to_bytes() == SHUFFLE.as_bytes()
        });
    let mode = operand(1).filter(|mode| is_shuffle && mode.is_int_value());
    let mode = mode.and_then(|mode| mode.into_int_value().get_zero_extended_constant());
    let Some(mode) = mode.and_then(|mode| MODES.get(mode as usize)) else { return };
    let name = format!("llvm.nvvm.shfl.sync.{mode}.i32p");
    let word = context.i32_type();
    let function = module.get_function(&name).unwrap_or_else(|| {
        let result = context.struct_type(&[word.into(), context.bool_type().into()], false);
        let parameters: [BasicMetadataTypeEnum<'_>; 4] = [word.into(); 4];
        module.add_function(&name, result.fn_type(&parameters, false), None)
    });
    let arguments: Vec<BasicMetadataValueEnum<'_>> =
        [0, 2, 3, 4].into_iter().filter_map(|at| Some(operand(at)?.into())).collect();
    builder.position_before(&call);
    if let Ok(made) = builder.build_call(function, &arguments, "") {
        replace(call, made.as_any_value_enum());
    }
}

#[cfg(test)]
mod tests {
    use super::{look, with_types};

    #[test]
    fn typed_text_is_told_by_its_pointers() {
        assert!(look(b"define void @f(i8* %p) {", 1).is_typed);
        assert!(
            !look(b"define void @f(ptr %p) { ; i8*\n  call void asm \"*\", \"\"()", 1).is_typed
        );
    }

    #[test]
    fn attributes_get_the_type_of_their_pointer() {
        for (typed, given) in [
            ("f([16 x i8]* byval align 8 %s)", "f([16 x i8]* byval([16 x i8]) align 8 %s)"),
            ("f(i32 %a, %t* nocapture byval)", "f(i32 %a, %t* nocapture byval(%t))"),
            (
                "f({ i8, i8 } addrspace(5)* sret %p)",
                "f({ i8, i8 } addrspace(5)* sret({ i8, i8 }) %p)",
            ),
            ("f(ptr byval(i32) %p)", "f(ptr byval(i32) %p)"),
            (
                "; i8* byval\n@byval = \"i8* byval\" %sret",
                "; i8* byval\n@byval = \"i8* byval\" %sret",
            ),
        ] {
            assert_eq!(with_types(typed), given);
        }
    }
}
