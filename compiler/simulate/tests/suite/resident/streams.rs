//! Workers that stand by for the next grid of a stream.

use gridlet_simulate::{Device, Grid, Options, Policy};

use super::{Nested, Root, Workers};
use crate::corpus::{self, WORDS};

/// A self-checking program with large grids one after another in streams.
const PROGRAM: &str = "grids_in_streams.grid";

/// Several grids launch into one stream, among other streams. Only one grid of a stream may run at a time.
const SHARED: &str = "
#[launch_bounds(40)]
kernel member(owner: *mut u32, done: *mut u32, overlaps: *mut u32, number: u32) {
    let found = atomic_cas(owner, 0, number);
    if found != 0 && found != number { atomic_add(overlaps, 1); }
    for _i in 0u32..3 { if atomic_load(owner, relaxed) != number { atomic_add(overlaps, 1); } }
    sync_threads();
    if thread_idx.x == 0 && atomic_add(done, 1) % grid_dim.x == grid_dim.x - 1 {
        atomic_exch(owner, 0);
    }
}
#[launch_bounds(40)]
kernel other(count: *mut u32) { atomic_add(count, 1); }
#[launch_bounds(1)]
kernel launcher(out: *mut u32, s: stream, first: u32) {
    let me = first + block_idx.x;
    for i in 0u32..8 {
        launch member<<<20, 4, stream = s>>>(out, out + 1, out + 2, me * 16 + i);
        if i % 2 == 0 { launch other<<<18 + i, 3>>>(out + 3); }
    }
}
#[launch_bounds(1)]
kernel root(out: *mut u32) {
    let s = stream_create();
    launch launcher<<<1, 1, stream = fire_and_forget>>>(out, s, 1);
    launch launcher<<<2, 1, stream = fire_and_forget>>>(out, s, 2);
}
";

/// Grids of a few blocks one after another in the default stream. Each counts the threads of the one before. A worker in which a stream
/// was destroyed has a record to free, and so does not stand by.
const FEW: &str = "
#[launch_bounds(4)]
kernel first(counts: *mut u32, stage: u32, before: u32, early: *mut u32) {
    if stage != 0 && atomic_load(&counts[stage - 1], relaxed) != before { atomic_add(early, 1); }
    atomic_add(&counts[stage], 1);
}
#[launch_bounds(4)]
kernel second(counts: *mut u32, stage: u32, before: u32, early: *mut u32) {
    for _i in 0u32..3 {
        if atomic_load(&counts[stage - 1], relaxed) != before { atomic_add(early, 1); }
    }
    if thread_idx.x == 0 && block_idx.x % 3 == 0 { stream_destroy(stream_create()); }
    atomic_add(&counts[stage], 1);
}
#[launch_bounds(1)]
kernel root(counts: *mut u32) {
    let early = counts + 28;
    let mut before = 0u32;
    for stage in 0u32..28 {
        let blocks = 2 + stage * 5 % 9;
        if stage % 3 == 1 {
            launch second<<<blocks, 4>>>(counts, stage, before, early);
        } else {
            launch first<<<blocks, 4>>>(counts, stage, before, early);
        }
        before = blocks * 4;
    }
}
";

/// Runs a kernel of a program in many orders with 1 to 7 workers, on `words` words of memory that begin at 0. `check` gets the device and
/// the memory's address after each run.
fn run(
    nested: &Nested,
    kernel: &str,
    grid: Grid,
    words: usize,
    check: impl Fn(&mut Device<'_>, u64, &str),
) {
    for seed in 0..24_u64 {
        let policy = Policy::ALL[seed as usize % Policy::ALL.len()];
        // If the clock stands still, blocks seem to take no time, so that workers claim their whole parts, and stand by.
        let tick = [u64::MAX, 1, 100, u64::MAX][seed as usize % 4];
        let (weak, lockstep) = (seed % 2 == 1, seed % 3 == 0);
        let options =
            Options { policy, tick, weak, lockstep, max_steps: 400_000_000, ..Options::seed(seed) };
        let workers = Workers {
            count: 1 + seed as u32 % 7,
            more_warps: [0, 2][seed as usize / 7 % 2],
            more_records: 200,
        };
        let mut device = Device::new(&nested.program);
        let out = device.allocate(words * 4);
        let memory = nested.memory(&mut device, &workers);
        let root = Root { kernel, grid, parameters: &out.to_le_bytes() };
        let case = format!("{options:?}, {workers:?}");
        let launched = nested.launch(&mut device, memory, &root, &workers, &options);
        launched.unwrap_or_else(|failure| panic!("{case}: {failure}"));
        assert_eq!(nested.lost(&device)[0], 0, "{case}");
        check(&mut device, out, &case);
    }
}

#[test]
fn large_grids_of_a_stream_run_one_after_another() {
    let case = corpus::cases(true).into_iter().find(|case| case.name == PROGRAM).unwrap();
    let nested = Nested::of(case.checked);
    run(&nested, "test", case.grid, WORDS, |device, out, case| {
        let options = Options::seed(0);
        let checked = device.launch("check", Grid::new(1, 1), &out.to_le_bytes(), &options);
        checked.unwrap_or_else(|failure| panic!("{case}: {failure}"));
    });
}

#[test]
fn grids_of_a_stream_that_several_grids_use_run_one_at_a_time() {
    // Blocks of three launchers.
    let others = 3 * 3 * (18 + 20 + 22 + 24);
    let expected = [0, 3 * 8 * 20, 0, others];
    run(&Nested::new(SHARED), "root", Grid::new(1, 1), expected.len(), |device, out, case| {
        assert_eq!(device.read_words(out, expected.len()), expected, "{case}");
    });
}

#[test]
fn grids_of_a_few_blocks_run_one_after_another() {
    let blocks = |stage: u32| 2 + stage * 5 % 9;
    let mut expected: Vec<u32> = (0..28).map(|stage| blocks(stage) * 4).collect();
    expected.push(0);
    run(&Nested::new(FEW), "root", Grid::new(1, 1), expected.len(), |device, out, case| {
        assert_eq!(device.read_words(out, expected.len()), expected, "{case}");
    });
}
