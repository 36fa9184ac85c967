//! Statistics that the kernels of an instrumented program recorded.

use serde::Serialize;

use gridlet_artifact::manifest::DEPTH_WORDS;

/// Statistics that a program's kernels recorded since it was loaded: see
/// [`Program::statistics`](crate::Program::statistics).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Statistics {
    /// Successful launches by kernels.
    pub launches_made: u64,
    /// The depth of the deepest grid that ran: 0 for a grid that the host launched, 1 for a child of such a grid,
    /// and so on.
    pub deepest_nesting: u32,
    /// Whether a grid may have been deeper: some kernel's parameters left no room for its depth.
    pub may_be_deeper: bool,
    /// The SMs that ran blocks of host-launched grids, in order; on the CPU, worker numbers.
    pub host_sms: Vec<u32>,
    /// The SMs that ran blocks of device-launched grids, in order.
    pub kernel_sms: Vec<u32>,
}

impl Statistics {
    /// Decodes the array that [`Statistics`](gridlet_artifact::manifest::Statistics) describes; missing words are
    /// zero.
    pub(crate) fn decode(launches_made: u64, bytes: &[u8], sms: u32) -> Statistics {
        let words: Vec<u32> = bytes
            .chunks_exact(4)
            .map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]]))
            .collect();
        let word = |at: u32| words.get(at as usize).copied().unwrap_or_default();
        let set = |first: u32| {
            (0..sms).filter(|sm| word(first + sm / 32) & (1 << (sm % 32)) != 0).collect()
        };
        Statistics {
            launches_made,
            deepest_nesting: word(0).max(word(1)),
            may_be_deeper: word(1) != 0,
            host_sms: set(DEPTH_WORDS),
            kernel_sms: set(DEPTH_WORDS + sms / 32),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_are_sms_and_the_deepest_counts() {
        let words: [u32; 6] = [9, 0, 0b101, 1 << 31, 0, 0b10];
        let bytes = |words: [u32; 6]| words.map(u32::to_le_bytes).concat();
        let expected = Statistics {
            launches_made: 3,
            deepest_nesting: 9,
            may_be_deeper: false,
            host_sms: vec![0, 2, 63],
            kernel_sms: vec![33],
        };
        assert_eq!(Statistics::decode(3, &bytes(words), 64), expected);
        let shown = |deepest, at_least| {
            let decoded = Statistics::decode(0, &bytes([deepest, at_least, 0, 0, 0, 0]), 64);
            (decoded.deepest_nesting, decoded.may_be_deeper)
        };
        assert_eq!([shown(9, 2), shown(2, 9)], [(9, true), (9, true)]);
    }
}
