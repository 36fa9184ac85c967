//! Functions: their declarations, and the frame in which their instructions are emitted.

use std::borrow::Cow;
use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{BTreeSet, HashMap};

use gridlet_artifact::cpu::abi;
use inkwell::attributes::AttributeLoc;
use inkwell::basic_block::BasicBlock;
use inkwell::builder::Builder;
use inkwell::module::Linkage;
use inkwell::types::{BasicType, BasicTypeEnum};
use inkwell::values::{BasicValueEnum, FunctionValue, PointerValue};

use super::context::{ModuleContext, Target};
use super::debug::Scopes;
use super::fast::called_bodies;
use super::types::Carrier;
use super::unroll::LoopNodes;
use super::values::{int, pointer};
use super::{PTX_KERNEL, bug, places};
use crate::error::Result;
use gridlet_lang::ir::conditions::Joined;
use gridlet_lang::ir::{
    Block, BlockId, Function, FunctionId, KernelId, Operand, Role, Terminator, graph, loops, symbol,
};
use gridlet_lang::launch;
use gridlet_lang::source::Span;
use gridlet_lang::types::{Scalar, Type};

impl<'ctx> ModuleContext<'ctx, '_> {
    /// Declares all functions, so that they can call each other in any order.
    pub(super) fn declare_functions(&mut self) -> Result<()> {
        let exchanges = match self.ir.kernels.iter().any(|kernel| kernel.noalias) {
            true => graph::exchanges(self.ir),
            false => Vec::new(),
        };
        let apart = match self.target {
            Target::Nvptx(options) if options.fast_apart => called_bodies(self.ir),
            _ => BTreeSet::new(),
        };
        let copies_launches = match self.cpu() {
            None => launch::copies_launches(self.ir),
            Some(_) => vec![false; self.ir.functions.len()],
        };
        for ((at, function), stays) in (0..).zip(&self.ir.functions).zip(copies_launches) {
            let value = match function.role {
                Role::Entry(kernel) => match self.cpu() {
                    None => self.declare_entry(function, kernel, &exchanges)?,
                    Some(_) => {
                        let value = self.declare_cpu_entry(&function.name, "thread")?;
                        self.functions.push(value);
                        continue;
                    }
                },
                Role::Device | Role::Body(_) => {
                    self.declare_internal(function, apart.contains(&FunctionId(at)), stays)?
                }
            };
            for (parameter, item) in value.get_param_iter().zip(&function.parameters) {
                parameter.set_name(&item.name);
            }
            self.functions.push(value);
        }
        for item in &self.ir.externs {
            if item.span.is_some() {
                let value = self.declare_external(item)?;
                self.externs.push(value);
                continue;
            }
            if let Some(value) = self.define_instruction(item)? {
                self.externs.push(value);
                continue;
            }
            let parameters = self.value_types(item.parameters.iter())?;
            if self.carrier(&item.result) == Carrier::Memory
                || item.parameters.iter().any(|ty| self.carrier(ty) != Carrier::Registers)
            {
                return Err(bug(format!(
                    "`{}` passes a value that registers cannot carry",
                    item.name
                )));
            }
            let ty = self.function_type(self.result_type(&item.result)?, &parameters);
            let value = self.add_function(&item.name, ty)?;
            self.externs.push(value);
        }
        Ok(())
    }

    /// Device functions and bodies. Parameters are carried like any value; a wide result is written
    /// through an additional last parameter, `result`. `apart`: whether a body is not its entry's alone; `stays`: whether a
    /// function is not inlined, whatever its name.
    fn declare_internal(
        &self,
        function: &Function,
        apart: bool,
        stays: bool,
    ) -> Result<FunctionValue<'ctx>> {
        let mut parameters = self.value_types(function.parameters.iter().map(|item| &item.ty))?;
        let wide_result = self.carrier(&function.result) == Carrier::Memory;
        if wide_result {
            parameters.push(self.pointer_type().into());
        }
        let ty = self.function_type(self.result_type(&function.result)?, &parameters);
        let value = self.add_function(&symbol::internal(&function.name), ty)?;
        value.set_linkage(Linkage::Internal);
        let inlining = match function.role {
            _ if self.keeps_bodies() => Some("noinline"),
            Role::Body(kernel) if apart && self.ir.kernel(kernel).fast_math => Some("noinline"),
            Role::Body(_) => Some("alwaysinline"),
            _ => (stays || launch::stays_out_of_line(&function.name)).then_some("noinline"),
        };
        if let Some(inlining) = inlining {
            self.add_attribute(value, AttributeLoc::Function, inlining, 0);
        }
        if wide_result && let Some(last) = value.get_params().last() {
            last.set_name("result");
        }
        Ok(value)
    }

    /// An entry. Scalars and pointers are passed directly, `bool` as a byte, and all other types
    /// `byval`, so that PTX shows a `.param` with `layout`'s size and alignment. `exchanges`: see [`graph::exchanges`].
    fn declare_entry(
        &self,
        function: &Function,
        kernel: KernelId,
        exchanges: &[bool],
    ) -> Result<FunctionValue<'ctx>> {
        let types = function.parameters.iter().map(|item| self.entry_parameter(&item.ty));
        let ty = self.function_type(None, &types.collect::<Result<Vec<_>>>()?);
        let value = self.add_function(&symbol::external(&function.name), ty)?;
        value.set_call_conventions(PTX_KERNEL);
        for (at, item) in function.parameters.iter().enumerate() {
            if is_by_value(&item.ty) {
                let place = AttributeLoc::Param(at as u32);
                let kind = inkwell::attributes::Attribute::get_named_enum_kind_id("byval");
                let bytes = self.bytes_type(&item.ty)?;
                let byval = self.context.create_type_attribute(kind, bytes.into());
                value.add_attribute(place, byval);
                let alignment = u64::from(self.alignment(&item.ty));
                self.add_attribute(value, place, "align", alignment);
            }
        }
        if self.ir.kernel(kernel).noalias {
            // LLVM assumes that a barrier changes nothing behind such a pointer.
            let exchanges = exchanges.get(kernel.index()).copied().unwrap_or(true);
            for (at, item) in (0..).zip(&function.parameters) {
                let Type::Pointer { mutable, .. } = item.ty else { continue };
                if !mutable || !exchanges {
                    self.add_attribute(value, AttributeLoc::Param(at), "noalias", 0);
                }
            }
        }
        if let Some(bounds) = self.ir.kernel(kernel).launch_bounds {
            let add = |name: &str, value_text: u32| {
                let text = value_text.to_string();
                let attribute = self.context.create_string_attribute(name, &text);
                value.add_attribute(AttributeLoc::Function, attribute);
            };
            add("nvvm.maxntid", bounds.max_threads);
            if let Some(blocks) = bounds.min_blocks {
                add("nvvm.minctasm", blocks);
            }
        }
        Ok(value)
    }

    fn entry_parameter(&self, ty: &Type) -> Result<BasicTypeEnum<'ctx>> {
        if is_by_value(ty) { Ok(self.pointer_type().into()) } else { self.memory_type(ty) }
    }

    fn value_types<'t>(
        &self,
        types: impl Iterator<Item = &'t Type>,
    ) -> Result<Vec<BasicTypeEnum<'ctx>>> {
        types.map(|ty| self.value_type(ty)).collect()
    }

    /// The LLVM return type for a result type; `None` is `void`.
    fn result_type(&self, ty: &Type) -> Result<Option<BasicTypeEnum<'ctx>>> {
        match self.carrier(ty) {
            Carrier::Registers => self.value_type(ty).map(Some),
            Carrier::Memory | Carrier::Nothing => Ok(None),
        }
    }
}

