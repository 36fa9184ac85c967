//! The behaviour of image code: built-ins, traps, checks, source lines.

use gridlet::compile::{self, CpuOptions};
use gridlet::source::SourceMap;
use gridlet_runtime::cpu::abi;

use super::host::{Heard, Image, Mode, Parameters};

fn checked() -> CpuOptions {
    CpuOptions::default().with_check(true)
}

fn every_option() -> Vec<CpuOptions> {
    let mut all = Vec::new();
    for (optimize, quick) in [(false, false), (true, true), (true, false)] {
        for debug_lines in [false, true] {
            for check in [false, true] {
                let native = optimize;
                let statistics = check;
                all.push(
                    CpuOptions::default()
                        .with_optimize(optimize)
                        .with_quick(quick)
                        .with_debug_lines(debug_lines)
                        .with_check(check)
                        .with_statistics(statistics)
                        .with_native(native),
                );
            }
        }
    }
    all
}

/// The line of the source that contains `mark`.
fn line_of(source: &str, mark: &str) -> u32 {
    let at = source.lines().position(|line| line.contains(mark));
    at.unwrap_or_else(|| panic!("{mark} in {source}")) as u32 + 1
}

fn run(source: &str, options: &CpuOptions, parameters: &[u8]) -> Heard {
    Image::of(source, options).run("k", Mode::Threads, [1; 3], parameters)
}

#[test]
fn every_correct_program_becomes_an_image() {
    let folder = format!("{}/tests/in/ok", env!("CARGO_MANIFEST_DIR"));
    let mut paths: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    assert!(paths.len() > 10);
    for (at, path) in paths.iter().enumerate() {
        let sources = compile::load(path).unwrap();
        let source = std::fs::read_to_string(path).unwrap();
        // Builds each program with some of the option sets in rotation, which covers them all in
        // less time. `corpus.rs` also builds the self-checking programs.
        let ways = if source.contains("kernel test(") { 1 } else { 3 };
        for options in every_option().iter().cycle().skip(at).step_by(3).take(ways) {
            let image = Image::of_files(sources.clone(), options);
            let checked = image.kernels().iter().all(|kernel| kernel.flags & abi::CHECKED != 0);
            assert_eq!(checked, options.check, "{}", path.display());
        }
    }
}

#[test]
fn the_same_source_gives_the_same_image() {
    let source = "kernel k(out: *mut u32) { out[thread_idx.x] = block_idx.y; }";
    let options = checked().with_debug_lines(true);
    assert!(Image::of(source, &options).bytes == Image::of(source, &options).bytes);
}

#[test]
fn threads_of_a_block_run_in_the_order_of_x_then_y_then_z() {
    let source = "
        kernel k(out: *mut u32, count: *mut u32) {
            let at = *count;
            out[at] = thread_idx.x + 10 * thread_idx.y + 100 * thread_idx.z
                + 1000 * block_idx.x + 10000 * grid_dim.z;
            *count = at + 1;
        }";
    for optimize in [false, true] {
        let image = Image::of(source, &CpuOptions::default().with_optimize(optimize));
        let (mut out, mut count) = ([0_u32; 12], [0_u32]);
        let parameters = Parameters::default().pointer(&mut out).pointer(&mut count).0;
        image.run_block("k", Mode::Serial, [2, 3, 2], [7, 0, 0], [9, 1, 1], &parameters);
        let expected = [0, 1, 10, 11, 20, 21, 100, 101, 110, 111, 120, 121].map(|at| at + 17000);
        assert_eq!((out, count), (expected, [12]));
    }
}

#[test]
fn traps_report_kind_and_position() {
    let source = "
        kernel k(left: i32, right: i32, out: *mut i32) {
            if left == 7 {
                trap(); // explicit
            }
            let a = left / right; // first
            let b = left
                % (right - 1); // second
            *out = a + b;
        }";
    for options in every_option() {
        let image = Image::of(source, &options);
        let mut out = [0_i32];
        let mut outcome = |left: i32, right: i32| {
            let words = Parameters::default().with(left.to_le_bytes()).with(right.to_le_bytes());
            image.run("k", Mode::Serial, [1; 3], &words.pointer(&mut out).0).trap
        };
        let line = |mark| line_of(source, mark);
        assert_eq!(outcome(7, 1), Some((abi::TRAP_EXPLICIT, line("explicit"))), "{options:?}");
        assert_eq!(outcome(1, 0), Some((abi::TRAP_DIVISION, line("first"))), "{options:?}");
        assert_eq!(outcome(1, 1), Some((abi::TRAP_DIVISION, line("second") - 1)), "{options:?}");
        assert_eq!(outcome(13, 3), None, "{options:?}");
        assert_eq!(out, [5]);
    }
}

