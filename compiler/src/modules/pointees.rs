//! What pointers point to: LLVM's pointers do not say, but the accesses through them do.

use std::collections::{HashMap, HashSet};

use gridlet_lang::launch::cdp::symbols::{RuntimeFunction, runtime_function};
use gridlet_lang::types::Type;
use inkwell::llvm_sys::LLVMOpcode;

use super::kernels::{name, parameters, signed};
use super::layout::{Offset, Types, offsets, pointer};
use super::variables::{accesses, source, variable};
use crate::nvvm::legacy::llvm::{Kind, Value};

/// What is read and written through a pointer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Pointee {
    Nothing,
    One(Type),
    /// Several types, or one that the language lacks.
    Several,
}

impl Pointee {
    fn and(&self, other: &Pointee) -> Pointee {
        match (self, other) {
            (Pointee::Nothing, one) | (one, Pointee::Nothing) => one.clone(),
            (one, other) if one == other => one.clone(),
            _ => Pointee::Several,
        }
    }
}

/// The one type that is read and written through a parameter, here or by a function or kernel that gets it. What is found of other
/// parameters on the way is kept, so that the search takes linear time for all together.
pub(super) fn find<'m>(parameter: Value<'m>, types: &mut Types<'m>) -> Option<Type> {
    if !types.pointees.contains_key(&parameter) {
        solve(parameter, types);
    }
    match types.pointees.get(&parameter) {
        Some(Pointee::One(ty)) => Some(ty.clone()),
        _ => None,
    }
}

/// Finds what the parameter, and all to which it is passed on, point to.
fn solve<'m>(parameter: Value<'m>, types: &mut Types<'m>) {
    let (mut nodes, mut numbers) = (vec![parameter], HashMap::from([(parameter, 0)]));
    // By parameter, what is found, and the parameters that are passed on to it.
    let (mut found, mut passed_by) = (vec![], vec![vec![]]);
    while let Some(&node) = nodes.get(found.len()) {
        let at = found.len();
        let (mut own, passed) = through(node, types);
        for next in passed {
            if let Some(known) = types.pointees.get(&next) {
                own = own.and(known);
                continue;
            }
            let number = *numbers.entry(next).or_insert_with(|| {
                nodes.push(next);
                passed_by.push(vec![]);
                nodes.len() - 1
            });
            passed_by[number].push(at);
        }
        found.push(own);
    }
    // What is found of a parameter grows twice at most.
    let mut open: Vec<usize> = (0..nodes.len()).collect();
    while let Some(at) = open.pop() {
        for &before in &passed_by[at] {
            let all = found[before].and(&found[at]);
            if all != found[before] {
                found[before] = all;
                open.push(before);
            }
        }
    }
    types.pointees.extend(nodes.into_iter().zip(found));
}

/// What is read and written through a parameter in its own function, and the parameters to which it is passed on.
fn through<'m>(parameter: Value<'m>, types: &mut Types<'m>) -> (Pointee, Vec<Value<'m>>) {
    let (mut open, mut seen) = (vec![parameter], HashSet::new());
    let (mut found, mut passed) = (Pointee::Nothing, vec![]);
    while let Some(address) = open.pop() {
        if !seen.insert(address) {
            continue;
        }
        for user in address.users() {
            if user.kind() != Kind::Instruction {
                continue;
            }
            let accessed = match user.opcode() {
                LLVMOpcode::LLVMLoad => Some(user.ty()),
                LLVMOpcode::LLVMStore if user.operand(1) == address => Some(user.operand(0).ty()),
                LLVMOpcode::LLVMAtomicRMW => Some(user.ty()),
                LLVMOpcode::LLVMGetElementPtr
                | LLVMOpcode::LLVMAddrSpaceCast
                | LLVMOpcode::LLVMPHI
                | LLVMOpcode::LLVMSelect => {
                    open.push(user);
                    None
                }
                LLVMOpcode::LLVMStore => {
                    passed.extend(launched_parameter(user.operand(1)));
                    // Whatever else the variable may hold: only the type counts.
                    let kept = variable(user.operand(1)).and_then(accesses);
                    open.extend(kept.into_iter().flat_map(|kept| kept.loads));
                    None
                }
                LLVMOpcode::LLVMCall => {
                    let callee = user.callee();
                    if callee.kind() == Kind::Function && !callee.is_declaration() {
                        let given = user.arguments().into_iter().zip(callee.parameters());
                        passed
                            .extend(given.filter(|(given, _)| *given == address).map(|(_, at)| at));
                    }
                    None
                }
                _ => None,
            };
            let Some(accessed) = accessed else { continue };
            let one = match types.value(accessed) {
                Some(Type::Scalar(scalar)) => Pointee::One(Type::Scalar(signed(scalar))),
                Some(Type::Pointer { .. }) => Pointee::One(pointer()),
                Some(other) => Pointee::One(other),
                None => Pointee::Several,
            };
            found = found.and(&one);
        }
    }
    (found, passed)
}

/// The parameter of the launched kernel that lies at an address in a parameter buffer.
fn launched_parameter(mut address: Value<'_>) -> Option<Value<'_>> {
    let mut offset = 0_i64;
    while address.kind() == Kind::Instruction && address.opcode() == LLVMOpcode::LLVMGetElementPtr {
        for part in offsets(address)? {
            match part {
                Offset::Bytes(bytes) => offset = offset.checked_add(bytes)?,
                Offset::Elements(..) => return None,
            }
        }
        address = source(address.operand(0));
    }
    address = source(address);
    let is_call = address.kind() == Kind::Instruction && address.opcode() == LLVMOpcode::LLVMCall;
    let callee =
        is_call.then(|| address.callee()).filter(|callee| callee.kind() == Kind::Function)?;
    if runtime_function(&name(callee)) != Some(RuntimeFunction::GetParameterBuffer) {
        return None;
    }
    let kernel = *address.arguments().first()?;
    if kernel.kind() != Kind::Function {
        return None;
    }
    let mut end = 0;
    for parameter in parameters(kernel) {
        let extent = parameter.extent()?;
        let start = u64::next_multiple_of(end, extent.alignment.max(1));
        end = start + extent.size;
        if u64::try_from(offset) == Ok(start) {
            return Some(parameter.value);
        }
    }
    None
}
