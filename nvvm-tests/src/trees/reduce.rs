//! Makes a failing tree smaller.

use super::{Grid, Kernel, Step, Tree, Work};

/// Removes grids, steps and joins, and repeats less, while the tree still fails. Calls `fails` at most `most` times.
pub fn reduce(tree: &Tree, most: usize, mut fails: impl FnMut(&Tree) -> bool) -> Tree {
    let mut smallest = tree.clone();
    let (mut at, mut tried, mut changed) = (0, 0, false);
    while tried < most {
        let mut smaller = smallest.clone();
        if !change(&mut smaller.root, |kernel| kernel == Kernel::Phases, &mut at.clone()) {
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

/// Makes the change of that number in a grid and what it launches; `false` if there are fewer. A grid may take the place of
/// the one that launches it if its kernel may be there.
fn change(grid: &mut Grid, may_be: fn(Kernel) -> bool, number: &mut usize) -> bool {
    let mut is_next = || {
        let next = *number == 0;
        *number = number.wrapping_sub(1);
        next
    };
    let takes_place = |step: &Step| match &step.work {
        Work::Launch(child) => may_be(child.kernel),
        Work::Fill(..) | Work::Copy(_) => false,
    };
    for at in 0..grid.steps.len() {
        if takes_place(&grid.steps[at]) && is_next() {
            if let Work::Launch(child) = grid.steps.swap_remove(at).work {
                *grid = *child;
            }
            return true;
        }
    }
    if grid.join.as_ref().is_some_and(|join| may_be(join.kernel)) && is_next() {
        if let Some(join) = grid.join.take() {
            *grid = *join;
        }
        return true;
    }
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
    let joins = grid.join.is_some();
    for step in &mut grid.steps {
        // A member launches the join.
        let may_be = match joins && step.member {
            true => |kernel| !matches!(kernel, Kernel::Leaf | Kernel::Meeting),
            false => |_| true,
        };
        if let Work::Launch(child) = &mut step.work
            && change(child, may_be, number)
        {
            return true;
        }
    }
    grid.join.as_mut().is_some_and(|join| change(join, |_| true, number))
}