#[test]
fn built_ins_call_the_device() {
    let source = r#"
        fn lane() -> u32 { return lane_id(); }
        kernel k(out: *mut u64) {
            out[0] = clock64();
            out[1] = global_timer();
            out[2] = sm_id() as u64;
            out[3] = active_mask() as u64;
            out[4] = shfl_down(0xf0, 5u32, 3) as u64;
            out[5] = shfl_xor(0xf1, 0x12345678_9abcdef0u64, 4);
            out[6] = ballot(1, true) as u64;
            out[7] = any(1, false) as u64 + 10 * all(1, true) as u64;
            out[8] = lane() as u64;
            out[9] = lane_id() as u64;
            out[10] = reduce_add(3, -5i32) as u64;
            out[11] = bitcast::<u64>(reduce_max(7, 1.0f64));
            out[12] = bitcast::<u32>(reduce_min(7, 1.0f32)) as u64;
            out[13] = reduce_min(1, -7i64) as u64;
            out[14] = match_any(15, 1.0f32) as u64;
            fence_device();
            sync_warp(0xff);
            printf("lane %d", lane() as i32);
        }"#;
    for optimize in [false, true] {
        let mut out = [0_u64; 15];
        let parameters = Parameters::default().pointer(&mut out).0;
        let options = CpuOptions::default().with_optimize(optimize);
        let heard = run(source, &options, &parameters);
        let wide = 0x1234_5678_9abc_def0 + (1 << 40);
        assert_eq!(out[..10], [1 << 50, 2 << 50, 3, 0x1234, 5, wide, 1, 11, 17, 0]);
        let (single, double) = (u64::from(1_f32.to_bits()), 1_f64.to_bits());
        let minus = (-3_i64).cast_unsigned();
        let seven = (-7_i64).cast_unsigned();
        assert_eq!(out[10..], [minus, double + 2, single + 2, seven + 2, single + 2]);
        assert_eq!(
            heard.combined,
            [
                (abi::COMBINE_ADD | abi::COMBINE_BITS, 3, u64::from((-5_i32).cast_unsigned())),
                (abi::COMBINE_MAX | abi::COMBINE_F64, 7, double),
                (abi::COMBINE_MIN | abi::COMBINE_F32, 7, single),
                (abi::COMBINE_MIN | abi::COMBINE_I64, 1, seven),
                (abi::COMBINE_MATCH, 15, single),
            ]
        );
        assert_eq!(heard.printed, ["lane 17"]);
        assert_eq!(heard.barrier_lines, [line_of(source, "sync_warp")]);
        assert_eq!(
            heard.shuffles,
            [(abi::SHUFFLE_DOWN, 0xf0, 5, 3), (abi::SHUFFLE_XOR, 0xf1, 0x1234_5678_9abc_def0, 4),]
        );
    }
}

/// A function that takes the geometry computes a thread's lane from it.
#[test]
fn lanes_are_numbered_x_first() {
    let source = "kernel k(out: *mut u32) {
        out[thread_idx.x + 3 * (thread_idx.y + 4 * thread_idx.z)] = lane_id(); }";
    let mut out = [0_u32; 60];
    let parameters = Parameters::default().pointer(&mut out).0;
    let image = Image::of(source, &CpuOptions::default());
    image.run("k", Mode::Serial, [3, 4, 5], &parameters);
    assert_eq!(out, std::array::from_fn(|at| at as u32 % 32));
}

