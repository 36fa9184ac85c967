//! The blocks that depend on branches.
//!
//! The *region* of a branch has the blocks on the paths from it to the first block that all of them pass, its
//! post-dominator. Paths on which the thread never returns, because it traps, do not count for the post-dominator.

use crate::ir::dominators::immediate_dominators;
use crate::ir::{BlockId, Function, Terminator};

/// The union of regions of a function's branches.
#[derive(Clone)]
pub(super) struct Regions {
    /// By block, its number in the reverse postorder of the reversed graph; `None` if the function cannot return from
    /// there. The end of the function is number 0, and a post-dominator has a lower number.
    numbers: Vec<Option<usize>>,
    /// By number; none for the end of the function.
    blocks: Vec<Option<BlockId>>,
    /// By number, that of the immediate post-dominator.
    next: Vec<usize>,
    /// By block, whether it lies in a region, and if so, the number of a block: every block that lies on a path from here
    /// to that one is in a region too.
    covered: Vec<Option<usize>>,
}

impl Regions {
    /// No region yet.
    pub(super) fn of(function: &Function) -> Self {
        let count = function.blocks.len();
        // Node `count` is the end.
        let mut before = vec![Vec::new(); count + 1];
        for (at, block) in function.blocks.iter().enumerate() {
            if matches!(block.terminator, Terminator::Return(_)) {
                before[count].push(at);
            }
            for to in block.terminator.successors() {
                before[to.index()].push(at);
            }
        }
        let order = reverse_post_order(count, &before);
        let mut numbers = vec![None; count + 1];
        order.iter().enumerate().for_each(|(number, node)| numbers[*node] = Some(number));
        let mut after = vec![Vec::new(); order.len()];
        for (to, from) in before.iter().enumerate() {
            let Some(to) = numbers[to] else { continue };
            from.iter().filter_map(|from| numbers[*from]).for_each(|from| after[from].push(to));
        }
        let next = immediate_dominators(&after);
        let block = |node: &usize| (*node != count).then_some(BlockId(*node as u32));
        let blocks = order.iter().map(block).collect();
        numbers.truncate(count);
        Regions { numbers, blocks, next, covered: vec![None; count] }
    }

    /// Whether a block lies in a region.
    pub(super) fn has(&self, block: BlockId) -> bool {
        self.covered[block.index()].is_some()
    }

    /// Adds the region of a branch. Gives the blocks that were in no region before. All regions together take little more
    /// than linear time, because a walk leaps over regions that it meets.
    pub(super) fn add(&mut self, function: &Function, branch: BlockId) -> Vec<BlockId> {
        let number = self.numbers[branch.index()];
        // From a block that never returns, only such blocks can be reached.
        let end = number.map_or(usize::MAX, |number| self.next[number]);
        let mut new = Vec::new();
        let mut open: Vec<BlockId> =
            function.blocks[branch.index()].terminator.successors().collect();
        while let Some(block) = open.pop() {
            let number = self.numbers[block.index()];
            if number == Some(end) {
                continue;
            }
            let covered = self.covered[block.index()].replace(end);
            match covered {
                None => {
                    new.push(block);
                    open.extend(function.blocks[block.index()].terminator.successors());
                }
                // Both are post-dominators of this block: the one with the higher number comes first.
                Some(until) if number.is_some() && until > end => open.extend(self.blocks[until]),
                Some(until) => self.covered[block.index()] = Some(until),
            }
        }
        new
    }
}

