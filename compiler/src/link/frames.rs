//! Frame descriptions in linked cubins, from which debuggers compute where variables on the stack are.
//!
//! For sm_90, nvlink and nvJitLink 13.0 move the entries of `.debug_frame` but not all the references between them. A debugger
//! then drops the section, and shows zero for every variable on the stack.

use std::collections::BTreeSet;

use object::LittleEndian;
use object::read::elf::ElfFile64;
use object::{Object, ObjectSection};

use super::Cubin;

/// Makes each frame description that refers to no common description before it refer to the last one, as ptxas writes them.
/// A damaged file stays as it is.
pub(super) fn mend(cubin: &mut Cubin) {
    let range = || {
        let file = ElfFile64::<LittleEndian>::parse(cubin.0.as_slice()).ok()?;
        let (start, size) = file.section_by_name(".debug_frame")?.file_range()?;
        let start = usize::try_from(start).ok()?;
        Some(start..start.checked_add(usize::try_from(size).ok()?)?)
    };
    if let Some(range) = range()
        && let Some(frames) = cubin.0.get_mut(range)
    {
        mend_section(frames);
    }
}

fn mend_section(frames: &mut [u8]) {
    let mut entries = Vec::new();
    let mut at = 0;
    while let Some(entry) = Entry::read(frames, at) {
        at = entry.end;
        entries.push(entry);
    }
    let mut common = BTreeSet::new();
    for entry in &entries {
        let reference = usize::try_from(entry.reference);
        if entry.is_common() {
            common.insert(entry.start);
        } else if reference.is_ok_and(|at| common.contains(&at)) {
            continue;
        } else if let Some(before) = common.last() {
            let bytes = (*before as u64).to_le_bytes();
            frames[entry.field..][..entry.width].copy_from_slice(&bytes[..entry.width]);
        }
    }
}

/// A description of a function's frame, or what several have in common ("DWARF 3", section 6.4.1).
struct Entry {
    start: usize,
    end: usize,
    /// Where the reference is, and its bytes.
    field: usize,
    width: usize,
    /// Where the common description starts; all ones in a common description.
    reference: u64,
}

impl Entry {
    fn read(frames: &[u8], start: usize) -> Option<Entry> {
        let number = |at: usize, width: usize| {
            let mut bytes = [0; 8];
            bytes[..width].copy_from_slice(frames.get(at..)?.get(..width)?);
            Some(u64::from_le_bytes(bytes))
        };
        let (length, field, width) = match number(start, 4)? {
            0xffff_ffff => (number(start + 4, 8)?, start + 12, 8),
            length => (length, start + 4, 4),
        };
        let end = field.checked_add(usize::try_from(length).ok()?)?;
        (field + width <= end && end <= frames.len()).then_some(())?;
        Some(Entry { start, end, field, width, reference: number(field, width)? })
    }

    fn is_common(&self) -> bool {
        self.reference == u64::MAX >> (64 - 8 * self.width)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Entries by their references; `None` is a common description.
    fn section(references: &[Option<u64>], wide: bool) -> Vec<u8> {
        let entry = |reference: &Option<u64>| {
            let reference = reference.unwrap_or(u64::MAX).to_le_bytes();
            let mut bytes = Vec::new();
            if wide {
                bytes.extend([0xff; 4]);
                bytes.extend(12_u64.to_le_bytes());
                bytes.extend(reference);
            } else {
                bytes.extend(8_u32.to_le_bytes());
                bytes.extend(&reference[..4]);
            }
            bytes.extend([7; 4]);
            bytes
        };
        references.iter().flat_map(entry).collect()
    }

    #[test]
    fn references_to_no_common_description_are_mended() {
        for (wide, size) in [(true, 24), (false, 12)] {
            let later = 7 * size;
            let wrong =
                [None, Some(0), None, Some(2 * size + 8), Some(0), Some(size), Some(later), None];
            let last = Some(2 * size);
            let right = [None, Some(0), None, last, Some(0), last, last, None];
            let mut frames = section(&wrong, wide);
            mend_section(&mut frames);
            assert_eq!(frames, section(&right, wide));
        }
    }

    #[test]
    fn damaged_sections_stay_as_they_are() {
        let whole = section(&[None, Some(5)], true);
        for end in 0..whole.len() {
            let mut cut = whole[..end].to_vec();
            mend_section(&mut cut);
            assert_eq!(cut, whole[..end]);
        }
        // No common description, a length of zero and one beyond the section.
        for mut frames in [section(&[Some(8)], false), vec![0; 16], vec![0xff; 64]] {
            let before = frames.clone();
            mend_section(&mut frames);
            assert_eq!(frames, before);
        }
    }
}
