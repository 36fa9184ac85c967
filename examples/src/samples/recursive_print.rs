//! A tree of grids that prints itself, after CUDA's `cdpSimplePrint`.

use anyhow::{Context as _, ensure};
use gridlet_runtime::{Arg, LaunchConfig};

use crate::example::{Example, Finding, Run};

/// The sample.
pub const EXAMPLE: Example = Example {
    name: "recursive_print",
    source: include_str!("../../samples/recursive_print.grid"),
    what: "prints a tree of grids, each thread of which launches a grid",
    run,
};

/// Blocks of every grid.
pub const BLOCKS: u32 = 2;
/// Threads of every block.
pub const THREADS: u32 = 2;
/// Levels of grids.
pub const DEPTHS: u32 = 3;

/// The line that a block prints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Line {
    /// Depth of its grid; 0 for the grid that the host launched.
    pub depth: i32,
    /// Its number.
    pub number: i32,
    /// The number of the block that launched its grid; -1 for the host.
    pub parent: i32,
    /// The thread of that block.
    pub parent_thread: i32,
}

impl Line {
    /// Parses a printed line; `None` if the sample did not print it.
    pub fn parse(text: &str) -> Option<Line> {
        let text = text.trim_start_matches(['|', ' ']);
        let (number, rest) = text.strip_prefix("block ")?.split_once(" of depth ")?;
        let (depth, rest) = rest.split_once(", launched by thread ")?;
        let (parent_thread, parent) = rest.split_once(" of block ")?;
        let number_of = |text: &str| text.parse().ok();
        Some(Line {
            depth: number_of(depth)?,
            number: number_of(number)?,
            parent: number_of(parent)?,
            parent_thread: number_of(parent_thread)?,
        })
    }
}

/// Blocks of a whole tree.
pub fn tree_size() -> usize {
    let launched = |depth| (BLOCKS * (BLOCKS * THREADS).pow(depth)) as usize;
    (0..DEPTHS).map(launched).sum()
}

/// Checks that the lines form a whole tree, in any order.
///
/// # Errors
/// The missing and surplus lines.
pub fn check_tree(lines: &[Line]) -> anyhow::Result<()> {
    ensure!(lines.len() == tree_size(), "{} lines, not {}", lines.len(), tree_size());
    let mut by_number = lines.to_vec();
    by_number.sort_by_key(|line| line.number);
    for (number, line) in (0..).zip(&by_number) {
        ensure!(line.number == number, "no block has the number {number}");
        let depth_above = match usize::try_from(line.parent) {
            Ok(parent) => by_number.get(parent).map(|parent| parent.depth),
            Err(_) => Some(-1),
        };
        ensure!(depth_above == Some(line.depth - 1), "{line:?} is not below its parent");
        let siblings = by_number.iter().filter(|other| {
            (other.parent, other.parent_thread) == (line.parent, line.parent_thread)
        });
        ensure!(siblings.count() == BLOCKS as usize, "{line:?} has missing or strange siblings");
        let children = by_number.iter().filter(|other| other.parent == number).count();
        let is_leaf = line.depth + 1 == DEPTHS as i32;
        let wanted = if is_leaf { 0 } else { (BLOCKS * THREADS) as usize };
        ensure!(children == wanted, "block {number} has {children} children, not {wanted}");
    }
    Ok(())
}

fn run(run: &Run<'_>) -> anyhow::Result<Finding> {
    let kernel = run.program.kernel("visit")?;
    let arguments = [Arg::from(0u32), Arg::from(DEPTHS), Arg::from(-1i32), Arg::from(0u32)];
    let milliseconds = run.timed(&kernel, &LaunchConfig::new(BLOCKS, THREADS), &arguments)?;

    let mut words = vec![0; 16 * tree_size()];
    run.program.global("lines")?.copy_start_to_host(&mut words)?;
    let (words, rest) = words.as_chunks::<4>();
    ensure!(rest.is_empty());
    let words: Vec<i32> = words.iter().map(|word| i32::from_le_bytes(*word)).collect();
    let lines: Vec<Line> = words
        .chunks_exact(4)
        .map(|line| Line {
            depth: line[0],
            number: line[1],
            parent: line[2],
            parent_thread: line[3],
        })
        .collect();
    check_tree(&lines).context("what the blocks wrote down")?;
    Ok(Finding { milliseconds, checked: format!("{} blocks form the whole tree", lines.len()) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tree() -> Vec<Line> {
        let mut lines: Vec<Line> = vec![];
        let mut grids = vec![(0, -1, 0)];
        while let Some((depth, parent, parent_thread)) = grids.pop() {
            for _ in 0..BLOCKS {
                let number = lines.len() as i32;
                lines.push(Line { depth, number, parent, parent_thread });
                if depth + 1 < DEPTHS as i32 {
                    grids.extend((0..THREADS as i32).map(|thread| (depth + 1, number, thread)));
                }
            }
        }
        lines
    }

    #[test]
    fn a_tree_with_a_missing_wrong_or_doubled_block_is_none() {
        let whole = tree();
        check_tree(&whole).expect("a whole tree");
        assert!(check_tree(&whole[1..]).is_err());
        for (at, part) in (0..whole.len()).flat_map(|at| (0..4).map(move |part| (at, part))) {
            let mut wrong = whole.clone();
            let line = &mut wrong[at];
            *[&mut line.depth, &mut line.number, &mut line.parent, &mut line.parent_thread]
                [part] += 1;
            assert!(check_tree(&wrong).is_err(), "{:?} was {:?}", wrong[at], whole[at]);
        }
    }

    #[test]
    fn lines_are_read_as_they_are_printed() {
        let line = Line { depth: 2, number: 11, parent: 4, parent_thread: 1 };
        let text = "|  |  block 11 of depth 2, launched by thread 1 of block 4";
        assert_eq!(Line::parse(text), Some(line));
        assert_eq!(Line::parse("running 1 test"), None);
    }
}