/// Whether an entry takes a parameter of this type `byval`.
fn is_by_value(ty: &Type) -> bool {
    matches!(ty, Type::Struct(_) | Type::Array(..) | Type::Vector(..))
}

/// Emits the body of a function into `value`.
pub(super) fn define<'ctx>(
    cx: &ModuleContext<'ctx, '_>,
    id: FunctionId,
    value: FunctionValue<'ctx>,
) -> Result<()> {
    let function = cx.ir.function(id);
    let order = reverse_post_order(function)?;
    let blocks = function
        .blocks
        .iter()
        .map(|block| cx.context.append_basic_block(value, &block.name))
        .collect();
    let mut emitter = FunctionEmitter::new(cx, id, value, blocks);
    emitter.stored = emitter.noalias_slots();
    emitter.enter_function()?;
    emitter.in_prologue.set(cx.keeps_bodies());
    emitter.set_debug_location();
    emitter.emit_prologue()?;
    emitter.declare_variables()?;
    emitter.plan_return();
    emitter.in_prologue.set(false);
    let polls = emitter.polls(id);
    let meetings = emitter.meetings();
    emitter.plan_joined();
    for id in order {
        if !emitter.is_joined(id) {
            if meetings.get(id.index()) == Some(&true) {
                emitter.build().position_at_end(emitter.block(id)?);
                emitter.meet()?;
            }
            emitter.emit_block(id, polls.get(id.index()).copied().flatten())?;
        }
    }
    emitter.finish_return()?;
    emitter.drop_joined()
}

