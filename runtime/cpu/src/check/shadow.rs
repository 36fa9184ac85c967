//! Shadow memory of one allocation: per byte whether it was written, per word who touched it last.
//!
//! Pages appear when they are first touched. A page has a word for each 4 bytes, until an access smaller than
//! that makes it one for each byte.

use std::ops::Range;

/// Bytes of memory that a page shadows.
pub(super) const PAGE_BYTES: usize = 4096;
const WORD_BYTES: usize = 4;

/// Who touched a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// The block and its time ([`super::order::Order::epoch`]); 0 if nobody did.
    pub(super) epoch: u32,
    pub(super) location: u32,
    pub(super) thread: u16,
    pub(super) atomic: bool,
}

/// Which of its bytes must have been written before an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// None: it writes, or copies them as they are.
    Nothing,
    /// One of them: it reads a struct with its padding.
    AnyByte,
    EveryByte,
}

/// What an access does.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) mark: Mark,
    pub(super) needs: Needs,
    pub(super) writes: bool,
    /// Of the blocks; marks of other generations are forgotten.
    pub(super) generation: u32,
}

/// An access that conflicts with this one and is not ordered before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) mark: Mark,
    pub(super) wrote: bool,
    /// In the page.
    pub(super) byte: usize,
}

#[derive(Debug, Default)]
enum Written {
    #[default]
    Nothing,
    Everything,
    Bits(Box<[u64; PAGE_BYTES / 64]>),
}

/// The bits of bytes that share a word of [`Written::Bits`], and which word; none of no bytes.
#[inline]
fn mask(bytes: &Range<usize>) -> Option<(usize, u64)> {
    let (bit, count) = (bytes.start % 64, bytes.len());
    let is_one = count > 0 && bit + count <= 64;
    is_one.then(|| (bytes.start / 64, u64::MAX >> (64 - count) << bit))
}

#[derive(Debug, Default)]
pub(super) struct Page {
    written: Written,
    generation: u32,
    /// Bytes of a word: 4 or 1.
    fine: bool,
    /// Empty until somebody writes.
    writes: Vec<Mark>,
    /// The last two reads, by different threads; empty until somebody reads.
    reads: Vec<[Mark; 2]>,
}

impl Page {
    pub(super) fn written() -> Page {
        Page { written: Written::Everything, ..Page::default() }
    }

    /// Marks bytes as written.
    pub(super) fn set_written(&mut self, bytes: Range<usize>) {
        if bytes.len() == PAGE_BYTES {
            self.written = Written::Everything;
        }
        if let Written::Nothing = self.written {
            self.written = Written::Bits(Box::new([0; PAGE_BYTES / 64]));
        }
        if let Written::Bits(bits) = &mut self.written {
            if let Some((word, mask)) = mask(&bytes) {
                bits[word] |= mask;
                return;
            }
            for byte in bytes {
                bits[byte / 64] |= 1 << (byte % 64);
            }
        }
    }

    fn is_written(&self, byte: usize) -> bool {
        match &self.written {
            Written::Nothing => false,
            Written::Everything => true,
            Written::Bits(bits) => bits[byte / 64] >> (byte % 64) & 1 == 1,
        }
    }

    /// The first of the bytes that nobody wrote.
    pub(super) fn first_unwritten(&self, mut bytes: Range<usize>, needs: Needs) -> Option<usize> {
        match (&self.written, needs) {
            (Written::Everything, _) | (_, Needs::Nothing) => None,
            (Written::Bits(bits), _)
                if mask(&bytes).is_some_and(|(word, mask)| bits[word] & mask == mask) =>
            {
                None
            }
            (_, Needs::AnyByte) => {
                let first = bytes.start;
                bytes.all(|byte| !self.is_written(byte)).then_some(first)
            }
            (_, Needs::EveryByte) => bytes.find(|byte| !self.is_written(*byte)),
        }
    }

    /// Those of the bytes that nobody wrote.
    pub(super) fn unwritten(&self, bytes: Range<usize>) -> impl Iterator<Item = usize> {
        let bytes = if let Written::Everything = self.written { 0..0 } else { bytes };
        bytes.filter(|byte| !self.is_written(*byte))
    }

