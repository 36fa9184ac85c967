//! Selections in place of `switch` branches.
//!
//! LLVM makes a `switch` of comparisons of one value with constants, and its back end a tree of branches of that, which divide a
//! warp. Where the cases only choose values, selections are cheaper, and one branch leads to the default.

use std::collections::BTreeMap;

use inkwell::IntPredicate;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::{Builder, BuilderError};
use inkwell::llvm_sys::core::{LLVMGetNumSuccessors, LLVMGetSuccessor, LLVMGetSwitchCaseValue};
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    AsValueRef, BasicValueEnum, InstructionOpcode, InstructionValue, IntValue, PhiValue,
};

use super::loops::{self, address, successors};
use crate::error::{Error, Result};

/// The most cases, and the most selections, of 32 bits each.
const MAX_CASES: usize = 8;
const MAX_SELECTIONS: u32 = 8;

/// Replaces the `switch` instructions whose cases all lead to one block and compute nothing.
pub(super) fn select(module: &Module<'_>) -> Result<()> {
    let context = module.get_context();
    let (builder, kind) = (context.create_builder(), context.get_kind_id("llvm.loop"));
    let switches: Vec<_> = loops::instructions(module)
        .filter(|instruction| instruction.get_opcode() == InstructionOpcode::Switch)
        .collect();
    for switch in switches {
        if let Some(choice) = Choice::of(switch, kind) {
            choice
                .replace(&builder)
                .map_err(|error| Error::internal("ptx", format!("switch: {error}")))?;
        }
    }
    Ok(())
}

/// A `switch` that chooses values.
struct Choice<'ctx> {
    switch: InstructionValue<'ctx>,
    block: BasicBlock<'ctx>,
    of: IntValue<'ctx>,
    /// The constants, and the blocks from which they reach `join`: the block of the `switch` or empty ones.
    cases: Vec<(IntValue<'ctx>, BasicBlock<'ctx>)>,
    default: Default<'ctx>,
    join: BasicBlock<'ctx>,
    /// The values that are chosen.
    phis: Vec<PhiValue<'ctx>>,
}

enum Default<'ctx> {
    /// Leads to another block than the cases.
    Elsewhere(BasicBlock<'ctx>),
    /// Reaches the same block, from this one.
    Joins(BasicBlock<'ctx>),
    /// Cannot be.
    Never,
}

impl<'ctx> Choice<'ctx> {
    /// `kind` is that of the hints of loops.
    fn of(switch: InstructionValue<'ctx>, kind: u32) -> Option<Choice<'ctx>> {
        let block = switch.get_parent()?;
        let BasicValueEnum::IntValue(of) = switch.get_operand(0)?.value()? else { return None };
        let targets = targets(switch);
        let (default, targets) = targets.split_first()?;
        let (_, first) = targets.first().filter(|_| targets.len() <= MAX_CASES)?;
        let join = join_of(*first, block).unwrap_or(*first);
        // The block from which a target reaches the join.
        let from = |target: BasicBlock<'ctx>| match target == join {
            true => Some(block),
            false => (join_of(target, block)? == join).then_some(target),
        };
        let case = |(constant, target): &(Option<IntValue<'ctx>>, BasicBlock<'ctx>)| {
            Some(((*constant)?, from(*target)?))
        };
        let cases: Vec<_> = targets.iter().map(case).collect::<Option<_>>()?;
        let first = default.1.get_first_instruction()?.get_opcode();
        let default = match (first, from(default.1)) {
            (InstructionOpcode::Unreachable, _) => Default::Never,
            (_, Some(from)) => Default::Joins(from),
            (_, None) => Default::Elsewhere(default.1),
        };
        let phis = loops::phis(join);
        let words: u32 = phis.iter().map(|phi| words(*phi)).sum();
        let is_small = words.saturating_mul(cases.len() as u32) <= MAX_SELECTIONS;
        // The jumps back of a loop hold its hints.
        let jumps = cases.iter().filter_map(|(_, from)| from.get_terminator());
        let mut jumps = jumps.chain([switch]);
        let has_hint = jumps.any(|jump| jump.get_metadata(kind).is_some());
        (is_small && !has_hint && join != block).then_some(Choice {
            switch,
            block,
            of,
            cases,
            default,
            join,
            phis,
        })
    }

    fn replace(self, builder: &Builder<'ctx>) -> std::result::Result<(), BuilderError> {
        builder.position_before(&self.switch);
        let tests = self.cases.iter().map(|(constant, _)| {
            builder.build_int_compare(IntPredicate::EQ, self.of, *constant, "")
        });
        let tests: Vec<IntValue<'ctx>> = tests.collect::<std::result::Result<_, _>>()?;
        let chosen = self.phis.iter().map(|phi| self.choose(*phi, &tests, builder));
        let chosen: Vec<_> = chosen.collect::<std::result::Result<_, _>>()?;
        match self.default {
            Default::Joins(_) | Default::Never => builder.build_unconditional_branch(self.join)?,
            Default::Elsewhere(default) => {
                let mut any = None;
                for test in tests {
                    any = Some(match any {
                        None => test,
                        Some(any) => builder.build_or(any, test, "")?,
                    });
                }
                let Some(any) = any else { return Ok(()) };
                builder.build_conditional_branch(any, self.join, default)?
            }
        };
        let mut froms: Vec<_> = self.cases.iter().map(|(_, from)| *from).collect();
        if let Default::Joins(from) = self.default {
            froms.push(from);
        }
        for (phi, chosen) in self.phis.iter().zip(chosen) {
            builder.position_before(&phi.as_instruction());
            let joined = builder.build_phi(phi.as_basic_value().get_type(), "")?;
            for (value, from) in phi.get_incomings().filter(|(_, from)| !froms.contains(from)) {
                joined.add_incoming(&[(&value, from)]);
            }
            joined.add_incoming(&[(&chosen, self.block)]);
            phi.replace_all_uses_with(&joined);
            phi.as_instruction().erase_from_basic_block();
        }
        self.switch.erase_from_basic_block();
        froms.sort_by_key(|from| address(*from));
        froms.dedup();
        for empty in froms.into_iter().filter(|from| *from != self.block) {
            // SAFETY: only the `switch` led to the block, and nothing uses what it holds: one branch. That it has a function,
            // which `delete` asks for, `Choice::of` has seen.
            let _ = unsafe { empty.delete() };
        }
        Ok(())
    }

    /// Selects the value of one of `phis`.
    fn choose(
        &self,
        phi: PhiValue<'ctx>,
        tests: &[IntValue<'ctx>],
        builder: &Builder<'ctx>,
    ) -> std::result::Result<BasicValueEnum<'ctx>, BuilderError> {
        let values: BTreeMap<usize, BasicValueEnum<'ctx>> =
            phi.get_incomings().map(|(value, from)| (address(from), value)).collect();
        let value = |from: &BasicBlock<'ctx>| values.get(&address(*from)).copied();
        let mut cases = self.cases.iter().zip(tests).rev();
        let mut chosen = match &self.default {
            Default::Joins(from) => value(from),
            Default::Never | Default::Elsewhere(_) => {
                cases.next().and_then(|((_, from), _)| value(from))
            }
        };
        for ((_, from), test) in cases {
            let (Some(otherwise), Some(value)) = (chosen, value(from)) else { break };
            if value != otherwise {
                chosen = Some(builder.build_select(*test, value, otherwise, "")?);
            }
        }
        // LLVM's verifier has seen that each way to a block has a value.
        Ok(chosen.unwrap_or_else(|| phi.as_basic_value()))
    }
}

/// How many registers of 32 bits a value takes.
fn words(phi: PhiValue<'_>) -> u32 {
    match phi.as_basic_value().get_type() {
        BasicTypeEnum::IntType(ty) => ty.get_bit_width().div_ceil(32),
        BasicTypeEnum::FloatType(ty) => ty.get_bit_width().div_ceil(32),
        BasicTypeEnum::PointerType(_) => 2,
        // Vectors and other types of other compilers' modules.
        _ => MAX_SELECTIONS,
    }
}

/// The constants of a `switch` with the blocks to which they lead, first the default without one.
fn targets<'ctx>(
    switch: InstructionValue<'ctx>,
) -> Vec<(Option<IntValue<'ctx>>, BasicBlock<'ctx>)> {
    // SAFETY: the instruction is a `switch`, whose successors are its default and its cases.
    unsafe {
        let count = LLVMGetNumSuccessors(switch.as_value_ref());
        let target = |at| {
            let constant =
                (at > 0).then(|| IntValue::new(LLVMGetSwitchCaseValue(switch.as_value_ref(), at)));
            Some((constant, BasicBlock::new(LLVMGetSuccessor(switch.as_value_ref(), at))?))
        };
        (0..count).filter_map(target).collect()
    }
}

