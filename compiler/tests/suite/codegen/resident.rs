//! Machine code of resident launches.

use gridlet::compile::{self, Backend, BuildOptions, Session};
use gridlet::launch::LaunchStrategy;
use gridlet::source::SourceMap;

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
    let program = compile::check(SourceMap::single("a.grid", source)).expect("a right program");
    let launch = LaunchStrategy::Resident.into();
    let options = BuildOptions { backend: Backend::Nvptx, launch, ..BuildOptions::default() };
    let text = Session::new().ptx(&program, &options).expect("PTX").0.0;
    for number in ["7777", "6666"] {
        assert!(text.contains(number), "{number} is not in\n{text}");
    }
}
