//! Accesses that a block's threads make again and again: what nothing new can come of is not looked at again.
//!
//! A read or write is a repeat if its thread made the same one in the same line before, neither the block's time nor
//! the memory has changed since, no other thread of the block has touched the bytes in a way that conflicts, and the
//! thread itself has not done the same from another line. Whoever of another block touched them meanwhile saw this one's
//! mark and has reported what there was to report.

/// Entries of a table, each for the words of one residue.
const ENTRIES: usize = 256;
const WORD_BYTES: usize = 4;
/// The widest access that is remembered.
const WIDEST: usize = 16;

/// A plain read or write.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Access {
    pub(super) address: usize,
    pub(super) location: u32,
    pub(super) bytes: u16,
    pub(super) thread: u16,
}

#[derive(Clone, Copy, Debug, Default)]
struct Entry {
    access: Access,
    /// When it was made; entries of other times are forgotten.
    time: u64,
}

/// The last accesses of a block, or of one block after another.
#[derive(Debug)]
pub(super) struct Repeats {
    reads: Box<[Entry; ENTRIES]>,
    writes: Box<[Entry; ENTRIES]>,
    time: u64,
}

impl Default for Repeats {
    fn default() -> Self {
        let empty = || Box::new([Entry::default(); ENTRIES]);
        Repeats { reads: empty(), writes: empty(), time: 1 }
    }
}

impl Repeats {
    /// Forgets all.
    #[inline(always)]
    pub(super) fn forget(&mut self) {
        self.time += 1;
    }

    #[inline(always)]
    pub(super) fn contain(&self, access: &Access, writes: bool) -> bool {
        let table = if writes { &self.writes } else { &self.reads };
        let entry = &table[position(access.address)];
        entry.access == *access && entry.time == self.time
    }

    /// Before an access is looked at: what can be no repeat after it. `writes` says so of a plain one; `None` is an
    /// atomic or another kind.
    pub(super) fn touch(
        &mut self,
        address: usize,
        bytes: usize,
        thread: u16,
        writes: Option<bool>,
    ) {
        let (first, end) = (address - address % WIDEST, address.saturating_add(bytes));
        let words = (end - first).div_ceil(WORD_BYTES);
        if words >= ENTRIES {
            self.forget();
            return;
        }
        for word in 0..words {
            let position = position(first + WORD_BYTES * word);
            for (table, is_write) in [(&mut self.reads, false), (&mut self.writes, true)] {
                let entry = &mut table[position];
                let Access { address: start, bytes: length, .. } = entry.access;
                let overlaps = start < end && address < start + usize::from(length);
                // Of the same kind there is a new last one; of the other kind only the own ones stay.
                if overlaps && (writes != Some(!is_write) || entry.access.thread != thread) {
                    entry.time = 0;
                }
            }
        }
    }

    /// Remembers an access that found nothing.
    pub(super) fn add(&mut self, access: Access, writes: bool) {
        if usize::from(access.bytes) <= WIDEST {
            let table = if writes { &mut self.writes } else { &mut self.reads };
            table[position(access.address)] = Entry { access, time: self.time };
        }
    }
}

#[inline(always)]
fn position(address: usize) -> usize {
    address / WORD_BYTES % ENTRIES
}
