//! Makes a failing tree smaller.

use super::{Grid, Kernel, Step, Tree, Work};

/// A tree that was made smaller, and by which changes.
#[derive(Clone, Debug)]
pub struct Smaller {
    /// What is left.
    pub tree: Tree,
    /// The numbers of the changes, each of the tree that those before it left.
    pub changes: Vec<usize>,
}

impl Smaller {
    /// A tree as it is.
    pub fn whole(tree: &Tree) -> Self {
        Smaller { tree: tree.clone(), changes: vec![] }
    }

    /// With one more change; `None` if there are fewer.
    pub fn changed(&self, number: usize) -> Option<Smaller> {
        let mut smaller = self.clone();
        let may_be = |kernel| kernel == Kernel::Phases;
        change(&mut smaller.tree.root, may_be, &mut number.clone()).then(|| {
            smaller.changes.push(number);
            smaller
        })
    }
}

/// Removes grids, steps and joins, and repeats less, while the tree still fails. Gives `fails` up to `together` trees, at most `most` in
/// all; it gives the place of the first that fails.
pub fn reduce(
    tree: &Tree,
    most: usize,
    together: usize,
    mut fails: impl FnMut(&[Smaller]) -> Option<usize>,
) -> Smaller {
    let mut smallest = Smaller::whole(tree);
    let (mut at, mut tried, mut changed) = (0, 0, false);
    while tried < most {
        let several = (at..at + together.min(most - tried)).map_while(|at| smallest.changed(at));
        let several: Vec<Smaller> = several.collect();
        if several.is_empty() {
            if !changed {
                break;
            }
            (at, changed) = (0, false);
            continue;
        }
        tried += several.len();
        match fails(&several) {
            Some(failing) => {
                smallest = several[failing].clone();
                (at, changed) = (at + failing, true);
            }
            None => at += several.len(),
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
