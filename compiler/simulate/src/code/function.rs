//! One function in the form in which it is run.

use gridlet_lang::builtins::{Builtin, Order, Scope};
use gridlet_lang::ir::{
    BinaryOp, Const, Extern, Function as IrFunction, Inst, InstId, InstKind, Module, Operand,
    SlotId, Terminator,
};
use gridlet_lang::launch::resident::instructions;
use gridlet_lang::layout::{array_stride, field_offset, type_layout, vector_element_offset};
use gridlet_lang::source::Span;
use gridlet_lang::types::{Scalar, Type};

use super::decode::{GlobalPlace, kernel_address, size};
use super::{Argument, BuiltinCall, Call, Callee, Function, Op, Place};
use crate::number;

/// Frames and slots are aligned to this, the largest alignment of a type.
const ALIGNMENT: u32 = 16;

struct Decoder<'m> {
    module: &'m Module,
    function: &'m IrFunction,
    globals: &'m [GlobalPlace],
    parameters: Vec<(u32, u32)>,
    /// The offset of each instruction's result in the frame.
    results: Vec<u32>,
    slots: Vec<u32>,
    /// For an address in a slot that is known here: its offset in the frame.
    known: Vec<Option<u32>>,
    frame: u32,
    span: Span,
    ops: Vec<Op>,
    spans: Vec<Span>,
    constants: Vec<u8>,
    calls: Vec<Call>,
    builtins: Vec<BuiltinCall>,
}

pub(super) fn decode(
    module: &Module,
    function: &IrFunction,
    globals: &[GlobalPlace],
) -> Result<Function, String> {
    let mut decoder = Decoder {
        module,
        function,
        globals,
        parameters: vec![],
        results: vec![],
        slots: vec![],
        known: vec![None; function.instructions.len()],
        frame: 0,
        span: function.span,
        ops: vec![],
        spans: vec![],
        constants: vec![],
        calls: vec![],
        builtins: vec![],
    };
    decoder.lay_out();
    let uses = decoder.find_known();
    let mut starts = vec![];
    for block in &function.blocks {
        starts.push(decoder.ops.len() as u32);
        for id in &block.instructions {
            let inst = &function.instructions[id.index()];
            decoder.span = inst.span;
            match decoder.known[id.index()] {
                Some(offset) if uses[id.index()] => {
                    let to = decoder.results[id.index()];
                    decoder.emit(Op::FrameAddress { to, offset });
                }
                Some(_) => {}
                None => decoder.instruction(*id, inst)?,
            }
        }
        decoder.terminator(&block.terminator);
    }
    for op in &mut decoder.ops {
        match op {
            Op::Jump(target) => *target = starts[*target as usize],
            Op::Branch { then, otherwise, .. } => {
                *then = starts[*then as usize];
                *otherwise = starts[*otherwise as usize];
            }
            _ => {}
        }
    }
    let names = function.blocks.iter().map(|block| block.name.clone());
    Ok(Function {
        name: function.name.clone(),
        ops: decoder.ops,
        spans: decoder.spans,
        blocks: starts.iter().copied().zip(names).collect(),
        constants: decoder.constants,
        calls: decoder.calls,
        builtins: decoder.builtins,
        parameters: decoder.parameters,
        frame_bytes: decoder.frame.next_multiple_of(ALIGNMENT) as usize,
    })
}

