//! Skips repeated accesses of a block's threads, which cannot produce new findings.
//!
//! A read or write is a repeat if the same thread made the same access at the same source line before, and since then
//! neither the block's time nor the memory has changed, no other thread of the block has touched the bytes in a
//! conflicting way, and the thread itself has not accessed them in the same way at another line. A thread of another
//! block that touched the bytes in between saw the mark of the first access and has already reported any race.

/// Entries of a table; a word's entry is its index modulo this.
const ENTRIES: usize = 256;
const WORD_BYTES: usize = 4;
/// The widest access that is cached, in bytes.
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
    /// Time of the access; an entry is valid only at that time.
    time: u64,
}

/// Cache of the last accesses of a block; reused for later blocks.
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
    /// Invalidates all entries.
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

    /// Invalidates the entries that conflict with an access that is about to be checked. `writes` distinguishes plain
    /// reads and writes; `None` is an atomic or another kind.
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
                // An access of the same kind replaces the entry; of the other kind, only the own thread's entries stay.
                if overlaps && (writes != Some(!is_write) || entry.access.thread != thread) {
                    entry.time = 0;
                }
            }
        }
    }

    /// Adds an access without findings.
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

#[cfg(test)]
mod tests {
    use super::*;

    const READ: bool = false;
    const WRITE: bool = true;
    /// Aligned to the widest access.
    const AT: usize = 0x1_0000;

    fn access(address: usize, bytes: u16) -> Access {
        Access { address, location: 7, bytes, thread: 3 }
    }

    /// A cache that holds the access both as a read and as a write.
    fn made(access: Access) -> Repeats {
        let mut repeats = Repeats::default();
        repeats.add(access, READ);
        repeats.add(access, WRITE);
        repeats
    }

    /// Whether a read and a write still count as repeats after another access.
    fn after(
        made_bytes: (usize, u16),
        other: (usize, usize),
        thread: u16,
        writes: Option<bool>,
    ) -> [bool; 2] {
        let one = access(made_bytes.0, made_bytes.1);
        let mut repeats = made(one);
        repeats.touch(other.0, other.1, thread, writes);
        [repeats.contain(&one, READ), repeats.contain(&one, WRITE)]
    }

    #[test]
    fn only_the_same_access_is_a_repeat() {
        let one = access(AT, 4);
        let mut repeats = Repeats::default();
        assert!(!repeats.contain(&one, READ));
        repeats.add(one, READ);
        assert!(repeats.contain(&one, READ));
        assert!(!repeats.contain(&one, WRITE));
        repeats.add(access(AT + 4, 4), WRITE);
        assert!(repeats.contain(&access(AT + 4, 4), WRITE));
        assert!(!repeats.contain(&access(AT + 4, 4), READ));
        for other in [
            access(AT, 2),
            Access { location: 8, ..one },
            Access { thread: 4, ..one },
            access(AT + WORD_BYTES * ENTRIES, 4),
        ] {
            assert!(!repeats.contain(&other, READ), "{other:?}");
        }
    }

    #[test]
    fn nothing_is_a_repeat_at_another_time() {
        let one = access(AT, 4);
        let mut repeats = made(one);
        repeats.forget();
        assert!(!repeats.contain(&one, READ));
        assert!(!repeats.contain(&one, WRITE));
    }

    #[test]
    fn an_access_invalidates_overlapping_entries() {
        let (other, own) = (4, 3);
        // Accesses by another thread of either kind, and atomics by any thread, invalidate both.
        for writes in [Some(READ), Some(WRITE), None] {
            assert_eq!(after((AT, 4), (AT, 4), other, writes), [false; 2], "{writes:?}");
        }
        assert_eq!(after((AT, 4), (AT, 4), own, None), [false; 2]);
        // The thread's own access invalidates the entry of its kind.
        assert_eq!(after((AT, 4), (AT, 4), own, Some(READ)), [false, true]);
        assert_eq!(after((AT, 4), (AT, 4), own, Some(WRITE)), [true, false]);
    }

    #[test]
    fn overlaps_are_counted_in_bytes() {
        let ends = |made, other| !after(made, other, 4, Some(WRITE))[0];
        assert!(ends((AT, 4), (AT + 3, 1)));
        assert!(!ends((AT, 4), (AT + 4, 1)));
        assert!(!ends((AT + 4, 4), (AT, 4)));
        // Inside a wide access, and around a narrow one.
        assert!(ends((AT, 16), (AT + 13, 1)));
        assert!(ends((AT + 9, 1), (AT, 16)));
        assert!(!ends((AT + 9, 1), (AT, 9)));
        // An access with more words than a table has entries.
        assert!(ends((AT + 2000, 4), (AT, 4096)));
        // Different words that share an entry are distinguished.
        assert!(!ends((AT, 4), (AT + WORD_BYTES * ENTRIES, 4)));
    }

    #[test]
    fn wide_accesses_are_not_cached() {
        let wide = access(AT, 17);
        let repeats = made(wide);
        assert!(!repeats.contain(&wide, READ) && !repeats.contain(&wide, WRITE));
    }
}
