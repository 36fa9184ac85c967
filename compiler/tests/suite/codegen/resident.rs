//! Machine code of resident launches.

use gridlet::compile::{self, Backend, BuildOptions, Session};
use gridlet::launch::LaunchStrategy;
use gridlet::source::SourceMap;

fn ptx(source: &str) -> String {
    let program = compile::check(SourceMap::single("a.grid", source)).expect("a right program");
    let launch = LaunchStrategy::Resident.into();
    let options = BuildOptions::default().with_backend(Backend::Nvptx).with_launch(launch);
    Session::new().ptx(&program, &options).expect("PTX").0.0
}

/// With barriers that are not aligned, launch trees hung on an H200: see `instructions::BARRIER`.
#[test]
fn barriers_of_blocks_are_aligned() {
    let text = ptx("
        kernel child(p: *mut u32) {
            if thread_idx.x == 70 { return; }
            sync_threads();
            *p = 1;
        }
        kernel root(p: *mut u32) { sync_threads(); launch child<<<1, 70>>>(p); }");
    let barriers: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("barrier.") || line.contains("bar.sync"))
        .collect();
    let is_aligned = |line: &&str| {
        ["barrier.sync.aligned", "barrier.cta.sync.aligned", "bar.sync"]
            .iter()
            .any(|word| line.contains(word))
    };
    assert!(!barriers.is_empty() && barriers.iter().all(is_aligned), "{barriers:#?}");
}

/// The scheduler takes the result from the difference of two values of a counter. If nothing writes the counter, LLVM may take
/// any number for that difference.
#[test]
fn barriers_with_constant_conditions_are_not_guessed() {
    let source = "
        kernel child(p: *mut u32) {
            p[0] = if sync_threads_and(true) { 7777 } else { 9999 };
            p[1] = if sync_threads_or(false) { 8888 } else { 6666 };
        }
        kernel root(p: *mut u32) { launch child<<<1, 64>>>(p); }";
    let text = ptx(source);
    for number in ["7777", "6666"] {
        assert!(text.contains(number), "{number} is not in\n{text}");
    }
}
