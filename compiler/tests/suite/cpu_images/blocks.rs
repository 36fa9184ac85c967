//! The entries for whole blocks compute the same results as the entry for one thread, for every
//! shape of grid and block.

use gridlet::compile::{self, CpuOptions};
use gridlet::source::SourceMap;
use gridlet_runtime::cpu::abi;

use super::host::{Image, Mode, Parameters};

/// Kernels that guard a thread's global index in many ways.
const KERNELS: &str = "
    fn dive(depth: u32, x: f32) -> f32 {
        if depth == 0 { return x; }
        return dive(depth - 1, x * 0.5) + 1.0;
    }
    static scale: f32 = 1.5;
    kernel less(n: u32, x: *const f32, out: *mut f32) {
        let i = block_idx.x * block_dim.x + thread_idx.x;
        if i < n { out[i] = 0.1 * x[i] + x[i] * x[i]; }
    }
    kernel early(n: u32, x: *const f32, out: *mut f32) {
        let i = (block_idx.x * block_dim.x + thread_idx.x) as i32;
        if i >= n as i32 { return; }
        let mut value = x[i];
        for step in 0..9 { value = 0.7 * value * value - x[i]; }
        out[i] = value;
    }
    kernel inner(n: u32, x: *const f32, out: *mut f32) {
        let i = block_idx.x * block_dim.x + thread_idx.x;
        if i == 0 || i >= n - 1 { return; }
        out[i] = x[i - 1] + x[i + 1] - sqrt(x[i]);
    }
    kernel all_but_one(n: u32, x: *const f32, out: *mut f32) {
        let i = block_idx.x * block_dim.x + thread_idx.x;
        if i == 17 || i >= n { return; }
        out[i] = x[i] * 5.0;
    }
    kernel plane(n: u32, x: *const f32, out: *mut f32) {
        let column = block_idx.x * block_dim.x + thread_idx.x;
        let row = block_idx.y * block_dim.y + thread_idx.y;
        let layer = block_idx.z * block_dim.z + thread_idx.z;
        if column < 13 && row < 7 && layer < 3 {
            let i = (layer * 7 + row) * 13 + column;
            if i < n { out[i] = x[i] + (row * 100 + layer) as f32; }
        }
    }
    kernel reversed(n: u32, x: *const f32, out: *mut f32) {
        let i = n - 1 - (block_idx.x * block_dim.x + thread_idx.x);
        if i < n { out[i] = x[i] / 3.0; }
    }
    kernel wrapping(n: u32, x: *const f32, out: *mut f32) {
        let i = thread_idx.x - 5 + block_idx.x * block_dim.x;
        if i < n { out[i] = x[i] + 2.0; } else { out[(thread_idx.x + 3) % n] = 4.0; }
    }
    kernel recursive(n: u32, x: *const f32, out: *mut f32) {
        let i = block_idx.x * block_dim.x + thread_idx.x;
        if i < n { out[i] = dive(i % 20, x[i]) * scale; }
    }
    kernel locals(n: u32, x: *const f32, out: *mut f32) {
        let i = block_idx.x * block_dim.x + thread_idx.x;
        if i < n {
            let mut few: [f32; 4] = [0.0; 4];
            for k in 0u32..9 { few[(i + k) % 4] += x[i] * k as f32; }
            out[i] = few[i % 4] + few[0];
        }
    }
    kernel in_place(n: u32, x: *mut f32, out: *mut f32) {
        let i = block_idx.x * block_dim.x + thread_idx.x;
        if i < n { out[i] = x[i] * 2.0; x[i] = out[i] + 1.0; }
    }";

/// Grid, block and number of elements.
fn shapes() -> Vec<([u32; 3], [u32; 3], u32)> {
    let mut shapes = vec![
        ([2, 2, 1], [8, 4, 3], 250),
        ([1, 4, 2], [13, 2, 2], 273),
        ([3, 1, 3], [5, 7, 1], 100),
        ([2, 3, 1], [7, 3, 3], 273),
    ];
    for (blocks, threads) in [(1, 1), (1, 64), (4, 64), (3, 100), (9, 33), (300, 1)] {
        let all = blocks * threads;
        for n in [1, all / 2 + 1, all.max(2) - 1, all] {
            shapes.push(([blocks, 1, 1], [threads, 1, 1], n));
        }
    }
    shapes
}