/// Where a block leads to which computes nothing and is reached from `from` only.
fn join_of<'ctx>(block: BasicBlock<'ctx>, from: BasicBlock<'ctx>) -> Option<BasicBlock<'ctx>> {
    let is_empty = block.get_first_instruction() == block.get_terminator();
    let next = successors(block);
    let [join] = next.as_slice() else { return None };
    let mut others = block.get_parent()?.get_basic_block_iter().filter(|other| *other != from);
    (is_empty && !others.any(|other| successors(other).contains(&block))).then_some(*join)
}

#[cfg(test)]
mod tests {
    use inkwell::context::Context;

    use super::super::loops::module_of;
    use super::select;

    #[test]
    fn cases_that_choose_values_are_selections() {
        let text = "
            define i32 @base(i8 %c, i32 %x) {
              switch i8 %c, label %other [ i8 65, label %join i8 67, label %one i8 71, label %two i8 97, label %join ]
            one:
              br label %join
            two:
              br label %join
            join:
              %code = phi i32 [ 0, %0 ], [ 1, %one ], [ %x, %two ], [ 0, %0 ]
              ret i32 %code
            other:
              ret i32 9
            }
            define i32 @all(i8 %c) {
              switch i8 %c, label %rest [ i8 1, label %join i8 2, label %one ]
            one:
              br label %join
            rest:
              br label %join
            join:
              %code = phi i32 [ 4, %0 ], [ 5, %one ], [ 6, %rest ]
              ret i32 %code
            }
            define i32 @never(i8 %c) {
              switch i8 %c, label %never [ i8 1, label %join i8 2, label %one ]
            one:
              br label %join
            join:
              %code = phi i32 [ 4, %0 ], [ 5, %one ]
              ret i32 %code
            never:
              unreachable
            }
            define i32 @computes(i8 %c, i32 %x) {
              switch i8 %c, label %other [ i8 1, label %join i8 2, label %one i8 3, label %join ]
            one:
              %y = mul i32 %x, %x
              br label %join
            join:
              %code = phi i32 [ 0, %0 ], [ %y, %one ], [ 0, %0 ]
              ret i32 %code
            other:
              ret i32 9
            }";
        let context = Context::create();
        let module = module_of(&context, text);
        select(&module).expect("selections");
        module.verify().expect("a right module");
        insta::assert_snapshot!(module.print_to_string().to_string());
    }
}