/// The nodes that lead to `start`, each before those that only lead to it through it.
fn reverse_post_order(start: usize, before: &[Vec<usize>]) -> Vec<usize> {
    let mut seen = vec![false; before.len()];
    let mut order = Vec::new();
    let mut path = vec![(start, 0)];
    seen[start] = true;
    while let Some((node, at)) = path.pop() {
        match before[node].get(at) {
            Some(&from) => {
                path.push((node, at + 1));
                if !std::mem::replace(&mut seen[from], true) {
                    path.push((from, 0));
                }
            }
            None => order.push(node),
        }
    }
    order.reverse();
    order
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ir::parse::parse;
    use crate::ir::{Block, Operand};
    use crate::time::seconds;

    /// A function with these blocks: a name, then its successors, or nothing to return, or `!` for a trap.
    fn function(blocks: &[&str]) -> Function {
        let mut text = String::from("launches symbolic\n\nfn @f(%c: bool) {\n");
        for block in blocks {
            let words: Vec<&str> = block.split_whitespace().collect();
            text += &match words[..] {
                [name] => format!("{name}:\n  return\n"),
                [name, "!"] => format!("{name}:\n  unreachable\n"),
                [name, to] => format!("{name}:\n  jump {to}\n"),
                [name, then, otherwise] => format!("{name}:\n  branch %c, {then}, {otherwise}\n"),
                _ => panic!("{block}"),
            };
        }
        let module = parse(&(text + "}\n")).unwrap_or_else(|error| panic!("{error}"));
        module.functions.into_iter().next().unwrap()
    }

    /// The blocks in the regions of the branches at the end of these blocks.
    fn regions(blocks: &[&str], branches: &[&str]) -> String {
        let function = function(blocks);
        let mut regions = Regions::of(&function);
        let mut new = 0;
        for branch in branches {
            let at = function.blocks.iter().position(|block| block.name == *branch).unwrap();
            new += regions.add(&function, BlockId(at as u32)).len();
        }
        let found = function.blocks.iter().enumerate();
        let found = found.filter(|(at, _)| regions.has(BlockId(*at as u32)));
        let names: Vec<&str> = found.map(|(_, block)| block.name.as_str()).collect();
        assert_eq!(names.len(), new);
        names.join(" ")
    }

    #[test]
    fn a_region_ends_where_paths_meet() {
        let ifs = ["a b c", "b d", "c d", "d e f", "e f", "f"];
        assert_eq!(regions(&ifs, &["a"]), "b c");
        assert_eq!(regions(&ifs, &["d"]), "e");
        assert_eq!(regions(&ifs, &["d", "a"]), "b c e");
        let returns = ["a b c", "b", "c d e", "d e", "e"];
        assert_eq!(regions(&returns, &["c"]), "d");
        assert_eq!(regions(&returns, &["a"]), "b c d e");
    }

    #[test]
    fn the_region_of_a_loop_has_its_head() {
        let nested = ["a h", "h b x", "b i", "i j k", "j i", "k h", "x"];
        assert_eq!(regions(&nested, &["i"]), "i j");
        assert_eq!(regions(&nested, &["h"]), "h b i j k");
        assert_eq!(regions(&nested, &["i", "h"]), "h b i j k");
    }

    #[test]
    fn paths_that_never_return_do_not_count() {
        let traps = ["a t b", "b t c", "c", "t !"];
        assert_eq!(regions(&traps, &["a"]), "t");
        assert_eq!(regions(&traps, &["a", "b"]), "t");
        let endless = ["a e b", "e f g", "f e", "g e", "b"];
        assert_eq!(regions(&endless, &["a"]), "e f g");
        // Nothing after it returns: all that can be reached.
        assert_eq!(regions(&endless, &["e"]), "e f g");
        assert_eq!(regions(&endless, &["e", "a"]), "e f g");
    }

    #[test]
    fn a_walk_goes_on_behind_regions_that_it_meets() {
        // Inner first, then the outer one, which ends later.
        let nested = ["a b z", "b c d", "c d", "d e f", "e f", "f y", "y z", "z"];
        assert_eq!(regions(&nested, &["b", "d", "a"]), "b c d e f y");
        // Outer first: the walk of an inner one stops at its own end.
        assert_eq!(regions(&nested, &["a", "b", "d"]), "b c d e f y");
        // Branches whose regions overlap without one containing the other.
        let crossing = ["a b c", "b c d", "c d e", "d e", "e"];
        assert_eq!(regions(&crossing, &["b"]), "c d");
        assert_eq!(regions(&crossing, &["c"]), "d");
        assert_eq!(regions(&crossing, &["c", "b", "a"]), "b c d");
    }

    /// How long it takes to add the regions of all branches of a function with these blocks, and how many blocks lie in
    /// them.
    fn seconds_for(terminators: Vec<Terminator>) -> (f64, usize) {
        let mut function = function(&["a"]);
        let end = function.blocks.remove(0);
        function.blocks =
            terminators.into_iter().map(|terminator| Block { terminator, ..end.clone() }).collect();
        let mut regions = Regions::of(&function);
        let branches = function.blocks.iter().enumerate();
        let branches: Vec<_> = branches
            .filter(|(_, block)| matches!(block.terminator, Terminator::Branch { .. }))
            .map(|(at, _)| BlockId(at as u32))
            .collect();
        let seconds = seconds(|| {
            for branch in branches.into_iter().rev() {
                regions.add(&function, branch);
            }
        });
        let blocks = 0..function.blocks.len() as u32;
        (seconds, blocks.filter(|at| regions.has(BlockId(*at))).count())
    }

    fn branch(then: u32, otherwise: u32) -> Terminator {
        let (then, otherwise) = (BlockId(then), BlockId(otherwise));
        Terminator::Branch { condition: Operand::Parameter(0), then, otherwise }
    }

    #[test]
    fn regions_take_linear_time() {
        let depth = 10_000;
        // Regions within regions, the innermost first.
        let mut nested: Vec<_> = (0..depth).map(|at| branch(at + 1, 2 * depth - at)).collect();
        nested.extend((depth..2 * depth).map(|at| Terminator::Jump(BlockId(at + 1))));
        nested.push(Terminator::Return(None));
        let (seconds, count) = seconds_for(nested);
        assert_eq!(count, 2 * depth as usize - 1);
        assert!(seconds < 1.0, "{seconds}");
        // Regions that begin at one block, `depth`, and end ever later: the walks must not repeat each other's leaps.
        let mut fan: Vec<_> = (0..depth).map(|at| branch(depth, 2 * depth - at)).collect();
        fan.extend((depth..2 * depth).map(|at| Terminator::Jump(BlockId(at + 1))));
        fan.push(Terminator::Return(None));
        let (seconds, count) = seconds_for(fan);
        assert_eq!(count, depth as usize);
        assert!(seconds < 1.0, "{seconds}");
    }
}
