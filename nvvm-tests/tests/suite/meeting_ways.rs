//! Where ways through a kernel meet, and what is computed before and behind.

use std::collections::BTreeMap;

use super::plain_kernels::{count, kernels};

/// libNVVM would let each branch that sets a flag of one bit leave the loop by itself, in each of the 16 rounds, and LLVM's own back end with
/// a byte.
#[test]
fn branches_that_set_a_flag_meet_before_it_ends_the_loop() {
    let source = "
        kernel parse(text: *const u8, to: *mut u32) {
            let mut value = 0u32;
            let mut dots = 0u32;
            let mut good = true;
            for i in 0u32..16 {
                let c = text[thread_idx.x * 16 + i] as u32;
                if c == 46 {
                    dots += 1;
                    if value > 255 { good = false; }
                } else {
                    value = value * 10 + c;
                    if value > 4000 { good = false; }
                }
                if !good { break; }
            }
            to[thread_idx.x] = if good { value + dots } else { 0 };
        }";
    let test = "branches_that_set_a_flag_meet_before_it_ends_the_loop";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        let mut jumps: BTreeMap<&str, usize> = BTreeMap::new();
        for line in kernels["parse"].lines().filter(|line| line.contains("bra")) {
            let target = line.split_whitespace().next_back().unwrap_or_default();
            *jumps.entry(target).or_default() += 1;
        }
        let most = jumps.values().max();
        assert!(most <= Some(&17), "{backend:?}: {jumps:?}");
    }
}

/// An array that a store at an index from memory keeps in memory is not loaded whole to choose an element.
#[test]
fn elements_of_arrays_in_memory_are_loaded_alone() {
    let source = "
        kernel suits(cards: *const u32, to: *mut u32) {
            let mut all = [0u32, 0, 0, 0];
            for k in 0u32..7 {
                let card = cards[thread_idx.x * 7 + k];
                all[card % 4] |= 1 << (card / 4);
            }
            to[thread_idx.x] = all[0] + 2 * all[1] + 3 * all[2] + 5 * all[3];
        }
        kernel fixed(cards: *const u32, to: *mut u32) {
            let mut all = [0u32, 0, 0, 0];
            #[unroll]
            for k in 0u32..4 { all[k] = cards[thread_idx.x * 4 + k]; }
            to[thread_idx.x] = all[cards[0] % 4];
        }";
    let test = "elements_of_arrays_in_memory_are_loaded_alone";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        let numbers = |name: &str| {
            let ptx = &kernels[name];
            (count(ptx, "selp"), count(ptx, "ld.local") > 0)
        };
        assert_eq!(numbers("suits"), (0, true), "{backend:?}\n{}", kernels["suits"]);
        assert_eq!(numbers("fixed"), (3, false), "{backend:?}\n{}", kernels["fixed"]);
    }
}

/// Strength reduction would make pointers of some rows of an unrolled loop, and leave products for the others.
#[test]
fn addresses_of_unrolled_rounds_are_of_one_kind() {
    let source = "
        #[noalias]
        kernel sums(rows: u32, pairs: u32, x: *const bf16x2, dy: *const bf16x2, means: *const f32x2, to: *mut f32x4) {
            let pair = block_idx.x * 32 + thread_idx.x;
            let per = (rows + grid_dim.y - 1) / grid_dim.y;
            let first = block_idx.y * per;
            let last = min(first + per, rows);
            let mean = means[pair];
            let mut own = f32x4(0.0, 0.0, 0.0, 0.0);
            for row in (first + thread_idx.y..last).step(8) {
                let at = row as u64 * pairs as u64 + pair as u64;
                let v = x[at];
                let d = dy[at];
                let dx = d.x as f32;
                let dz = d.y as f32;
                own.x += dx;
                own.y += dz;
                own.z += dx * (v.x as f32 - mean.x);
                own.w += dz * (v.y as f32 - mean.y);
            }
            to[pair] = own;
        }";
    let test = "addresses_of_unrolled_rounds_are_of_one_kind";
    let Some([_, (_, nvptx)]) = kernels(test, source) else { return };
    let ptx = &nvptx["sums"];
    let counts_on = |line: &&str| {
        let operands = line.trim_start().strip_prefix("add.s64").and_then(|it| it.split_once(','));
        operands.is_some_and(|(to, from)| from.split(',').next().map(str::trim) == Some(to.trim()))
    };
    assert_eq!(ptx.lines().filter(counts_on).count(), 0, "{ptx}");
}