impl Decoder<'_> {
    /// Gives every parameter, result and slot its place in the frame.
    fn lay_out(&mut self) {
        for parameter in &self.function.parameters {
            let bytes = size(self.module, &parameter.ty);
            let at = self.reserve(bytes);
            self.parameters.push((at, bytes));
        }
        for inst in &self.function.instructions {
            let at = self.reserve(size(self.module, &inst.ty));
            self.results.push(at);
        }
        for slot in &self.function.slots {
            let at = self.reserve(size(self.module, &slot.ty));
            self.slots.push(at);
        }
    }

    fn reserve(&mut self, bytes: u32) -> u32 {
        let alignment = if bytes > 8 { ALIGNMENT } else { 8 };
        let at = self.frame.next_multiple_of(alignment);
        self.frame = at + bytes.next_multiple_of(8);
        at
    }

    fn emit(&mut self, op: Op) {
        self.ops.push(op);
        self.spans.push(self.span);
    }

    fn type_of(&self, operand: &Operand) -> Type {
        self.module.operand_type(self.function, operand)
    }

    /// Finds the addresses in slots that are known here; returns for each instruction whether its result is used other than
    /// as the base of another known address or as the address of an access.
    fn find_known(&mut self) -> Vec<bool> {
        // A base may be defined in a block that comes later, so this goes on until nothing changes.
        loop {
            let mut changed = false;
            for at in 0..self.function.instructions.len() {
                if self.known[at].is_none()
                    && let Some(offset) = self.known_address(&self.function.instructions[at])
                {
                    self.known[at] = Some(offset);
                    changed = true;
                }
            }
            if !changed {
                break;
            }
        }
        let mut uses = vec![false; self.known.len()];
        let mut note = |operand: &Operand| {
            if let Operand::Inst(id) = operand {
                uses[id.index()] = true;
            }
        };
        for (inst, known) in self.function.instructions.iter().zip(&self.known) {
            match &inst.kind {
                _ if known.is_some() => {}
                InstKind::Load(_) => {}
                InstKind::Store { value, .. } => note(value),
                kind => kind.for_each_operand(&mut note),
            }
        }
        for block in &self.function.blocks {
            if let Terminator::Return(Some(value)) = &block.terminator {
                note(value);
            }
        }
        uses
    }

    fn known_base(&self, operand: &Operand) -> Option<u32> {
        match operand {
            Operand::Slot(SlotId(at)) => self.slots.get(*at as usize).copied(),
            Operand::Inst(id) => self.known[id.index()],
            _ => None,
        }
    }

    fn known_address(&self, inst: &Inst) -> Option<u32> {
        match &inst.kind {
            InstKind::FieldAddress { base, index } => {
                let at = self.known_base(base)?;
                Some(at + self.part(self.type_of(base).pointee()?, *index))
            }
            InstKind::ByteOffset { base, bytes } => Some(self.known_base(base)? + bytes),
            InstKind::ElementAddress { base, index: Operand::Const(Const::Int(_, index)) } => {
                let at = self.known_base(base)?;
                let base = self.type_of(base);
                // Only an index within the array that the slot holds.
                let Type::Array(element, count) = base.pointee()? else { return None };
                let is_element = inst.ty.pointee() == Some(&**element);
                let index = u64::try_from(*index).ok().filter(|at| is_element && at < count)?;
                Some(at + (index * array_stride(element, &self.module.structs)) as u32)
            }
            _ => None,
        }
    }

    /// The offset of a part of a struct, vector or array.
    fn part(&self, ty: &Type, index: u32) -> u32 {
        let offset = match ty {
            Type::Struct(id) => field_offset(*id, index, &self.module.structs),
            Type::Vector(scalar, _) => vector_element_offset(*scalar, index),
            Type::Array(element, _) => {
                array_stride(element, &self.module.structs) * u64::from(index)
            }
            _ => 0,
        };
        offset as u32
    }

    fn constant(&mut self, value: u64) -> Place {
        let at = self.constants.len() as u32;
        self.constants.extend(value.to_le_bytes());
        Place::constant(at)
    }

    /// The place of an operand's value; emits what computes it.
    fn place(&mut self, operand: &Operand) -> Place {
        match operand {
            Operand::Inst(id) => Place::frame(self.results[id.index()]),
            Operand::Parameter(at) => Place::frame(self.parameters[*at as usize].0),
            Operand::Slot(id) => {
                let (to, offset) = (self.reserve(8), self.slots[id.index()]);
                self.emit(Op::FrameAddress { to, offset });
                Place::frame(to)
            }
            Operand::Global(id) => match self.globals[id.index()] {
                GlobalPlace::Address(address) => self.constant(address),
                GlobalPlace::Shared(offset) => {
                    let to = self.reserve(8);
                    self.emit(Op::SharedAddress { to, offset });
                    Place::frame(to)
                }
            },
            Operand::Kernel(id) => self.constant(kernel_address(id.index())),
            Operand::Const(Const::Int(scalar, value)) => {
                self.constant(number::truncate(*scalar, *value as u64))
            }
            Operand::Const(Const::Float(scalar, value)) => {
                self.constant(number::from_f64(*scalar, *value))
            }
            Operand::Const(Const::Bool(value)) => self.constant((*value).into()),
            Operand::Const(Const::Zero(ty)) => {
                let at = self.constants.len();
                let bytes = size(self.module, ty).next_multiple_of(8).max(8) as usize;
                self.constants.resize(at + bytes, 0);
                Place::constant(at as u32)
            }
        }
    }

    fn argument(&mut self, operand: &Operand) -> Argument {
        let scalar = scalar_of(&self.type_of(operand));
        Argument { place: self.place(operand), scalar }
    }

    fn instruction(&mut self, id: InstId, inst: &Inst) -> Result<(), String> {
        let to = self.results[id.index()];
        let bytes = size(self.module, &inst.ty);
        let op = match &inst.kind {
            InstKind::Load(from) => match self.known_base(from) {
                Some(offset) => Op::Get { to, from: Place::frame(offset), bytes },
                None => {
                    let alignment = self.alignment(&inst.ty);
                    Op::Load { to, pointer: self.place(from), bytes, alignment }
                }
            },
            InstKind::Store { pointer, value } => {
                let ty = self.type_of(value);
                let bytes = size(self.module, &ty);
                let from = self.place(value);
                match self.known_base(pointer) {
                    Some(to) => Op::Put { to, from, bytes },
                    None => {
                        let alignment = self.alignment(&ty);
                        Op::Store { pointer: self.place(pointer), from, bytes, alignment }
                    }
                }
            }
            InstKind::Unary(op, value) => {
                let scalar = scalar_of(&inst.ty).unwrap_or(Scalar::U64);
                Op::Unary { op: *op, scalar, to, value: self.place(value) }
            }
            InstKind::Binary(op, left, right) => {
                let scalar = scalar_of(&self.type_of(left)).unwrap_or(Scalar::U64);
                let (left, right) = (self.place(left), self.place(right));
                Op::Binary { op: *op, scalar, to, left, right }
            }
            InstKind::Advance(counter, step) => {
                let scalar = scalar_of(&inst.ty).unwrap_or(Scalar::U64);
                let (left, right) = (self.place(counter), self.place(step));
                Op::Binary { op: BinaryOp::Add, scalar, to, left, right }
            }
            InstKind::Cast(value) => match (scalar_of(&self.type_of(value)), scalar_of(&inst.ty)) {
                (Some(from), Some(to_scalar)) => {
                    Op::Cast { from, to_scalar, to, value: self.place(value) }
                }
                _ => Op::Get { to, from: self.place(value), bytes },
            },
            InstKind::Select(condition, yes, no) => {
                let condition = self.place(condition);
                Op::Select { to, condition, yes: self.place(yes), no: self.place(no), bytes }
            }
            InstKind::FieldAddress { base, index } => {
                let ty = self.type_of(base);
                let bytes = ty.pointee().map_or(0, |ty| self.part(ty, *index));
                Op::Offset { to, base: self.place(base), bytes }
            }
            InstKind::ByteOffset { base, bytes } => {
                Op::Offset { to, base: self.place(base), bytes: *bytes }
            }
            InstKind::ElementAddress { base, index } => {
                let stride = inst.ty.pointee().map_or(0, |ty| size(self.module, ty));
                let scalar = scalar_of(&self.type_of(index)).unwrap_or(Scalar::U64);
                let (base, index) = (self.place(base), self.place(index));
                Op::Element { to, base, index, scalar, stride }
            }
            InstKind::PointerDifference(left, right) => {
                let size = self.type_of(left).pointee().map_or(1, |ty| size(self.module, ty));
                let (left, right) = (self.place(left), self.place(right));
                Op::Difference { to, left, right, size: size.max(1) }
            }
            InstKind::Extract { base, index } => {
                let part = self.part(&self.type_of(base), *index);
                Op::Get { to, from: self.place(base).plus(part), bytes }
            }
            InstKind::Aggregate(parts) => {
                let zero = self.constant(0);
                if bytes <= 8 {
                    self.emit(Op::Get { to, from: zero, bytes: 8 });
                }
                for (index, operand) in parts.iter().enumerate() {
                    let to = to + self.part(&inst.ty, index as u32);
                    let bytes = size(self.module, &self.type_of(operand));
                    let from = self.place(operand);
                    self.emit(Op::Put { to, from, bytes });
                }
                return Ok(());
            }
            InstKind::Call { function, arguments } => {
                let callee = self.module.function(*function);
                let layout = Offsets::of(self.module, callee.parameters.iter().map(|p| &p.ty));
                let places = arguments.iter().map(|argument| self.place(argument));
                let places: Vec<Place> = places.collect();
                let arguments = places.into_iter().zip(layout.0);
                let arguments = arguments.map(|(place, (at, bytes))| (place, at, bytes)).collect();
                self.calls.push(Call { function: function.0, arguments, to });
                Op::Call(self.calls.len() as u32 - 1)
            }
            InstKind::CallExtern { function, arguments } => {
                match device_function(&self.module.externs[function.index()]) {
                    Callee::Fence { acquires, releases } => Op::Fence { acquires, releases },
                    callee => self.call(callee, arguments, to, inst, 0),
                }
            }
            InstKind::Builtin { builtin, arguments, format } => {
                let format = match format.map(|id| &self.globals[id.index()]) {
                    Some(GlobalPlace::Address(address)) => *address,
                    _ => 0,
                };
                self.builtin(*builtin, arguments, to, inst, format)
            }
            InstKind::HardwareGeometry => Op::Geometry { to },
            InstKind::Launch(_) => return Err("a launch is not lowered".into()),
        };
        self.emit(op);
        Ok(())
    }

    fn builtin(
        &mut self,
        builtin: Builtin,
        arguments: &[Operand],
        to: u32,
        inst: &Inst,
        format: u64,
    ) -> Op {
        let bytes = size(self.module, &inst.ty);
        let scalar = scalar_of(&inst.ty).unwrap_or(Scalar::U64);
        match (builtin, arguments) {
            (Builtin::Atomic(op, _), [pointer, value]) => {
                let (pointer, value) = (self.place(pointer), self.place(value));
                Op::Atomic { op, scalar, to, pointer, value }
            }
            (Builtin::AtomicCas(_), [pointer, expected, new]) => {
                let (pointer, expected) = (self.place(pointer), self.place(expected));
                Op::AtomicCas { to, pointer, expected, new: self.place(new), bytes }
            }
            (Builtin::AtomicLoad(order, scope), [pointer]) => {
                let acquire = order == Order::Acquire && is_wide(scope);
                Op::AtomicLoad { to, pointer: self.place(pointer), bytes, acquire }
            }
            (Builtin::AtomicStore(order, scope), [pointer, value]) => {
                let bytes = size(self.module, &self.type_of(value));
                let (pointer, value) = (self.place(pointer), self.place(value));
                let release = order == Order::Release && is_wide(scope);
                Op::AtomicStore { pointer, value, bytes, release }
            }
            (Builtin::Fence(scope), []) => {
                Op::Fence { acquires: is_wide(scope), releases: is_wide(scope) }
            }
            (Builtin::Bitcast, [value]) => {
                let from = self.place(value);
                Op::Get { to, from, bytes }
            }
            _ => self.call(Callee::Builtin(builtin), arguments, to, inst, format),
        }
    }

    fn call(
        &mut self,
        callee: Callee,
        arguments: &[Operand],
        to: u32,
        inst: &Inst,
        format: u64,
    ) -> Op {
        let arguments = arguments.iter().map(|argument| self.argument(argument)).collect();
        let scalar = scalar_of(&inst.ty);
        self.builtins.push(BuiltinCall { callee, arguments, to, scalar, format });
        Op::Builtin(self.builtins.len() as u32 - 1)
    }

    fn alignment(&self, ty: &Type) -> u32 {
        type_layout(ty, &self.module.structs).alignment as u32
    }

    fn terminator(&mut self, terminator: &Terminator) {
        let op = match terminator {
            Terminator::Jump(target) => Op::Jump(target.0),
            Terminator::Branch { condition, then, otherwise } => {
                let condition = self.place(condition);
                Op::Branch { condition, then: then.0, otherwise: otherwise.0 }
            }
            Terminator::Return(None) => Op::Return { from: Place::frame(0), bytes: 0 },
            Terminator::Return(Some(value)) => {
                let bytes = size(self.module, &self.type_of(value));
                Op::Return { from: self.place(value), bytes }
            }
            Terminator::Unreachable => Op::Unreachable,
        };
        self.emit(op);
    }
}

