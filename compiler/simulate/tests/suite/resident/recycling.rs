//! Trees of more grids than launch memory has records, or than a worker's stack has entries.

use gridlet_simulate::{Device, Grid, Options, Policy};

use super::{Nested, Root, Workers};

/// A tree in which threads of a warp launch apart from each other: `2 + node % 3` children of each node, in a loop.
const TREE: &str = "
kernel node(count: *mut u32, depth: u32, number: u32) {
    atomic_add(count, 1);
    if depth == 0 { return; }
    for i in 0..2 + number % 3 {
        if (number + i) % 4 == 0 { atomic_add(count + 1, 1); }
        launch node<<<1, 1, stream = fire_and_forget>>>(count, depth - 1, number * 5 + i);
    }
}
";

/// The nodes of the tree.
fn nodes(depth: u32, number: u32) -> u32 {
    if depth == 0 {
        return 1;
    }
    1 + (0..2 + number % 3)
        .map(|i| nodes(depth - 1, number.wrapping_mul(5).wrapping_add(i)))
        .sum::<u32>()
}

#[test]
fn records_are_used_again_when_no_fresh_ones_are_left() {
    let nested = Nested::new(TREE);
    let expected = nodes(9, 1);
    for seed in 0..8_u64 {
        let policy = Policy::ALL[seed as usize % Policy::ALL.len()];
        let (weak, lockstep) = (seed % 2 == 1, seed % 3 != 0);
        let options = Options { policy, weak, lockstep, ..Options::seed(seed) };
        let count = 1 + seed as u32 % 4;
        let workers = Workers { count, more_warps: 0, more_records: 700 + 200 * count };
        let mut device = Device::new(&nested.program);
        let counter = device.allocate(8);
        let memory = nested.memory(&mut device, &workers);
        let mut parameters = counter.to_le_bytes().to_vec();
        parameters.extend(9_u32.to_le_bytes());
        parameters.extend(1_u32.to_le_bytes());
        let root = Root { kernel: "node", grid: Grid::new(1, 1), parameters: &parameters };
        let launched = nested.launch(&mut device, memory, &root, &workers, &options);
        launched.unwrap_or_else(|failure| panic!("{options:?}, {workers:?}: {failure}"));
        let lost = nested.lost(&device)[0];
        let ran = device.read_words(counter, 1)[0];
        assert_eq!((ran, lost), (expected, 0), "{options:?}, {workers:?}");
    }
    assert!(expected > 2_000, "{expected} nodes");
}

/// A tree whose nodes have many children: more than the stack of a worker holds.
const WIDE: &str = "
kernel node(count: *mut u32, depth: u32, children: u32) {
    atomic_add(count, 1);
    if depth == 0 { return; }
    for _i in 0..children {
        launch node<<<1, 1, stream = fire_and_forget>>>(count, depth - 1, children);
    }
}
";

#[test]
fn grids_that_the_stack_has_no_room_for_run() {
    let nested = Nested::new(WIDE);
    for seed in 0..12_u64 {
        let policy = Policy::ALL[seed as usize % Policy::ALL.len()];
        let options = Options { policy, lockstep: seed % 3 != 0, ..Options::seed(seed) };
        let count = 2 + seed as u32 % 3;
        let workers = Workers { count, more_warps: 0, more_records: 12_000 };
        let mut device = Device::new(&nested.program);
        let counter = device.allocate(4);
        let memory = nested.memory(&mut device, &workers);
        let children = 17 + seed as u32 % 5;
        let mut parameters = counter.to_le_bytes().to_vec();
        parameters.extend(3_u32.to_le_bytes());
        parameters.extend(children.to_le_bytes());
        let root = Root { kernel: "node", grid: Grid::new(1, 1), parameters: &parameters };
        let launched = nested.launch(&mut device, memory, &root, &workers, &options);
        launched.unwrap_or_else(|failure| panic!("{options:?}, {workers:?}: {failure}"));
        let expected = (0..=3).map(|depth| children.pow(depth)).sum::<u32>();
        let ran = device.read_words(counter, 1)[0];
        assert_eq!((ran, nested.lost(&device)[0]), (expected, 0), "{options:?}, {workers:?}");
    }
}
