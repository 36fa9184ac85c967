//! Variables of type `bool` in registers.
//!
//! In memory a `bool` is a byte. A variable whose address nothing takes is an `i1` for a GPU, which becomes a register: with a byte, libNVVM
//! leaves the conversion in a block of its own. A result of `a && b` that is assigned then joins the lanes twice, with a barrier each time.
//!
//! A flag that ends a loop, and that several branches in the loop set, stays a byte: libNVVM would let each of these branches leave the
//! loop by itself, and lanes that differ once would never meet again. A parser of addresses took 2.3 times as long as nvcc's, and takes
//! 0.82. LLVM's own back end does that with bytes, and not with bits (2.0 and 0.79).

use gridlet_lang::ir::{Operand, Slot, loop_flags, loops};
use gridlet_lang::types::Type;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::values::{BasicValueEnum, PointerValue};

use super::context::Target;
use super::function::FunctionEmitter;
use crate::error::Result;

/// The assembly of a meeting point.
pub(crate) const MEETING: &str = "";

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// By slot, whether it is an `i1`: a `bool` that is only loaded and stored.
    pub(super) fn flags(&self) -> Vec<bool> {
        let slots = self.function.slots.iter();
        if self.cx.cpu().is_some() {
            return vec![false; slots.len()];
        }
        let slots = slots.zip(loops::shared_slots(self.function));
        let byte_flags = matches!(self.cx.target, Target::Nvptx(options) if options.byte_flags);
        let ends = match byte_flags {
            true => loop_flags::ending_flags(self.function),
            false => vec![false; self.function.slots.len()],
        };
        let slots = slots.zip(ends);
        let is_flag = |((slot, is_shared), ends): ((&Slot, bool), bool)| {
            slot.ty == Type::BOOL && !is_shared && !ends
        };
        slots.map(is_flag).collect()
    }

    /// By block, whether it begins with a [meeting point](Self::meet).
    pub(super) fn meetings(&self) -> Vec<bool> {
        match self.cx.cpu() {
            Some(_) => vec![],
            None => loop_flags::flagged_exits(self.function, &|id| self.cx.has_loops(id)),
        }
    }

    /// Marks where lanes meet that left a loop in several ways. LLVM would go on from each way by itself, where one of them decides a later
    /// branch: lanes that left in different rounds would then store what follows one after another, and a warp's additions to a counter would
    /// not become one. A round of colouring a graph took 3.2 times as long so, as nvcc's does. LLVM copies no block with a convergent call.
    ///
    /// Not behind loops with loops inside: ptxas then no longer joins lanes between these, and a test of primes took 1.6 times as long.
    /// Not in loops: the numbers of light in an atmosphere took 1.07 times as long.
    pub(super) fn meet(&self) -> Result<()> {
        let ty = self.cx.function_type(None, &[]);
        let context = self.cx.context;
        let assembly =
            context.create_inline_asm(ty, MEETING.into(), String::new(), true, false, None, false);
        let call = self.build().build_indirect_call(ty, assembly, &[], "")?;
        // `memory(none)`. It may end by an exception, as far as LLVM knows, so it is not removed for lack of an effect.
        for (name, value) in [("convergent", 0), ("memory", 0)] {
            let kind = Attribute::get_named_enum_kind_id(name);
            let attribute = context.create_enum_attribute(kind, value);
            call.add_attribute(AttributeLoc::Function, attribute);
        }
        Ok(())
    }

    /// The slot that an operand names, if it is an `i1`.
    fn flag(&self, address: &Operand) -> Option<PointerValue<'ctx>> {
        let Operand::Slot(slot) = address else { return None };
        let is_flag = self.flags.get(slot.index()).copied().unwrap_or(false);
        self.slots.get(slot.index()).copied().filter(|_| is_flag)
    }

    /// Loads a variable that is an `i1`; `None` for everything else.
    pub(super) fn load_flag(
        &self,
        from: &Operand,
        name: &str,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let load = |from| self.build().build_load(self.cx.int_type(1), from, name);
        Ok(self.flag(from).map(load).transpose()?)
    }

    /// Stores to a variable that is an `i1`; false for everything else.
    pub(super) fn store_flag(&self, to: &Operand, value: BasicValueEnum<'ctx>) -> Result<bool> {
        let Some(to) = self.flag(to) else { return Ok(false) };
        self.build().build_store(to, value)?;
        Ok(true)
    }
}
