//! The blocks of a grid that have not started, and their distribution over the workers.

use std::ops::Range;

use super::super::grid::Grid;
use crate::abi::{BLOCK_BY_BLOCK, NEEDS_THREADS};

/// Number of threads whose work outweighs the cost of claiming their blocks.
const WORTHWHILE_THREADS: u64 = 4096;
/// Maximum blocks that a worker claims at once, so that a stopped grid ends soon.
const MAX_BLOCKS: u64 = 4096;

/// Blocks that have not started.
#[derive(Debug)]
pub(super) struct Blocks {
    left: u64,
    /// All blocks, if they are not divided.
    whole: Range<u64>,
    /// Each worker's preferred share. When a grid runs again, each worker finds its data in its cache.
    parts: Vec<Range<u64>>,
    /// Minimum number of blocks to claim, if there are as many for each worker.
    least: u64,
}

impl Blocks {
    /// Divides the grid's blocks among workers. `in_order`: blocks with lower numbers start first.
    pub(super) fn new(grid: &Grid, workers: u64, in_order: bool) -> Blocks {
        let flags = grid.kernel().flags;
        // A block may wait for an earlier one, and may do any amount of work before it launches.
        let waits = flags & NEEDS_THREADS != 0;
        let least = match waits || flags & BLOCK_BY_BLOCK != 0 {
            true => 1,
            false => WORTHWHILE_THREADS / u64::from(grid.threads()).max(1),
        };
        Blocks::divided(grid.blocks, if waits || in_order { 1 } else { workers }, least)
    }

    fn divided(blocks: u64, workers: u64, least: u64) -> Blocks {
        let mut all = Blocks { left: blocks, whole: 0..blocks, parts: Vec::new(), least };
        if workers > 1 && blocks >= 2 * workers {
            // Shares differ by at most one block.
            let start = |part: u64| blocks / workers * part + (blocks % workers).min(part);
            all.parts = (0..workers).map(|part| start(part)..start(part + 1)).collect();
            all.whole = 0..0;
        }
        all
    }

    /// Number of blocks that have not started.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    /// Claims blocks for a worker: enough to amortise the lock, few enough that all workers finish together. Empty if
    /// none are left.
    pub(super) fn take(&mut self, worker: u32, workers: u64) -> Range<u64> {
        let length = |range: &Range<u64>| range.end - range.start;
        let own = worker as usize % self.parts.len().max(1);
        let (part, is_own, sharers) = match self.parts.as_mut_slice() {
            [] => (&mut self.whole, true, workers),
            parts if !parts[own].is_empty() => (&mut parts[own], true, 1),
            parts => {
                let longest = (0..parts.len()).max_by_key(|at| length(&parts[*at])).unwrap_or(0);
                (&mut parts[longest], false, 2)
            }
        };
        let left = length(part);
        let small = self.least.min(left / sharers);
        let count = (left / (sharers * 4)).max(small).clamp(1, MAX_BLOCKS).min(left);
        self.left -= count;
        if is_own {
            part.start += count;
            part.start - count..part.start
        } else {
            // Take from the end that its own worker reaches last.
            part.end -= count;
            part.end..part.end + count
        }
    }

    /// Drops the remaining blocks and returns their number.
    pub(super) fn clear(&mut self) -> u64 {
        self.parts.clear();
        self.whole = 0..0;
        std::mem::take(&mut self.left)
    }
}

#[cfg(test)]
mod tests {
    use super::Blocks;

    /// Runs workers in turns, each as often as `speeds` says; returns which worker claimed each block.
    fn taken(blocks: u64, least: u64, speeds: &[u32]) -> Vec<Option<usize>> {
        let workers = speeds.len() as u64;
        let mut left = Blocks::divided(blocks, workers, least);
        let mut by = vec![None; blocks as usize];
        while left.left() > 0 {
            for (worker, speed) in speeds.iter().enumerate() {
                for _ in 0..*speed {
                    for block in left.take(worker as u32, workers) {
                        assert_eq!(by[block as usize].replace(worker), None, "block {block}");
                    }
                }
            }
        }
        assert!(left.take(0, workers).is_empty());
        by
    }

    #[test]
    fn each_block_is_taken_once() {
        for blocks in [1, 2, 3, 7, 64, 1000, 20_001] {
            for least in [0, 1, 16, 5000] {
                for speeds in [&[1][..], &[1, 1], &[1, 1, 1], &[9, 1], &[0, 1, 0, 5]] {
                    let by = taken(blocks, least, speeds);
                    assert!(by.iter().all(Option::is_some), "{blocks} {least} {speeds:?}");
                }
            }
        }
    }

    #[test]
    fn workers_keep_their_parts_and_help_the_slow() {
        let even = taken(512, 16, &[1, 1]);
        assert!(even[..256].iter().all(|by| *by == Some(0)), "{even:?}");
        assert!(even[256..].iter().all(|by| *by == Some(1)), "{even:?}");
        let slow = taken(512, 16, &[9, 1]);
        assert!(slow[..256].iter().all(|by| *by == Some(0)), "{slow:?}");
        assert_eq!((slow[256], slow[511]), (Some(1), Some(0)), "{slow:?}");
    }

    #[test]
    fn dropped_blocks_are_not_claimed() {
        let mut left = Blocks::divided(100, 2, 1);
        let first = left.take(0, 2);
        assert_eq!(left.clear(), 100 - (first.end - first.start));
        assert!(left.take(0, 2).is_empty() && left.take(1, 2).is_empty());
    }
}
