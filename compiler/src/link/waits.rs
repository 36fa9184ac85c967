//! How often machine code waits for what was begun before.
//!
//! An instruction says in its upper bits which of six scoreboards it sets, and which it waits for. NVIDIA does not document them; they are
//! the same in sm_75 to sm_120 (Jia and others, "Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking").

/// Waits of a kernel's instructions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Waits {
    /// Number of instructions.
    pub(super) instructions: usize,
    /// How many of them wait for a scoreboard.
    pub(super) waiting: usize,
    /// How many of them wait for a load from global memory, in the order of the code.
    pub(super) for_loads: usize,
    /// How many are such loads.
    pub(super) loads: usize,
}

/// Counts the waits of a kernel's code.
pub(super) fn count(code: &[u8]) -> Waits {
    const NOP: u64 = 0x918;
    const LOADS: [u64; 2] = [0x980, 0x981];
    const NONE: usize = 7;
    let mut waits = Waits::default();
    // By scoreboard, whether a load has set it.
    let mut loading = [false; 8];
    for bytes in code.as_chunks::<16>().0 {
        let word = u128::from_le_bytes(*bytes);
        let operation = word as u64 & 0xfff;
        if operation == NOP {
            continue;
        }
        let [sets, waits_for] = [(word >> 110) as usize & 7, (word >> 116) as usize & 0x3f];
        waits.instructions += 1;
        waits.waiting += usize::from(waits_for != 0);
        let waited = (0..6).filter(|scoreboard| waits_for >> scoreboard & 1 == 1);
        // No short circuit: each is over.
        let ends_load = waited.fold(false, |any, at| std::mem::take(&mut loading[at]) | any);
        waits.for_loads += usize::from(ends_load);
        if sets != NONE && LOADS.contains(&operation) {
            loading[sets] = true;
            waits.loads += 1;
        }
    }
    waits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_for_loads_are_told_from_others() {
        const LOAD: u64 = 0x981;
        const SHARED: u64 = 0x984;
        let instruction = |operation: u64, sets: u64, waits_for: u64| {
            let upper = sets << 46 | 7 << 49 | waits_for << 52;
            [operation.to_le_bytes(), upper.to_le_bytes()]
        };
        let code = [
            instruction(LOAD, 0, 0),
            instruction(LOAD, 1, 0),
            instruction(SHARED, 2, 0),
            instruction(0x221, 7, 0b011),
            instruction(0x221, 7, 0b100),
            // Over already.
            instruction(0x221, 7, 0b001),
            instruction(0x918, 7, 0),
        ];
        let found = count(&code.concat().concat());
        assert_eq!(found, Waits { instructions: 6, waiting: 3, for_loads: 1, loads: 2 });
    }
}