/// The arrays' contents after a grid, as bits.
fn results(image: &Image, kernel: &str, mode: Mode, shape: &([u32; 3], [u32; 3], u32)) -> Vec<u32> {
    let (grid, block, n) = *shape;
    // With margins as large as a thread's index can be off.
    let mut x: Vec<f32> = (0..2048).map(|i| (i % 97) as f32 / 31.0).collect();
    let mut out = vec![-1.0_f32; 2048];
    let parameters = Parameters::default().with(n.to_le_bytes()).pointer(&mut x[512..]);
    let parameters = parameters.pointer(&mut out[512..]).0;
    let blocks = u64::from(grid[0] * grid[1] * grid[2]);
    match mode {
        Mode::Threads => {
            for number in 0..grid[0] * grid[1] * grid[2] {
                let at = [number % grid[0], number / grid[0] % grid[1], number / grid[0] / grid[1]];
                image.run_block(kernel, mode, block, at, grid, &parameters);
            }
        }
        // Two calls, the second of which starts in the middle.
        _ => {
            let first = blocks / 3;
            let at = [
                first as u32 % grid[0],
                first as u32 / grid[0] % grid[1],
                first as u32 / grid[0] / grid[1],
            ];
            image.run_blocks(kernel, mode, block, ([0; 3], first), grid, &parameters);
            image.run_blocks(kernel, mode, block, (at, blocks - first), grid, &parameters);
        }
    }
    x.iter().chain(&out).map(|value| value.to_bits()).collect()
}

#[test]
fn all_entries_give_the_same_bits() {
    let native = Image::of(KERNELS, &CpuOptions::default());
    let portable = Image::of(KERNELS, &CpuOptions::portable());
    let plain = Image::of(KERNELS, &CpuOptions::default().with_optimize(false));
    let has_v3 = is_x86_v3();
    for name in portable.names() {
        for shape in shapes() {
            // Threads may run in any order, and those of one block may write to the same place.
            let expected = results(&plain, &name, Mode::Serial, &shape);
            let mut runs = vec![(&native, Mode::Serial), (&portable, Mode::Serial)];
            if has_v3 {
                runs.push((&portable, Mode::SerialV3));
            }
            for (image, mode) in runs {
                let found = results(image, &name, mode, &shape);
                assert!(found == expected, "{name} {shape:?} {mode:?}");
            }
        }
    }
}

#[test]
fn blocks_do_what_their_threads_do() {
    let portable = Image::of(KERNELS, &CpuOptions::portable());
    // The threads of a block run at the same time here. Those of `wrapping` race, and those of `in_place` do where
    // several have the same index.
    let races = |name: &str, [_, y, z]: [u32; 3]| match name {
        "wrapping" => true,
        "in_place" => y * z > 1,
        _ => false,
    };
    for name in &portable.names() {
        let small = |(grid, block, _): &([u32; 3], [u32; 3], u32)| grid[0] * block[0] < 70;
        for shape in shapes().iter().filter(|shape| small(shape) && !races(name, shape.1)) {
            let expected = results(&portable, name, Mode::Threads, shape);
            assert!(results(&portable, name, Mode::Serial, shape) == expected, "{name} {shape:?}");
        }
    }
}

fn is_x86_v3() -> bool {
    #[cfg(target_arch = "x86_64")]
    return is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma");
    #[cfg(not(target_arch = "x86_64"))]
    return false;
}

/// The largest grids: 32-bit indices wrap, even within a row of threads.
#[test]
fn rows_across_the_end_of_32_bits() {
    let source = "kernel k(n: u32, seen: *mut u32) {
            let i = block_idx.x * block_dim.x + thread_idx.x;
            if i < n { seen[i] += 1; }
        }";
    for options in [CpuOptions::default(), CpuOptions::portable()] {
        let image = Image::of(source, &options);
        let mut seen = vec![0_u32; 600];
        let parameters = Parameters::default().with(600_u32.to_le_bytes()).pointer(&mut seen).0;
        // Blocks of 1,000 threads: 4,294,967 blocks end 296 threads before 2^32; the next one
        // wraps.
        let from = [4_294_966, 0, 0];
        let grid = [2_147_483_647, 1, 1];
        image.run_blocks("k", Mode::Serial, [1000, 1, 1], (from, 3), grid, &parameters);
        // The wrapping block covers 0..=703; the blocks before and after it cover nothing below
        // 600.
        assert_eq!(seen, [1; 600]);
    }
}

