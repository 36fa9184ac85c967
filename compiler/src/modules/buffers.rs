//! Parameter buffers: their sizes, and whether the stores into them fit the parameters of the kernel that is launched.

use std::iter::successors;

use gridlet_lang::extents;
use gridlet_lang::launch::cdp::symbols::RuntimeFunction;
use gridlet_lang::layout::MAX_PARAMETER_BYTES;
use inkwell::llvm_sys::LLVMOpcode;

use super::bounds;
use super::check::Finding;
use super::intrinsics::is_copy_from;
use super::kernels::{self, name};
use super::layout::{extent, is_padding};
use super::runtime::calls;
use super::uses::{Bytes, Uses, uses};
use super::{indirect, local};
use crate::nvvm::legacy::llvm::{Kind, Shape, Type, Value};

/// What is wrong with the parameter buffers of a module, given its functions of the device runtime.
pub(super) fn check<'m>(declared: &[(Value<'m>, RuntimeFunction)]) -> Vec<Finding<'m>> {
    let of = |wanted| declared.iter().filter(move |(_, known)| *known == wanted);
    let launchers: Vec<Value<'m>> =
        of(RuntimeFunction::LaunchDevice).map(|(function, _)| *function).collect();
    let mut findings = indirect::check(declared);
    for (function, _) in of(RuntimeFunction::GetParameterBuffer) {
        // LLVM lists the last one first.
        for call in calls(*function).into_iter().rev() {
            let Some(target) = call.arguments().first().copied() else { continue };
            if target.kind() != Kind::Function {
                let message = no_kernel(call, target);
                findings.extend(message.map(|message| Finding { at: Some(call), message }));
                continue;
            }
            let uses = uses(call, &launchers);
            let found = launch(call, target, &uses);
            findings.extend(found.map(|message| Finding { at: Some(call), message }));
            findings.extend(local_arguments(call, target, &uses));
            findings.extend(late_stores(call, target, &uses));
            findings.extend(second_launch(call, &uses));
        }
    }
    for call in launchers.iter().flat_map(|function| calls(*function).into_iter().rev()) {
        findings.extend(wrong_launch(call).map(|message| Finding { at: Some(call), message }));
    }
    findings
}

/// What is wrong with the constants of a launch: no buffer, or no stream.
fn wrong_launch(launch: Value<'_>) -> Option<String> {
    let arguments = launch.arguments();
    let [buffer, stream] = arguments[..] else { return None };
    if matches!(buffer.kind(), Kind::Null | Kind::Undefined) {
        return Some("the parameter buffer of this launch is `null` or undefined; ask for one with `cudaGetParameterBufferV2`".into());
    }
    if stream.kind() == Kind::Undefined {
        return Some("the stream of this launch is undefined; give `null`, or a handle".into());
    }
    let is_constant = stream.kind() == Kind::Expression && is_number(stream);
    let number = is_constant.then(|| stream.operand(0).unsigned()).flatten();
    let number = number.filter(|number| *number > MAX_NAMED_STREAM)?;
    Some(format!(
        "{number} is no stream: streams are `null`, 3 (tail launch), 4 (fire and forget), and handles that the device runtime gives"
    ))
}

/// The largest number that stands for a stream of CUDA.
const MAX_NAMED_STREAM: u64 = 4;

/// A launch of a buffer that was launched before in the same block.
fn second_launch<'m>(buffer: Value<'m>, uses: &Uses<'m>) -> Option<Finding<'m>> {
    let is_second = |launch: &Value<'m>| {
        let before = successors(launch.previous(), |one| one.previous());
        let mut before = before.take_while(|one| *one != buffer);
        before.any(|one| uses.launches.contains(&one))
    };
    let at = uses.launches.iter().copied().find(is_second)?;
    let message = "the parameter buffer of this launch was launched before, and belongs to that grid; ask for another".into();
    Some(Finding { at: Some(at), message })
}

/// What is wrong with the target of a launch that is not a function: it certainly is no kernel, or it is known only when it runs.
fn no_kernel(buffer: Value<'_>, mut target: Value<'_>) -> Option<String> {
    let is_cast = |value: Value<'_>| {
        value.kind() == Kind::Expression
            && matches!(
                value.constant_opcode(),
                LLVMOpcode::LLVMAddrSpaceCast | LLVMOpcode::LLVMBitCast
            )
    };
    while is_cast(target) {
        target = target.operand(0);
    }
    let what = match target.kind() {
        Kind::Null => "`null`".to_owned(),
        Kind::Undefined => "an undefined address".to_owned(),
        Kind::Variable => format!("the variable `{}`", name(target)),
        Kind::Expression if is_number(target) => "a number".to_owned(),
        _ => return None,
    };
    let caller = buffer.function().map(name).unwrap_or_default();
    Some(format!("`{caller}` launches {what}, which is not a kernel; give the kernel's name"))
}

