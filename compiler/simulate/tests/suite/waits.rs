//! Barriers, warp operations and blocks that start late.

use gridlet_lang::ir::parse::parse;
use gridlet_simulate::{Device, Failure, FailureKind, Grid, Options, Policy, Program};

use crate::compile;

/// Runs `kernel test(out: *mut u32)`, with 64 words, under many seeds; the words after each.
fn run(source: &str, grid: Grid, options: Options) -> Vec<Vec<u32>> {
    let program = compile(source);
    let run = |seed| {
        let mut device = Device::new(&program);
        let out = device.allocate(256);
        let options = Options { seed, ..options };
        let launched = device.launch("test", grid, &out.to_le_bytes(), &options);
        launched.unwrap_or_else(|failure| panic!("{options:?}: {failure}"));
        device.read_words(out, 64)
    };
    (0..30).map(run).collect()
}

#[test]
fn ended_threads_hold_up_no_one() {
    let source = "kernel test(out: *mut u32) {
        if thread_idx.x % 3 == 0 { return; }
        sync_threads();
        let lanes = ballot(0xffff_ffff, true);
        atomic_max(out, lanes);
        sync_threads();
    }";
    for words in run(source, Grid::new(1, 16), Options::seed(0)) {
        assert_eq!(words[0], 0b0110_1101_1011_0110);
    }
}

/// Which lanes come together is a matter of luck, but each lane is in one group, and in its own.
#[test]
fn active_masks_are_groups_of_lanes() {
    let source = "kernel test(out: *mut u32) {
        out[thread_idx.x] = active_mask();
    }";
    let results = run(source, Grid::new(1, 32), Options::seed(0));
    for words in &results {
        for (lane, mask) in words[..32].iter().enumerate() {
            assert_ne!(mask & (1 << lane), 0);
            for (other, its) in words[..32].iter().enumerate() {
                assert_eq!(mask & (1 << other) != 0, mask == its, "{words:x?}");
            }
        }
    }
    assert!(results.iter().any(|words| words[0] == u32::MAX));
    assert!(results.iter().any(|words| words[0] != u32::MAX));
}

#[test]
fn blocks_start_late() {
    // Each block notes how many blocks have ended before it started.
    let source = "kernel test(out: *mut u32) {
        out[1 + block_idx.x] = atomic_load(out, relaxed);
        atomic_add(out, 1);
    }";
    for policy in Policy::ALL {
        let options = Options { running_blocks: 2, policy, ..Options::seed(0) };
        for words in run(source, Grid::new(10, 1), options) {
            assert_eq!(words[0], 10);
            for (block, ended) in words[1..11].iter().enumerate() {
                assert!(*ended as usize + 1 >= block, "block {block} started before {ended} ended");
            }
        }
    }
}

/// Even and odd threads come to the same barrier at different places; another barrier is for the second warp alone.
const BARRIERS: &str = "launches lowered
extern @gridlet.hardware_barrier(u32, u32)
extern @gridlet.hardware_sleep(u32)
extern @gridlet.hardware_thread() -> u32
extern @gridlet.hardware_shared() -> *mut u8
kernel @test(out: *mut u32) body @test.body

body @test.body(%geometry: geometry, %out: *mut u32) {
entry:
  %0: u32 = call extern @gridlet.hardware_thread()
  %1: *mut u8 = call extern @gridlet.hardware_shared()
  %2: *mut u32 = cast %1
  %3: *mut u32 = element_address %2, %0
  store %3, %0
  %4: u32 = rem %0, 2u32
  %5: bool = eq %4, 0u32
  branch %5, even, odd
even:
  call extern @gridlet.hardware_barrier(COUNTu32, 64u32)
  jump both
odd:
  call extern @gridlet.hardware_sleep(20u32)
  call extern @gridlet.hardware_barrier(3u32, 64u32)
  jump both
both:
  %6: u32 = sub 63u32, %0
  %7: *mut u32 = element_address %2, %6
  %8: u32 = load %7
  %9: *mut u32 = element_address %out, %0
  store %9, %8
  %10: bool = ge %0, 32u32
  branch %10, second, end
second:
  call extern @gridlet.hardware_barrier(0u32, 32u32)
  jump end
end:
  return
}

entry @test(%out: *mut u32) {
entry:
  %0: geometry = hardware_geometry
  call @test.body(%0, %out)
  return
}
";

fn run_barriers(id: u32, seed: u64) -> Result<Vec<u32>, Box<Failure>> {
    let module = parse(&BARRIERS.replace("COUNT", &id.to_string())).unwrap();
    let program = Program::new(&module).unwrap();
    let mut device = Device::new(&program);
    let out = device.allocate(256);
    let grid = Grid { shared: 256, ..Grid::new(1, 64) };
    device.launch("test", grid, &out.to_le_bytes(), &Options::seed(seed))?;
    Ok(device.read_words(out, 64))
}

#[test]
fn barriers_count_threads_wherever_they_arrive() {
    for seed in 0..50 {
        let words = run_barriers(3, seed).unwrap_or_else(|failure| panic!("{failure}"));
        assert_eq!(words, (0..64).rev().collect::<Vec<u32>>());
    }
    let failure = run_barriers(4, 0).expect_err("a dead-lock");
    assert_eq!(failure.kind, FailureKind::Deadlock);
    assert!(failure.threads.contains("waits at barrier 4 for 64 threads"), "{failure}");
}
