//! The numbers that a [`Body`](super::Body) or a [`ProgramBuilder`](super::ProgramBuilder) gives out. Values, local variables and
//! blocks of different bodies have different numbers, so that a body notices those of another one, which would otherwise be some
//! value of its own; so have the declarations of different programs.

use std::sync::atomic::{AtomicU32, Ordering};

use super::Draft;
use super::body::Body;
use crate::ir::{InstId, Kernel, Operand, SlotId};
use crate::types::Structs;

/// 2³² over the golden ratio. Its multiples lie far apart, as 32-bit numbers that wrap: those of `n` bodies made one after
/// the other by about 2³² / (2.2 n).
const STEP: u32 = 0x9E37_79B9;

/// The numbers from a base that do not wrap.
const MOST: u32 = 1 << 20;

/// The number of the next body or program of this process. The first is not 0: numbers from elsewhere are often small.
static MADE: AtomicU32 = AtomicU32::new(1);

/// The numbers of one body or program: an index is the difference from its base.
#[derive(Clone, Copy)]
pub(super) struct Handles(u32);

impl Handles {
    pub(super) fn new() -> Self {
        loop {
            let base = MADE.fetch_add(1, Ordering::Relaxed).wrapping_mul(STEP);
            // Small numbers are those of built-in structs.
            if base < u32::MAX - MOST {
                return Handles(base);
            }
        }
    }

    /// A table of structs with these numbers.
    pub(super) fn structs(self) -> Structs {
        Structs::numbered(self.0)
    }

    /// The number for an index.
    pub(super) fn give(self, index: usize) -> u32 {
        self.0.wrapping_add(index as u32)
    }

    /// The index of a number, if it was given out: one of so many.
    pub(super) fn take(self, number: u32, given: usize) -> Option<usize> {
        let index = number.wrapping_sub(self.0) as usize;
        (index < given).then_some(index)
    }

    /// An operand for the caller.
    pub(super) fn shown(self, own: Operand) -> Operand {
        match own {
            Operand::Inst(id) => Operand::Inst(InstId(self.give(id.index()))),
            Operand::Slot(id) => Operand::Slot(SlotId(self.give(id.index()))),
            other => other,
        }
    }

    #[cfg(test)]
    pub(super) fn base(self) -> u32 {
        self.0
    }
}

/// Something with a number that its body did not give.
#[derive(Clone, Copy)]
pub(super) enum Foreign {
    Value(u32),
    Variable(u32),
    Block(u32),
}

/// How many of each a body has made.
#[derive(Clone, Copy)]
pub(super) struct Counts {
    pub(super) values: usize,
    pub(super) variables: usize,
    pub(super) blocks: usize,
}

/// The bodies of a program by the names of their functions.
pub(super) struct Owners(Vec<(String, Handles, Counts)>);

impl Owners {
    pub(super) fn of(drafts: &[Draft], bodies: &[Option<Body>], kernels: &[Kernel]) -> Self {
        let named = drafts.iter().zip(bodies).filter_map(|(draft, body)| {
            let body = body.as_ref()?;
            Some((draft.name(kernels).to_owned(), body.handles, body.counts()))
        });
        Owners(named.collect())
    }
}

impl Foreign {
    pub(super) fn message(self, owners: &Owners) -> String {
        let owner = owners.0.iter().find(|(_, handles, made)| {
            let (number, given) = match self {
                Foreign::Value(number) => (number, made.values),
                Foreign::Variable(number) => (number, made.variables),
                Foreign::Block(number) => (number, made.blocks),
            };
            handles.take(number, given).is_some()
        });
        let owner = owner.map_or("another function".into(), |(name, ..)| format!("`{name}`"));
        let (what, instead) = match self {
            Foreign::Value(_) => ("a value", "pass it as an argument, or compute it here"),
            Foreign::Variable(_) => {
                ("a local variable", "pass its address or its value as an argument")
            }
            Foreign::Block(_) => ("a block", "make one here, with `block`"),
        };
        format!("{what} of {owner} is used here; {instead}")
    }
}