/// Whether a constant expression casts a number.
fn is_number(target: Value<'_>) -> bool {
    target.constant_opcode() == LLVMOpcode::LLVMIntToPtr && target.operand(0).kind() == Kind::Int
}

/// The requests for parameter buffers that no launch uses, in the order of the module.
pub(super) fn unused<'m>(declared: &[(Value<'m>, RuntimeFunction)]) -> Vec<Value<'m>> {
    let of = |wanted| declared.iter().filter(move |(_, known)| *known == wanted);
    let launchers: Vec<Value<'m>> =
        of(RuntimeFunction::LaunchDevice).map(|(function, _)| *function).collect();
    let requests = of(RuntimeFunction::GetParameterBuffer);
    // LLVM lists the last call first.
    let mut requests: Vec<_> =
        requests.flat_map(|(function, _)| calls(*function).into_iter().rev()).collect();
    requests.retain(|call| {
        let uses = uses(*call, &launchers);
        uses.launches.is_empty() && !uses.is_elsewhere
    });
    requests
}

/// What is wrong with one launch.
fn launch(buffer: Value<'_>, target: Value<'_>, uses: &Uses<'_>) -> Option<String> {
    let caller = buffer.function().map(name).unwrap_or_default();
    let child = name(target);
    let at = format!("`{caller}` launches `{child}`");
    if !kernels::is_kernel(target) {
        return Some(format!(
            "{at}, which is not marked as a kernel: use the calling convention `ptx_kernel`, or `!nvvm.annotations`"
        ));
    }
    if let Some(problem) = impossible(buffer, target, &child) {
        return Some(format!("{at}, which cannot succeed: {problem}"));
    }
    let mut parameters: Vec<(String, Bytes)> = vec![];
    let mut types = vec![];
    let mut end = 0;
    for parameter in kernels::parameters(target) {
        let extent = parameter.extent()?;
        let start = u64::next_multiple_of(end, extent.alignment.max(1));
        end = start + extent.size;
        types.push((parameter.ty, parameter.is_copied));
        parameters.push((parameter.name, (start as i64, i64::try_from(end).ok()?)));
    }
    if end > u64::from(MAX_PARAMETER_BYTES) {
        return Some(format!(
            "{at}, whose parameters take {end} bytes; a launch passes at most {MAX_PARAMETER_BYTES}. Pass a pointer to \
             the large data instead"
        ));
    }
    let Uses { stores, launches, is_whole, .. } = uses;
    for (store, (first, last)) in stores {
        let covered: i64 = parameters
            .iter()
            .map(|(_, (start, end))| (end.min(last) - start.max(first)).max(0))
            .sum();
        // The padding of a struct carries nothing.
        let stored = match store.opcode() {
            LLVMOpcode::LLVMStore => Some(store.operand(0).ty()),
            _ => whole_source(*store, last - first),
        };
        let is_outside = |byte: i64| {
            let is_of = |(_, (start, end)): &(String, Bytes)| (*start..*end).contains(&byte);
            !parameters.iter().any(is_of)
                && !stored.is_some_and(|ty| is_padding(ty, (byte - first) as u64))
        };
        let is_small = last - first <= i64::from(MAX_PARAMETER_BYTES);
        if covered < last - first && (!is_small || (*first..*last).any(is_outside)) {
            return Some(format!(
                "{at}, and stores bytes {first} to {} of its parameters, where it has none:\n  {}\n  {}",
                last - 1,
                store.print(),
                table(&parameters)
            ));
        }
    }
    for ((name, (start, end)), (ty, is_copied)) in
        parameters.iter().zip(types).filter(|_| *is_whole && !launches.is_empty())
    {
        let is_stored =
            |byte: i64| stores.iter().any(|(_, (from, to))| (*from..*to).contains(&byte));
        // `[64 x i8]`, a struct of unknown fields, has padding that nobody stores.
        let is_unknown = is_copied
            && matches!(ty.shape(), Shape::Array(element, _) if matches!(element.shape(), Shape::Int(8)));
        let passes = match is_unknown {
            true => start == end || (*start..*end).any(is_stored),
            false => {
                (*start..*end).all(|byte| is_stored(byte) || is_padding(ty, (byte - start) as u64))
            }
        };
        if !passes {
            return Some(format!(
                "{at}, and does not store the parameter `{name}`, bytes {start} to {}\n  {}",
                end - 1,
                table(&parameters)
            ));
        }
    }
    None
}

