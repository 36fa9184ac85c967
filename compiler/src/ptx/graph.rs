//! Blocks of a function as numbers: where they may go, and which loops they make.

use std::collections::{BTreeMap, BTreeSet};

/// By block, the blocks that may go to it. `successors` may name numbers beyond the last block, for the end of the function.
pub(super) fn predecessors(successors: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut before = vec![vec![]; successors.len()];
    for (from, targets) in successors.iter().enumerate() {
        for to in targets.iter().filter(|to| **to < successors.len()) {
            before[*to].push(from);
        }
    }
    before
}

/// Jumps back, by the block that they lead to. The first block is where the function begins.
pub(super) fn jumps_back(successors: &[Vec<usize>]) -> BTreeMap<usize, BTreeSet<usize>> {
    let count = successors.len();
    let mut found: BTreeMap<usize, BTreeSet<usize>> = BTreeMap::new();
    let (mut is_open, mut is_seen) = (vec![false; count], vec![false; count]);
    let mut path = if count == 0 { vec![] } else { vec![(0, 0)] };
    while let Some((block, at)) = path.last_mut() {
        (is_open[*block], is_seen[*block]) = (true, true);
        match successors[*block].get(*at) {
            None => {
                is_open[*block] = false;
                path.pop();
            }
            Some(&to) => {
                *at += 1;
                if to >= count {
                    continue;
                }
                if is_open[to] {
                    found.entry(to).or_default().insert(*block);
                } else if !is_seen[to] {
                    path.push((to, 0));
                }
            }
        }
    }
    found
}

/// The blocks from which a jump back to `head` can be reached without it, and `head`. The first block is among the others if the loop is
/// entered elsewhere, too.
pub(super) fn natural_loop(head: usize, latch: usize, before: &[Vec<usize>]) -> BTreeSet<usize> {
    let mut found = BTreeSet::from([head]);
    let mut open = vec![latch];
    while let Some(block) = open.pop() {
        if found.insert(block) {
            open.extend(&before[block]);
        }
    }
    found
}
