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
        let ran = nested.count("node", 2, &[9, 1], &workers, &options)[0];
        assert_eq!(ran, expected, "{options:?}, {workers:?}");
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
        let children = 17 + seed as u32 % 5;
        let ran = nested.count("node", 1, &[3, children], &workers, &options)[0];
        let expected = (0..=3).map(|depth| children.pow(depth)).sum::<u32>();
        assert_eq!(ran, expected, "{options:?}, {workers:?}");
    }
}

/// Fills the stack of one worker beyond its end after its older half has gone to others. The other workers have blocks that end when
/// all is done, and six of them take what the first one has given away.
const END: &str = "
const FIRST: u32 = 108;
const GIVEN: u32 = 90;
struct World { ran: u32, order: u32, taken: u32, may_take: u32, done: u32 }
kernel node(w: *mut World, number: u32) {
    atomic_add(&w.ran, 1);
    if number < GIVEN {
        atomic_add(&w.taken, 1);
        while atomic_load(&w.done, relaxed) == 0 {}
        return;
    }
    // The first round of 18, and four of 32 until the worker gives 180 to others, and one that goes ten beyond the end.
    let order = atomic_add(&w.order, 1);
    let mut children = 0u32;
    if order < 18 {
        children = 12;
    } else if order < 146 {
        children = 1;
    } else if order < 178 {
        children = if order % 4 == 0 { 7 } else { 8 };
    }
    for _i in 0..children { launch node<<<1, 1, stream = fire_and_forget>>>(w, FIRST); }
    if order == 17 {
        atomic_store(&w.may_take, 1, relaxed);
        while atomic_load(&w.taken, relaxed) < GIVEN {}
    }
    if order == 178 { atomic_store(&w.done, 1, relaxed); }
}
kernel feeder(w: *mut World) {
    for i in 0..FIRST { launch node<<<1, 1, stream = fire_and_forget>>>(w, i); }
}
kernel root(w: *mut World) {
    if block_idx.x == 0 {
        launch feeder<<<1, 1, stream = fire_and_forget>>>(w);
    } else if block_idx.x <= 6 {
        while atomic_load(&w.may_take, relaxed) == 0 {}
    } else {
        while atomic_load(&w.done, relaxed) == 0 {}
    }
}
";

#[test]
fn grids_beyond_the_end_of_a_stack_run() {
    let nested = Nested::new(END);
    // Six entries may be in the ring that nobody waits for: an eighth of the number of workers.
    let workers = Workers { count: 44, more_warps: 0, more_records: 12_000 };
    // If the clock stands still, a worker looks for others after every fourth round.
    let options = Options { tick: u64::MAX, lockstep: true, ..Options::seed(1) };
    let mut device = Device::new(&nested.program);
    let world = device.allocate(20);
    let memory = nested.memory(&mut device, &workers);
    let parameters = world.to_le_bytes();
    let root = Root { kernel: "root", grid: Grid::new(workers.count, 1), parameters: &parameters };
    let launched = nested.launch(&mut device, memory, &root, &workers, &options);
    launched.unwrap_or_else(|failure| panic!("{:?} {failure}", device.read_words(world, 5)));
    let expected = 108 + 18 * 12 + 128 + 248;
    assert_eq!((device.read_words(world, 1)[0], nested.lost(&device)[0]), (expected, 0));
}

/// Each step launches two grids into its default stream: the first goes to another worker, which may also have run the second when the
/// stream ends.
const STREAMS: &str = "
#[launch_bounds(1)]
kernel child(count: *mut u32) { atomic_add(count, 1); }
#[launch_bounds(1)]
kernel step(count: *mut u32, left: u32) {
    if left > 0 { launch step<<<1, 1, stream = tail>>>(count, left - 1); }
    launch child<<<1, 1>>>(count);
    for _i in 0u32..4 { if atomic_load(count, relaxed) == 0xffffffff { return; } }
    launch child<<<1, 1>>>(count);
}
";

#[test]
fn records_of_streams_are_used_again() {
    let nested = Nested::new(STREAMS);
    let steps = 600_u32;
    for seed in 0..12_u64 {
        let policy = Policy::ALL[seed as usize % Policy::ALL.len()];
        let lockstep = seed % 3 != 0;
        let options = Options { policy, lockstep, max_steps: 400_000_000, ..Options::seed(seed) };
        let workers = Workers { count: 2 + seed as u32 % 3, more_warps: 0, more_records: 4 };
        let ran = nested.count("step", 1, &[steps - 1], &workers, &options)[0];
        assert_eq!(ran, 2 * steps, "{options:?}, {workers:?}");
    }
}
