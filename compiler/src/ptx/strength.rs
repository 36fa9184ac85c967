//! Addresses and counters of loops, computed step by step, for LLVM's back end.
//!
//! LLVM's strength reduction makes of each address a pointer, to which a round adds: two registers and two additions, where an index
//! of 32 bits serves all. So functions are left out where that takes many more registers. They are, too, where it does so for some of the
//! addresses that are products, and not for others: the copies of an unrolled loop then need both, and ptxas starts their loads one
//! after another. The gradients of a batch's normalisation took 1.53 of the time of nvcc's code so, and take 1.00.

use std::collections::BTreeSet;

use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::TargetMachine;
use inkwell::types::AnyTypeEnum;
use inkwell::values::{FunctionValue, InstructionOpcode, InstructionValue};

use super::loops;
use super::nvptx::refused;
use crate::error::Result;

/// Reduces the strength of operations in the loops of functions that gain by it.
pub(super) fn reduce(module: &Module<'_>, machine: &TargetMachine) -> Result<()> {
    let reduce = |function: FunctionValue<'_>| {
        function
            .run_passes("loop(loop-reduce)", machine, PassBuilderOptions::create())
            .map_err(|message| refused("optimising", message.to_string()))
    };
    let trial = module.clone();
    for (function, tried) in module.get_functions().zip(trial.get_functions()) {
        if loops::find(tried).is_empty() {
            continue;
        }
        let (pointers, products) = (carried_pointers(tried), address_products(tried));
        reduce(tried)?;
        let is_whole = [0, products].contains(&address_products(tried));
        if is_whole && carried_pointers(tried) <= pointers + MAX_NEW_POINTERS {
            reduce(function)?;
        }
    }
    Ok(())
}

/// Found by measurement: docs/measurements.md, "Plain kernels beside nvcc's".
const MAX_NEW_POINTERS: usize = 2;

/// Values of 64 bits that the loops of a function carry from round to round, and others that depend on the way to a block.
fn carried_pointers(function: FunctionValue<'_>) -> usize {
    let is_pointer = |instruction: &InstructionValue<'_>| {
        instruction.get_opcode() == InstructionOpcode::Phi
            && match instruction.get_type() {
                AnyTypeEnum::PointerType(_) => true,
                AnyTypeEnum::IntType(ty) => ty.get_bit_width() == 64,
                _ => false,
            }
    };
    loops::instructions_of(function).filter(is_pointer).count()
}

/// How many products of two variables of 64 bits the addresses of the innermost loops of a function contain.
fn address_products(function: FunctionValue<'_>) -> usize {
    let mut found = BTreeSet::new();
    for inner in loops::find(function).into_iter().filter(|inner| inner.is_innermost) {
        let blocks: BTreeSet<usize> = inner.blocks.iter().map(|it| loops::address(*it)).collect();
        let is_inside = |it: &InstructionValue<'_>| {
            it.get_parent().is_some_and(|block| blocks.contains(&loops::address(block)))
        };
        let inside = || inner.blocks.iter().flat_map(|block| block.get_instructions());
        let accesses = inside().filter_map(|it| match it.get_opcode() {
            InstructionOpcode::Load => it.get_operand(0)?.value(),
            InstructionOpcode::Store => it.get_operand(1)?.value(),
            _ => None,
        });
        let mut open: Vec<InstructionValue<'_>> =
            accesses.filter_map(loops::defining).filter(is_inside).collect();
        let mut seen = BTreeSet::new();
        while let Some(part) = open.pop() {
            let opcode = part.get_opcode();
            if matches!(opcode, InstructionOpcode::Phi | InstructionOpcode::Load)
                || !seen.insert(loops::key(&part))
            {
                continue;
            }
            let is_wide =
                matches!(part.get_type(), AnyTypeEnum::IntType(ty) if ty.get_bit_width() == 64);
            if opcode == InstructionOpcode::Mul
                && is_wide
                && loops::values(part).all(|factor| loops::constant(factor).is_none())
            {
                found.insert(loops::key(&part));
            }
            open.extend(loops::values(part).filter_map(loops::defining).filter(is_inside));
        }
    }
    found.len()
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;

    use super::{address_products, carried_pointers};
    use crate::ptx::loops::module_of;

    #[test]
    fn products_count_if_addresses_of_a_loop_contain_them() {
        let context = Context::create();
        let module = module_of(
            &context,
            "define void @k(ptr %p, i64 %n, i64 %m) {
            entry:
              %outside = mul i64 %n, %m
              br label %loop
            loop:
              %i = phi i64 [ 0, %entry ], [ %next, %loop ]
              %own = mul i64 %i, %m
              %a = getelementptr i32, ptr %p, i64 %own
              %shifted = add i64 %own, %outside
              %b = getelementptr i32, ptr %p, i64 %shifted
              %twice = mul i64 %i, 24
              %c = getelementptr i8, ptr %p, i64 %twice
              %x = load i32, ptr %a
              %y = load i32, ptr %b
              %wide = zext i32 %y to i64
              %data = mul i64 %wide, %wide
              %narrow = trunc i64 %data to i32
              %sum = add i32 %x, %narrow
              store i32 %sum, ptr %c
              %next = add i64 %i, 1
              %more = icmp ult i64 %next, %n
              br i1 %more, label %loop, label %end
            end:
              ret void
            }",
        );
        let function = module.get_function("k").unwrap();
        assert_eq!(address_products(function), 1);
        assert_eq!(carried_pointers(function), 1);
    }
}