/// The blocks in reverse post-order: each after its dominators, so that values are emitted before
/// their uses.
fn reverse_post_order(function: &Function) -> Result<Vec<BlockId>> {
    if function.blocks.is_empty() {
        return Err(bug(format!("`{}` has no blocks", function.name)));
    }
    let mut targets = function.blocks.iter().flat_map(|block| block.terminator.successors());
    if targets.any(|target| target.index() >= function.blocks.len()) {
        return Err(bug("a jump to a missing block"));
    }
    Ok(loops::reverse_post_order(function))
}

/// A value that a function returns, and the block that computes it.
type Returned<'ctx> = (BasicValueEnum<'ctx>, BasicBlock<'ctx>);

/// The state of emitting one function.
pub(super) struct FunctionEmitter<'a, 'ctx, 'ir> {
    pub(super) cx: &'a ModuleContext<'ctx, 'ir>,
    pub(super) id: FunctionId,
    pub(super) function: &'a Function,
    pub(super) value: FunctionValue<'ctx>,
    /// Indexed by `ir::BlockId`.
    pub(super) blocks: Vec<BasicBlock<'ctx>>,
    /// Addresses, indexed by `ir::SlotId`.
    pub(super) slots: Vec<PointerValue<'ctx>>,
    /// How many of them a checked image registers with the device.
    pub(super) registered_locals: u32,
    /// Whether a checked image reports accesses of each slot, because parts of it may be unset.
    pub(super) unset_slots: Vec<bool>,
    pub(super) parameters: Vec<BasicValueEnum<'ctx>>,
    /// Indexed by `ir::InstId`; `None` until emitted.
    pub(super) values: Vec<Option<BasicValueEnum<'ctx>>>,
    /// In a checked image, the only value stored in each slot, in bodies of kernels whose pointers do not overlap.
    pub(super) stored: Vec<Option<Operand>>,
    /// The source position of the instruction being emitted.
    pub(super) span: Cell<Span>,
    /// Whether nothing writes what is being loaded while kernels run.
    pub(super) is_invariant: Cell<bool>,
    /// On the CPU, the block's shared memory, if the function uses a shared variable.
    pub(super) shared_base: Option<PointerValue<'ctx>>,
    /// Which instructions surely give no constant, indexed by `ir::InstId`; computed on first use.
    pub(super) runtime: OnceCell<Vec<bool>>,
    /// See `copies.rs`, indexed by `ir::InstId`; computed on first use.
    pub(super) copied: OnceCell<Vec<bool>>,
    /// The branches that stand for several, indexed by `ir::BlockId`.
    pub(super) joined: Vec<Option<Joined<'a>>>,
    /// The blocks whose instructions other blocks have, indexed by `ir::BlockId`.
    pub(super) joined_blocks: Vec<bool>,
    /// Whether each slot is an `i1` (`flags.rs`), indexed by `ir::SlotId`.
    pub(super) flags: Vec<bool>,
    /// On the CPU, the copies of arguments that callbacks read, by name, size and alignment. One serves all calls: LLVM's time grows with the
    /// square of the variables whose addresses calls get.
    pub(super) argument_copies: RefCell<HashMap<(&'static str, u64, u32), PointerValue<'ctx>>>,
    /// How many times the emitted code may have written memory, or begun a block.
    pub(super) writes: u32,
    /// That number when an instruction was emitted, indexed by `ir::InstId`.
    pub(super) emitted_after: Vec<Option<u32>>,
    /// How often each instruction is used, indexed by `ir::InstId`; computed on first use.
    uses: OnceCell<Vec<u32>>,
    /// Whether two `bf16` are a word in memory; computed on first use.
    pub(super) has_words: OnceCell<bool>,
    /// The block in which a function with several returns returns, and where the values come from.
    returned: Option<(BasicBlock<'ctx>, RefCell<Vec<Returned<'ctx>>>)>,
    /// The metadata of loops, by their header blocks.
    pub(super) loops: LoopNodes<'ctx>,
    /// Whether the instructions get no position, so that a debugger stops at a function once its parameters are in place.
    pub(super) in_prologue: Cell<bool>,
    /// The scopes of the debug information, if the function has a position.
    pub(super) scopes: Option<Scopes<'ctx>>,
}

