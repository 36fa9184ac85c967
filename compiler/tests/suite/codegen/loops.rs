//! What LLVM's back end makes of loops and of the arrays that they count through.

use gridlet::compile::{self, Backend, BuildOptions, Session};
use gridlet::source::SourceMap;

pub(super) fn ptx(source: &str) -> String {
    let program = compile::check(SourceMap::single("a.grid", source)).expect("a right program");
    let options = BuildOptions::default().with_backend(Backend::Nvptx);
    Session::new().ptx(&program, &options).expect("PTX").0.0
}

/// A kernel that does `work` with an array of so many numbers.
fn with_array(length: u32, work: &str) -> String {
    ptx(&format!(
        "const N: u32 = {length};
         kernel k(n: u32, from: *const u32, to: *mut u32) {{
             let mut a = [0u32; N];
             for k in 0..N {{ a[k] = from[k * n + thread_idx.x]; }}
             {work}
             for k in 0..N {{ to[k * n + thread_idx.x] = a[k]; }}
         }}"
    ))
}

/// Also where they are more than LLVM unrolls by itself.
#[test]
fn loops_through_local_arrays_are_unrolled() {
    let product = "
        let b = a;
        for j in 0u32..8 {
            let mut carry: u64 = 0;
            for k in 0u32..8 {
                carry += b[j] as u64 * b[k + 8] as u64 + a[j + k] as u64;
                a[j + k] = carry as u32;
                carry >>= 32;
            }
            a[j + 8] = carry as u32;
        }";
    let text = with_array(16, product);
    assert!(!text.contains(".local"), "{text}");
    // A table of constants is no other index.
    let mixed = "
        let order: [u32; 12] = [7, 2, 0, 5, 11, 3, 8, 1, 10, 4, 9, 6];
        for i in 0..N { for j in 0..N { a[j] = a[j] * 5 ^ a[order[i]] + (a[j] >> 7); } }";
    let text = with_array(12, mixed);
    assert!(!text.contains(".local"), "{text}");
}

/// LLVM joins the test of the counter with that of the `break`, and then knows no number of rounds.
#[test]
fn loops_with_a_break_through_local_arrays_are_unrolled() {
    let kernel = |first: &str, last: &str| {
        ptx(&format!(
            "kernel k(from: *const f32, to: *mut f32) {{
                 let mut r: [f32; 13];
                 for k in 0u32..13 {{ r[k] = from[k * 64 + thread_idx.x]; }}
                 let mut a = [0.0f32; 13];
                 let mut error = r[0];
                 for i in 1u32..13 {{
                     {first}
                     let mut sum = r[i];
                     for j in 1..i {{ sum += a[j] * r[i - j]; }}
                     a[i] = sum / error;
                     error *= 1.0 - a[i] * a[i];
                     {last}
                 }}
                 for k in 0u32..13 {{ to[k * 64 + thread_idx.x] = a[k]; }}
             }}"
        ))
    };
    for text in
        [kernel("if error <= 1e-9 { break; }", ""), kernel("", "if error <= 1e-9 { break; }")]
    {
        assert!(!text.contains(".local"), "{text}");
        assert_eq!(text.matches("div.rn.f32").count(), 12, "{text}");
    }
}

/// Conditions on the counter make other code of each round.
#[test]
fn long_loops_of_four_rounds_are_unrolled() {
    let steps: String = (0..20)
        .map(|at| format!("x = (x ^ from[left + {at}]) * {} + (x >> 7);\n", 2 * at + 12345))
        .collect();
    let rounds = |count: u32, condition: &str| {
        let text = ptx(&format!(
            "#[noalias]
             kernel k(n: u32, from: *const u32, to: *mut u32) {{
                 let mut x = n;
                 for quadrant in 0u32..{count} {{
                     let left = if {condition} {{ thread_idx.x + 3 }} else {{ quadrant }};
                     {steps}
                 }}
                 to[thread_idx.x] = x;
             }}"
        ));
        text.matches("12345").count()
    };
    assert_eq!(rounds(4, "quadrant & 1 != 0"), 4);
    assert!(rounds(8, "quadrant & 1 != 0") < 8);
    assert!(rounds(4, "n > 7") < 4);
}

/// The last loop is too large for that, so the array stays in memory, whatever the first one does.
#[test]
fn loops_are_not_unrolled_for_an_array_that_another_one_keeps_in_memory() {
    let steps: String =
        (0..12).map(|at| format!("x = (x ^ a[k] >> {at}) * {};\n", 2 * at + 3)).collect();
    let text = with_array(
        200,
        &format!(
            "let mut x = n;
             for k in 0u32..N {{ {steps} if x < a[k] {{ a[k] = x; }} else {{ x += k * x; }} }}"
        ),
    );
    assert!(text.contains(".local"), "{text}");
    let loads = text.lines().filter(|line| line.contains("ld.global"));
    assert!(loads.count() <= 64, "{text}");
}

