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

#[test]
fn warps_with_and_without_missing_lanes_find_their_lanes() {
    let sum = |n: u32| (0..n).map(|i| 1u32 << i).sum::<u32>();
    let cells = 32 * sum(3) * sum(4) * sum(5);
    Nested::new(SOURCE).always_gives(&[3 * 80 + 2 * 64, 2 * 64 + 2 * 40, cells]);
}