impl<'a, 'ctx, 'ir> FunctionEmitter<'a, 'ctx, 'ir> {
    /// Prepares to emit a function into `value`, which already has `blocks`.
    pub(super) fn new(
        cx: &'a ModuleContext<'ctx, 'ir>,
        id: FunctionId,
        value: FunctionValue<'ctx>,
        blocks: Vec<BasicBlock<'ctx>>,
    ) -> Self {
        let function = cx.ir.function(id);
        FunctionEmitter {
            cx,
            id,
            function,
            value,
            blocks,
            slots: Vec::new(),
            registered_locals: 0,
            unset_slots: Vec::new(),
            parameters: Vec::new(),
            values: vec![None; function.instructions.len()],
            stored: Vec::new(),
            span: Cell::new(function.span),
            is_invariant: Cell::new(false),
            shared_base: None,
            runtime: OnceCell::new(),
            copied: OnceCell::new(),
            joined: Vec::new(),
            joined_blocks: Vec::new(),
            flags: Vec::new(),
            argument_copies: RefCell::default(),
            writes: 0,
            emitted_after: vec![None; function.instructions.len()],
            uses: OnceCell::new(),
            has_words: OnceCell::new(),
            returned: None,
            loops: LoopNodes::default(),
            in_prologue: Cell::new(false),
            scopes: None,
        }
    }

    /// LLVM's builder.
    pub(super) fn build(&self) -> &'a Builder<'ctx> {
        &self.cx.builder
    }

    /// The type of an operand.
    pub(super) fn type_of(&self, operand: &Operand) -> Type {
        self.cx.ir.operand_type(self.function, operand)
    }

    /// How often the value of each instruction is used, indexed by `ir::InstId`.
    pub(super) fn uses(&self) -> &[u32] {
        self.uses.get_or_init(|| places::uses(self.function))
    }

