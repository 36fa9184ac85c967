//! Unrolls loops whose counters are indices of local arrays.
//!
//! An array can be in registers only if all its indices are constants. Where a loop with a known number of iterations counts
//! through an array, unrolling it fully makes them so. LLVM unrolls up to 300 instructions fully, libNVVM such loops up to some
//! thousands. LLVM then also knows how often the loops inside run that start from the counter of such a loop.
//!
//! A loop that ends earlier, at a length, runs no more often than the array has elements. LLVM's back end unrolls such loops, too, if LLVM finds
//! that out: each copy keeps its exit. libNVVM does so by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::CStr;

use inkwell::llvm_sys::LLVMOpcode;
use inkwell::llvm_sys::core::{
    LLVMGetAllocatedType, LLVMGetConstOpcode, LLVMGetOperand, LLVMIsAConstantExpr,
    LLVMIsAGlobalVariable, LLVMIsGlobalConstant,
};
use inkwell::llvm_sys::prelude::LLVMValueRef;
use inkwell::module::Module;
use inkwell::passes::PassBuilderOptions;
use inkwell::targets::{TargetData, TargetMachine};
use inkwell::types::AnyTypeEnum;
use inkwell::values::{
    AsValueRef, BasicValueEnum, FunctionValue, InstructionOpcode, InstructionValue, PhiValue,
};

use super::loops::{self, Loop, defining, values, weight};
use super::unrolling;
use crate::error::{Error, Result};

/// What shows the indices: functions inlined, variables in registers, loops with a test at their end. `simplifycfg` would join the test of
/// a counter with a `break` behind it, and nothing would then show how often the loop runs at most. So loops turn before, and those that
/// only turn when they are simple, after.
pub(super) const SIMPLIFY: &str = "always-inline,function(sroa,early-cse),cgscc(inline),\
    function(sroa,early-cse,instcombine<no-verify-fixpoint>,loop-simplify,lcssa,loop(loop-rotate),\
    simplifycfg,loop-simplify,lcssa,loop(loop-rotate),instcombine<no-verify-fixpoint>,loop(indvars))";

/// Unrolls those loops before anything joins the tests, after which LLVM would refuse.
pub(super) const UNROLL: &str = "function(loop(loop-unroll-full),sroa,early-cse)";

/// Maximum number of instructions of an unrolled nest of loops, of those that [`weight`] counts. libNVVM 13.0 unrolls 4,050 and not
/// 4,160.
const MAX_INSTRUCTIONS: u64 = 4100;

/// The same for arrays that stay in memory, because another index is no constant: unrolling still makes most addresses constants.
const MAX_IN_MEMORY: u64 = 2000;

/// Maximum number of iterations of a loop through such arrays, as many as LLVM tries out before it unrolls.
const MAX_ITERATIONS_IN_MEMORY: u64 = 10;

/// The most elements of an array of which the number bounds the rounds of a loop, and LLVM's option for as many rounds.
const MOST_BOUND: u64 = 20;
pub(super) const MOST_BOUND_OPTION: &CStr = c"--unroll-max-upperbound=20";

/// Maximum number of instructions of a nest that is unrolled to see whether no more than [`MAX_FOLDED`] are left: where conditions and
/// tables depend on a counter alone, each round needs few of a body's instructions. LLVM refuses more than 16,384.
const MAX_BEFORE: u64 = 16_000;

/// Maximum number of instructions of a function after that. RIPEMD-160 has 1,413. With 4,100, a search through a grid of digits had 253
/// registers instead of 32.
const MAX_FOLDED: u64 = 2000;

/// Shows what is left of unrolled loops.
const FOLD: &str =
    "loop(loop-unroll-full),sroa,early-cse,instcombine<no-verify-fixpoint>,simplifycfg,sccp,adce";

/// Up to this size LLVM unrolls a loop fully by itself.
const MAX_OF_LLVM: u64 = 300;

/// The widest access of memory, in bytes.
const WIDEST: u32 = 16;

