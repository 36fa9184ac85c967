//! The PTX of loops that both back ends unroll, as nvcc unrolls those of C++, or leave to ptxas.

use gridlet::compile::Backend;

use crate::plain_kernels::{RECIPROCAL, count, kernels};

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

/// The index of the array is one of two functions of the counter, which libNVVM does not see.
#[test]
fn rounds_through_a_table_have_its_numbers() {
    let source = "
        const SHIFTS: [u32; 20] = [7, 12, 17, 22, 5, 9, 14, 20, 4, 11, 16, 23, 6, 10, 15, 21, 3, 8, 13, 30];
        kernel k(from: *const u32, to: *mut u32) {
            let mut m: [u32; 8];
            for k in 0u32..8 { m[k] = from[k]; }
            let mut x = from[8];
            for round in 0u32..20 {
                let g: u32;
                if round < 10 { g = round % 8; } else { g = (3 * round + 5) % 8; }
                x = (x << SHIFTS[round] | x >> 32 - SHIFTS[round]) + m[g];
            }
            to[0] = x;
        }";
    let Some(both) = kernels("rounds_through_a_table_have_its_numbers", source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        assert!(!ptx.contains("SHIFTS") && !ptx.contains(".local"), "{backend:?}\n{ptx}");
    }
}

/// Each round needs one of five functions, so that much less is left than 80 times the body.
#[test]
fn rounds_of_which_most_folds_are_unrolled_further() {
    let numbers =
        |step: u32| -> String { (0..80).map(|k| format!("{}, ", k * step % 16)).collect() };
    let source = format!(
        "
        const ORDER: [u8; 80] = [{}];
        const TURNS: [u8; 80] = [{}];
        fn mix(which: u32, x: u32, y: u32, z: u32) -> u32 {{
            if which == 0 {{ return x ^ y ^ z; }}
            if which == 1 {{ return x & y | !x & z; }}
            if which == 2 {{ return (x | !y) ^ z; }}
            if which == 3 {{ return x & z | y & !z; }}
            return x ^ (y | !z);
        }}
        fn step(v: *mut u32, f: u32, turn: u32) {{
            let t = v[0] + f;
            v[0] = v[4];
            v[4] = v[3];
            v[3] = v[2] << 10 | v[2] >> 22;
            v[2] = v[1];
            v[1] = (t << turn | t >> 32 - turn) + v[0];
        }}
        kernel k(from: *const u32, to: *mut u32) {{
            let mut w: [u32; 16];
            let mut a: [u32; 5];
            let mut b: [u32; 5];
            for k in 0u32..16 {{ w[k] = from[k]; }}
            for k in 0u32..5 {{ a[k] = from[16 + k]; b[k] = from[21 + k]; }}
            for j in 0u32..80 {{
                let part = j / 16;
                step(&a[0], mix(part, a[1], a[2], a[3]) + w[ORDER[j]], TURNS[j] as u32 + 1);
                step(&b[0], mix(4 - part, b[1], b[2], b[3]) + w[ORDER[79 - j]], TURNS[79 - j] as u32 + 1);
            }}
            for k in 0u32..5 {{ to[k] = a[k] + b[k]; }}
        }}",
        numbers(7),
        numbers(5)
    );
    let test = "rounds_of_which_most_folds_are_unrolled_further";
    let Some(both) = kernels(test, &source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        let is_loaded = ["ORDER", "TURNS", ".local"].iter().any(|word| ptx.contains(word));
        assert!(!is_loaded && count(ptx, "bra") == 0, "{backend:?}\n{ptx}");
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

/// ptxas unrolls such a loop better: the remainder of libNVVM's runs one iteration after another.
#[test]
fn loops_over_rows_of_a_sparse_matrix_are_left_to_ptxas() {
    let source = "
        kernel rows(out: *mut f32, x: *const f32, offsets: *const u32) {
            let first = offsets[block_idx.x];
            let end = offsets[block_idx.x + 1];
            let mut sum = 0.0f32;
            for i in (first + thread_idx.x..end).step(32) { sum += x[i]; }
            out[thread_idx.x] = sum;
        }
        kernel asked(out: *mut f32, x: *const f32, offsets: *const u32) {
            let mut sum = 0.0f32;
            #[unroll(2)]
            for i in (offsets[0]..offsets[1]).step(32) { sum += x[i]; }
            out[thread_idx.x] = sum;
        }";
    let test = "loops_over_rows_of_a_sparse_matrix_are_left_to_ptxas";
    let Some([(_, by_libnvvm), _]) = kernels(test, source) else { return };
    let loads = ["rows", "asked"].map(|kernel| count(&by_libnvvm[kernel], "ld.global.f32"));
    assert_eq!(loads, [1, 3], "{}\n{}", by_libnvvm["rows"], by_libnvvm["asked"]);
}

#[test]
fn llvm_unrolls_loops_as_far_as_libnvvm() {
    let source = "
        kernel far(out: *mut f32, x: *const f32) {
            let mut sum = 0.0f32;
            for j in 0u32..256 {
                let a = x[j] - sum;
                let b = x[j + 256] - a * sum;
                let c = x[j + 512] - a * b;
                sum += rsqrt(a * a + b * b + c * c + 0.01);
            }
            out[0] = sum;
        }
        kernel asked(out: *mut f32, x: *const f32) {
            let mut sum = 0.0f32;
            #[unroll(2)]
            for j in 0u32..256 { sum += rsqrt(x[j] - sum); }
            out[0] = sum;
        }
        kernel divided(out: *mut i64, x: *const i64) {
            let mut sum = 1i64;
            for j in 0u32..256 { sum = (sum ^ x[j]) / x[j + 256]; }
            out[0] = sum;
        }
        // The counter could wrap around before it passes the end.
        kernel endless(out: *mut f32, x: *const f32, n: u32) {
            let mut sum = 0.0f32;
            let mut j = thread_idx.x;
            while j < n { sum += rsqrt(x[j]); j += 32; }
            out[0] = sum;
        }";
    let Some([_, (_, by_llvm)]) = kernels("llvm_unrolls_loops_as_far_as_libnvvm", source) else {
        return;
    };
    let roots = ["far", "asked"].map(|kernel| count(&by_llvm[kernel], "rsqrt"));
    assert_eq!(roots, [8, 2], "{}\n{}", by_llvm["far"], by_llvm["asked"]);
    assert_eq!(count(&by_llvm["endless"], "rsqrt"), 1, "{}", by_llvm["endless"]);
    // A division of 64 bits is long, and LLVM itself unrolls by four.
    assert!(count(&by_llvm["divided"], RECIPROCAL) <= 4, "{}", by_llvm["divided"]);
}

/// Five rounds share most of what they load, and LLVM itself unrolls only by powers of two.
#[test]
fn llvm_unrolls_loops_with_few_rounds_fully() {
    let source = "
        kernel few(out: *mut f32, x: *const f32, scale: f32) {
            let mut sum = 0.0f32;
            for d in 0u32..5 {
                let mut part = 0.0f32;
                for k in 0u32..9 { let e = x[k] - x[d + k]; part += e * e; }
                sum += exp(-part * scale);
            }
            out[0] = sum;
        }
        kernel open(out: *mut f32, x: *const f32, n: u32) {
            let mut sum = 0.0f32;
            for i in (thread_idx.x..n).step(256) {
                let a = x[i];
                let mut e = a;
                for k in 0u32..20 { e = e * a + x[k] * e - a / 3.0; }
                sum += rsqrt(e);
            }
            out[0] = sum;
        }";
    let test = "llvm_unrolls_loops_with_few_rounds_fully";
    let Some([_, (_, by_llvm)]) = kernels(test, source) else { return };
    assert_eq!(count(&by_llvm["few"], "bra"), 0, "{}", by_llvm["few"]);
    // Two rounds, and one that may be left over.
    let roots = count(&by_llvm["open"], "rsqrt");
    assert_eq!(roots, 3, "{}", by_llvm["open"]);
}

/// The addresses show no alignment once they are those of local memory.
#[test]
fn neighbours_in_local_arrays_of_bytes_are_read_at_once() {
    let source = "
        #[noalias]
        kernel k(n: i32, from: *const u8, to: *mut u8) {
            let mut digits = [0u8; 36];
            for k in 0..25 {
                let mut carry = from[k] as u32;
                for j in 0..n {
                    carry += digits[j] as u32 * 256;
                    digits[j] = (carry % 58) as u8;
                    carry /= 58;
                }
            }
            for j in 0..n { to[j] = digits[n - j]; }
        }";
    let Some(both) = kernels("neighbours_in_local_arrays_of_bytes_are_read_at_once", source) else {
        return;
    };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        let words = ["ld.local.v4", "ld.local.b32", "ld.local.u32"].map(|word| count(ptx, word));
        assert!(words.iter().sum::<usize>() >= 1, "{backend:?}\n{ptx}");
    }
}

/// A pointer that moves through a parameter's memory, in a loop of which rounds are peeled off.
#[test]
fn copies_of_rounds_read_without_coherence() {
    let source = "
        #[noalias]
        kernel k(from: *const u8, to: *mut u8, counts: *const u32, n: u32) {
            let mut p = from;
            let mut size = 0u32;
            for k in 0..n {
                for _ in 0..counts[k] { to[size] = *p; size += 1; p = p + 1; }
                p = p + 2;
            }
        }";
    let Some(both) = kernels("copies_of_rounds_read_without_coherence", source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        let (all, incoherent) = (count(ptx, "ld.global"), count(ptx, "ld.global.nc"));
        assert!(all >= 5, "{backend:?}\n{ptx}");
        assert_eq!(all, incoherent, "{backend:?}\n{ptx}");
    }
}

#[test]
fn loops_with_a_constant_step_are_unrolled() {
    let source = "
        kernel unsigned(out: *mut f32, x: *const f32, n: u32) {
            let mut sum = 0.0f32;
            for i in (thread_idx.x..n).step(256) { sum += x[i]; }
            out[0] = sum;
        }
        kernel odd(out: *mut f32, x: *const f32, n: u32) {
            let mut sum = 0.0f32;
            for i in (thread_idx.x..n).step(3) { sum += x[i]; }
            out[0] = sum;
        }
        kernel signed(out: *mut f32, x: *const f32, n: i32) {
            let mut sum = 0.0f32;
            for i in (0..n).step(96) { sum += x[i]; }
            out[0] = sum;
        }
        kernel wide(out: *mut f32, x: *const f32, n: u64) {
            let mut sum = 0.0f32;
            for i in (0..n).step(96) { sum += x[i]; }
            out[0] = sum;
        }
        // The comparison is of another number than the counter.
        kernel strides(out: *mut f32, x: *const f32, n: u64) {
            let step = (grid_dim.x * block_dim.x) as u64;
            let mut sum = 0.0f32;
            let mut i = thread_idx.x as u64;
            while i + 1 < n { sum += x[i + 1]; i += step; }
            out[0] = sum;
        }
    ";
    let Some(ways) = kernels("loops_with_a_constant_step_are_unrolled", source) else { return };
    for (backend, kernels) in ways {
        assert_eq!(kernels.len(), 5);
        for (name, ptx) in kernels {
            if name == "strides" {
                let loads = count(&ptx, "ld.global");
                assert!(backend == Backend::LibNvvm || loads == 1, "{ptx}");
                continue;
            }
            assert!(count(&ptx, "ld.global") >= 5, "{backend:?}, {name}:\n{ptx}");
        }
    }
}

#[test]
fn loops_with_divisions_are_unrolled() {
    let kernel = |ty: &str| {
        format!(
            "kernel k_{ty}(out: *mut {ty}, x: *const {ty}, d: *const {ty}, n: u32) {{
                let mut sum: {ty} = 0;
                for i in 0..n {{ sum += x[i] / d[i]; }}
                out[0] = sum;
            }}\n"
        )
    };
    let source = ["u32", "i32", "u64"].map(kernel).concat();
    let Some(ways) = kernels("loops_with_divisions_are_unrolled", &source) else { return };
    for (backend, kernels) in ways {
        for (name, ptx) in kernels {
            let divisions = count(&ptx, RECIPROCAL);
            assert!(
                divisions >= 3 || backend == Backend::Nvptx && divisions >= 2,
                "{backend:?}, {name}:\n{ptx}"
            );
            assert!(count(&ptx, "trap;") >= 2, "{backend:?}, {name}:\n{ptx}");
        }
    }
}

/// The counter of a loop over signed numbers does not wrap around, as in C++: libNVVM makes pointers of the addresses, and ptxas
/// unrolls a loop with those.
#[test]
fn counters_of_signed_loops_do_not_wrap() {
    let source = "
        #[noalias]
        kernel k(n: i32, distance: i32, starts: *const i32, to: *mut u8) {
            let start = starts[thread_idx.x];
            for i in 0..n { to[start + i] = to[start + i - distance]; }
        }";
    let Some(both) = kernels("counters_of_signed_loops_do_not_wrap", source) else { return };
    let [(_, by_libnvvm), _] = both;
    let ptx = &by_libnvvm["k"];
    let mut loops = ptx.split("$L__").filter(|block| block.contains("st.global.u8")).peekable();
    assert!(loops.peek().is_some(), "{ptx}");
    assert!(loops.all(|block| count(block, "cvt.s64.s32") == 0), "{ptx}");
}
