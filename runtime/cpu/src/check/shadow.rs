//! Shadow memory of one allocation: which bytes are initialised, and which threads accessed each word last.
//!
//! Pages are created on first use. A page has one word per 4 bytes, until a smaller access refines it to one word per
//! byte.

use std::ops::Range;

/// Number of bytes that a page shadows.
pub(super) const PAGE_BYTES: usize = 4096;
const WORD_BYTES: usize = 4;

/// The last access of a word.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    /// Block and time of the access ([`super::order::Order::epoch`]); 0 if none.
    pub(super) epoch: u32,
    pub(super) location: u32,
    pub(super) thread: u16,
    pub(super) atomic: Atomic,
}

/// Whether an access is atomic, and for which threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Atomic {
    #[default]
    No,
    /// For those of its block.
    Block,
    Device,
}

/// Which bytes of an access must be initialised.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Needs {
    /// None: the access writes, or copies bytes unchanged.
    Nothing,
    /// At least one: the access reads a struct, including its padding.
    AnyByte,
    EveryByte,
}

/// Description of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Touch {
    pub(super) mark: Mark,
    pub(super) needs: Needs,
    pub(super) writes: bool,
    /// Current generation; marks of other generations are ignored.
    pub(super) generation: u32,
}

/// An earlier access that conflicts with the current one and does not precede it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Conflict {
    pub(super) mark: Mark,
    pub(super) wrote: bool,
    /// Offset in the page.
    pub(super) byte: usize,
}

#[derive(Debug, Default)]
enum Written {
    #[default]
    Nothing,
    Everything,
    Bits(Box<[u64; PAGE_BYTES / 64]>),
}

/// Index of the word of [`Written::Bits`] that contains the bytes, and their mask; `None` if the range is empty or
/// spans words.
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
    /// Whether a word is 1 byte instead of 4.
    fine: bool,
    /// Last writes; empty until the first write.
    writes: Vec<Mark>,
    /// The last two reads, by different threads; empty until the first read.
    reads: Vec<[Mark; 2]>,
}

impl Page {
    pub(super) fn written() -> Page {
        Page { written: Written::Everything, ..Page::default() }
    }

    /// Marks bytes as initialised.
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

    /// Offset of the first uninitialised byte.
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

    /// Offsets of the uninitialised bytes.
    pub(super) fn unwritten(&self, bytes: Range<usize>) -> impl Iterator<Item = usize> {
        let bytes = if let Written::Everything = self.written { 0..0 } else { bytes };
        bytes.filter(|byte| !self.is_written(*byte))
    }

    /// Marks bytes as uninitialised.
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

    /// Clears the marks of the bytes.
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

    /// Finds an access that does not precede a write of the whole page.
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

    /// Records an access and returns its first conflict. `ordered` tells whether a mark precedes the access, or is atomic
    /// like it and of the same block.
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
                && !(mark.atomic == Atomic::Device && touch.mark.atomic == Atomic::Device)
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
