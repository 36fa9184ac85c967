//! The code of one function, emitted block by block.

use super::declared::Declared;
use super::handles::{Counts, Foreign, Handles, Owners};
use super::{is_inside, nests_too_deep, variable};
use crate::builtins::Builtin;
use crate::ir::build::BodyBuilder;
use crate::ir::{
    BinaryOp, BlockId, Const, ExternId, FunctionId, GEOMETRY_DYNAMIC_SHARED, InstId, InstKind,
    Kernel, KernelId, Launch, Operand, Slot, SlotId, Stream, Terminator, verify,
};
use crate::source::{SourceMap, Span};
use crate::types::nesting::cut;
use crate::types::{Scalar, Type};

/// A field of the geometry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Geometry {
    /// The thread in its block.
    ThreadIndex,
    /// The block in its grid.
    BlockIndex,
    /// Threads of a block.
    BlockDim,
    /// Blocks of a grid.
    GridDim,
}

/// A mistake in the use of a [`Body`].
enum Mistake {
    /// A mistake with blocks.
    Blocks(&'static str),
    /// Code after the instruction that ended the block, and the position of that one.
    Lost { what: Lost, end: &'static str, ended: Span },
    /// A number of extents that no grid or block has.
    Extents { what: &'static str, given: usize },
    /// What another body made.
    Foreign(Foreign),
    /// A type that nests too deep.
    Deep,
}

/// Code that would be lost.
enum Lost {
    Launch(KernelId),
    Instruction(&'static str),
    End(&'static str),
}

/// A block that was made.
struct Made {
    /// Its number in the function.
    id: BlockId,
    /// Where it was placed.
    placed: Option<Span>,
    /// Whether a jump led to it when it was placed. Without one, its code is unreachable.
    was_reached: bool,
}

/// The end of a block.
struct End {
    of: BlockId,
    how: &'static str,
    span: Span,
}

/// The code of a function, emitted block by block at the positions that [`Body::at`] sets.
///
/// [`Body::jump`], [`Body::branch`], [`Body::end`], [`Body::give`] and [`Body::trap`] end the open block, and [`Body::place`] begins the next
/// one. Code between them, which no block would hold, is an error. Code of a block to which no jump leads never runs, and is
/// left out. A block is placed after the first jump to it, so a loop's head comes before its body.
///
/// Values, the addresses of local variables, and blocks belong to the body that made them. Their numbers differ from those of
/// other bodies, and from those in the finished [`Module`](crate::ir::Module).
pub struct Body {
    pub(super) builder: BodyBuilder,
    pub(super) span: Span,
    /// The numbers of what it gives out; those of blocks count `blocks`.
    pub(super) handles: Handles,
    blocks: Vec<Made>,
    /// How the last block was ended, and where; `None` while a block is open.
    ended: Option<(&'static str, Span)>,
    /// The ends of the blocks, in the order in which they were emitted.
    ends: Vec<End>,
    /// The first mistake, and the position where it was made.
    mistake: Option<(Mistake, Span)>,
}

impl Body {
    /// An empty body, open at its entry.
    pub fn new(span: Span) -> Self {
        Body {
            builder: BodyBuilder::new(),
            span,
            handles: Handles::new(),
            blocks: vec![],
            ended: None,
            ends: vec![],
            mistake: None,
        }
    }

    /// Changes all positions.
    pub(super) fn for_each_span(&mut self, change: &impl Fn(&mut Span)) {
        change(&mut self.span);
        self.builder.for_each_span(change);
        self.blocks.iter_mut().filter_map(|made| made.placed.as_mut()).for_each(change);
        self.ends.iter_mut().for_each(|end| change(&mut end.span));
        if let Some((mistake, span)) = &mut self.mistake {
            change(span);
            if let Mistake::Lost { ended, .. } = mistake {
                change(ended);
            }
        }
    }

    /// The first mistake and its position.
    pub(super) fn mistake(
        &self,
        declared: Declared,
        kernels: &[Kernel],
        sources: &SourceMap,
        owners: &Owners,
    ) -> Option<(String, Span)> {
        if let Some((mistake, span)) = &self.mistake {
            let kernel = |id| kernels.get(declared.kernel(id).index());
            return Some((mistake.message(kernel, sources, owners), *span));
        }
        if self.builder.is_live() {
            let message = "its last block has no end; call `end`, `give`, `jump` or `branch`";
            return Some((message.into(), self.span));
        }
        if let Some(mistake) = self.never_placed() {
            return Some(mistake);
        }
        let is_early = |made: &&Made| !made.was_reached && self.builder.is_reached(made.id);
        let early = self.blocks.iter().filter(is_early).find_map(|made| made.placed)?;
        let message = "a block is placed before the first jump to it; place it after that jump";
        Some((message.into(), early))
    }

    /// The first jump to a block without code.
    fn never_placed(&self) -> Option<(String, Span)> {
        let is_missing = |made: &&Made| made.placed.is_none() && self.builder.is_reached(made.id);
        let missing: Vec<_> = self.blocks.iter().filter(is_missing).map(|made| made.id).collect();
        self.ends.iter().find_map(|end| {
            let id = missing.iter().find(|id| self.builder.leads_to(end.of, **id))?;
            let number = 1 + self.blocks.iter().position(|made| made.id == *id)?;
            let message = format!(
                "`{}` leads to a block that is never placed, number {number} of those that `block` made; give it \
                 to `place`, and emit its code",
                end.how
            );
            Some((message, end.span))
        })
    }

    /// The position of the instructions and ends of blocks from now on.
    pub fn at(&mut self, span: Span) -> &mut Self {
        self.span = span;
        self
    }

    /// A parameter, counted from 0.
    pub fn parameter(index: u32) -> Operand {
        Operand::Parameter(index.saturating_add(1))
    }

    /// A constant of type `u32`.
    pub fn number(&self, value: u32) -> Operand {
        Operand::Const(Const::Int(Scalar::U32, i128::from(value)))
    }

    /// Any instruction; [`InstKind`] lists them.
    pub fn emit(&mut self, mut kind: InstKind, ty: Type) -> Operand {
        self.need_open(match &kind {
            InstKind::Launch(launch) => Lost::Launch(launch.kernel),
            kind => Lost::Instruction(verify::instruction_name(kind)),
        });
        let ty = self.fits(ty);
        kind.for_each_operand_mut(|operand| self.take(operand));
        let value = self.builder.emit(kind, ty, self.span);
        self.handles.shown(value)
    }

    /// A type of the caller's.
    fn fits(&mut self, ty: Type) -> Type {
        let (ty, is_cut) = cut(ty);
        if is_cut {
            self.note(Mistake::Deep);
        }
        ty
    }

    /// Turns an operand of the caller's into one of the function.
    fn take(&mut self, operand: &mut Operand) {
        let Counts { values, variables, .. } = self.counts();
        let foreign = match operand {
            Operand::Inst(InstId(number)) => match self.handles.take(*number, values) {
                Some(index) => return *number = index as u32,
                None => Foreign::Value(*number),
            },
            Operand::Slot(SlotId(number)) => match self.handles.take(*number, variables) {
                Some(index) => return *number = index as u32,
                None => Foreign::Variable(*number),
            },
            Operand::Const(Const::Zero(ty)) => {
                let given = std::mem::replace(ty, Type::U32);
                *ty = self.fits(given);
                return;
            }
            _ => return,
        };
        self.note(Mistake::Foreign(foreign));
        // The mistake ends in an error, so any operand does.
        *operand = Operand::Const(Const::Bool(false));
    }

    /// What it has made so far.
    pub(super) fn counts(&self) -> Counts {
        let (values, variables) = self.builder.counts();
        Counts { values, variables, blocks: self.blocks.len() }
    }

    fn add_slot(&mut self, mut slot: Slot) -> Operand {
        slot.ty = self.fits(slot.ty);
        let address = self.builder.add_slot(slot);
        self.handles.shown(address)
    }

    /// Adds a local variable, and returns its address. Debuggers show it by that name.
    pub fn local(&mut self, name: &str, ty: Type) -> Operand {
        let variable = Some(variable(name, self.span));
        self.add_slot(Slot { name: name.into(), ty, unset: true, variable })
    }

    /// Adds a variable of the front end's own, which debuggers do not show, and returns its address.
    pub fn temporary(&mut self, name: &str, ty: Type) -> Operand {
        self.add_slot(Slot { name: name.into(), ty, unset: true, variable: None })
    }

    /// Part of the geometry along an axis: 0, 1 or 2. A `u32`.
    pub fn geometry(&mut self, field: Geometry, axis: u32) -> Operand {
        let geometry = Operand::Parameter(0);
        let index = field as u32;
        let base = self.emit(InstKind::Extract { base: geometry, index }, Type::DIM3);
        self.emit(InstKind::Extract { base, index: axis }, Type::U32)
    }

    /// The index of the thread in its grid along an axis: 0, 1 or 2. A `u32`.
    pub fn thread_index(&mut self, axis: u32) -> Operand {
        let block = self.geometry(Geometry::BlockIndex, axis);
        let size = self.geometry(Geometry::BlockDim, axis);
        let first = self.binary(BinaryOp::Mul, block, size, Type::U32);
        let thread = self.geometry(Geometry::ThreadIndex, axis);
        self.binary(BinaryOp::Add, first, thread, Type::U32)
    }

    /// The address of the block's dynamic shared memory, whose size is the launch's; `ty` is the type of the pointer.
    pub fn dynamic_shared(&mut self, ty: Type) -> Operand {
        let (base, index) = (Operand::Parameter(0), GEOMETRY_DYNAMIC_SHARED);
        let bytes = Type::pointer_mut(Type::Scalar(Scalar::U8));
        let address = self.emit(InstKind::Extract { base, index }, bytes);
        self.emit(InstKind::Cast(address), ty)
    }

    /// Reads a value through a pointer.
    pub fn load(&mut self, pointer: Operand, ty: Type) -> Operand {
        self.emit(InstKind::Load(pointer), ty)
    }

    /// Writes a value through a pointer.
    pub fn store(&mut self, pointer: Operand, value: Operand) {
        self.emit(InstKind::Store { pointer, value }, Type::Unit);
    }

    /// The address of an element; `ty` is the type of the pointer.
    pub fn element(&mut self, base: Operand, index: Operand, ty: Type) -> Operand {
        self.emit(InstKind::ElementAddress { base, index }, ty)
    }

    /// An operator; `ty` is the type of its value.
    ///
    /// As in the language, an integer division traps if the divisor is zero, and a division by -1 wraps. The block that was
    /// open is ended for that, and another one is open afterwards. A constant divisor of zero is an error.
    /// [`Body::emit`] adds the plain operation, whose divisor must be neither zero nor, in a signed type, -1: on GPUs and on
    /// the CPU device the behaviour is undefined otherwise. The count of a shift must be less than the width, by this
    /// function too.
    pub fn binary(
        &mut self,
        op: BinaryOp,
        mut left: Operand,
        mut right: Operand,
        ty: Type,
    ) -> Operand {
        let scalar = ty.as_scalar().filter(|scalar| scalar.is_integer());
        if let (BinaryOp::Div | BinaryOp::Rem, Some(scalar)) = (op, scalar)
            && self.ended.is_none()
            && may_be_divisor(&right, scalar)
        {
            [&mut left, &mut right].into_iter().for_each(|operand| self.take(operand));
            let value = self.builder.divide(op, scalar, (left, right), false, self.span);
            return self.handles.shown(value);
        }
        self.emit(InstKind::Binary(op, left, right), ty)
    }

    /// A call of a function of the program. The geometry is passed too.
    pub fn call(&mut self, function: FunctionId, arguments: &[Operand], result: Type) -> Operand {
        let arguments = [&[Operand::Parameter(0)], arguments].concat();
        self.emit(InstKind::Call { function, arguments }, result)
    }

    /// A call of a function of another module, which [`ProgramBuilder::extern_function`](super::ProgramBuilder::extern_function)
    /// declares.
    pub fn call_extern(
        &mut self,
        function: ExternId,
        arguments: &[Operand],
        result: Type,
    ) -> Operand {
        self.emit(InstKind::CallExtern { function, arguments: arguments.to_vec() }, result)
    }

    /// A launch into the default stream. The grid and the block have one to three extents, which are `u32`: x, y and z. Those
    /// that are missing are 1. A launch that fails is recorded for the host, with this position.
    pub fn launch(
        &mut self,
        kernel: KernelId,
        grid: &[Operand],
        block: &[Operand],
        arguments: &[Operand],
    ) {
        self.launch_into(Stream::Default, kernel, grid, block, arguments);
    }

    /// A launch into a stream.
    pub fn launch_into(
        &mut self,
        stream: Stream,
        kernel: KernelId,
        grid: &[Operand],
        block: &[Operand],
        arguments: &[Operand],
    ) {
        let shared = self.number(0);
        self.launch_with_shared(stream, kernel, grid, block, shared, arguments);
    }

    /// A launch into a stream with dynamic shared memory: so many bytes for each block, a `u32`. [`Body::dynamic_shared`] is its
    /// address there.
    pub fn launch_with_shared(
        &mut self,
        stream: Stream,
        kernel: KernelId,
        grid: &[Operand],
        block: &[Operand],
        shared: Operand,
        arguments: &[Operand],
    ) {
        let launch = self.described(stream, kernel, grid, block, shared, arguments);
        self.emit(InstKind::Launch(Box::new(launch)), Type::Unit);
    }

    /// A launch that gives its status, an `i32` with CUDA's error or 0, in place of recording a failure. Where nothing reads the
    /// status, [`ProgramBuilder::finish`](super::ProgramBuilder::finish) makes it a plain launch, whose failure is recorded:
    /// where neither the status nor a value computed from it decides a branch, is returned to a caller that reads it, is an
    /// argument that is read, or is stored anywhere but in a local variable that nothing reads. So it treats such a launch of
    /// [`Body::emit`].
    pub fn try_launch_into(
        &mut self,
        stream: Stream,
        kernel: KernelId,
        grid: &[Operand],
        block: &[Operand],
        arguments: &[Operand],
    ) -> Operand {
        let shared = self.number(0);
        self.try_launch_with_shared(stream, kernel, grid, block, shared, arguments)
    }

    /// As [`Body::try_launch_into`], with dynamic shared memory, as of [`Body::launch_with_shared`].
    pub fn try_launch_with_shared(
        &mut self,
        stream: Stream,
        kernel: KernelId,
        grid: &[Operand],
        block: &[Operand],
        shared: Operand,
        arguments: &[Operand],
    ) -> Operand {
        let launch = self.described(stream, kernel, grid, block, shared, arguments);
        let launch = Launch { is_try: true, ..launch };
        self.emit(InstKind::Launch(Box::new(launch)), Type::I32)
    }

    fn described(
        &mut self,
        stream: Stream,
        kernel: KernelId,
        grid: &[Operand],
        block: &[Operand],
        shared: Operand,
        arguments: &[Operand],
    ) -> Launch {
        self.need_open(Lost::Launch(kernel));
        let mut extents = |what: &'static str, given: &[Operand]| {
            if !(1..=3).contains(&given.len()) {
                self.note(Mistake::Extents { what, given: given.len() });
            }
            let one = self.number(1);
            let part = |axis: usize| given.get(axis).cloned().unwrap_or_else(|| one.clone());
            let parts = vec![part(0), part(1), part(2)];
            self.emit(InstKind::Aggregate(parts), Type::DIM3)
        };
        let (grid, block) = (extents("grid", grid), extents("block", block));
        let arguments = arguments.to_vec();
        Launch { kernel, grid, block, shared, stream, arguments, is_try: false }
    }

    /// Makes a block, to be placed later.
    pub fn block(&mut self) -> BlockId {
        let index = self.blocks.len();
        let id = self.builder.block(format!("block{}", index + 1));
        self.blocks.push(Made { id, placed: None, was_reached: false });
        BlockId(self.handles.give(index))
    }

    /// Begins a block, once, after the block before it has ended and after the first jump to this one.
    pub fn place(&mut self, block: BlockId) {
        let Some(at) = self.take_block(block) else { return };
        let Made { id, placed, .. } = self.blocks[at];
        if placed.is_some() {
            return self.note(Mistake::Blocks("a block is placed twice"));
        }
        if self.builder.is_live() {
            self.note(Mistake::Blocks("a block is open when the next one is placed"));
        }
        self.builder.place(id);
        self.ended = None;
        let was_reached = self.builder.is_live();
        self.blocks[at] = Made { id, placed: Some(self.span), was_reached };
    }

    /// Ends the open block with a jump.
    pub fn jump(&mut self, target: BlockId) {
        if let Some([target]) = self.targets([target])
            && self.ends("jump")
        {
            self.builder.jump(target);
        }
    }

    /// Ends the open block with a branch on a `bool`.
    pub fn branch(&mut self, mut condition: Operand, then: BlockId, otherwise: BlockId) {
        self.take(&mut condition);
        if let Some([then, otherwise]) = self.targets([then, otherwise])
            && self.ends("branch")
        {
            if then == otherwise {
                // The condition must be a `bool` here, too; afterwards it becomes a jump.
                self.builder.terminate(Terminator::Branch { condition, then, otherwise });
            } else {
                self.builder.branch(condition, then, otherwise);
            }
        }
    }

    /// As [`Body::branch`], to blocks that the caller does not see. Whether a block was open.
    pub(super) fn branch_inside(
        &mut self,
        what: &'static str,
        mut condition: Operand,
        then: BlockId,
        otherwise: BlockId,
    ) -> bool {
        self.take(&mut condition);
        let was_open = self.ends(what);
        if was_open {
            self.builder.branch(condition, then, otherwise);
        }
        was_open
    }

    /// Begins a block that the caller does not see.
    pub(super) fn place_inside(&mut self, block: BlockId) {
        self.builder.place(block);
        self.ended = None;
    }

    /// Ends the open block with a built-in that does not return.
    pub(super) fn fail(&mut self, end: &'static str, builtin: Builtin, arguments: Vec<Operand>) {
        self.emit(InstKind::Builtin { builtin, arguments, format: None }, Type::Unit);
        if self.ends(end) {
            self.builder.terminate(Terminator::Unreachable);
        }
    }

    /// Returns without a value.
    pub fn end(&mut self) {
        if self.ends("end") {
            self.builder.terminate(Terminator::Return(None));
        }
    }

    /// Returns a value.
    pub fn give(&mut self, mut value: Operand) {
        self.take(&mut value);
        if self.ends("give") {
            self.builder.terminate(Terminator::Return(Some(value)));
        }
    }

    /// The blocks of the function that the caller's mean.
    fn targets<const N: usize>(&mut self, blocks: [BlockId; N]) -> Option<[BlockId; N]> {
        let mut own = blocks;
        for block in &mut own {
            let index = self.take_block(*block)?;
            *block = self.blocks[index].id;
        }
        Some(own)
    }

    /// The index of a block that this body made.
    fn take_block(&mut self, block: BlockId) -> Option<usize> {
        let index = self.handles.take(block.0, self.blocks.len());
        if index.is_none() {
            self.note(Mistake::Foreign(Foreign::Block(block.0)));
        }
        index
    }

    /// Notes the end of the open block, if one is open.
    fn ends(&mut self, end: &'static str) -> bool {
        let is_open = self.need_open(Lost::End(end));
        if let Some(of) = self.builder.current() {
            self.ends.push(End { of, how: end, span: self.span });
            self.builder.end_at(self.span);
        }
        self.ended.get_or_insert((end, self.span));
        is_open
    }

    /// Whether a block is open for this code.
    fn need_open(&mut self, what: Lost) -> bool {
        let Some((end, ended)) = self.ended else { return true };
        self.note(Mistake::Lost { what, end, ended });
        false
    }

    fn note(&mut self, mistake: Mistake) {
        self.mistake.get_or_insert((mistake, self.span));
    }
}

impl Mistake {
    fn message<'k>(
        &self,
        kernel_of: impl Fn(KernelId) -> Option<&'k Kernel>,
        sources: &SourceMap,
        owners: &Owners,
    ) -> String {
        match self {
            Mistake::Foreign(foreign) => foreign.message(owners),
            Mistake::Deep => nests_too_deep("a type"),
            Mistake::Blocks(message) => (*message).into(),
            Mistake::Lost { what, end, ended } => {
                let what = match what {
                    Lost::Launch(kernel) => match kernel_of(*kernel) {
                        Some(kernel) => format!("a launch of `{}`", kernel.name),
                        None => "a launch".into(),
                    },
                    Lost::Instruction(name) => format!("an instruction (`{name}`)"),
                    Lost::End(name) => format!("`{name}`"),
                };
                let line = match is_inside(sources, *ended) {
                    true => format!(" at line {}", sources.line(*ended)),
                    false => String::new(),
                };
                format!(
                    "{what} comes after `{end}`{line}, which ended the block, and would be lost; \
                     begin a block with `place` first"
                )
            }
            Mistake::Extents { what, given } => {
                format!("a {what} has one to three extents, not {given}")
            }
        }
    }
}

/// Whether a division by this operand needs a guard. The verifier refuses the others: zero, and constants of another type.
fn may_be_divisor(right: &Operand, scalar: Scalar) -> bool {
    match right {
        Operand::Const(constant) => {
            constant.ty() == Type::Scalar(scalar) && constant.integer() != Some(0)
        }
        _ => true,
    }
}
