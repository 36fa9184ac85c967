//! Machine code of resident launches.

use std::collections::BTreeSet;

use gridlet::arch::CudaArch;
use gridlet::compile::{self, Backend, BuildOptions, Session};
use gridlet::launch::LaunchStrategy;
use gridlet::source::SourceMap;

fn ptx(source: &str) -> String {
    ptx_for(source, CudaArch::DEFAULT)
}

fn ptx_for(source: &str, arch: CudaArch) -> String {
    let program = compile::check(SourceMap::single("a.grid", source)).expect("a right program");
    let launch = LaunchStrategy::Resident.into();
    let options = BuildOptions::for_arch(arch).with_backend(Backend::Nvptx).with_launch(launch);
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

/// A fence of both directions waits for stores where only the cache must be emptied, and empties it where only stores must be
/// waited for.
#[test]
fn fences_have_one_direction_where_the_gpu_has_such() {
    let source = "
        kernel child(p: *mut u32) { atomic_add(p, 1); }
        kernel root(p: *mut u32) { launch child<<<1, 64>>>(p); launch child<<<1, 64, stream = tail>>>(p); }";
    let fences = |arch: &str| -> BTreeSet<String> {
        let text = ptx_for(source, arch.parse().expect("an architecture"));
        let fences = text.lines().map(str::trim).filter(|line| line.starts_with("fence."));
        fences.map(|line| line.trim_end_matches(';').to_owned()).collect()
    };
    let one = ["fence.acquire.cta", "fence.acquire.gpu", "fence.release.cta", "fence.release.gpu"];
    assert!(fences("sm_90").is_superset(&one.map(str::to_owned).into()), "{:?}", fences("sm_90"));
    assert!(!fences("sm_90").contains("fence.acq_rel.gpu"));
    let both = ["fence.acq_rel.cta", "fence.acq_rel.gpu"].map(str::to_owned);
    assert_eq!(fences("sm_80"), both.into());
}
