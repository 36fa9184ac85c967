//! The sizes of grids and blocks that a kernel requires, compared with the constant sizes of a launch.

use super::kernels::name;
use crate::nvvm::legacy::llvm::{Attribute, Place, Value};

const AXES: [char; 3] = ['x', 'y', 'z'];

/// What is wrong with a launch of a kernel with these sizes, as far as they are constant. `maxntid` is the business of
/// [`super::kernels::launch_bounds`].
pub(super) fn mismatch(
    kernel: Value<'_>,
    grid: &[Option<i128>],
    block: &[Option<i128>],
) -> Option<String> {
    let child = name(kernel);
    let wrong_block = numbers(kernel, "nvvm.reqntid").and_then(|wanted| {
        let mut given = AXES.into_iter().zip(block).zip(wanted);
        given.find_map(|((axis, given), wanted)| {
            let given = given.filter(|given| *given != i128::from(wanted))?;
            Some(format!(
                "a block has {given} threads in {axis}, but `{child}` requires {wanted} (`reqntid`)"
            ))
        })
    });
    wrong_block.or_else(|| {
        let mut given = AXES.into_iter().zip(grid).zip(numbers(kernel, "nvvm.cluster_dim")?);
        given.find_map(|((axis, given), wanted)| {
            let given = given.filter(|given| wanted > 0 && given % i128::from(wanted) != 0)?;
            Some(format!(
                "a grid has {given} blocks in {axis}, but `{child}` runs in clusters of {wanted} there (`cluster_dim`); \
                 launch a multiple"
            ))
        })
    })
}

/// The three numbers of an attribute. Those that it leaves out are 1.
fn numbers(kernel: Value<'_>, wanted: &str) -> Option<[u32; 3]> {
    let attributes = kernel.attributes(Place::Function);
    let text = attributes.iter().find_map(|attribute| match attribute {
        Attribute::Text(key, value) if key == wanted => Some(value),
        _ => None,
    })?;
    let mut numbers = [1; 3];
    for (number, text) in numbers.iter_mut().zip(text.split(',')) {
        *number = text.trim().parse().ok()?;
    }
    Some(numbers)
}