/// Both ends of a row pass, but threads in the middle fail, because the index wraps there.
#[test]
fn rows_that_wrap_in_the_middle() {
    let source = "
        kernel unsigned(start: u32, end: u32, out: *mut u32) {
            let i = start + thread_idx.x;
            if i < end { out[thread_idx.x] = 1; }
        }
        kernel signed(start: u32, end: u32, out: *mut u32) {
            let i = (start + thread_idx.x) as i32;
            if i < end as i32 { out[thread_idx.x] = 1; }
        }";
    let image = Image::of(source, &CpuOptions::default());
    for (kernel, last) in [("unsigned", u32::MAX), ("signed", i32::MAX as u32)] {
        let mut out = [0_u32; 16];
        let parameters = Parameters::default().with((last - 7).to_le_bytes());
        let parameters = parameters.with((last - 2).to_le_bytes()).pointer(&mut out).0;
        image.run(kernel, Mode::Serial, [16, 1, 1], &parameters);
        assert_eq!(out, [1, 1, 1, 1, 1, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1], "{kernel}");
    }
}

/// Only useful variants are built: one for images tuned to this processor, none for kernels that
/// call the device.
#[test]
fn kernels_have_the_entries_that_they_need() {
    let source = "
        kernel plain(out: *mut u32) { out[thread_idx.x] = 1; }
        kernel launches(out: *mut u32) { launch plain<<<1, 1>>>(out); }
        kernel waits(out: *mut u32) { sync_threads(); }";
    let entries = |options: &CpuOptions| -> Vec<(bool, bool, u32)> {
        let image = Image::of(source, options);
        let found = image.kernels().iter();
        found
            .map(|kernel| (kernel.blocks.is_some(), kernel.blocks_v3.is_some(), kernel.flags))
            .collect()
    };
    let portable = CpuOptions::portable();
    let v3 = cfg!(target_arch = "x86_64");
    let (launches, waits) = (abi::BLOCK_BY_BLOCK, abi::NEEDS_THREADS);
    let others = [(true, false, launches), (false, false, waits)];
    assert_eq!(entries(&portable), [&[(true, v3, 0)][..], &others].concat());
    assert_eq!(entries(&CpuOptions::default()), [&[(true, false, 0)][..], &others].concat());
    let plain = portable.with_optimize(false);
    assert_eq!(entries(&plain), [&[(true, false, 0)][..], &others].concat());
}

/// A trap reports its thread if the function knows it.
#[test]
fn traps_name_their_threads() {
    let source = "
        fn blind(x: u32) { if x == 6 { trap(); } }
        kernel own(at: u32) { if thread_idx.y == 1 && thread_idx.x == at { trap(); } }
        kernel divides(at: u32) { assert(1 / (thread_idx.x - at) < 2, \"no\"); }
        kernel calls(at: u32) { blind(at + thread_idx.x); }";
    let image = Image::of(source, &CpuOptions::default());
    let trapped = |kernel, at: u32| {
        let heard = image.run_blocks(
            kernel,
            Mode::Serial,
            [4, 2, 1],
            ([0; 3], 3),
            [3, 1, 1],
            &at.to_le_bytes(),
        );
        heard.trapped
    };
    assert_eq!(trapped("own", 2), Some(6));
    assert_eq!(trapped("own", 4), None);
    assert_eq!(trapped("divides", 3), Some(3));
    assert_eq!(trapped("calls", 4), Some(abi::THREAD_UNKNOWN));
}

/// The loops over a row of threads, with and without the guard, as LLVM sees them.
#[test]
fn a_guarded_row() {
    let source = "\
kernel k(n: i32, out: *mut u32) {
    let i = (block_idx.x * block_dim.x + thread_idx.x) as i32;
    if i >= n { return; }
    out[i] = 1;
}
";
    let program = compile::check(SourceMap::single("test.grid", source)).expect("a program");
    let text = compile::cpu_llvm(&program, &CpuOptions::default()).expect("a module");
    let entry = text.lines().skip_while(|line| !line.contains("@own.k.blocks(")).skip(1);
    // Every entry loads the same values from the geometry.
    let entry = entry.skip_while(|line| !line.starts_with("block.head"));
    let entry: Vec<_> = entry.take_while(|line| *line != "}").collect();
    insta::assert_snapshot!(entry.join("\n"));
}
