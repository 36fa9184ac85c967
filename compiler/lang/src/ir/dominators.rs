//! Dominators of graphs whose nodes are numbers.

/// The immediate dominator of every node, by iterating to a fixed point (Cooper, Harvey, Kennedy: "A Simple, Fast
/// Dominance Algorithm"). Nodes are numbered in reverse postorder, so that the root is 0 and every other node has a
/// predecessor with a lower number. The root is its own dominator.
pub fn immediate_dominators(predecessors: &[Vec<usize>]) -> Vec<usize> {
    let mut dominators: Vec<Option<usize>> = vec![None; predecessors.len()];
    if let Some(root) = dominators.first_mut() {
        *root = Some(0);
    }
    let mut changed = true;
    while changed {
        changed = false;
        for (node, before) in predecessors.iter().enumerate().skip(1) {
            let mut common = None;
            // Late predecessors first: the blocks from which a long `&&` exits form a line.
            for &before in before.iter().rev() {
                if dominators[before].is_none() {
                    continue;
                }
                common = Some(match common {
                    None => before,
                    Some(other) => meet(other, before, &dominators),
                });
            }
            if common != dominators[node] {
                dominators[node] = common;
                changed = true;
            }
        }
    }
    dominators.into_iter().map(|dominator| dominator.unwrap_or(0)).collect()
}

/// The nearest common dominator.
fn meet(mut left: usize, mut right: usize, dominators: &[Option<usize>]) -> usize {
    while left != right {
        if left > right {
            left = dominators[left].unwrap_or(0);
        } else {
            right = dominators[right].unwrap_or(0);
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_meet_at_their_dominator() {
        // 0 → 1 → 3, 0 → 2 → 3, 3 → 4 → 5 → 4.
        let before = [vec![], vec![0], vec![0], vec![1, 2], vec![3, 5], vec![4]];
        assert_eq!(immediate_dominators(&before), [0, 0, 0, 0, 3, 4]);
    }

    #[test]
    fn later_rounds_correct_earlier_ones() {
        // An edge from 3 back to 1, and 0 → 3: node 1 is reached past 2.
        let before = [vec![], vec![0, 3], vec![1], vec![2, 0]];
        assert_eq!(immediate_dominators(&before), [0, 0, 1, 0]);
    }
}
