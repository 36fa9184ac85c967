//! Overlaps of the pointer parameters of `#[noalias]` kernels: by grid, which parameters led to each byte.

use std::collections::{BTreeMap, HashMap};

use crate::abi::Location;

/// Bytes with one record.
const WORD: usize = 4;

/// The accesses of the live grids whose kernels promise that their pointers do not overlap.
#[derive(Debug, Default)]
pub(super) struct Overlaps {
    grids: BTreeMap<u32, HashMap<usize, Word>>,
}

/// The parameters that led to the bytes of a word, and the places of the last accesses.
#[derive(Clone, Copy, Debug, Default)]
struct Word {
    read_by: [u8; WORD],
    written_by: [u8; WORD],
    read_at: Location,
    written_at: Location,
}

/// Stands for several parameters.
const SEVERAL: u8 = u8::MAX;

impl Overlaps {
    /// Records an access through parameter `by`, a number from 1. Returns the place of an earlier access through another
    /// parameter if one of the two writes, and whether that access did.
    pub(super) fn access(
        &mut self,
        grid: u32,
        by: u8,
        (start, bytes): (usize, usize),
        writes: bool,
        location: Location,
    ) -> Option<(Location, bool)> {
        let words = self.grids.entry(grid).or_default();
        let mut found = None;
        let is_other = |known: u8| known != 0 && known != by;
        for address in start..start.saturating_add(bytes) {
            let word = words.entry(address / WORD).or_default();
            let at = address % WORD;
            if is_other(word.written_by[at]) {
                found = found.or(Some((word.written_at, true)));
            } else if writes && is_other(word.read_by[at]) {
                found = found.or(Some((word.read_at, false)));
            }
            let (known, place) = match writes {
                true => (&mut word.written_by[at], &mut word.written_at),
                false => (&mut word.read_by[at], &mut word.read_at),
            };
            *known = if is_other(*known) { SEVERAL } else { by };
            *place = location;
        }
        found
    }

    pub(super) fn grid_ended(&mut self, grid: u32) {
        self.grids.remove(&grid);
    }
}
