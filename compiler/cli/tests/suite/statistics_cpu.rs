//! `gridlet run --stats` on the CPU device: launches, nesting depth, and which workers ran grids.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use crate::support::{Gridlet, NESTED, OVERFLOW, json, program};
use serde_json::{Value, json as value};
use tempfile::TempDir;

/// The JSON output and the standard error of `gridlet run FILE --device cpu --stats --json`.
fn run(folder: &TempDir, file: &str, rest: &str) -> (Value, String) {
    let call = format!("run {file} --device cpu --stats --json {rest}");
    let call: Vec<&str> = call.split_whitespace().collect();
    let output = Gridlet::new(folder).without_toolkit().run(&call);
    assert!([0, 4].contains(&output.status), "{rest}: {output:?}");
    (json(&output), output.stderr)
}

const TREE: &str = "--kernel tree --grid 1 --block 1 --arg [1] --arg 4 --print count";

#[test]
fn the_depth_travels_with_launches_into_every_stream() {
    let folder = program(NESTED);
    let launches = value!({"made": 4 + 16 + 64 + 256, "lost": 0, "deepest_nesting": 4, "may_be_deeper": false});
    for more in ["", "-O 0", "--check", "--seed 7", "--check --seed 8", "--sms 1"] {
        let (result, said) = run(&folder, "p.grid", &format!("{TREE} {more}"));
        assert_eq!(result["launches"], launches, "{more}");
        assert_eq!(result["buffers"]["count"][0], 341, "{more}");
        let workers = |of: &str| result["sms"][of].as_array().unwrap().len();
        assert_eq!(workers("host"), 1, "one block: {more}");
        assert!(workers("kernels") >= 1 && said.is_empty(), "{more}: {said}");
    }
    // The host's grid launches nothing if `left` is 0.
    let (result, _) = run(&folder, "p.grid", &TREE.replace("--arg 4", "--arg 0"));
    assert_eq!(result["sms"]["kernels"], value!([]));
    assert_eq!(result["launches"]["deepest_nesting"], 0);
}

#[test]
fn a_depth_without_room_is_a_lower_bound() {
    let folder = program(NESTED);
    let call = "--kernel outer --grid 1 --block 1 --arg [1] --print count";
    let (result, _) = run(&folder, "p.grid", call);
    // `large` counts from 1, although it is deeper; the grids below it are 2 and 3 deep.
    let launches = value!({"made": 6, "lost": 0, "deepest_nesting": 3, "may_be_deeper": true});
    assert_eq!(result["launches"], launches);
    assert_eq!(result["buffers"]["count"][0], 5);
    let call = format!("run p.grid --device cpu --stats {call}");
    let call: Vec<&str> = call.split_whitespace().collect();
    let output = Gridlet::new(&folder).without_toolkit().run(&call);
    let said = "launches made by kernels: 6, nested at least 3 deep (the parameters of a kernel leave no room for the counter)\n";
    assert!(output.stdout.contains(said), "{}", output.stdout);
}

#[test]
fn launches_that_are_lost_do_not_nest() {
    let folder = program(OVERFLOW);
    let call = "--kernel parent --grid 132 --block 32 --arg [1] --print done --pending-launches";
    let (result, _) = run(&folder, "p.grid", &format!("{call} 2"));
    let (made, lost) = (&result["launches"]["made"], &result["launches"]["lost"]);
    assert_eq!(*made, result["buffers"]["done"][0], "as many ran");
    assert_eq!(made.as_u64().unwrap() + lost.as_u64().unwrap(), 132 * 32);
    assert!(lost.as_u64().unwrap() > 0);
    // If the only launch fails, no child runs.
    let folder =
        program("kernel k() { if grid_dim.x == 1 { launch k<<<grid_dim.x - 1, 1>>>(); } }");
    let (result, said) = run(&folder, "p.grid", "--kernel k --grid 1 --block 1");
    let launches = value!({"made": 0, "lost": 1, "deepest_nesting": 0, "may_be_deeper": false});
    assert_eq!(
        (&result["launches"], &result["sms"]["kernels"]),
        (&launches, &value!([])),
        "{said}"
    );
}

#[test]
fn bundles_note_statistics_if_they_were_built_to() {
    let folder = program(NESTED);
    let build = |more: &[&str]| {
        let call = [&["build", "p.grid", "--arch", "cpu", "-o", "p.gridlet"], more].concat();
        let output = Gridlet::new(&folder).without_toolkit().run(&call);
        assert_eq!(output.status, 0, "{output:?}");
    };
    build(&["--stats"]);
    let (result, said) = run(&folder, "p.gridlet", TREE);
    assert_eq!((&result["launches"]["deepest_nesting"], said.as_str()), (&value!(4), ""));
    // The host can launch exactly the kernels of the source.
    let call = [
        "run",
        "p.gridlet",
        "--device",
        "cpu",
        "--kernel",
        "nested",
        "--grid",
        "1",
        "--block",
        "1",
    ];
    let output = Gridlet::new(&folder).run(&call);
    assert!(output.stderr.contains("the program has tree, large, outer\n"), "{output:?}");

    build(&[]);
    let (result, said) = run(&folder, "p.gridlet", TREE);
    assert_eq!(result["launches"], value!({"made": null, "lost": 0}));
    assert_eq!(result["sms"], Value::Null);
    assert_eq!(
        said,
        "warning: p.gridlet records no statistics; rebuild it with `gridlet build --stats`, or `with_statistics(true)` of the library's options\n"
    );
}

#[test]
fn faults_of_instrumented_children_name_the_kernel_of_the_source() {
    let source = "kernel child(p: *mut u32) { if *p == 0 { trap(); } }\n\
                  kernel parent(p: *mut u32) { launch child<<<1, 1>>>(p); }\n";
    let folder = program(source);
    let said = |more: &str| {
        let call =
            format!("run p.grid --device cpu --kernel parent --grid 1 --block 1 --arg [1] {more}");
        let call: Vec<&str> = call.split_whitespace().collect();
        let output = Gridlet::new(&folder).without_toolkit().run(&call);
        assert_eq!(output.status, 4, "{output:?}");
        output.stderr
    };
    assert!(said("").contains("`child`"), "{}", said(""));
    for more in ["", "--check"] {
        assert_eq!(said(&format!("{more} --stats")), said(more));
    }
}