#[test]
fn mathematics() {
    let source = "
        kernel k(x: *const f64, y: *mut f64, z: *mut f32, n: *mut i32) {
            y[0] = sin(x[0]); y[1] = rsqrt(x[1]); y[2] = pow(x[0], x[1]); y[3] = x[1] % x[0];
            y[4] = min(x[2], x[0]); y[5] = max(x[3], 0.0); y[6] = round(x[4]); y[7] = fma(x[0], x[1], x[4]);
            z[0] = cos(x[0] as f32); z[1] = exp2(x[1] as f32); z[2] = log10(x[1] as f32);
            n[0] = x[2] as i32; n[1] = (x[1] * 1e30) as i32; n[2] = x[4] as i32;
        }";
    let nan = f64::NAN;
    let mut x = [0.7, 5.25, nan, -0.0, -2.5];
    for options in every_option() {
        let (mut y, mut z, mut n) = ([0_f64; 8], [0_f32; 3], [0_i32; 3]);
        let parameters = Parameters::default().pointer(&mut x).pointer(&mut y).pointer(&mut z);
        let parameters = parameters.pointer(&mut n).0;
        run(source, &options, &parameters);
        let near = |value: f64, expected: f64| (value - expected).abs() < 1e-12;
        let expected = [
            0.7_f64.sin(),
            1.0 / 5.25_f64.sqrt(),
            0.7_f64.powf(5.25),
            5.25 % 0.7,
            0.7,
            0.0,
            -3.0,
            0.7 * 5.25 - 2.5,
        ];
        assert!(y.iter().zip(expected).all(|(&y, expected)| near(y, expected)), "{y:?}");
        assert!(y[5].is_sign_positive(), "the larger of -0 and +0");
        let expected = [0.7_f32.cos(), 5.25_f32.exp2(), 5.25_f32.log10()];
        let close = |value: f32, expected: f32| (value - expected).abs() <= expected * 1e-6;
        assert!(z.iter().zip(expected).all(|(&z, expected)| close(z, expected)), "{z:?}");
        assert_eq!(n, [0, i32::MAX, -2]);
    }
}

#[test]
fn atomics_of_threads_that_run_at_once() {
    let source = "
        kernel k(sum: *mut u32, floats: *mut f32, most: *mut i64) {
            for i in 0u32..1000 {
                atomic_add(sum, 1);
                atomic_add(floats, 0.5);
            }
            atomic_max(most, thread_idx.x as i64 - 3);
        }";
    let image = Image::of(source, &CpuOptions::default());
    let (mut sum, mut floats, mut most) = ([0_u32], [0_f32], [i64::MIN]);
    let parameters = Parameters::default().pointer(&mut sum).pointer(&mut floats);
    image.run("k", Mode::Threads, [8, 1, 1], &parameters.pointer(&mut most).0);
    assert_eq!((sum, floats, most), ([8000], [4000.0], [4]));
}

#[test]
fn shared_variables_do_not_overlap() {
    let source = "
        fn swap(at: u32, with: u32) {
            shared hold: [f64; 4];
            hold[at] = at as f64 + 0.5;
            sync_threads();
            hold[with] += 10.0;
            sync_threads();
        }
        kernel k(out: *mut u32, sums: *mut f64) {
            shared first: u8;
            shared table: [u32; 4];
            table[thread_idx.x] = thread_idx.x * thread_idx.x;
            if thread_idx.x == 0 { first = 0xff; }
            swap(thread_idx.x, 3 - thread_idx.x);
            out[thread_idx.x] = table[3 - thread_idx.x] + first as u32;
            sums[thread_idx.x] = 0.0;
        }";
    let image = Image::of(source, &CpuOptions::default());
    let (mut out, mut sums) = ([0_u32; 4], [1_f64; 4]);
    let parameters = Parameters::default().pointer(&mut out).pointer(&mut sums).0;
    image.run("k", Mode::Threads, [4, 1, 1], &parameters);
    assert_eq!((out, sums), ([255 + 9, 255 + 4, 255 + 1, 255], [0.0; 4]));
    // Eight bytes for each of the four in `hold`, one more, and then the table, aligned.
    assert_eq!(image.kernel("k").static_shared_bytes, 32 + 4 + 16);
}

