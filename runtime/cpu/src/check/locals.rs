//! Tracks the local variables that pointers may reach: their addresses and lifetimes.

use std::collections::VecDeque;
use std::ops::Range;

use super::block::BlockCheck;
use super::shadow::Needs;
use crate::abi::{LOCAL_RED_ZONE_BYTES, Location};
use crate::hooks::Variable;

/// Maximum dead variables remembered to explain later uses.
const GONE_LIMIT: usize = 64;

#[derive(Clone, Debug)]
pub(super) struct Local {
    /// Its `offset` is the address.
    pub(super) variable: Variable,
    /// Location of the function.
    pub(super) location: Location,
    /// Whether each byte is unset; empty if all are set.
    unset: Vec<bool>,
}

impl Local {
    pub(super) fn range(&self) -> Range<usize> {
        self.variable.offset..self.variable.offset.saturating_add(self.variable.bytes)
    }

    /// Records an access of bytes of the variable; returns the offset of the first byte that it needs but that is unset.
    pub(super) fn touch(
        &mut self,
        bytes: &Range<usize>,
        needs: Needs,
        writes: bool,
    ) -> Option<usize> {
        let start = bytes.start - self.variable.offset;
        let unset = self.unset.get_mut(start..start + bytes.len())?;
        let first = unset.iter().position(|unset| *unset).map(|first| start + first);
        let missing = match needs {
            Needs::Nothing => None,
            Needs::AnyByte if unset.iter().any(|unset| !unset) => None,
            Needs::AnyByte | Needs::EveryByte => first,
        };
        if writes {
            unset.fill(false);
        }
        missing
    }

    /// Offset of the first unset byte at or after this one.
    pub(super) fn first_unset(&self, from: usize) -> Option<usize> {
        let rest = self.unset.get(from..)?;
        Some(from + rest.iter().position(|unset| *unset)?)
    }

    /// Whether the address is in or near the variable, so that the access was probably meant for it.
    fn is_near(&self, address: usize) -> bool {
        let Range { start, end } = self.range();
        address.saturating_add(LOCAL_RED_ZONE_BYTES) >= start
            && address < end.saturating_add(LOCAL_RED_ZONE_BYTES)
    }
}

/// The local variables of one thread.
#[derive(Debug, Default)]
pub(super) struct Locals {
    /// Oldest first.
    live: Vec<Local>,
    /// Dead variables, in order of death.
    gone: VecDeque<Local>,
}

/// Explanation of a stray access in a thread's stack.
#[derive(Debug)]
pub(super) enum LocalStray {
    Gone(Local),
    Near(Local),
    Nowhere,
}

impl Locals {
    /// The live variable that contains all of the bytes.
    pub(super) fn holder(&mut self, bytes: &Range<usize>) -> Option<&mut Local> {
        let holds = |local: &&mut Local| {
            let range = local.range();
            range.start <= bytes.start && bytes.end <= range.end
        };
        self.live.iter_mut().rev().find(holds)
    }

    /// The youngest variable, at this address, has no value yet.
    pub(super) fn unset(&mut self, address: usize) {
        if let Some(local) = self.live.last_mut()
            && local.variable.offset == address
        {
            local.unset = vec![true; local.variable.bytes];
        }
    }

    /// Explains an access that no live variable contains.
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
    /// A function registers a local variable that pointers may reach.
    pub fn local_begins(&mut self, thread: u32, variable: &Variable, location: Location) {
        let locals = self.locals(thread);
        locals.live.push(Local { variable: variable.clone(), location, unset: Vec::new() });
        let new = variable.offset..variable.offset.saturating_add(variable.bytes);
        locals.gone.retain(|gone| gone.range().end <= new.start || gone.range().start >= new.end);
    }

    /// The function returns: the lifetimes of the `count` youngest variables end.
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
