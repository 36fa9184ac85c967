//! The lanes of a warp operation that other lanes, which have returned, do not hold up.

use gridlet_lang::arch::CudaArch;
use gridlet_lang::launch::{LaunchOptions, LaunchStrategy};
use gridlet_lang::program;
use gridlet_lang::source::SourceMap;
use gridlet_simulate::{Device, Grid, Options, Policy, Program};

const WARPS: &str = include_str!("../../../lang/src/launch/resident/scheduler/warps.grid");

/// What `warps.grid` needs of the scheduler, and a kernel in which threads go on after they have returned from `body`.
const HARNESS: &str = "
const ALL_LANES: u32 = 0xffff_ffff;
const WARP_TEAM: u32 = 0;
const WARP_LANES: u32 = 32;
const ALIGNED: u32 = 1;
// No warp is aligned.
fn state() -> *mut u32 {
    shared words: [u32; 64];
    return &words[0];
}
extern fn hardware_thread() -> u32;
extern fn hardware_sleep(nanoseconds: u32);
fn random(a: u32, b: u32) -> u32 {
    let mut x = a * 0x9e37_79b9 + b * 0x85eb_ca6b + 0x1234_5678;
    x = (x ^ x >> 16) * 0x7feb_352d;
    x = (x ^ x >> 15) * 0x846c_a68b;
    return x ^ x >> 16;
}
kernel test(out: *mut u32, seed: u32) {
    // As an earlier kernel may have left them.
    met_masks()[lane_id()] = ALL_LANES;
    *returned_lanes() = random(seed, thread_idx.x / 32);
    state()[WARP_TEAM + thread_idx.x / 32] = 0;
    sync_warp(ALL_LANES);
    for round in 0..3u32 {
        enter_lanes();
        if (EXISTING >> lane_id() & 1) != 0 { body(seed + round * 77 + thread_idx.x / 32); }
        leave_lanes();
        sync_warp(ALL_LANES);
    }
    atomic_add(out, 1);
}
";

fn program(existing: u32, body: &str) -> Program {
    let source = format!(
        "{WARPS}\n{HARNESS}\nconst EXISTING: u32 = {existing};\nfn body(seed: u32) {{ {body} }}"
    );
    let checked = program::check(SourceMap::single("test.grid", source)).unwrap();
    let options = LaunchOptions::for_arch(LaunchStrategy::Cdp, CudaArch::DEFAULT);
    let mut module = checked.lower(&options).unwrap();
    for function in &mut module.externs {
        function.name = format!("gridlet.{}", function.name);
        function.span = None;
    }
    Program::new(&module).unwrap()
}

/// Runs `body` in two warps under many seeds and all policies.
fn run(existing: u32, body: &str) {
    let program = &program(existing, body);
    for seed in 0..60 {
        let policy = Policy::ALL[seed as usize % Policy::ALL.len()];
        let mut device = Device::new(program);
        let out = device.allocate(4);
        let mut parameters = [0; 12];
        parameters[..8].copy_from_slice(&out.to_le_bytes());
        parameters[8..].copy_from_slice(&(seed as u32).to_le_bytes());
        let options = Options { policy, max_steps: 3_000_000, ..Options::seed(seed) };
        let launched = device.launch("test", Grid::new(1, 64), &parameters, &options);
        launched.unwrap_or_else(|failure| panic!("{options:?}: {failure}\n{body}"));
        assert_eq!(device.read_words(out, 1), [64]);
    }
}

#[test]
fn lanes_that_have_returned_hold_up_no_one() {
    for existing in [u32::MAX, 0xf_ffff] {
        // All return at once, or each after a number of operations of its own.
        run(
            existing,
            "if lane_id() % 3 == 0 { return; }
             for i in 0..4u32 {
                 let m = meet(ALL_LANES);
                 assert(m == (0xb6db_6db6 & EXISTING));
                 assert(ballot(m, true) == m);
             }",
        );
        run(
            existing,
            "let mut expected = EXISTING;
             for i in 0..6u32 {
                 if random(seed + i, lane_id()) % 4 == 0 { return; }
                 let mut others = 0u32;
                 for lane in 0..32u32 {
                     if random(seed + i, lane) % 4 == 0 { others |= 1u32 << lane; }
                 }
                 expected &= !others;
                 let m = meet(ALL_LANES);
                 assert(m == expected);
                 assert(ballot(m, true) == m);
             }",
        );
    }
}

#[test]
fn lanes_meet_in_groups() {
    // Groups with masks of their own at one place, and all lanes again.
    run(
        u32::MAX,
        "let mut live = ALL_LANES;
         for i in 0..5u32 {
             let width = 1u32 << random(seed, i) % 6;
             let group = (if width == 32 { ALL_LANES } else { (1u32 << width) - 1 }) << lane_id() / width * width;
             let m = meet(group);
             assert(m == (group & live));
             assert(ballot(m, true) == m);
             let mut gone = 0u32;
             for lane in 0..32u32 {
                 if random(seed + i, lane) % 5 == 0 { gone |= 1u32 << lane; }
             }
             if (gone >> lane_id() & 1) != 0 { return; }
             live &= !gone;
         }",
    );
}

#[test]
fn lanes_on_their_way_are_awaited() {
    // Some lanes have another operation before, at another place, and may return after it.
    run(
        u32::MAX,
        "let chosen = random(seed, 1) | 3;
         let leaves = chosen & random(seed, 2) & 0xffff_fffc | 1;
         if (chosen >> lane_id() & 1) != 0 {
             let m = meet(chosen);
             assert(m == chosen && ballot(m, true) == m);
             let again = meet(chosen);
             assert(again == chosen && ballot(again, true) == again);
             if (leaves >> lane_id() & 1) != 0 { return; }
         }
         let m = meet(ALL_LANES);
         assert(m == !leaves);
         assert(ballot(m, true) == m);",
    );
}