#[test]
fn checked_images_report_accesses_and_loops() {
    let source = "
        struct Pair { small: u8, wide: f64 }
        struct Large { all: [u32; 100] }
        kernel k(data: *mut u32, pairs: *mut Pair, large: *mut Large) {
            shared total: u32;
            let mut local: u32 = 0;
            for i in 0u32..2 { // loop
                local += data[i]; // read
            }
            data[5] = local; // write
            pairs[1] = pairs[0]; // struct
            large[1] = large[0]; // wide
            atomic_add(&total, 1); // atomic
            fence_block(); // fence
            let both = *(data as *const u32x2); // vector
            data[0] = both.x;
        }";
    let image = Image::of(source, &checked());
    let (mut data, mut pairs, mut large) = ([1_u32; 6], [[1_u64; 2]; 2], [[1_u32; 100]; 2]);
    let parameters = Parameters::default().pointer(&mut data).pointer(&mut pairs);
    let heard = image.run("k", Mode::Serial, [1; 3], &parameters.pointer(&mut large).0);
    let [data, pairs, large] =
        [data.as_ptr() as usize, pairs.as_ptr() as usize, large.as_ptr() as usize];
    let (read, write, atomic) = (abi::ACCESS_READ, abi::ACCESS_WRITE, abi::ACCESS_ATOMIC);
    let line = |mark| line_of(source, mark);
    let mut accesses = heard.accesses.clone();
    // The device decides where the shared variable is.
    let (shared, size, kind, at) = accesses.remove(9);
    assert_eq!((shared % abi::SHARED_ALIGNMENT, size, kind, at), (0, 4, atomic, line("// atomic")));
    assert_eq!(
        accesses,
        [
            (data, 4, read, line("// read")),
            (data + 4, 4, read, line("// read")),
            (data + 20, 4, write, line("// write")),
            (pairs, 1, read, line("// struct")),
            (pairs + 8, 8, read, line("// struct")),
            (pairs + 16, 1, write, line("// struct")),
            (pairs + 24, 8, write, line("// struct")),
            (large, 400, read, line("// wide")),
            (large + 400, 400, write, line("// wide")),
            (0, 0, abi::ACCESS_FENCE | abi::ACCESS_BLOCK, line("// fence")),
            (data, 8, read, line("// vector")),
            (data, 4, write, line("// vector") + 1),
        ]
    );
    assert_eq!(heard.polls, []);
    assert_eq!(image.kernel("k").flags, abi::CHECKED);
}

#[test]
fn checked_images_report_the_orders_of_atomics() {
    let source = "
        kernel k(p: *mut u32) {
            atomic_store(p, 7, relaxed); atomic_store(p, 8, release);
            p[1] = atomic_load(p, relaxed); p[1] = atomic_load(p, acquire);
        }";
    let mut p = [0_u32; 2];
    let heard = run(source, &checked(), &Parameters::default().pointer(&mut p).0);
    let kinds: Vec<u32> = heard.accesses.iter().map(|access| access.2).collect();
    let (load, store) = (abi::ACCESS_ATOMIC_LOAD, abi::ACCESS_ATOMIC_STORE);
    let (acquire, release, write) = (abi::ACCESS_ACQUIRE, abi::ACCESS_RELEASE, abi::ACCESS_WRITE);
    assert_eq!(kinds, [store, store | release, load, write, load | acquire, write]);
    assert_eq!(p, [8, 8]);
}

/// A checked image reports each launch argument that it stores; recording a lost launch is not an
/// access of the program.
#[test]
fn arguments_of_launches_are_checked_accesses() {
    let source = "kernel k(n: u32) { launch k<<<1, 1>>>(n + 1); }";
    let mut image = Image::of(source, &checked());
    let heard = image.run("k", Mode::Serial, [1; 3], &41_u32.to_le_bytes());
    let kinds: Vec<_> = heard.accesses.iter().map(|access| (access.1, access.2)).collect();
    assert_eq!((kinds, heard.launches.len()), (vec![(4, abi::ACCESS_WRITE)], 1));
    assert_eq!(heard.launches[0].parameters, 42_u32.to_le_bytes());
    image.refuse_launches = true;
    let heard = image.run("k", Mode::Serial, [1; 3], &41_u32.to_le_bytes());
    assert_eq!((heard.accesses.len(), heard.launches.len()), (0, 0));
}

/// Finds loops that may wait for another thread: there, threads must take turns, so the loop must
/// call the device.
#[test]
fn loops_that_wait_let_others_run() {
    let kernels = "
        kernel spin(p: *mut u32, q: *mut u32) { while atomic_cas(p, 0, 1) != 0 {} *q = 1; }
        kernel queue(p: *mut u32, q: *mut u32) {
            loop {
                let at = atomic_add(p, 1);
                if at >= 8 { break; }
                q[at] = at;
            }
        }
        kernel both(p: *mut u32, q: *mut u32) {
            let mut turns = 0u32;
            let mut stop = false;
            while turns < 9 && !stop { stop = atomic_add(p, 0) == 1; turns += 1; }
        }
        kernel load(p: *mut u32, q: *mut u32) { while atomic_load(p, acquire) == 0 {} }
        kernel fenced(p: *mut u32, q: *mut u32) { while *p == 0 { fence_block(); } }
        kernel compact(p: *mut u32, q: *mut u32) {
            for i in 0u32..8 { q[atomic_add(p, 1)] = i; }
        }
        kernel before(p: *mut u32, q: *mut u32) {
            let n = atomic_add(p, 1);
            for i in 0u32..n { atomic_or(q, i); }
        }";
    let image = Image::of(kernels, &CpuOptions::default());
    let waits: Vec<_> = image.kernels().iter().map(|kernel| kernel.flags != 0).collect();
    assert_eq!(image.names(), ["spin", "queue", "both", "load", "fenced", "compact", "before"]);
    assert_eq!(waits, [true, true, true, true, true, false, false]);
    let (mut p, mut q) = ([0_u32], [0_u32; 8]);
    let parameters = Parameters::default().pointer(&mut p).pointer(&mut q).0;
    let heard = image.run("queue", Mode::Threads, [3, 1, 1], &parameters);
    assert_eq!((p, q), ([11], [0, 1, 2, 3, 4, 5, 6, 7]));
    assert_eq!(heard.polls, [(abi::POLL_YIELDS, 5); 11]);
}

