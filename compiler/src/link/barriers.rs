//! Convergence barriers in machine code that lose lanes, and instructions that let the lanes that wait in them go on.
//!
//! The lanes of a warp wait for each other in 12 barriers where branches end. ptxas (CUDA 13.0) keeps the lanes of any other in a
//! register:
//!
//! ```text
//! BMOV.32.CLEAR R5, B0    the outer barrier
//! BSSY B0, join
//! BMOV.32.CLEAR R3, B0    the inner barrier
//! BMOV.32 B0, R5
//! ```
//!
//! Only a block that all lanes of the outer barrier run together may save it. If another branch waits in B0 already, R5 gets the
//! inner barrier, and lanes of the outer one wait for ever. Right are saves next to the `BSSY` that begins a barrier, and at the start of
//! a function, for its caller.
//!
//! Instructions have 16 bytes and the same codes in sm_75 to sm_120. NVIDIA does not document them; `nvdisasm -hex` shows them.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use object::read::elf::ElfFile64;
use object::{LittleEndian, Object, ObjectSection, ObjectSymbol, SymbolKind};

use super::Cubin;
use gridlet_lang::arch::CudaArch;

/// What functions do to lanes that wait in a barrier.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// Those that save a barrier elsewhere than where it begins.
    pub(crate) losing: Vec<String>,
    /// Those with a `YIELD`, which lets lanes go on that wait.
    pub(crate) yielding: Vec<String>,
}

/// Reads the machine code of all functions.
pub(crate) fn read(cubin: &Cubin, arch: CudaArch) -> Found {
    let mut found = Found::default();
    let Ok(file) = ElfFile64::<LittleEndian>::parse(cubin.0.as_slice()) else { return found };
    // From sm_90 on, branches have another field for the distance.
    let is_wide = CudaArch::for_device(9, 0).is_some_and(|first| arch >= first);
    // Once: a cubin has as many sections as functions.
    let mut functions: HashMap<_, Vec<_>> = HashMap::new();
    for symbol in file.symbols().filter(|symbol| symbol.kind() == SymbolKind::Text) {
        if let Some(section) = symbol.section_index() {
            functions.entry(section).or_default().push(symbol);
        }
    }
    for section in file.sections() {
        let is_code = section.name().is_ok_and(|name| name.starts_with(".text."));
        let Some(code) = section.data().ok().filter(|_| is_code) else { continue };
        let functions = functions.get(&section.index()).map_or(&[][..], Vec::as_slice);
        let starts = functions.iter().filter_map(|it| {
            Some((it.address().wrapping_sub(section.address()), it.name().ok()?.to_owned()))
        });
        in_code(code, &starts.collect(), is_wide, &mut found);
    }
    for functions in [&mut found.losing, &mut found.yielding] {
        functions.sort();
        functions.dedup();
    }
    found
}

const BSSY: u64 = 0x945;
const BRA: u64 = 0x947;

/// Where an instruction may jump, or where the lanes that it tells to wait go on.
fn target(at: u64, low: u64, is_wide: bool) -> Option<u64> {
    let distance = match low & 0xfff {
        BRA if is_wide => {
            let words = (low >> 34 << 8) | (low >> 16 & 0xff);
            (words << 26) as i64 >> 24
        }
        BRA | BSSY => low as i64 >> 32,
        _ => return None,
    };
    Some((at + 16).wrapping_add_signed(distance))
}

/// Adds what is found in a section, with the functions that start there.
fn in_code(code: &[u8], starts: &BTreeMap<u64, String>, is_wide: bool, found: &mut Found) {
    const BSYNC: u64 = 0x941;
    const YIELD: u64 = 0x946;
    const SAVE: u64 = 0x355;
    const CALLS: [u64; 2] = [0x943, 0x944];
    const CLEAR: u64 = 1 << 20;
    const NO_REGISTER: u64 = 0xff;
    let (mut function, mut is_entry, mut begun) = ("", true, 0u16);
    let (instructions, _) = code.as_chunks::<16>();
    let at_words = || (0u64..).step_by(16).zip(instructions);
    let targets: BTreeSet<u64> = at_words()
        .filter_map(|(at, bytes)| target(at, u128::from_le_bytes(*bytes) as u64, is_wide))
        .collect();
    for (at, bytes) in at_words() {
        // Other lanes may come from elsewhere.
        if targets.contains(&at) {
            begun = 0;
        }
        if let Some(name) = starts.get(&at) {
            (function, is_entry, begun) = (name, true, 0);
        }
        let word = u128::from_le_bytes(*bytes);
        let (low, high) = (word as u64, (word >> 64) as u64);
        match low & 0xfff {
            BSSY => {
                begun |= 1 << (low >> 16 & 15);
                is_entry = false;
            }
            BSYNC => (is_entry, begun) = (false, 0),
            SAVE if high & CLEAR != 0 && low >> 16 & 0xff != NO_REGISTER => {
                let is_early = is_entry || begun >> (low >> 24 & 15) & 1 == 1;
                // A function that never runs.
                if !is_early && !function.ends_with("gridlet$deep") {
                    found.losing.push(function.to_owned());
                }
            }
            code if CALLS.contains(&code) => is_entry = false,
            BRA => begun = 0,
            YIELD => found.yielding.push(function.to_owned()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Instructions as `nvdisasm -hex` shows them.
    fn code(words: &[[u64; 2]]) -> Vec<u8> {
        words.iter().flatten().flat_map(|word| word.to_le_bytes()).collect()
    }

    fn read(words: &[[u64; 2]], starts: &BTreeMap<u64, String>) -> Found {
        let mut found = Found::default();
        in_code(&code(words), starts, true, &mut found);
        found
    }

    #[test]
    fn a_yield_is_found() {
        let starts = BTreeMap::from([(0, "f".to_owned()), (16, "g".to_owned())]);
        let (yields, waits) = ([0x7946, 0x003f_de00_0380_0000], [0x7941, 0x000f_ea00_0380_0000]);
        let found = read(&[waits, yields], &starts);
        assert_eq!(found, Found { losing: vec![], yielding: vec!["g".into()] });
    }

    #[test]
    fn late_saves_are_told_from_early_ones() {
        let save = |register: u64, barrier: u64| {
            [0x7355 | register << 16 | barrier << 24, 0x000f_e200_0010_0000]
        };
        let begin = |barrier: u64| [0x0000_0b90_0000_7945 | barrier << 16, 0x000f_e400_0380_0000];
        let branch = [0x0000_0000_0000_8947, 0x000f_ea00_0380_0000];
        let wait = [0x0000_0000_0000_7941, 0x000f_ea00_0380_0000];
        let mut words = vec![save(2, 6), begin(0), save(3, 0), branch, save(255, 0), wait];
        let starts = BTreeMap::from([(0, "f".to_owned()), (96, "g".to_owned())]);
        assert!(read(&words, &starts).losing.is_empty());
        // Behind a branch, other lanes may wait already.
        let mut late = words.clone();
        late.insert(2, [0x0000_0000_fffc_8947, 0x000f_ea00_0383_ffff]);
        assert_eq!(read(&late, &starts).losing, ["f"]);
        // Another function saves a barrier at its start.
        words.push(save(4, 6));
        assert!(read(&words, &starts).losing.is_empty());
        words.extend([begin(6), wait, save(4, 6)]);
        assert_eq!(read(&words, &starts).losing, ["g"]);
    }
}
