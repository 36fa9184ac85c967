//! Makes a failing tree smaller.

use super::{Grid, Tree, Work};

/// Removes steps and joins, and repeats less, while the tree still fails. Calls `fails` at most `most` times.
pub fn reduce(tree: &Tree, most: usize, mut fails: impl FnMut(&Tree) -> bool) -> Tree {
    let mut smallest = tree.clone();
    let (mut at, mut tried, mut changed) = (0, 0, false);
    while tried < most {
        let mut smaller = smallest.clone();
        if !change(&mut smaller.root, &mut at.clone()) {
            if !changed {
                break;
            }
            (at, changed) = (0, false);
            continue;
        }
        tried += 1;
        if fails(&smaller) {
            (smallest, changed) = (smaller, true);
        } else {
            at += 1;
        }
    }
    smallest
}

/// Makes the change of that number in a grid and what it launches; `false` if there are fewer.
fn change(grid: &mut Grid, number: &mut usize) -> bool {
    let mut is_next = || {
        let next = *number == 0;
        *number = number.wrapping_sub(1);
        next
    };
    for at in 0..grid.steps.len() {
        if is_next() {
            grid.steps.remove(at);
            return true;
        }
    }
    if grid.join.is_some() && is_next() {
        grid.join = None;
        return true;
    }
    for step in grid.steps.iter_mut().filter(|step| step.times > 1) {
        if is_next() {
            step.times /= 2;
            return true;
        }
    }
    for step in &mut grid.steps {
        if let Work::Launch(child) = &mut step.work
            && change(child, number)
        {
            return true;
        }
    }
    grid.join.as_mut().is_some_and(|join| change(join, number))
}
