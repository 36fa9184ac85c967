//! Kernels in which some threads return while others go on to a barrier. The checks of the CPU device report such kernels, so
//! they are not among the self-checking programs.

use super::Nested;

const SOURCE: &str = "
kernel root(out: *mut u32) {
    if thread_idx.x != 0 { return; }
    launch steps<<<3, 160>>>(out);
    launch guard<<<2, 64>>>(50, out);
    launch guard<<<2, 40>>>(33, out);
}

// Threads leave a loop with barriers one after the other.
kernel steps(out: *mut u32) {
    shared live: u32;
    if thread_idx.x == 0 { live = 0; }
    sync_threads();
    for step in 0..10u32 {
        if thread_idx.x % 10 < step { return; }
        let lanes = ballot(0xffff_ffff, true);
        if lane_id() == ctz(lanes) { atomic_add(&live, popc(lanes)); }
        sync_threads();
        assert(live == block_dim.x / 10 * (10 - step));
        sync_threads();
        if thread_idx.x == 9 { live = 0; }
        sync_threads();
    }
    if thread_idx.x == 9 { atomic_add(&out[0], 1); }
}

kernel guard(n: u32, out: *mut u32) {
    shared sum: u32;
    if thread_idx.x >= n { return; }
    if thread_idx.x == 0 { sum = 0; }
    sync_threads();
    atomic_add(&sum, 1);
    assert(sync_threads_count(thread_idx.x % 2 == 0) == (n + 1) / 2);
    if thread_idx.x == 0 { atomic_add(&out[1], sum); }
}";

#[test]
fn threads_that_have_returned_go_through_the_barriers_of_the_others() {
    Nested::new(SOURCE).always_gives(&[3, 2 * 50 + 2 * 33]);
}