    /// Forgets that somebody wrote bytes.
    pub(super) fn set_unwritten(&mut self, bytes: Range<usize>) {
        if let Written::Everything = self.written {
            self.written = Written::Bits(Box::new([u64::MAX; PAGE_BYTES / 64]));
        }
        if let Written::Bits(bits) = &mut self.written {
            for byte in bytes {
                bits[byte / 64] &= !(1 << (byte % 64));
            }
        }
    }

    /// Forgets who touched the bytes.
    pub(super) fn forget(&mut self, bytes: Range<usize>) {
        let words = self.words(bytes);
        for word in words {
            if let Some(mark) = self.writes.get_mut(word) {
                *mark = Mark::default();
            }
            if let Some(marks) = self.reads.get_mut(word) {
                *marks = [Mark::default(); 2];
            }
        }
    }

    /// The first access that is not ordered before what writes the whole page.
    pub(super) fn unordered_use(
        &self,
        generation: u32,
        mut ordered: impl FnMut(Mark) -> bool,
    ) -> Option<Conflict> {
        if self.generation != generation {
            return None;
        }
        let mut is_conflict = |mark: &Mark| mark.epoch != 0 && !ordered(*mark);
        let writes = self.writes.iter().enumerate().map(|(word, mark)| (word, *mark, true));
        let reads = self.reads.iter().enumerate();
        let reads = reads.flat_map(|(word, marks)| marks.map(|mark| (word, mark, false)));
        let (word, mark, wrote) = writes.chain(reads).find(|(_, mark, _)| is_conflict(mark))?;
        Some(Conflict { mark, wrote, byte: word * self.word_bytes() })
    }

    /// Records an access and gives the first conflict. `ordered` says whether a mark is before the access.
    pub(super) fn touch(
        &mut self,
        bytes: Range<usize>,
        touch: &Touch,
        mut ordered: impl FnMut(Mark) -> bool,
    ) -> Option<Conflict> {
        if self.generation != touch.generation {
            self.generation = touch.generation;
            self.writes = Vec::new();
            self.reads = Vec::new();
        }
        if !self.fine
            && (!bytes.start.is_multiple_of(WORD_BYTES) || !bytes.end.is_multiple_of(WORD_BYTES))
        {
            self.refine();
        }
        let words = self.words(bytes);
        let count = PAGE_BYTES / self.word_bytes();
        let word_bytes = self.word_bytes();
        let mut found = None;
        let mut conflicts = |mark: Mark, wrote: bool, word: usize| {
            if found.is_none()
                && mark.epoch != 0
                && !(mark.atomic && touch.mark.atomic)
                && !ordered(mark)
            {
                found = Some(Conflict { mark, wrote, byte: word * word_bytes });
            }
        };
        if !self.writes.is_empty() {
            for word in words.clone() {
                conflicts(self.writes[word], true, word);
            }
        }
        if touch.writes {
            if !self.reads.is_empty() {
                for word in words.clone() {
                    let [last, other] = self.reads[word];
                    conflicts(last, false, word);
                    conflicts(other, false, word);
                }
            }
            if self.writes.is_empty() {
                self.writes = vec![Mark::default(); count];
            }
            self.writes[words].fill(touch.mark);
        } else {
            if self.reads.is_empty() {
                self.reads = vec![[Mark::default(); 2]; count];
            }
            for marks in &mut self.reads[words] {
                let same_thread =
                    marks[0].thread == touch.mark.thread && marks[0].epoch == touch.mark.epoch;
                if !same_thread {
                    marks[1] = marks[0];
                }
                marks[0] = touch.mark;
            }
        }
        found
    }

    fn word_bytes(&self) -> usize {
        if self.fine { 1 } else { WORD_BYTES }
    }

    fn words(&self, bytes: Range<usize>) -> Range<usize> {
        bytes.start / self.word_bytes()..bytes.end.div_ceil(self.word_bytes())
    }

    fn refine(&mut self) {
        self.fine = true;
        self.writes = self.writes.iter().flat_map(|mark| [*mark; WORD_BYTES]).collect();
        self.reads = self.reads.iter().flat_map(|marks| [*marks; WORD_BYTES]).collect();
    }
}
