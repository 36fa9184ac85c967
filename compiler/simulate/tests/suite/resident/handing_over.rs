//! One thread launches many grids while other workers wait: it hands over up to twelve at a time, one to each or several to some.

use gridlet_simulate::{Options, Policy};

use super::{Nested, Workers};

/// Two threads, so that no lane of a warp runs a grid on its own.
const LOOP: &str = "
kernel child(counts: *mut u32, number: u32) {
    atomic_add(&counts[number], 1);
}
kernel root(counts: *mut u32, children: u32) {
    // Meanwhile the other workers come to the ring.
    for _i in 0u32..300 { if atomic_load(counts, relaxed) == 1000 { return; } }
    for i in 0..children { launch child<<<1, 2, stream = fire_and_forget>>>(counts, i); }
}
";

#[test]
fn grids_that_one_thread_launches_run_once_whoever_waits() {
    let nested = Nested::new(LOOP);
    let children = 45_u32;
    // With one to 15 that wait, a slot gets from twelve entries to one, and the first slots one more.
    for count in 2..17_u32 {
        for seed in 0..4_u64 {
            let policy = Policy::ALL[(count as usize + seed as usize) % Policy::ALL.len()];
            let (weak, lockstep) = (seed % 2 == 1, seed < 2);
            let options = Options { policy, weak, lockstep, ..Options::seed(seed) };
            let workers = Workers { count, more_warps: 0, more_records: 2000 };
            let ran = nested.count("root", children as usize, &[children], &workers, &options);
            assert_eq!(ran, vec![2; children as usize], "{options:?}, {workers:?}");
        }
    }
}
