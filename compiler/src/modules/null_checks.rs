//! Tests of a parameter buffer for NULL after which a module behaves as if the launch had succeeded.

use std::collections::HashSet;

use inkwell::llvm_sys::{LLVMIntPredicate, LLVMOpcode};

use super::reads::has_one_target;
use super::uses::Uses;
use crate::nvvm::legacy::llvm::{Block, Kind, Value};

/// Whether the module tests the buffer that a call gives, and each test only skips the launch.
pub(super) fn only_skip(buffer: Value<'_>, uses: &Uses<'_>) -> bool {
    let launches: Vec<Block<'_>> = uses.launches.iter().map(|launch| launch.block()).collect();
    !uses.tests.is_empty()
        && !launches.is_empty()
        && uses.tests.iter().all(|test| only_skips(*test, buffer.block(), &launches))
}

fn only_skips(test: Value<'_>, asked: Block<'_>, launches: &[Block<'_>]) -> bool {
    let null = match test.int_predicate() {
        LLVMIntPredicate::LLVMIntEQ => 0,
        LLVMIntPredicate::LLVMIntNE => 1,
        _ => return false,
    };
    if ![test.operand(0), test.operand(1)].into_iter().any(|side| side.kind() == Kind::Null) {
        return false;
    }
    let users = test.users();
    let skips = |user: Value<'_>| {
        let is_branch = user.kind() == Kind::Instruction
            && user.opcode() == LLVMOpcode::LLVMBr
            && !has_one_target(user);
        // Where the launch follows all the same, it fails with a status.
        is_branch
            && user
                .successors()
                .get(null)
                .is_some_and(|target| does_nothing(*target) && !reaches(*target, asked, launches))
    };
    !users.is_empty() && users.into_iter().all(skips)
}

/// Whether a branch to a block does nothing but end the function, or come to code that others come to as well.
fn does_nothing(mut block: Block<'_>) -> bool {
    let mut seen = HashSet::new();
    while seen.insert(block) {
        let Some(first) = block.instructions().first().copied() else { return false };
        match first.opcode() {
            // Its values tell the ways apart.
            LLVMOpcode::LLVMPHI => return false,
            LLVMOpcode::LLVMRet => return first.operands().is_empty(),
            LLVMOpcode::LLVMBr if first.condition().is_none() => block = first.successors()[0],
            _ => return block.as_value().users().len() > 1,
        }
    }
    false
}

/// Whether a way leads from a block to others without a stop at one.
fn reaches(from: Block<'_>, stop: Block<'_>, wanted: &[Block<'_>]) -> bool {
    let (mut open, mut seen) = (vec![from], HashSet::from([stop]));
    while let Some(block) = open.pop() {
        if !seen.insert(block) {
            continue;
        }
        if wanted.contains(&block) {
            return true;
        }
        let end = block.instructions().last().copied();
        open.extend(end.into_iter().flat_map(Value::successors));
    }
    false
}
