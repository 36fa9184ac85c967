//! Large programs: the cost of every stage grows linearly with program length. Anything quadratic
//! takes minutes here, or more memory than any machine has.

use crate::time::{seconds, seconds_on_processor};
use gridlet::arch::Dialect;
use gridlet::compile::{
    BuildOptions, CpuOptions, DialectChoice, check, cpu_llvm, cpu_object, lower, nvvm,
};
use gridlet::launch::LaunchStrategy;
use gridlet::source::SourceMap;

/// Time limit in seconds for all stages up to LLVM, unoptimised: about ten times what they need.
const LIMIT: f64 = 40.0;

/// Runs a program through every stage of our own, for both kinds of target.
fn compile(name: &str, text: String) {
    let start = seconds_on_processor();
    let checked = check(SourceMap::single("large.grid", text)).expect("a right program");
    let passed = |stage: &str| {
        // Without such a clock, a slow stage shows only in the test's duration.
        let Some((start, end)) = start.zip(seconds_on_processor()) else { return };
        assert!(end - start < LIMIT, "{name}: {} s up to {stage}", end - start);
    };
    let manifest = gridlet::artifact::describe(&checked, LaunchStrategy::Cdp);
    assert_eq!(manifest.kernels.len(), checked.module.kernels.len());
    passed("the manifest");
    for is_checked in [false, true] {
        let options = CpuOptions::default().with_check(is_checked);
        cpu_llvm(&checked, &options).expect("a module for the CPU");
        passed("the CPU's module");
    }
    let legacy = DialectChoice::Fixed(Dialect::Legacy);
    let options = BuildOptions::default().with_dialect(legacy);
    nvvm(&checked, &options).expect("a module for a GPU");
    passed("the legacy dialect");
    lower(&checked, &options.with_statistics(true)).expect("launches are lowered");
    passed("statistics");
}

/// `count` lines, each generated from its number.
fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(line).collect()
}

#[test]
fn kernels_that_reach_every_function() {
    let count = 3000;
    let functions = lines(count, |i| {
        let next = (i + 1) % count;
        format!("fn f{i}(x: u32) -> u32 {{ if x == 0 {{ return {i}; }} return f{next}(x - 1); }}\n")
    });
    let kernels = lines(count, |i| format!("kernel k{i}(p: *mut u32) {{ p[0] = f{i}(p[1]); }}\n"));
    compile("a ring", functions + &kernels);
}

#[test]
fn functions_that_launch_through_many_others() {
    // Each function precedes the one that it calls.
    let functions = lines(40_000, |i| format!("fn f{i}() {{ f{}(); }}\n", i + 1));
    let last = "fn f40000() { launch c<<<1, 1, stream = tail>>>(); }\nkernel c() {}\n";
    compile("a chain", format!("kernel k() {{ f0(); }}\n{functions}{last}"));
}

#[test]
fn kernels_with_structs_of_their_own() {
    let count = 3000;
    let text = lines(count, |i| {
        let next = (i + 1) % count;
        format!(
            "struct S{i} {{ a: u32, next: *mut S{next} }}
            kernel k{i}(s: S{i}) {{ if s.a > 0 {{ launch k{next}<<<1, 1>>>(*s.next); }} }}\n"
        )
    });
    compile("structs", text);
}

#[test]
fn functions_with_many_loops() {
    let loops = lines(8000, |i| {
        format!(
            "while p[{i}] > x {{ x += p[{i}]; }} while atomic_load(p + {i}, acquire) == 0 {{ }}\n"
        )
    });
    compile("loops", format!("kernel k(p: *mut u32) {{ let mut x = p[0];\n{loops}p[0] = x; }}"));
}

#[test]
fn loops_with_many_ways_out() {
    // No single condition proves that the loop ends: each depends on variables that are stored to
    // in many places.
    let ways = lines(16_000, |i| {
        format!("if n == {i} {{ x += {i}; y ^= x; continue; }} if x + y == {i} {{ break; }}\n")
    });
    compile(
        "ways out",
        format!(
            "kernel k(p: *mut u32, n: u32) {{ let mut x = 0u32; let mut y = 1u32;
            loop {{\n{ways}atomic_add(p, 1); }} p[0] = x; }}"
        ),
    );
}

/// LLVM's register allocator and its preparation of code take time that grows with the square of a block's calls, and every access
/// of a checked image is a call.
#[test]
fn blocks_with_many_checked_accesses() {
    let stores = lines(20_000, |i| format!("p[{i}] = {i};\n"));
    let text = format!("kernel k(p: *mut u32) {{\n{stores}}}");
    let checked = check(SourceMap::single("large.grid", text)).expect("a right program");
    let seconds = seconds(|| {
        let options = CpuOptions::default().with_check(true);
        cpu_object(&checked, &options).expect("an object");
    });
    assert!(seconds < LIMIT, "{seconds} s");
}

/// LLVM's time for a function grows with the square of the variables whose addresses calls get.
#[test]
fn launches_share_the_copies_of_their_sizes() {
    let launches = lines(20, |i| format!("launch c<<<{i} + p[0], 32>>>(p);\n"));
    let text = format!("kernel c(p: *mut u32) {{}}\nkernel k(p: *mut u32) {{\n{launches}}}");
    let checked = check(SourceMap::single("large.grid", text)).expect("a right program");
    let text = cpu_llvm(&checked, &CpuOptions::default()).expect("a module for the CPU");
    assert_eq!(text.matches(" = alloca [12 x i8]").count(), 2, "{text}");
}
