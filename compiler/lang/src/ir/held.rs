//! What the local variables of a function hold, by bytes, as far as it is certain.

use std::cell::Cell;
use std::ops::Range;

use super::{Function, Inst, InstKind, Module, Operand, SlotId, same_type};
use crate::types::Type;
use crate::types::layout::{array_stride, field_offset, type_layout, vector_element_offset};
use crate::types::leaves::leaves;

/// The most writes to a variable that are compared with each other.
const MAX_WRITES: usize = 256;

/// The most loads and parts between a value and what is asked about it: variables may be copied in a circle.
const MAX_DEPTH: u32 = 16;

/// The most variables that are looked at for an answer: each of several writes to a variable may load from others.
const MAX_LOADS: u32 = 512;

/// The most parts of a value that are looked at.
const MAX_LEAVES: usize = 256;

/// How far an answer is looked for.
#[derive(Clone, Copy)]
struct Limit<'a> {
    depth: u32,
    loads: &'a Cell<u32>,
}

impl Limit<'_> {
    /// For what a part of the value depends on.
    fn below(self) -> Option<Self> {
        Some(Limit { depth: self.depth.checked_sub(1)?, ..self })
    }

    /// Counts a load; whether one more may be followed.
    fn load(self) -> bool {
        let left = self.loads.get();
        self.loads.set(left.saturating_sub(1));
        left > 0
    }
}

/// Something that is written to a slot.
struct Write<'m> {
    value: &'m Operand,
    /// The bytes of the slot; `None` if they are not known.
    bytes: Option<Range<u64>>,
}

/// A slot, and a byte of it, if it is known.
type Location = (SlotId, Option<u64>);

/// The slots of a function.
pub(crate) struct Held<'m> {
    module: &'m Module,
    function: &'m Function,
    /// By instruction, where its value points.
    locations: Vec<Option<Location>>,
    /// By slot, all that is written to it; `None` if its address goes elsewhere.
    writes: Vec<Option<Vec<Write<'m>>>>,
}

impl<'m> Held<'m> {
    /// The module must be sound.
    pub(crate) fn of(module: &'m Module, function: &'m Function) -> Self {
        let mut held = Held {
            module,
            function,
            locations: vec![None; function.instructions.len()],
            writes: function.slots.iter().map(|_| Some(vec![])).collect(),
        };
        // An address that comes before what it is computed from, in another order of blocks, counts as one that goes elsewhere.
        for id in function.blocks.iter().flat_map(|block| &block.instructions) {
            held.locations[id.index()] = held.derived(&function.instructions[id.index()]);
        }
        for (at, inst) in function.instructions.iter().enumerate() {
            match &inst.kind {
                InstKind::Load(_) => {}
                InstKind::Store { pointer, value } => {
                    held.escapes(value);
                    held.write(pointer, value);
                }
                _ if held.locations[at].is_some() => {}
                kind => kind.for_each_operand(|operand| held.escapes(operand)),
            }
        }
        held
    }

    fn escapes(&mut self, operand: &Operand) {
        if let Some((slot, _)) = self.location(operand) {
            self.writes[slot.index()] = None;
        }
    }

    fn write(&mut self, pointer: &Operand, value: &'m Operand) {
        let Some((slot, offset)) = self.location(pointer) else { return };
        let size = self.size(&self.module.operand_type(self.function, value));
        let bytes = offset.map(|offset| offset..offset + size);
        let writes = &mut self.writes[slot.index()];
        match writes {
            Some(known) if known.len() < MAX_WRITES => known.push(Write { value, bytes }),
            _ => *writes = None,
        }
    }

    fn size(&self, ty: &Type) -> u64 {
        type_layout(ty, &self.module.structs).size
    }

    /// Where an address points, if that is a slot.
    fn location(&self, address: &Operand) -> Option<Location> {
        match address {
            Operand::Slot(slot) => Some((*slot, Some(0))),
            Operand::Inst(id) => self.locations[id.index()],
            _ => None,
        }
    }

    /// The location that an instruction computes from another one.
    fn derived(&self, inst: &Inst) -> Option<Location> {
        let structs = &self.module.structs;
        let pointee = |base: &Operand| {
            let ty = self.module.operand_type(self.function, base);
            ty.pointee().cloned()
        };
        let (base, more) = match &inst.kind {
            InstKind::Cast(base) if inst.ty.is_pointer() => (base, Some(0)),
            InstKind::ByteOffset { base, bytes } => (base, Some(u64::from(*bytes))),
            InstKind::FieldAddress { base, index } => {
                let more = match pointee(base)? {
                    Type::Struct(id) => field_offset(id, *index, structs),
                    Type::Vector(scalar, _) => vector_element_offset(scalar, *index),
                    _ => return None,
                };
                (base, Some(more))
            }
            InstKind::ElementAddress { base, index } => {
                let whole = pointee(base)?;
                let stride = match (&whole, inst.ty.pointee()) {
                    (Type::Array(element, _), Some(given)) if same_type(element, given) => {
                        array_stride(element, structs)
                    }
                    _ => array_stride(&whole, structs),
                };
                let index = match index {
                    Operand::Const(constant) => constant.integer(),
                    _ => None,
                };
                let index = index.and_then(|index| u64::try_from(index).ok());
                (base, index.and_then(|index| index.checked_mul(stride)))
            }
            _ => return None,
        };
        let (slot, offset) = self.location(base)?;
        let inside = offset.zip(more).and_then(|(offset, more)| offset.checked_add(more));
        // Sums of offsets and sizes stay far from overflows.
        Some((slot, inside.filter(|inside| *inside < 1 << 48)))
    }

