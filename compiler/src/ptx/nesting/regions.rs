//! The regions between branches and their immediate post-dominators.

use std::collections::BTreeMap;
use std::mem::replace;

use gridlet_lang::ir::dominators::immediate_dominators;

/// The regions of a function.
pub(super) struct Regions {
    /// By block, how many regions contain it.
    depths: Vec<usize>,
    /// The blocks of each region.
    regions: Vec<Vec<usize>>,
}

impl Regions {
    /// `successors`: see [`Blocks`](super::Blocks).
    pub(super) fn of(successors: &[Vec<usize>]) -> Regions {
        let is_branch =
            |block: &usize| successors[*block].iter().any(|it| *it != successors[*block][0]);
        let branches: Vec<usize> = (0..successors.len()).filter(is_branch).collect();
        let mut depths = vec![0; successors.len()];
        if branches.is_empty() {
            return Regions { depths, regions: vec![] };
        }
        let joins = post_dominators(successors);
        let mut by_join: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for branch in branches {
            by_join.entry(joins[branch]).or_default().push(branch);
        }
        let mut regions = vec![];
        // By block, the last region that was seen to contain it.
        let mut seen = vec![0; successors.len()];
        for (number, (join, branches)) in (1..).zip(by_join) {
            let mut region = vec![];
            let mut open = branches;
            while let Some(block) = open.pop() {
                for &next in &successors[block] {
                    if next != join && next != successors.len() && seen[next] != number {
                        seen[next] = number;
                        depths[next] += 1;
                        region.push(next);
                        open.push(next);
                    }
                }
            }
            regions.push(region);
        }
        Regions { depths, regions }
    }

    /// The most regions that contain a block.
    pub(super) fn deepest(&self) -> usize {
        self.depths.iter().copied().max().unwrap_or(0)
    }

    /// The lines for calls, so that each block in more than `most` regions has a call in every one of them.
    pub(super) fn calls(self, most: usize, lines: &[Option<usize>]) -> Vec<usize> {
        let mut around = vec![vec![]; self.depths.len()];
        for (number, region) in self.regions.iter().enumerate() {
            for &block in region {
                around[block].push(number);
            }
        }
        let mut has_call = vec![false; self.regions.len()];
        let mut without = self.depths.clone();
        let mut blocks: Vec<usize> = (0..self.depths.len()).collect();
        blocks.retain(|block| self.depths[*block] > most);
        blocks.sort_by_key(|block| std::cmp::Reverse(self.depths[*block]));
        let mut chosen = vec![];
        for block in blocks {
            let Some(line) = lines[block].filter(|_| without[block] > 0) else { continue };
            chosen.push(line);
            for &number in &around[block] {
                if !replace(&mut has_call[number], true) {
                    for &inside in &self.regions[number] {
                        without[inside] -= 1;
                    }
                }
            }
        }
        chosen
    }
}

/// The immediate post-dominator of each block.
fn post_dominators(successors: &[Vec<usize>]) -> Vec<usize> {
    let end = successors.len();
    let mut predecessors = vec![vec![]; end + 1];
    for (block, nexts) in successors.iter().enumerate() {
        for &next in nexts {
            predecessors[next].push(block);
        }
    }
    // Backwards from the end, and from blocks that never get there.
    let (mut order, mut seen) = (vec![], vec![false; end + 1]);
    let mut endless = vec![false; end];
    seen[end] = true;
    for start in (0..=end).rev() {
        if start != end {
            if seen[start] {
                continue;
            }
            endless[start] = true;
            seen[start] = true;
        }
        let mut open = vec![(start, 0)];
        while let Some((block, at)) = open.last_mut() {
            let block = *block;
            match predecessors[block].get(*at) {
                Some(&before) => {
                    *at += 1;
                    if !replace(&mut seen[before], true) {
                        open.push((before, 0));
                    }
                }
                None => {
                    open.pop();
                    if block != end {
                        order.push(block);
                    }
                }
            }
        }
    }
    order.push(end);
    order.reverse();
    let mut numbers = vec![0; end + 1];
    for (number, block) in order.iter().enumerate() {
        numbers[*block] = number;
    }
    let before = |block: &usize| -> Vec<usize> {
        if *block == end {
            return vec![];
        }
        let ends = endless[*block].then_some(end);
        successors[*block].iter().copied().chain(ends).map(|next| numbers[next]).collect()
    };
    let before: Vec<Vec<usize>> = order.iter().map(before).collect();
    let dominators = immediate_dominators(&before);
    (0..end).map(|block| order[dominators[numbers[block]]]).collect()
}