/// Aligns local arrays so that LLVM may access up to 16 bytes at once, where that takes no more memory. Whether there are any.
pub(super) fn align(module: &Module<'_>, data: &TargetData) -> Result<bool> {
    let mut any = false;
    for alloca in
        loops::instructions(module).filter(|one| one.get_opcode() == InstructionOpcode::Alloca)
    {
        // SAFETY: the instruction is an `alloca`.
        let ty = unsafe { AnyTypeEnum::new(LLVMGetAllocatedType(alloca.as_value_ref())) };
        if !ty.is_array_type() {
            continue;
        }
        any = true;
        let size = data.get_abi_size(&ty);
        let widest = 1 << size.trailing_zeros().min(WIDEST.trailing_zeros());
        if size > 0 && alloca.get_alignment().is_ok_and(|bytes| bytes < widest) {
            let aligned = alloca.set_alignment(widest);
            aligned.map_err(|error| Error::internal("ptx", format!("alignment: {error}")))?;
        }
    }
    Ok(any)
}

/// Asks for the loops to be unrolled fully, in a module after [`SIMPLIFY`]. Whether there are any.
pub(super) fn unroll(module: &Module<'_>, machine: &TargetMachine) -> Result<bool> {
    let mut any = false;
    for of in loops_to_unroll(module, machine)? {
        any |= unrolling::ask_full(&of, module.get_context())?;
    }
    Ok(any)
}

/// The loops of a module, after [`SIMPLIFY`], that put local arrays into registers, unrolled fully.
pub(super) fn loops_to_unroll<'ctx>(
    module: &Module<'ctx>,
    machine: &TargetMachine,
) -> Result<Vec<Loop<'ctx>>> {
    let kind = module.get_context().get_kind_id("llvm.loop");
    let mut wanted = vec![];
    for function in module.get_functions() {
        let sure = loops_up_to(MAX_INSTRUCTIONS, function, kind);
        let more = loops_up_to(MAX_BEFORE, function, kind);
        let folds =
            more.len() > sure.len() && size_unrolled(module, machine, function)? <= MAX_FOLDED;
        wanted.extend(if folds { more } else { sure });
    }
    Ok(wanted)
}

/// Asks for innermost loops to be unrolled as often as they run at most: those that count through a local array with few elements, and of
/// which nothing else says how often they run. Unrolled, none has more instructions than [`MAX_IN_MEMORY`]. How many there are. When
/// they are unrolled, loops around them are innermost.
pub(super) fn unroll_bounded(module: &Module<'_>) -> Result<usize> {
    let mut asked = 0;
    for of in module.get_functions().flat_map(loops::find) {
        let is_chosen = of.is_innermost
            && of.iterations().is_none()
            && bound(&of).is_some_and(|times| unrolling::size(&of) * times <= MAX_IN_MEMORY);
        if is_chosen && unrolling::ask_bounded(&of, module.get_context())? {
            asked += 1;
        }
    }
    Ok(asked)
}

/// How many levels of loops are unrolled so.
pub(super) const MOST_LEVELS: usize = 3;

/// Whether a loop accesses elements of a local array at constant indices, and at no others.
pub(super) fn has_elements_in_loops(function: FunctionValue<'_>) -> bool {
    loops::find(function).iter().any(|of| {
        let accesses = of.blocks.iter().flat_map(|block| block.get_instructions());
        let mut elements = BTreeSet::new();
        let mut others = BTreeSet::new();
        for (array, indices) in accesses.filter_map(|access| address(access).and_then(array_of)) {
            let is_element = indices.iter().all(|index| loops::constant(*index).is_some());
            if !is_constant(array) {
                if is_element { &mut elements } else { &mut others }.insert(array as usize);
            }
        }
        !elements.is_subset(&others)
    })
}

/// How many instructions a function has when its loops up to [`MAX_BEFORE`] are unrolled.
fn size_unrolled(
    module: &Module<'_>,
    machine: &TargetMachine,
    function: FunctionValue<'_>,
) -> Result<u64> {
    let trial = module.clone();
    let context = trial.get_context();
    let name = function.get_name().to_string_lossy();
    let Some(function) = trial.get_function(&name) else { return Ok(u64::MAX) };
    for of in loops_up_to(MAX_BEFORE, function, context.get_kind_id("llvm.loop")) {
        unrolling::ask_full(&of, context)?;
    }
    function
        .run_passes(FOLD, machine, PassBuilderOptions::create())
        .map_err(|error| Error::internal("ptx", format!("unrolling {name}: {error}")))?;
    Ok(loops::instructions_of(function).map(weight).sum())
}

