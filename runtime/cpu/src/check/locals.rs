//! Local variables that pointers may reach: where each lies, and which are gone.

use std::collections::VecDeque;
use std::ops::Range;

use super::block::BlockCheck;
use crate::abi::{LOCAL_RED_ZONE_BYTES, Location};
use crate::hooks::Variable;

/// Variables that are gone and remembered, for reports of their use.
const GONE_LIMIT: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Local {
    /// Its `offset` is its address.
    pub(super) variable: Variable,
    /// Of its function.
    pub(super) location: Location,
}

impl Local {
    pub(super) fn range(&self) -> Range<usize> {
        self.variable.offset..self.variable.offset.saturating_add(self.variable.bytes)
    }

    /// Whether the address is in the variable or so near that it was meant for it.
    fn is_near(&self, address: usize) -> bool {
        let Range { start, end } = self.range();
        address.saturating_add(LOCAL_RED_ZONE_BYTES) >= start
            && address < end.saturating_add(LOCAL_RED_ZONE_BYTES)
    }
}

/// Of one thread.
#[derive(Debug, Default)]
pub(super) struct Locals {
    /// The youngest last.
    live: Vec<Local>,
    /// The last to go is last.
    gone: VecDeque<Local>,
}

/// What an address in a thread's stack means.
#[derive(Debug)]
pub(super) enum LocalStray {
    Gone(Local),
    Near(Local),
    Nowhere,
}

impl Locals {
    /// Whether all of the bytes are in a variable that lives.
    pub(super) fn contain(&self, bytes: &Range<usize>) -> bool {
        let holds = |local: &Local| {
            let range = local.range();
            range.start <= bytes.start && bytes.end <= range.end
        };
        self.live.iter().rev().any(holds)
    }

    /// What an access means that no living variable contains.
    pub(super) fn explain(&self, address: usize) -> LocalStray {
        let gone = self.gone.iter().rev().find(|gone| gone.range().contains(&address));
        if let Some(gone) = gone {
            return LocalStray::Gone(gone.clone());
        }
        let distance = |local: &&Local| {
            let Range { start, end } = local.range();
            start.saturating_sub(address).max((address + 1).saturating_sub(end))
        };
        let near = self.live.iter().filter(|local| local.is_near(address)).min_by_key(distance);
        near.map_or(LocalStray::Nowhere, |near| LocalStray::Near(near.clone()))
    }
}

impl BlockCheck {
    /// A function of the thread has a local variable that pointers may reach.
    pub fn local_begins(&mut self, thread: u32, variable: &Variable, location: Location) {
        let locals = self.locals(thread);
        locals.live.push(Local { variable: variable.clone(), location });
        let new = variable.offset..variable.offset.saturating_add(variable.bytes);
        locals.gone.retain(|gone| gone.range().end <= new.start || gone.range().start >= new.end);
    }

    /// The function returns: so many of the youngest are gone.
    pub fn locals_end(&mut self, thread: u32, count: u32) {
        let locals = self.locals(thread);
        for _ in 0..count {
            let Some(local) = locals.live.pop() else { return };
            if locals.gone.len() == GONE_LIMIT {
                locals.gone.pop_front();
            }
            locals.gone.push_back(local);
        }
    }
}