/// The loop inside begins where the other one is, and has two exits. Unrolled, each store has one of several constant addresses, and ptxas
/// keeps the array in registers if all its accesses are local.
#[test]
fn insertion_sorts_are_unrolled() {
    let text = ptx("
        #[noalias]
        kernel k(n: u32, from: *const f32, to: *mut f32) {
            let mut sorted: [f32; 15];
            for k in 0u32..15 {
                let value = from[k * n + thread_idx.x];
                let mut at = k;
                while at > 0 && sorted[at - 1] > value {
                    sorted[at] = sorted[at - 1];
                    at -= 1;
                }
                sorted[at] = value;
            }
            to[thread_idx.x] = sorted[11] - sorted[3];
        }");
    assert_eq!(text.matches("ld.global.nc").count(), 15, "{text}");
    let accesses = |of: &str| text.lines().filter(|line| line.trim().starts_with(of)).count();
    assert!(accesses("st.local.b32") > 100, "{text}");
    assert_eq!((accesses("st.b32"), accesses("ld.b32")), (0, 0), "{text}");
}

#[test]
fn loops_through_arrays_that_stay_in_memory_are_not_unrolled() {
    let shuffle = "
        let mut x = from[0];
        for i in 0..N {
            x = x * 1_664_525 + 1_013_904_223;
            let j = x >> 26;
            let other = a[j];
            a[j] = a[i];
            a[i] = other;
        }";
    let text = with_array(64, shuffle);
    assert!(text.matches("1664525").count() <= 8, "{text}");
    // 16 bytes at once.
    assert!(text.contains(".local .align 16"), "{text}");
}

/// The second number is not read in turn after the first one, though only one way uses it.
#[test]
fn vectors_are_loaded_at_once() {
    let text = ptx("
        #[noalias]
        kernel k(mask: u32, table: *const u32x2, found: *mut u32) {
            let key = found[thread_idx.x];
            let mut slot = key & mask;
            let mut value: u32 = 0;
            loop {
                let entry = table[slot];
                if entry.x == key { value = entry.y; break; }
                if entry.x == 0 { break; }
                slot = slot + 1 & mask;
            }
            found[thread_idx.x] = value;
        }");
    let loads = text.lines().filter(|line| line.contains("ld.global.nc"));
    assert!(loads.clone().count() > 0, "{text}");
    assert!(loads.clone().all(|line| line.contains(".v2.")), "{text}");
}

/// Each pointer takes two registers and two additions in every round.
#[test]
fn addresses_are_computed_from_one_index() {
    let text = ptx("
        #[noalias]
        kernel k(n: u32, a: *const f32, b: *const f32, c: *const f32, d: *const f32, to: *mut f32) {
            let mut sum: f32 = 0.0;
            for k in 0..n { sum += a[k] * b[k] + c[k] * d[k]; }
            to[thread_idx.x] = sum;
        }");
    let is_pointer = |line: &&str| {
        let sum = line.trim().strip_prefix("add.s64").and_then(|sum| sum.split_once(", "));
        sum.is_some_and(|(to, terms)| terms.split(',').next() == Some(to.trim()))
    };
    assert!(text.contains("ld.global.nc"), "{text}");
    assert_eq!(text.lines().filter(is_pointer).count(), 0, "{text}");
}

/// LLVM's check that a pass is done fails over this program, if it is asked for.
#[test]
fn unrolled_loops_are_combined_as_far_as_one_pass_gets() {
    let text = ptx("
        const T: i32 = 16;
        const K: i32 = 5;
        const S: i32 = T + K - 1;
        #[launch_bounds(256)]
        #[noalias]
        kernel depthwise(width: i32, height: i32, from: *const f32, to: *mut f32) {
            shared tile: [[f32; S + 1]; S];
            let own = thread_idx.y as i32 * T + thread_idx.x as i32;
            for k in (own..S * S).step(T * T) {
                let x = block_idx.x as i32 * T - K / 2 + k % S;
                let y = block_idx.y as i32 * T - K / 2 + k / S;
                let mut v: f32 = 0.0;
                if x >= 0 && x < width && y >= 0 && y < height { v = from[y * width + x]; }
                tile[k / S][k % S] = v;
            }
            sync_threads();
            let tx = thread_idx.x as i32;
            let ty = thread_idx.y as i32;
            let mut sum: f32 = 0.0;
            for j in 0..K { for i in 0..K { sum += tile[ty + j][tx + i]; } }
            to[own] = sum;
        }");
    assert!(text.contains(".entry depthwise"), "{text}");
}

/// Each round reads one of three rows that the others write, so it tests which by a remainder on one of two ways.
fn with_barriers(step: &str) -> String {
    ptx(&format!(
        "const T: u32 = 256;
        #[launch_bounds(T)]
        #[noalias]
        kernel k(n: u32, from: *const i32, to: *mut i32) {{
            shared rows: [[i32; T]; 3];
            let t = thread_idx.x;
            rows[0][t] = from[t];
            for k in 0..n {{
                if t <= k && t > 0 {{ rows[k % 3][t] = rows[(k + 1) % 3][t - 1] + rows[(k + 2) % 3][t]; }}
                {step}
            }}
            to[t] = rows[0][t];
        }}"
    ))
}

#[test]
fn loops_with_barriers_are_unrolled() {
    let text = with_barriers("sync_threads();");
    // Four rounds, and the loop for those that are left over.
    assert_eq!(text.matches("bar.sync").count(), 5, "{text}");
    // The remainders in four rounds are of six numbers; three are in the other loop.
    let remainders = text.matches("mul.hi.u32").count();
    assert!((3..=9).contains(&remainders), "{remainders} remainders: {text}");
    // Threads of a warp that take part in a vote may leave the loop at different times.
    let text = with_barriers("if ballot(0xffff_ffff, t < k) == 0 { rows[1][t] = 0; }");
    assert_eq!(text.matches("vote").count(), 1, "{text}");
}

/// ptxas would unroll a loop that runs at most three times.
#[test]
fn rounds_that_are_left_over_stay_a_loop() {
    let text = ptx("
        #[noalias]
        kernel k(size: u32, from: *const f32, to: *mut f32) {
            let mut sum: f32 = 0.0;
            for k in (thread_idx.x..size).step(256) { sum += from[k]; }
            to[thread_idx.x] = sum;
        }");
    // Four rounds at once, and one.
    assert_eq!(text.matches("ld.global.nc").count(), 5, "{text}");
    assert_eq!(text.matches("nounroll").count(), 1, "{text}");
}

/// LLVM would unroll this loop by eight first.
#[test]
fn loops_with_an_end_in_memory_are_unrolled_by_four() {
    let text = ptx("
        #[noalias]
        kernel k(ends: *const u32, from: *const u32, to: *mut u32) {
            let mut sum: u32 = 0;
            let mut k = ends[thread_idx.x];
            let end = ends[thread_idx.x + 1];
            while k != end { sum = sum * 33 ^ from[k]; k += 1; }
            to[thread_idx.x] = sum;
        }");
    assert_eq!(text.matches("mul.lo.s32").count() + text.matches("mad.lo").count(), 5, "{text}");
}

#[test]
fn cases_are_compared_in_turn() {
    let cases: Vec<String> = (0..12)
        .map(|case| format!("if op == {case} {{ x = x * {} ^ from[{case}]; }}", 2 * case + 3))
        .collect();
    let text = ptx(&format!(
        "kernel k(ops: *const u32, from: *const u32, to: *mut u32) {{
            let op = ops[thread_idx.x];
            let mut x = to[thread_idx.x];
            {}
            to[thread_idx.x] = x;
        }}",
        cases.join(" else ")
    ));
    assert!(text.contains("setp"), "{text}");
    assert!(!text.contains("brx"), "{text}");
}

#[test]
fn the_block_size_is_read_before_the_block() {
    let text = ptx("kernel k(n: u32, to: *mut u32) {
            let i = block_idx.x * block_dim.x + thread_idx.x;
            if i < n { to[i] = block_idx.y + block_dim.y; }
        }");
    let place = |word: &str| text.find(word).unwrap_or_else(|| panic!("no {word}: {text}"));
    assert!(place("%ntid.x") < place("%ctaid.x"), "{text}");
}

/// A shift and a sum are one instruction of a GPU.
#[test]
fn disjoint_bits_are_added() {
    let text = ptx("kernel k(to: *mut u32, n: u32) {
            if n < 16 { to[0] = (to[1] << 4 | n) + to[2]; }
        }");
    assert!(!text.contains("or.b32"), "{text}");
    assert!(text.contains("shl.b32"), "{text}");
}

/// Both loops run once or twice.
#[test]
fn loops_of_few_rounds_are_unrolled() {
    let text = ptx("
        #[noalias]
        kernel k(width: i32, from: *const f32, to: *mut f32) {
            shared tile: [[f32; 20]; 20];
            let tx = thread_idx.x as i32;
            let ty = thread_idx.y as i32;
            for y in (ty..20).step(16) {
                for x in (tx..20).step(16) {
                    tile[y][x] = from[(y + 7) % width * width + (x + 5) % width];
                }
            }
            sync_threads();
            to[ty * 16 + tx] = tile[ty + 2][tx + 2];
        }");
    assert_eq!(text.matches("ld.global.nc").count(), 4, "{text}");
}

/// ptxas loads for several rounds at once.
#[test]
fn loops_over_a_short_rest_are_left_to_ptxas() {
    let text = ptx("
        #[noalias]
        kernel k(bytes: u32, from: *const u8, to: *mut u64) {
            let first = thread_idx.x * 5;
            if first >= bytes { return; }
            let mut bits: u64 = 0;
            for k in 0..min(bytes - first, 5) { bits |= (from[first + k] as u64) << (32 - 8 * k); }
            to[thread_idx.x] = bits;
        }");
    assert_eq!(text.matches("ld.global.nc").count(), 1, "{text}");
    assert!(!text.contains("nounroll"), "{text}");
}

/// LLVM would unroll by two, with an exit in the middle.
#[test]
fn loops_of_many_rounds_are_unrolled_at_once() {
    let text = ptx("
        fn times(x: u64, y: u64) -> u64 {
            let table = [0u64, x, x << 1, x << 1 ^ x];
            let mut z: u64 = 0;
            for k in 0u32..32 {
                if k > 0 {
                    let low = (z & 3) as u32;
                    z = z >> 2 ^ (low as u64) << 62;
                }
                z ^= table[(y >> (2 * k)) as u32 & 3];
            }
            z
        }
        #[noalias]
        kernel k(from: *const u64, to: *mut u64) { to[thread_idx.x] = times(from[0], from[thread_idx.x]); }");
    assert!(!text.contains("bra"), "{text}");
}

/// Indices that come from a constant are known in each round.
#[test]
fn loops_through_constants_are_unrolled() {
    let text = ptx("
        const ORDER: [u8; 12] = [7, 2, 0, 5, 11, 3, 8, 1, 10, 4, 9, 6];
        #[noalias]
        kernel k(n: u32, from: *const u32, to: *mut u32) {
            let mut a: [u32; 12];
            for k in 0u32..12 { a[k] = from[k * n + thread_idx.x]; }
            let mut sum: u32 = 0;
            for i in 0u32..12 {
                for j in 0u32..12 { sum = sum * 5 ^ a[ORDER[j]] + (a[ORDER[i]] >> 7); }
            }
            to[thread_idx.x] = sum;
        }");
    assert!(!text.contains(".local"), "{text}");
    assert!(!text.contains("ORDER"), "{text}");
}

#[test]
fn fields_have_the_alignment_of_their_struct() {
    let text = ptx("
        struct Checkpoint { before: u32x4, low: u64, high: u64 }
        #[noalias]
        kernel k(from: *const Checkpoint, to: *mut u64, points: *mut f32x2) {
            let c = from[thread_idx.x];
            to[thread_idx.x] = c.low ^ c.high;
            points[thread_idx.x].x = points[thread_idx.x].x + points[thread_idx.x].y;
        }");
    assert_eq!(text.matches("ld.global.nc.v2.b64").count(), 1, "{text}");
    assert_eq!(text.matches("ld.global.v2").count(), 1, "{text}");
    assert_eq!(text.matches("ld.global").count(), 2, "{text}");
}

/// The selection of 64 bits would be two of 32.
#[test]
fn numbers_of_nan_are_mended_in_one_half() {
    let text = ptx("kernel k(x: *const f64, to: *mut u64) {
            to[thread_idx.x] = x[thread_idx.x] as u64;
        }");
    assert!(text.contains("selp.b32"), "{text}");
    assert!(!text.contains("selp.b64"), "{text}");
}

/// All 16 numbers fit into 64 bits, those of the other table do not.
#[test]
fn short_tables_are_numbers() {
    let text = ptx("
        const LENGTHS: [u8; 16] = [1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0, 2, 2, 3, 4];
        const LONGER: [u8; 9] = [1, 2, 3, 4, 5, 6, 7, 8, 16];
        kernel k(from: *const u8, to: *mut u8) {
            to[0] = LENGTHS[from[0] >> 4];
            to[1] = LONGER[from[1]];
        }");
    assert!(!text.contains("LENGTHS") && text.contains("LONGER"), "{text}");
    assert!(text.contains("shr.u64"), "{text}");
}
