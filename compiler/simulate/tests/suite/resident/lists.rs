//! Rounds in which a worker runs many grids: one after another, or side by side in the lanes of its warps.

use gridlet_simulate::{Device, Grid, Options, Policy};

use super::{Nested, Root, Workers};

/// Each node has a grid that it launches, and one that must find it complete, with all threads of its blocks.
const NODES: &str = "
kernel leaf(ran: *mut u32) { atomic_add(ran, 1); }
kernel after(ran: *mut u32, early: *mut u32, expected: u32) {
    if atomic_load(ran, relaxed) != expected { atomic_add(early, 1); }
    atomic_add(ran, 1);
}
kernel node(counts: *mut u32, early: *mut u32, number: u32) {
    let ran = counts + number;
    let blocks = grid_dim.x * grid_dim.y;
    if thread_idx.x == 0 && number % 3 != 0 {
        launch leaf<<<1 + number % 2, 2, stream = fire_and_forget>>>(ran);
    }
    if thread_idx.x == 0 && block_idx.x == 0 && block_idx.y == 0 {
        let launched = if number % 3 != 0 { blocks * (2 + number % 2 * 2) } else { 0 };
        launch after<<<1, 1, stream = tail>>>(ran, early, blocks * block_dim.x + launched);
    }
    atomic_add(ran, 1);
}
kernel root(counts: *mut u32, early: *mut u32, nodes: u32) {
    for i in 0..nodes {
        let shape = dim3(1 + i % 5, 1 + i % 2, 1);
        launch node<<<shape, 3, stream = fire_and_forget>>>(counts, early, i);
    }
}
";

/// The threads that run for a node.
fn threads(number: u32) -> u32 {
    let blocks = (1 + number % 5) * (1 + number % 2);
    let leaves = if number.is_multiple_of(3) { 0 } else { blocks * (2 + number % 2 * 2) };
    blocks * 3 + leaves + 1
}

/// Each node launches grids of one thread that launch another, and one that must find them all complete.
const PACKS: &str = "
kernel leaf(ran: *mut u32) { atomic_add(ran, 1); }
kernel branch(ran: *mut u32) {
    launch leaf<<<1, 1, stream = fire_and_forget>>>(ran);
    atomic_add(ran, 1);
}
kernel after(ran: *mut u32, early: *mut u32, expected: u32) {
    if atomic_load(ran, relaxed) != expected { atomic_add(early, 1); }
    atomic_add(ran, 1);
}
kernel node(counts: *mut u32, early: *mut u32, number: u32) {
    let ran = counts + number;
    let branches = 2 + number % 9;
    for i in 0..branches { launch branch<<<1, 1, stream = fire_and_forget>>>(ran); }
    launch after<<<1, 1, stream = tail>>>(ran, early, branches * 2);
}
kernel root(counts: *mut u32, early: *mut u32, nodes: u32) {
    for i in 0..nodes { launch node<<<1, 1, stream = fire_and_forget>>>(counts, early, i); }
}
";

/// Some nodes launch more than a hundred grids of one thread that launch nothing, whose numbers are added up.
const CROWDS: &str = "
kernel leaf(ran: *mut u32, number: u32) { atomic_add(ran, number); }
kernel after(ran: *mut u32, early: *mut u32, expected: u32) {
    if atomic_load(ran, relaxed) != expected { atomic_add(early, 1); }
}
kernel node(counts: *mut u32, early: *mut u32, number: u32) {
    let ran = counts + number;
    let leaves = if number % 8 == 3 { 100 + number } else { number % 5 };
    for i in 0..leaves { launch leaf<<<1, 1, stream = fire_and_forget>>>(ran, i + 1); }
    launch after<<<1, 1, stream = tail>>>(ran, early, leaves * (leaves + 1) / 2);
}
kernel root(counts: *mut u32, early: *mut u32, nodes: u32) {
    for i in 0..nodes { launch node<<<1, 1, stream = fire_and_forget>>>(counts, early, i); }
}
";

