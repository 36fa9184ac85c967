//! Warp operations of warps with and without missing lanes, which run different copies of a kernel.

use super::Nested;

const SOURCE: &str = "
const FULL: u32 = 0xffff_ffff;

kernel root(out: *mut u32) {
    if thread_idx.x != 0 { return; }
    launch count<<<3, 80>>>(out);
    launch count<<<2, 64>>>(out);
    launch rows<<<2, dim3(32, 4, 1)>>>(out);
    launch rows<<<2, dim3(20, 4, 1)>>>(out);
    launch cells<<<dim3(3, 4, 5), 32>>>(out);
}

fn add(out: *mut u32, n: u32) {
    let sum = reduce_add(FULL, n);
    if lane_id() == 0 { atomic_add(out, sum); }
}

kernel count(out: *mut u32) { add(&out[0], 1); }

// Only in blocks whose warps are not aligned do some lanes return before the others come to the sum.
kernel rows(out: *mut u32) {
    if thread_idx.y >= 2 { return; }
    let lanes = ballot(FULL, true);
    if lane_id() == ctz(lanes) { atomic_add(&out[1], popc(lanes)); }
}

// The index of a block in three dimensions.
kernel cells(out: *mut u32) {
    let b = block_idx;
    assert(b.x < 3 && b.y < 4 && b.z < 5);
    add(&out[2], 1u32 << (b.x + b.y + b.z));
}";

const BARRIERS: &str = "
kernel root(out: *mut u32) {
    if thread_idx.x != 0 { return; }
    launch shift<<<5, 96>>>(&out[0]);
    launch shift<<<5, dim3(32, 3, 1)>>>(&out[1]);
    // Not as large as a worker, and with lanes that have no thread.
    launch shift<<<3, 64>>>(&out[2]);
    launch shift<<<3, 50>>>(&out[3]);
    launch few<<<2, 64>>>(&out[4]);
}

fn threads() -> u32 { return block_dim.x * block_dim.y; }

fn index() -> u32 { return thread_idx.y * block_dim.x + thread_idx.x; }

// Each thread reads what its neighbour has written, several times; then all count.
kernel shift(out: *mut u32) {
    shared values: [u32; 96];
    let i = index();
    values[i] = i;
    for _ in 0..3 {
        sync_threads();
        let next = values[(i + 1) % threads()];
        sync_threads();
        values[i] = next;
    }
    let right = values[i] == (i + 3) % threads();
    if sync_threads_count(right) == threads() && i == 0 { atomic_add(out, 1); }
}

kernel few(out: *mut u32) {
    shared value: u32;
    if index() == 63 { value = 7; }
    sync_threads();
    if sync_threads_and(value == 7) && index() == 0 { atomic_add(out, 1); }
}";

#[test]
fn blocks_wait_whether_or_not_they_are_as_large_as_a_worker() {
    Nested::new(BARRIERS).always_gives(&[5, 5, 3, 3, 2]);
}

#[test]
fn warps_with_and_without_missing_lanes_find_their_lanes() {
    let sum = |n: u32| (0..n).map(|i| 1u32 << i).sum::<u32>();
    let cells = 32 * sum(3) * sum(4) * sum(5);
    Nested::new(SOURCE).always_gives(&[3 * 80 + 2 * 64, 2 * 64 + 2 * 40, cells]);
}