/// Offset and bytes of the first values of a frame: a callee's parameters.
struct Offsets(Vec<(u32, u32)>);

impl Offsets {
    /// By the same rule as [`Decoder::reserve`].
    fn of<'t>(module: &Module, types: impl Iterator<Item = &'t Type>) -> Self {
        let mut end: u32 = 0;
        let places = types.map(|ty| {
            let bytes = size(module, ty);
            let at = end.next_multiple_of(if bytes > 8 { ALIGNMENT } else { 8 });
            end = at + bytes.next_multiple_of(8);
            (at, bytes)
        });
        Offsets(places.collect())
    }
}

/// The scalar of a type; `U64` for an address.
fn scalar_of(ty: &Type) -> Option<Scalar> {
    match ty {
        Type::Scalar(scalar) => Some(*scalar),
        Type::Pointer { .. } | Type::Stream => Some(Scalar::U64),
        _ => None,
    }
}

fn device_function(item: &Extern) -> Callee {
    match (item.span, item.name.as_str()) {
        (None, instructions::BARRIER) => Callee::NamedBarrier,
        (None, instructions::ACQUIRE) => Callee::Fence { acquires: true, releases: false },
        (None, instructions::RELEASE) => Callee::Fence { acquires: false, releases: true },
        (
            None,
            instructions::ACQUIRE_BLOCK | instructions::RELEASE_BLOCK | instructions::FENCE_BLOCK,
        ) => Callee::Fence { acquires: false, releases: false },
        (None, instructions::SLEEP) => Callee::Sleep,
        (None, instructions::THREAD) => Callee::HardwareThread,
        (None, instructions::SHARED) => Callee::DynamicShared,
        (None, instructions::GLOBAL) => Callee::GlobalPointer,
        (_, name) => Callee::Unknown(name.to_owned()),
    }
}

/// Whether other blocks may see the difference. A block sees its own accesses in any case.
fn is_wide(scope: Scope) -> bool {
    scope != Scope::Block
}