    /// The answer about what is loaded, a value of type `ty` at a byte behind an address, or about a part of it, that holds whichever
    /// write came last.
    pub(crate) fn find<T>(
        &self,
        pointer: &Operand,
        behind: u64,
        ty: &Type,
        answer: &impl Fn(&Operand) -> Option<T>,
    ) -> Option<T> {
        let loads = Cell::new(MAX_LOADS);
        let limit = Limit { depth: MAX_DEPTH, loads: &loads };
        self.whole(pointer, behind, ty, answer, limit).or_else(|| {
            if !matches!(ty, Type::Struct(_) | Type::Array(..)) {
                return None;
            }
            let pointers = leaves(ty, &self.module.structs).take(MAX_LEAVES);
            let mut pointers = pointers.filter(|leaf| leaf.ty.is_pointer());
            pointers
                .find_map(|leaf| self.whole(pointer, behind + leaf.offset, &leaf.ty, answer, limit))
        })
    }

    fn whole<T>(
        &self,
        pointer: &Operand,
        behind: u64,
        ty: &Type,
        answer: &impl Fn(&Operand) -> Option<T>,
        limit: Limit<'_>,
    ) -> Option<T> {
        let (slot, offset) = self.location(pointer)?;
        let writes = self.writes[slot.index()].as_ref().filter(|_| limit.load())?;
        let Some(offset) = offset else {
            // Some element of an array.
            let mut all = writes.iter().map(|write| answer(write.value));
            let first = all.next()??;
            return all.all(|answer| answer.is_some()).then_some(first);
        };
        let first = offset + behind;
        let wanted = first..first + self.size(ty);
        let overlap = |left: &Range<u64>, right: &Range<u64>| {
            left.start < right.end && right.start < left.end
        };
        let known = writes.iter().filter_map(|write| {
            let Some(own) = &write.bytes else { return Some((None, answer(write.value))) };
            if !overlap(own, &wanted) {
                None
            } else if wanted.start <= own.start && own.end <= wanted.end {
                Some((Some(own.clone()), answer(write.value)))
            } else if own.start <= wanted.start && wanted.end <= own.end {
                let part = self.part(write.value, wanted.start - own.start, ty, answer, limit);
                Some((Some(wanted.clone()), part))
            } else {
                Some((Some(own.clone()), None))
            }
        });
        let known: Vec<_> = known.collect();
        let is_certain = |own: &Range<u64>| {
            known.iter().all(|(bytes, answer)| {
                answer.is_some() || bytes.as_ref().is_some_and(|bytes| !overlap(bytes, own))
            })
        };
        let found = known
            .iter()
            .position(|(own, answer)| answer.is_some() && own.as_ref().is_some_and(is_certain))?;
        known.into_iter().nth(found)?.1
    }

    /// The answer about a part of a value, of type `ty` at a byte of it.
    fn part<T>(
        &self,
        value: &Operand,
        at: u64,
        ty: &Type,
        answer: &impl Fn(&Operand) -> Option<T>,
        limit: Limit<'_>,
    ) -> Option<T> {
        let (Operand::Inst(id), Some(limit)) = (value, limit.below()) else { return None };
        let inst = &self.function.instructions[id.index()];
        let structs = &self.module.structs;
        match &inst.kind {
            InstKind::Load(pointer) => self.whole(pointer, at, ty, answer, limit),
            InstKind::Aggregate(parts) => {
                let start = |index: u32| match &inst.ty {
                    Type::Struct(id) => Some(field_offset(*id, index, structs)),
                    Type::Array(element, _) => {
                        array_stride(element, structs).checked_mul(u64::from(index))
                    }
                    _ => None,
                };
                (0..).zip(parts).find_map(|(index, part)| {
                    let inside = at.checked_sub(start(index)?)?;
                    let size = self.size(&self.module.operand_type(self.function, part));
                    match inside + self.size(ty) {
                        end if inside == 0 && end == size => answer(part),
                        end if end <= size => self.part(part, inside, ty, answer, limit),
                        _ => None,
                    }
                })
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use crate::source::SourceMap;

    /// Each of 12 variables holds what any other one held, so there are more ways from one to the next than can be followed.
    #[test]
    fn variables_that_are_copied_in_circles_are_looked_at_for_a_while() {
        let names: Vec<String> = (0..12).map(|at| format!("v{at}")).collect();
        let mut text = String::from(
            "struct Pair { first: *mut u32, second: u32 }
             kernel child(p: *mut u32) { *p = 1; }
             kernel parent(p: *mut u32, n: u32) {\n",
        );
        for name in &names {
            let _ = writeln!(text, "let mut {name} = Pair {{ first: p, second: n }};");
        }
        text += "for i in 0..n {\n";
        for to in &names {
            for from in names.iter().filter(|from| *from != to) {
                let _ = writeln!(text, "if i == {to}.second {{ {to} = {from}; }}");
            }
        }
        text += "}\nlaunch child<<<1, 1>>>(v0.first);\n}\n";
        assert!(crate::program::check(SourceMap::single("a.grid", text)).is_ok());
    }
}