/// Loops that terminate by themselves do not poll, unless they contain one that may not terminate.
#[test]
fn checked_images_poll_in_loops_that_may_not_end() {
    let source = "
        fn scan(p: *mut u32) -> u32 { let mut at = 0u32; while p[at] != 0 { at += 1; } return at; }
        kernel counted(p: *mut u32) { for i in 0u32..3 { p[1] = p[0]; } }
        kernel last(p: *mut u32) { let mut i = 0u32; loop { p[1] = i; i += 1; if i == 3 { break; } } }
        kernel scans(p: *mut u32) { for i in 0u32..2 { p[1] = scan(p); } }
        kernel sometimes(p: *mut u32) { let mut i = 0u32; while i < 2 { if p[0] == 0 { i += 1; } } }
        kernel given(p: *mut u32) { let mut i = p[0]; while i < 2 { i += p[2]; } }
        kernel tries(p: *mut u32) { for i in 0u32..2 { if atomic_load(p, relaxed) == 1 { break; } } }
        kernel within(p: *mut u32) { while p[3] < 2 { for i in 0u32..2 { p[1] = scan(p); } p[3] += 1; } }
    ";
    let (image, mut told) = (Image::of(source, &checked()), Vec::new());
    for name in image.names() {
        let mut p = [0_u32, 0, 1, 0];
        let parameters = Parameters::default().pointer(&mut p).0;
        let polls = image.run(&name, Mode::Threads, [1; 3], &parameters).polls;
        told.push((name, polls.into_iter().map(|(kind, _)| kind).collect::<Vec<_>>()));
    }
    let told: Vec<_> = told.iter().map(|(name, kinds)| (&**name, kinds.clone())).collect();
    let (ends, waits) = (abi::POLL_ENDS, abi::POLL_WAITS | abi::POLL_YIELDS);
    let tries = abi::POLL_ENDS | abi::POLL_YIELDS;
    assert_eq!(
        told,
        [
            ("counted", vec![]),
            ("last", vec![]),
            ("scans", vec![ends, waits, ends, waits, ends]),
            ("sometimes", vec![waits; 3]),
            ("given", vec![waits; 3]),
            ("tries", vec![tries; 3]),
            // Progress of the inner loop does not count as progress of the outer one.
            ("within", vec![waits; 7]),
        ]
    );
}

fn text(source: &str, options: &CpuOptions) -> String {
    let program = compile::check(SourceMap::single("test.grid", source)).expect("a program");
    let text = compile::cpu_llvm(&program, options).expect("a module");
    // The rest is machine-independent.
    let of_machine = |line: &&str| !line.starts_with("target ");
    text.lines().filter(of_machine).fold(String::new(), |text, line| text + line + "\n")
}

#[test]
fn the_module_of_a_kernel() {
    let source = "\
kernel k(data: *mut u32, on: bool) {
    shared sum: u32;
    if thread_idx.x == 0 { sum = 0; }
    sync_threads();
    atomic_add(&sum, data[thread_idx.x]);
    sync_threads();
    if on { launch leaf<<<2, 32, stream = tail>>>(sum as f32 / 2.0); }
}
kernel leaf(x: f32) { printf(\"%f\\n\", x as f64); }
";
    insta::assert_snapshot!(text(source, &CpuOptions::default()));
}

#[test]
fn the_module_with_checks_and_lines() {
    let source = "\
fn half(x: u32, by: u32) -> u32 {
    return x / by;
}

kernel k(data: *mut u32) {
    for i in 0u32..8 {
        data[i] = half(data[i], i);
    }
}
";
    let options = checked().with_debug_lines(true);
    insta::assert_snapshot!(text(source, &options));
}