/// The type of the variable of which a call copies all bytes.
fn whole_source<'m>(copy: Value<'m>, bytes: i64) -> Option<Type<'m>> {
    if !is_copy_from(copy) {
        return None;
    }
    let source = copy.operand(1);
    let ty = match source.kind() {
        Kind::Instruction if source.opcode() == LLVMOpcode::LLVMAlloca => source.allocated(),
        Kind::Variable => source.value_type(),
        _ => return None,
    };
    (i64::try_from(extent(ty)?.size).ok()? == bytes).then_some(ty)
}

/// The arguments that point to memory that the child grid cannot reach.
fn local_arguments<'m>(buffer: Value<'m>, target: Value<'m>, uses: &Uses<'m>) -> Vec<Finding<'m>> {
    let caller = buffer.function().map(name).unwrap_or_default();
    let child = name(target);
    let mut starts = vec![];
    let mut end = 0;
    for parameter in kernels::parameters(target) {
        let Some(extent) = parameter.extent() else { return vec![] };
        let start = u64::next_multiple_of(end, extent.alignment.max(1));
        end = start + extent.size;
        starts.push((parameter, start as i64..end as i64));
    }
    let of_store = |(store, (first, last)): &(Value<'m>, Bytes)| {
        let (memory, parameter) = if store.opcode() == LLVMOpcode::LLVMStore {
            let (parameter, _) = starts.iter().find(|(_, bytes)| bytes.contains(first))?;
            (local::passed(store.operand(0), parameter)?, parameter)
        } else {
            // One copy may fill several parameters.
            starts.iter().find_map(|(parameter, bytes)| {
                let copied = (bytes.start.max(*first) - first, bytes.end.min(*last) - first);
                let memory = local::copied(store.operand(1), copied, parameter)?;
                Some((memory, parameter))
            })?
        };
        let message = format!(
            "`{caller}` passes the address of {memory} as `{}` to `{child}`, whose grid cannot reach that memory; pass \
             the value itself, or a pointer to device memory",
            parameter.name
        );
        Some(Finding { at: Some(*store), message })
    };
    uses.stores.iter().filter_map(of_store).collect()
}

/// Stores into a buffer behind its launch, in the same block.
fn late_stores<'m>(buffer: Value<'m>, target: Value<'m>, uses: &Uses<'m>) -> Vec<Finding<'m>> {
    let (caller, child) = (buffer.function().map(name).unwrap_or_default(), name(target));
    let is_late = |store: &Value<'m>| {
        // Not beyond the call for the buffer: blocks may be long.
        let before = successors(store.previous(), |one| one.previous());
        let mut before = before.take_while(|one| *one != buffer);
        before.any(|one| uses.launches.contains(&one))
    };
    let late = uses.stores.iter().map(|(store, _)| *store).filter(is_late);
    late.map(|store| Finding {
        at: Some(store),
        message: format!(
            "`{caller}` stores a parameter of `{child}` after its launch, when the grid may have ended; store it before"
        ),
    })
    .collect()
}

/// What is wrong with the constant sizes of a launch.
fn impossible(buffer: Value<'_>, target: Value<'_>, child: &str) -> Option<String> {
    let constant = |value: Value<'_>| value.unsigned().map(i128::from);
    let arguments = buffer.arguments();
    let [_, grid, block, shared] = arguments[..] else { return None };
    let sizes = |dim: Value<'_>| {
        let extents = (0..3).map(|at| extent_of(dim, at).and_then(constant));
        extents.collect::<Vec<_>>()
    };
    let bounds = kernels::launch_bounds(target).map(|bounds| (child, bounds.max_threads));
    let (grid, block) = (sizes(grid), sizes(block));
    let mut problems = extents::grid(&grid);
    problems.extend(extents::block(&block, bounds));
    problems.extend(constant(shared).and_then(extents::shared));
    let first = problems.into_iter().next().map(|problem| problem.message);
    first.or_else(|| bounds::mismatch(target, &grid, &block))
}

/// One extent of a grid or block that is a constant, or is built by `insertvalue`.
fn extent_of(mut dim: Value<'_>, axis: u32) -> Option<Value<'_>> {
    while dim.kind() == Kind::Instruction {
        if dim.opcode() != LLVMOpcode::LLVMInsertValue {
            return None;
        }
        if dim.indices() == [axis] {
            return Some(dim.operand(1));
        }
        dim = dim.operand(0);
    }
    if dim.is_constant() { dim.element(axis) } else { None }
}

/// The parameters with their bytes.
fn table(parameters: &[(String, Bytes)]) -> String {
    let one = |(name, (start, end)): &(String, Bytes)| format!("{name}: {start}..{end}");
    let all: Vec<String> = parameters.iter().map(one).collect();
    format!("its parameters are {}", if all.is_empty() { "none".into() } else { all.join(", ") })
}