/// The loops of a function that put local arrays into registers, if no nest has more instructions than `most`, unrolled. `kind`: of the
/// metadata `llvm.loop`.
fn loops_up_to(most: u64, function: FunctionValue<'_>, kind: u32) -> Vec<Loop<'_>> {
    let mut nest = Nest::of(function, kind, most);
    let wanted: BTreeSet<usize> = nest.settle().into_iter().collect();
    let loops = nest.loops.into_iter().enumerate();
    loops.filter(|(at, _)| wanted.contains(at)).map(|(_, of)| of).collect()
}

/// Whether a loop reads a table of constants at an index that depends on its counter.
pub(super) fn reads_table(of: &Loop<'_>) -> bool {
    let accesses = of.blocks.iter().flat_map(|block| block.get_instructions());
    let mut tables = accesses.filter_map(|access| address(access).and_then(array_of));
    tables.any(|(array, indices)| {
        is_constant(array) && indices.iter().any(|index| depends_on(of, *index, MOST_STEPS))
    })
}

/// The loops of a function.
struct Nest<'ctx> {
    /// Of the metadata `llvm.loop`.
    kind: u32,
    /// The most instructions of an unrolled nest.
    most: u64,
    loops: Vec<Loop<'ctx>>,
    /// For each loop, those directly inside it.
    inside: Vec<Vec<usize>>,
    outermost: Vec<usize>,
    /// The innermost loop of each block.
    of_blocks: BTreeMap<usize, usize>,
    /// Local arrays with an index that no unrolling makes a constant.
    in_memory: BTreeSet<usize>,
}