    /// Where a jump leads. On GPUs without optimisation, it does not end in a block that only jumps further: each block where lanes of a warp
    /// wait for each other takes one of ptxas's 12 convergence barriers.
    pub(super) fn target(&self, id: BlockId) -> Result<BasicBlock<'ctx>> {
        let mut to = id;
        let is_plain = matches!(self.cx.target, Target::Nvptx(options) if !options.optimize);
        // Empty blocks can lead in a circle.
        let most = if is_plain { self.function.blocks.len() } else { 0 };
        for _ in 0..most {
            match self.function.blocks.get(to.index()) {
                Some(Block { instructions, terminator: Terminator::Jump(next), .. })
                    if instructions.is_empty() =>
                {
                    to = *next;
                }
                _ => break,
            }
        }
        self.block(to)
    }

    fn block(&self, id: BlockId) -> Result<BasicBlock<'ctx>> {
        self.blocks.get(id.index()).copied().ok_or_else(|| bug("a jump to a missing block"))
    }

    /// Emits the slots and the values of parameters.
    fn emit_prologue(&mut self) -> Result<()> {
        self.build().position_at_end(self.block(BlockId(0))?);
        let mut registered = self.escaping_slots();
        self.unset_slots = self.unset_slots(&registered);
        for (registered, unset) in registered.iter_mut().zip(&self.unset_slots) {
            *registered |= unset;
        }
        self.flags = self.flags();
        let slots = self.function.slots.iter().zip(&registered).zip(&self.flags);
        for ((slot, &is_registered), &is_flag) in slots {
            let ty = match is_flag {
                true => self.cx.int_type(1).into(),
                false => self.cx.memory_type(&slot.ty)?,
            };
            let ty = if is_registered { self.guarded(ty) } else { ty };
            let place = self.alloca_raw(ty, self.cx.alignment(&slot.ty), &slot.name)?;
            self.slots.push(place);
            // LLVM drops code that must come to an undefined address or branch, launches included.
            let is_part = matches!(slot.ty, Type::Scalar(_) | Type::Pointer { .. });
            if slot.unset && is_part && self.cx.cpu().is_some_and(|cpu| !cpu.check) {
                self.build().build_store(place, ty.const_zero())?;
            }
        }
        self.registered_locals = self.begin_locals(&registered)?;
        let is_entry = matches!(self.function.role, Role::Entry(_));
        if self.cx.cpu().is_some() {
            self.shared_base = self.load_shared_base()?;
            if is_entry {
                self.parameters = self.load_parameters()?;
                return Ok(());
            }
        }
        for (parameter, item) in self.value.get_param_iter().zip(&self.function.parameters) {
            let value = match &item.ty {
                ty if is_entry && is_by_value(ty) => {
                    self.load_part(pointer(parameter)?, 0, ty, &item.name, true)?
                }
                Type::Scalar(Scalar::Bool) if is_entry => {
                    self.byte_to_bool(int(parameter)?, &item.name)?.into()
                }
                _ => parameter,
            };
            self.parameters.push(value);
        }
        Ok(())
    }

    /// Allocates a variable in the frame.
    pub(super) fn alloca_raw(
        &self,
        ty: BasicTypeEnum<'ctx>,
        alignment: u32,
        name: &str,
    ) -> Result<PointerValue<'ctx>> {
        let address = self.build().build_alloca(ty, name)?;
        if let Some(instruction) = address.as_instruction() {
            set_alignment(instruction, alignment)?;
        }
        Ok(address)
    }

    /// A variable in the frame, allocated in the entry block so that a loop does not allocate it
    /// repeatedly.
    pub(super) fn temporary(
        &self,
        bytes: u64,
        alignment: u32,
        name: &str,
    ) -> Result<PointerValue<'ctx>> {
        let here = self.build().get_insert_block().ok_or_else(|| bug("no block to emit into"))?;
        let entry = self.block(BlockId(0))?;
        match entry.get_first_instruction() {
            Some(first) => self.build().position_before(&first),
            None => self.build().position_at_end(entry),
        }
        let length = u32::try_from(bytes).map_err(|_| bug("a temporary of more than 4 GiB"))?;
        let ty = self.cx.int_type(8).array_type(length);
        let address = self.alloca_raw(ty.as_basic_type_enum(), alignment, name);
        self.build().position_at_end(here);
        self.set_debug_location();
        address
    }

    fn emit_block(&mut self, id: BlockId, poll: Option<u32>) -> Result<()> {
        self.build().position_at_end(self.block(id)?);
        let function = self.function;
        let block = &function.blocks[id.index()];
        self.writes += 1;
        if let Some(kind) = poll {
            self.emit_poll(block, kind)?;
        }
        self.emit_instructions(block)?;
        self.enter_end(block);
        if let Some(joined) = self.joined.get_mut(id.index()).and_then(Option::take) {
            return self.emit_joined(id, &joined);
        }
        match &block.terminator {
            Terminator::Jump(to) => {
                let branch = self.build().build_unconditional_branch(self.target(*to)?)?;
                self.mark_loop(branch, id, block.terminator.successors())?;
            }
            Terminator::Branch { condition, then, otherwise } => {
                let condition = int(self.operand(condition)?)?;
                let otherwise = self.target(*otherwise)?;
                let then = self.trap_or_block(*then, otherwise)?;
                let branch = self.build().build_conditional_branch(condition, then, otherwise)?;
                self.mark_loop(branch, id, block.terminator.successors())?;
            }
            Terminator::Return(value) => {
                self.report_early_return(id)?;
                self.emit_return(value.as_ref())?;
            }
            Terminator::Unreachable => {
                if self.cx.cpu().is_some() && !self.ends_in_trap(block) {
                    self.trap(abi::TRAP_UNREACHABLE)?;
                }
                self.build().build_unreachable()?;
            }
        }
        Ok(())
    }

    /// Emits the instructions of a block, but not its end.
    pub(super) fn emit_instructions(&mut self, block: &Block) -> Result<()> {
        let function = self.function;
        let order = match self.cx.cpu() {
            Some(_) => Cow::Borrowed(&block.instructions),
            None => Cow::Owned(places::order(function, block, self.uses())),
        };
        for &inst in order.iter() {
            self.enter_instruction(inst);
            let value = self.emit_instruction(inst)?;
            self.values[inst.index()] = value;
            self.writes += u32::from(function.instructions[inst.index()].kind.may_write());
            self.emitted_after[inst.index()] = Some(self.writes);
            self.declare_addressed(inst)?;
        }
        Ok(())
    }

    /// Lets a function with several returns of a value have one block that returns, as clang and nvcc have it: where the values are results of
    /// one conversion, libNVVM then moves it behind them. A filter for PNG files subtracted bytes with 16 bits, and took 1.2 times as long as
    /// nvcc's.
    fn plan_return(&mut self) {
        let is_return = |block: &&Block| matches!(block.terminator, Terminator::Return(Some(_)));
        let several = self.function.blocks.iter().filter(is_return).nth(1).is_some();
        let in_registers = self.cx.carrier(&self.function.result) == Carrier::Registers;
        if several && in_registers && self.cx.cpu().is_none() && !self.cx.keeps_bodies() {
            let block = self.cx.context.append_basic_block(self.value, "return");
            self.returned = Some((block, RefCell::default()));
        }
    }

    /// Emits the block that returns.
    fn finish_return(&self) -> Result<()> {
        let Some((block, values)) = &self.returned else { return Ok(()) };
        self.build().position_at_end(*block);
        let values = values.borrow();
        let Some((first, _)) = values.first() else {
            // No return is reached.
            self.build().build_unreachable()?;
            return Ok(());
        };
        let phi = self.build().build_phi(first.get_type(), "")?;
        for (value, from) in values.iter() {
            phi.add_incoming(&[(value, *from)]);
        }
        self.build().build_return(Some(&phi.as_basic_value()))?;
        Ok(())
    }

    fn emit_return(&self, value: Option<&Operand>) -> Result<()> {
        let ty = &self.function.result;
        match (value, self.cx.carrier(ty)) {
            (Some(value), Carrier::Registers) => {
                let value = self.operand(value)?;
                self.end_locals()?;
                match (&self.returned, self.build().get_insert_block()) {
                    (Some((block, values)), Some(from)) => {
                        values.borrow_mut().push((value, from));
                        self.build().build_unconditional_branch(*block)?;
                    }
                    _ => _ = self.build().build_return(Some(&value))?,
                }
            }
            (Some(value), Carrier::Memory) => {
                let value = self.operand(value)?;
                let last = self
                    .value
                    .get_last_param()
                    .ok_or_else(|| bug("no parameter for the result"))?;
                self.store_part(pointer(last)?, 0, value, ty)?;
                self.end_locals()?;
                self.build().build_return(None)?;
            }
            _ => {
                self.end_locals()?;
                self.build().build_return(None)?;
            }
        }
        Ok(())
    }

    /// The block to branch to, from a branch that otherwise goes to `otherwise`. Each test of a divisor gets its own copy
    /// of the block that only traps.
    ///
    /// On the CPU, a trap reports its position, and a shared block could not tell where the branch came from. On a GPU,
    /// the block seems to go on to the division: a loop with a second exit would not be unrolled.
    fn trap_or_block(&self, id: BlockId, otherwise: BasicBlock<'ctx>) -> Result<BasicBlock<'ctx>> {
        let block = self.target(id)?;
        if !self.is_division_trap(id) {
            return Ok(block);
        }
        let here = self.build().get_insert_block().ok_or_else(|| bug("no block to emit into"))?;
        let own = self.cx.context.insert_basic_block_after(here, "div.by_zero");
        self.build().position_at_end(own);
        if self.cx.cpu().is_some() {
            self.trap(abi::TRAP_DIVISION)?;
            self.build().build_unreachable()?;
        } else {
            self.trap_and_go_on()?;
            self.build().build_unconditional_branch(otherwise)?;
        }
        self.build().position_at_end(here);
        Ok(own)
    }

    /// The value of an operand.
    pub(super) fn operand(&self, operand: &Operand) -> Result<BasicValueEnum<'ctx>> {
        let missing = || bug(format!("{operand:?} in `{}` is missing", self.function.name));
        match operand {
            Operand::Inst(id) => self.values.get(id.index()).copied().flatten().ok_or_else(missing),
            Operand::Parameter(at) => {
                self.parameters.get(*at as usize).copied().ok_or_else(missing)
            }
            Operand::Slot(id) => {
                self.slots.get(id.index()).map(|&slot| slot.into()).ok_or_else(missing)
            }
            Operand::Global(id) if self.is_shared_on_cpu(*id) => {
                Ok(self.shared_address(*id)?.into())
            }
            Operand::Global(id) => {
                self.cx.globals.get(id.index()).map(|&global| global.into()).ok_or_else(missing)
            }
            Operand::Kernel(id) => {
                let kernel = self.cx.ir.kernels.get(id.index()).ok_or_else(missing)?;
                if let Some(cpu) = self.cx.cpu() {
                    return Ok(cpu.descriptor(self.cx, *id).into());
                }
                let entry = self.cx.functions.get(kernel.entry.index()).ok_or_else(missing)?;
                Ok(entry.as_global_value().as_pointer_value().into())
            }
            Operand::Const(constant) => self.constant(constant),
        }
    }
}

/// Sets the alignment in bytes of a load, store or alloca.
pub(super) fn set_alignment(
    instruction: inkwell::values::InstructionValue<'_>,
    alignment: u32,
) -> Result<()> {
    instruction.set_alignment(alignment).map_err(|error| bug(format!("alignment: {error}")))
}
