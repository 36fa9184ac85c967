//! The PTX of loops that both back ends unroll, as nvcc unrolls those of C++.

use crate::plain_kernels::{count, kernels};

/// The steps of an index have the array's types: of a step of 65 × 4 bytes, libNVVM would take the product for work.
#[test]
fn loops_through_two_dimensions_are_unrolled() {
    let source = "
        kernel k(n: u32, from: *const f32, to: *mut f32) {
            shared tile: [[f32; 65]; 64];
            for row in 0u32..64 { tile[row][thread_idx.x] = from[row * n + thread_idx.x]; }
            sync_threads();
            to[thread_idx.x] = tile[thread_idx.x][to[0] as u32];
        }";
    let Some(both) = kernels("loops_through_two_dimensions_are_unrolled", source) else { return };
    // LLVM unrolls it 16 times.
    let [(_, by_libnvvm), (_, by_nvptx)] = both;
    assert_eq!(count(&by_libnvvm["k"], "st.shared"), 64, "{}", by_libnvvm["k"]);
    assert!(count(&by_nvptx["k"], "st.shared") >= 16, "{}", by_nvptx["k"]);
}

#[test]
fn rounds_with_a_table_keep_their_state_in_registers() {
    let source = "
        fn mix(v: *mut u32, a: u32, b: u32, x: u32) {
            v[a] = v[a] + v[b] + x;
            v[b] = (v[b] ^ v[a]) * 5;
        }
        kernel k(from: *const u32, to: *mut u32) {
            let order: [[u8; 4]; 10] = [
                [0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0], [1, 3, 0, 2], [0, 2, 1, 3],
                [3, 0, 2, 1], [1, 0, 3, 2], [2, 3, 0, 1], [0, 3, 1, 2], [2, 1, 3, 0],
            ];
            let mut m = [0u32; 4];
            let mut v = [0u32; 8];
            for k in 0u32..4 { m[k] = from[k]; v[k] = from[k + 4]; v[k + 4] = k; }
            for r in 0u32..10 {
                for k in 0u32..4 { mix(&v[0], k, 4 + (k + 1) % 4, m[order[r][k]]); }
            }
            for k in 0u32..8 { to[k] = v[k]; }
        }";
    let test = "rounds_with_a_table_keep_their_state_in_registers";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        assert!(!kernels["k"].contains(".local"), "{backend:?}\n{}", kernels["k"]);
    }
}

/// Each round of the loop has the tests of the first one.
#[test]
fn divisors_of_all_rounds_are_tested_once() {
    let source = "
        kernel k(width: i32, height: i32, from: *const f32, to: *mut f32) {
            let mut f = [0.0f32; 9];
            for k in 0..9 {
                let x = (thread_idx.x as i32 + k / 3) % width;
                let y = (thread_idx.y as i32 + k % 3) % height;
                f[k] = from[y * width + x];
            }
            for k in 0..9 { to[k] = f[8 - k]; }
        }";
    let Some(both) = kernels("divisors_of_all_rounds_are_tested_once", source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        assert_eq!(count(ptx, "trap;"), 1, "{backend:?}\n{ptx}");
    }
}

/// C++ compares and adds bytes as `int`. Of comparisons of bytes, libNVVM makes a tree of branches: 90 here.
#[test]
fn bytes_are_compared_as_words() {
    let source = "
        fn code(base: u8) -> i32 {
            if base == b'A' || base == b'a' { return 0; }
            if base == b'C' || base == b'c' { return 1; }
            if base == b'G' || base == b'g' { return 2; }
            if base == b'T' || base == b't' { return 3; }
            return -1;
        }
        kernel k(n: u32, bases: *const u8, to: *mut u64) {
            let mut key: u64 = 0;
            let mut i = thread_idx.x;
            while i < n {
                let c = code(bases[i]);
                i += 1;
                if c < 0 { key = 0; continue; }
                key = key << 2 | c as u64;
                atomic_add(&to[key & 0xff], 1);
            }
        }";
    let Some(both) = kernels("bytes_are_compared_as_words", source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        assert!(count(ptx, "bra") <= 40, "{backend:?}\n{ptx}");
    }
}

/// Differences of bytes are never the least number, whose absolute value ptxas takes for positive.
#[test]
fn absolute_differences_of_bytes_need_no_care() {
    let source = "
        kernel k(from: *const u8, numbers: *const i32, to: *mut i32) {
            to[0] = abs(from[0] as i32 - from[1] as i32);
            to[1] = abs(numbers[0] - numbers[1]);
        }";
    let test = "absolute_differences_of_bytes_need_no_care";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        assert_eq!(count(ptx, "neg.s32"), 1, "{backend:?}\n{ptx}");
    }
}