/// Grids of one to three blocks of several warps, whose threads add up their numbers. A block has one, two or three dimensions.
const PARTS: &str = "
kernel leaf(ran: *mut u32) { atomic_add(ran, 1); }
#[launch_bounds(96)]
kernel node(counts: *mut u32, number: u32) {
    let in_plane = thread_idx.y * block_dim.x + thread_idx.x;
    let thread = thread_idx.z * block_dim.x * block_dim.y + in_plane;
    let threads = block_dim.x * block_dim.y * block_dim.z;
    let ran = counts + number;
    atomic_add(ran, 1 + block_idx.x * threads + thread);
    if thread == threads - 1 && number % 4 == 0 {
        launch leaf<<<1, 1, stream = fire_and_forget>>>(ran);
    }
}
kernel root(counts: *mut u32, early: *mut u32, nodes: u32) {
    for i in 0..nodes {
        let mut shape = dim3(65 + i % 31, 1, 1);
        if i % 3 == 1 { shape = dim3(7, 10, 1); }
        if i % 3 == 2 { shape = dim3(5, 5, 3); }
        launch node<<<1 + i % 3, shape, stream = fire_and_forget>>>(counts, i);
    }
}
";

/// What its threads add up to.
fn sum_of_parts(number: u32) -> u32 {
    let of_block = [65 + number % 31, 70, 75][number as usize % 3];
    let threads = of_block * (1 + number % 3);
    let leaves = if number.is_multiple_of(4) { 1 + number % 3 } else { 0 };
    threads * (threads + 1) / 2 + leaves
}

#[test]
fn warps_that_run_all_of_a_block_run_each_thread_once() {
    check(PARTS, sum_of_parts);
    // With scopes.
    let ordered =
        PARTS.replace("leaf<<<1, 1, stream = fire_and_forget>>>", "leaf<<<1, 1, stream = tail>>>");
    check(&ordered, sum_of_parts);
}

#[test]
fn grids_of_a_list_are_complete_when_all_that_they_launched_is() {
    check(NODES, threads);
}

#[test]
fn packed_grids_launch_in_their_own_scope() {
    check(PACKS, |number| 2 * (2 + number % 9) + 1);
}

#[test]
fn as_many_packed_grids_run_together_as_a_worker_has_lanes() {
    let sum = |number| {
        let leaves = if number % 8 == 3 { 100 + number } else { number % 5 };
        leaves * (leaves + 1) / 2
    };
    check(CROWDS, sum);
    // Without scopes.
    let tail = CROWDS.find("    launch after").unwrap();
    let end = tail + CROWDS[tail..].find('\n').unwrap();
    check(&[&CROWDS[..tail], &CROWDS[end..]].concat(), sum);
}

/// Runs a program whose kernel `root` counts for each node how many threads have run, and how many nodes were early.
fn check(program: &str, threads: fn(u32) -> u32) {
    let nested = Nested::new(program);
    let nodes = 60_u32;
    for seed in 0..12_u64 {
        let policy = Policy::ALL[seed as usize % Policy::ALL.len()];
        // If the clock stands still, rounds seem to take no time, and grow.
        let tick = if seed % 4 == 3 { 1 } else { u64::MAX };
        let options = Options { policy, tick, weak: seed % 2 == 1, ..Options::seed(seed) };
        let workers = Workers {
            count: 1 + seed as u32 % 3,
            more_warps: [0, 3][seed as usize % 2],
            more_records: 2000,
        };
        let mut device = Device::new(&nested.program);
        let counts = device.allocate(nodes as usize * 4);
        let early = device.allocate(4);
        let memory = nested.memory(&mut device, &workers);
        let mut parameters = counts.to_le_bytes().to_vec();
        parameters.extend(early.to_le_bytes());
        parameters.extend(nodes.to_le_bytes());
        let root = Root { kernel: "root", grid: Grid::new(1, 1), parameters: &parameters };
        let launched = nested.launch(&mut device, memory, &root, &workers, &options);
        launched.unwrap_or_else(|failure| panic!("{options:?}, {workers:?}: {failure}"));
        let expected: Vec<u32> = (0..nodes).map(threads).collect();
        assert_eq!(device.read_words(counts, nodes as usize), expected, "{options:?}");
        assert_eq!(device.read_words(early, 1), [0], "{options:?}, {workers:?}");
        assert_eq!(nested.lost(&device)[0], 0, "{options:?}, {workers:?}");
    }
}