impl<'ctx> Nest<'ctx> {
    fn of(function: FunctionValue<'ctx>, kind: u32, most: u64) -> Nest<'ctx> {
        let loops = loops::find(function);
        let mut by_size: Vec<usize> = (0..loops.len()).collect();
        by_size.sort_by_key(|at| std::cmp::Reverse(loops[*at].blocks.len()));
        let mut of_blocks: BTreeMap<usize, usize> = BTreeMap::new();
        let (mut inside, mut outermost) = (vec![Vec::new(); loops.len()], vec![]);
        for at in by_size {
            match of_blocks.get(&loops::address(loops[at].head)) {
                Some(outer) => inside[*outer].push(at),
                None => outermost.push(at),
            }
            of_blocks.extend(loops[at].blocks.iter().map(|block| (loops::address(*block), at)));
        }
        let known = Known { loops: &loops, of_blocks: &of_blocks, variables: variables(function) };
        let mut in_memory = BTreeSet::new();
        for block in function.get_basic_block_iter() {
            for access in block.get_instructions() {
                let Some((array, indices)) = address(access).and_then(array_of) else { continue };
                if is_constant(array) {
                    continue;
                }
                if !indices.iter().all(|index| known.is(*index, MOST_STEPS)) {
                    in_memory.insert(array as usize);
                }
            }
        }
        Nest { kind, most, inside, outermost, of_blocks, in_memory, loops }
    }

    /// The loops to unroll. An array stays in memory if one of the loops that count through it is too large for that.
    fn settle(&mut self) -> Vec<usize> {
        loop {
            let mut plan = Plan::default();
            for at in &self.outermost {
                self.plan(*at, None, &mut plan);
            }
            let stay: Vec<usize> = plan.too_large.iter().flat_map(|at| self.counted(*at)).collect();
            let known = self.in_memory.len();
            self.in_memory.extend(stay);
            if self.in_memory.len() == known {
                return plan.marked;
            }
        }
    }

    /// The local arrays with an index that depends on a loop's counter.
    fn counted(&self, at: usize) -> Vec<usize> {
        let this = &self.loops[at];
        let accesses = this.blocks.iter().flat_map(|block| block.get_instructions());
        let arrays = accesses.filter_map(|access| array_by_counter(this, access));
        arrays.map(|array| array as usize).collect()
    }

    /// The size of a loop, unrolled if it shall be; such loops join the plan. `times` is the number of iterations of the loop
    /// around it, if that one is to be unrolled.
    fn plan(&self, at: usize, times: Option<u64>, plan: &mut Plan) -> u64 {
        let this = &self.loops[at];
        let own = this
            .blocks
            .iter()
            .filter(|block| self.of_blocks.get(&loops::address(**block)) == Some(&at));
        let own: u64 = own.flat_map(|block| block.get_instructions()).map(weight).sum();
        let known = this.iterations();
        // Only unrolling the loop around it shows how often a loop runs that starts from its counter.
        let limit = known.or(times).and_then(|iterations| self.limit(this, iterations));
        let iterations = known.or(times).filter(|_| limit.is_some());
        let mut deeper = Plan::default();
        let inside = self.inside[at].iter();
        let of_inside = inside.map(|one| self.plan(*one, iterations, &mut deeper));
        let body = own + of_inside.sum::<u64>();
        let size = body.saturating_mul(iterations.or(known).unwrap_or(1));
        plan.too_large.extend(deeper.too_large);
        if iterations.is_some() && limit.is_some_and(|limit| size <= limit) {
            plan.marked.extend(deeper.marked);
            plan.marked.push(at);
            return size;
        }
        // Loops inside whose number of iterations depends on this one's counter stay as they are.
        let is_known = |one: &usize| self.loops[*one].iterations().is_some();
        plan.marked.extend(deeper.marked.into_iter().filter(is_known));
        if size <= MAX_OF_LLVM {
            return size;
        }
        if known.is_some() && limit.is_some() && !unrolling::has_hint(this, self.kind) {
            plan.too_large.push(at);
        }
        body
    }

    /// The greatest size of a loop that accesses a local array at an index that depends on its counter.
    fn limit(&self, this: &Loop<'_>, iterations: u64) -> Option<u64> {
        let accesses = this.blocks.iter().flat_map(|block| block.get_instructions());
        let limits = accesses.filter_map(|access| {
            let array = array_by_counter(this, access)?;
            match self.in_memory.contains(&(array as usize)) {
                true => (iterations <= MAX_ITERATIONS_IN_MEMORY).then_some(MAX_IN_MEMORY),
                false => Some(self.most),
            }
        });
        limits.max()
    }
}

/// Which loops to unroll.
#[derive(Default)]
struct Plan {
    marked: Vec<usize>,
    /// Those that would be unrolled if they were smaller.
    too_large: Vec<usize>,
}

/// The local array of an access whose index depends on a loop's counter.
fn array_by_counter(this: &Loop<'_>, access: InstructionValue<'_>) -> Option<Array> {
    let of = address(access).and_then(array_of);
    let (array, indices) = of.filter(|(array, _)| !is_constant(*array))?;
    indices.iter().find(|index| depends_on(this, **index, MOST_STEPS))?;
    Some(array)
}

/// How often a loop runs at most, as it counts through a short local array.
fn bound(this: &Loop<'_>) -> Option<u64> {
    let accesses = this.blocks.iter().flat_map(|block| block.get_instructions());
    let lengths = accesses.filter_map(|access| {
        let array = array_by_counter(this, access)?;
        // SAFETY: an array of a function that is no constant is an `alloca`.
        let ty = unsafe { AnyTypeEnum::new(LLVMGetAllocatedType(array)) };
        let AnyTypeEnum::ArrayType(ty) = ty else { return None };
        (!ty.get_element_type().is_array_type()).then(|| u64::from(ty.len()))
    });
    lengths.min().filter(|length| (1..=MOST_BOUND).contains(length))
}

/// The address of an access of memory.
fn address(access: InstructionValue<'_>) -> Option<BasicValueEnum<'_>> {
    match access.get_opcode() {
        InstructionOpcode::Load => access.get_operand(0)?.value(),
        InstructionOpcode::Store => access.get_operand(1)?.value(),
        _ => None,
    }
}

/// A local array, or a constant of the module.
type Array = LLVMValueRef;

/// The array of an address, and all indices in it.
fn array_of(address: BasicValueEnum<'_>) -> Option<(Array, Vec<BasicValueEnum<'_>>)> {
    let (mut address, mut indices) = (address, vec![]);
    loop {
        let Some(at) = defining(address) else {
            return Some((of_module(address)?, indices));
        };
        match at.get_opcode() {
            InstructionOpcode::Alloca => return Some((at.as_value_ref(), indices)),
            InstructionOpcode::GetElementPtr => {
                let of_step = at.get_operands().skip(1).flatten();
                indices.extend(of_step.filter_map(|index| index.value()));
            }
            InstructionOpcode::BitCast | InstructionOpcode::AddrSpaceCast => {}
            _ => return None,
        }
        address = at.get_operand(0)?.value()?;
    }
}

/// The constant of the module that a constant address points into.
fn of_module(address: BasicValueEnum<'_>) -> Option<Array> {
    let mut array = address.as_value_ref();
    // SAFETY: constant expressions have operands, and the first one of these is the address that they change.
    unsafe {
        while !LLVMIsAConstantExpr(array).is_null() {
            match LLVMGetConstOpcode(array) {
                LLVMOpcode::LLVMGetElementPtr
                | LLVMOpcode::LLVMBitCast
                | LLVMOpcode::LLVMAddrSpaceCast => array = LLVMGetOperand(array, 0),
                _ => return None,
            }
        }
    }
    is_constant(array).then_some(array)
}

/// How far an index is followed to its counter.
const MOST_STEPS: u32 = 8;

/// Whether a value depends on a counter of this loop, which may be where that of a loop inside begins.
fn depends_on(this: &Loop<'_>, value: BasicValueEnum<'_>, steps: u32) -> bool {
    let Some(from) = defining(value).filter(|_| steps > 0) else { return false };
    match from.get_opcode() {
        InstructionOpcode::Phi if is_counter(this, from) => true,
        InstructionOpcode::Load => {
            address(from).and_then(array_of).filter(|(array, _)| is_constant(*array)).is_some_and(
                |(_, indices)| indices.into_iter().any(|index| depends_on(this, index, steps - 1)),
            )
        }
        InstructionOpcode::Call => false,
        _ => values(from).any(|value| depends_on(this, value, steps - 1)),
    }
}

/// Whether an array is a constant of the module.
fn is_constant(array: Array) -> bool {
    // SAFETY: the array is a value of the module.
    unsafe { !LLVMIsAGlobalVariable(array).is_null() && LLVMIsGlobalConstant(array) != 0 }
}

/// What is a constant when loops are unrolled.
struct Known<'a, 'ctx> {
    loops: &'a [Loop<'ctx>],
    of_blocks: &'a BTreeMap<usize, usize>,
    /// Local arrays that hold other numbers than constants.
    variables: BTreeSet<usize>,
}

impl Known<'_, '_> {
    /// Whether a value depends on counters and constants only, perhaps by a table of constants.
    fn is(&self, value: BasicValueEnum<'_>, steps: u32) -> bool {
        let Some(from) = defining(value) else { return loops::constant(value).is_some() };
        let all = |values: &[BasicValueEnum<'_>]| {
            steps > 0 && values.iter().all(|value| self.is(*value, steps - 1))
        };
        match from.get_opcode() {
            InstructionOpcode::Phi => {
                let block = from.get_parent().map(loops::address);
                let of = block.and_then(|block| self.of_blocks.get(&block));
                // Otherwise one of several constants, for example where a loop has two exits. ptxas finds a register for each.
                of.is_some_and(|at| is_counter(&self.loops[*at], from))
                    || all(&values(from).collect::<Vec<_>>())
            }
            InstructionOpcode::Load => {
                address(from).and_then(array_of).is_some_and(|(array, indices)| {
                    !self.variables.contains(&(array as usize)) && all(&indices)
                })
            }
            InstructionOpcode::Call => false,
            _ => all(&values(from).collect::<Vec<_>>()),
        }
    }
}

/// The local arrays in which a function stores anything but constants.
fn variables(function: FunctionValue<'_>) -> BTreeSet<usize> {
    let instructions = loops::instructions_of(function);
    let stores = instructions.filter(|one| one.get_opcode() == InstructionOpcode::Store);
    let arrays = stores.filter_map(|store| {
        let value = store.get_operand(0)?.value()?;
        let (array, _) = address(store).and_then(array_of)?;
        loops::constant(value).is_none().then_some(array as usize)
    });
    arrays.collect()
}

/// Whether a loop changes a value by a constant in each round.
fn is_counter(this: &Loop<'_>, phi: InstructionValue<'_>) -> bool {
    let next = |phi: PhiValue<'_>| {
        let mut incoming = phi.get_incomings().filter(|(_, from)| *from == this.latch);
        let next = defining(incoming.next()?.0)?;
        Some(values(next).all(|value| {
            loops::constant(value).is_some() || value.as_value_ref() == phi.as_value_ref()
        }))
    };
    phi.get_parent() == Some(this.head) && PhiValue::try_from(phi).ok().and_then(next) == Some(true)
}
