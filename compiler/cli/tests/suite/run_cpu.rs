//! `gridlet run --device cpu` and related commands: the scenarios of the GPU tests, on any machine.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use crate::support::devices::CPU;
use crate::support::{Gridlet, Output, folder, json, program};
use gridlet::diagnostics::reference;
use tempfile::TempDir;

/// `gridlet run p.grid --device cpu` with additional arguments, given as one text.
fn run(folder: &TempDir, rest: &str) -> Output {
    run_file(folder, "p.grid", rest)
}

fn run_file(folder: &TempDir, file: &str, rest: &str) -> Output {
    CPU.run(folder, file, rest)
}

#[test]
fn lost_launches_are_counted_and_placed() {
    CPU.reports_lost_launches(&[8192, 0]);
}

#[test]
fn reports_name_the_lines_that_a_program_was_generated_from() {
    let folder = program(
        "kernel child(p: *mut u32) { *p = 1; }\n\
         #line 30 \"model.toy\"\n\
         kernel lose(p: *mut u32, n: u32) { launch child<<<1, n>>>(p); }\n\
         kernel race(p: *mut u32) { *p = thread_idx.x; }\n\
         kernel fail(p: *mut u32) { assert(*p == 9); }\n",
    );
    for (call, place) in [
        ("--kernel lose --block 1 --arg [4] --arg 5000", "model.toy:30"),
        ("--kernel race --block 32 --arg [4] --check", "model.toy:31"),
        ("--kernel fail --block 1 --arg [4]", "model.toy:32"),
        ("--kernel fail --block 1 --arg [4] --check", "model.toy:32"),
    ] {
        let output = run(&folder, &format!("{call} --grid 1"));
        let said = format!("{}{}", output.stdout, output.stderr);
        assert_ne!(output.status, 0, "{call}: {said}");
        assert!(said.contains(place) && !said.contains("p.grid:"), "{call}: {said}");
        let has_line = said.contains("31 | kernel race(p: *mut u32) { *p = thread_idx.x; }");
        assert_eq!(has_line, call.contains("race"), "{call}: {said}");
    }
}

#[test]
fn try_launch_hands_the_status_to_the_program() {
    CPU.gives_statuses_to_try_launch();
}

#[test]
fn the_cpu_runs_programs_of_every_launch_strategy() {
    let folder =
        program("kernel k(p: *mut u32) { if *p < 5 { *p = *p + 1; launch k<<<1, 1>>>(p); } }");
    for (launch, chosen) in [
        ("", "resident"),
        ("--launch auto", "resident"),
        ("--launch cdp", "cdp"),
        ("--launch resident", "resident"),
    ] {
        let call = "--kernel k --grid 1 --block 1 --arg [1] --print p:1 --json --launch-memory 1";
        let output = run(&folder, &format!("{call} {launch}"));
        assert_eq!(output.status, 0, "{output:?}");
        let output = json(&output);
        assert_eq!((&output["launch"], &output["buffers"]["p"][0]), (&chosen.into(), &5.into()));
    }
    let unknown = run(&folder, "--kernel k --grid 1 --block 1 --arg [1] --launch teleport");
    assert_eq!(unknown.status, 2, "{unknown:?}");
    for name in ["auto", "cdp", "resident"] {
        assert!(unknown.stderr.contains(name), "{unknown:?}");
    }
}

#[test]
fn results_are_the_same_in_every_order_and_on_any_number_of_workers() {
    CPU.sorts_alike(&["--sms 1", "-O 0", "--seed 1", "--seed 2 -O 0 --sms 1", "--stats"]);
}

#[test]
fn seeds_permute_the_order() {
    // Without a barrier, the threads append in the order in which they run.
    let folder = program(
        "kernel k(next: *mut u32, order: *mut u32) { order[atomic_add(next, 1)] = block_idx.x; }",
    );
    let order = |seed: &str| {
        let call = "--kernel k --grid 64 --block 1 --arg [1] --arg [64] --print order:64 --json";
        let output = run(&folder, &format!("{call} --sms 1 {seed}"));
        assert_eq!(output.status, 0, "{output:?}");
        let order = &json(&output)["buffers"]["order"];
        order.as_array().unwrap().iter().map(|at| at.as_u64().unwrap()).collect::<Vec<_>>()
    };
    let straight = order("");
    assert_eq!(straight, (0..64).collect::<Vec<_>>());
    let mut orders = vec![straight.clone()];
    for seed in ["--seed 1", "--seed 2"] {
        let permuted = order(seed);
        assert_eq!(permuted, order(seed), "{seed} twice");
        let mut sorted = permuted.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, straight, "{seed} runs every block once");
        assert!(!orders.contains(&permuted), "{seed} gives an order of its own");
        orders.push(permuted);
    }
}

#[test]
fn a_bundle_runs_as_its_source_does() {
    let (folder, call) = CPU.runs_bundles();
    let output = CPU.run(&folder, "p.gridlet", &format!("{call} --check"));
    assert_eq!(output.status, 2, "an image without checks: {output:?}");
    assert!(output.stderr.contains("--check"), "{}", output.stderr);
}

#[test]
fn a_fault_says_what_checks_would_add() {
    let folder = program(
        "kernel failed(p: *mut u32) { assert(*p == 1); }\n\
         kernel stopped(p: *mut u32) { trap(); }\n\
         kernel divided(p: *mut u32) { *p = 3 / *p; }\n\
         kernel wild(p: *mut u32) { let q = 4096 as u64 as *mut u32; *q = *p; }\n\
         fn depth(n: u32, p: *mut u32) -> u32 { let mut a = [n; 64]; a[*p % 64] = n; if n == 0 { return a[1]; } depth(n - 1, p) + a[n % 7] }\n\
         kernel deep(p: *mut u32) { *p = depth(100000, p); }\n",
    );
    for (kernel, check, said, hint) in [
        ("failed", "", "p.grid:1", ""),
        ("stopped", "", "p.grid:2", ""),
        ("divided", "", "p.grid:3", ""),
        ("wild", "", "0x1000, in block", "with checks on"),
        ("wild", "--check", "p.grid:4", ""),
        ("deep", "", "used up its stack", "recurse less"),
        ("deep", "--check", "p.grid:5", "recurse less"),
    ] {
        let output =
            run(&folder, &format!("--kernel {kernel} --grid 1 --block 1 --arg [1] {check}"));
        assert_eq!(output.status, 4, "{output:?}");
        assert!(output.stderr.contains(said), "{kernel} {check}: {output:?}");
        let found = output.stderr.lines().find(|line| line.contains("hint:")).unwrap_or_default();
        let is_right = if hint.is_empty() { found.is_empty() } else { found.contains(hint) };
        assert!(is_right, "{kernel} {check}: {output:?}");
    }
}

#[test]
fn faults_traps_and_endless_kernels_exit_4() {
    CPU.exits_4_after_faults(&[
        ("*p = 1;", "--arg null", "read or wrote an invalid address"),
        ("*p = 1 / *p;", "--arg [1]", "divided an integer by zero"),
    ]);
}

/// LLVM takes an access at null for code that nothing reaches: it dropped the launch before it, and ran on behind the kernel.
#[test]
fn an_access_at_null_is_a_fault_and_loses_no_launch() {
    let folder = program(
        "kernel child(p: *mut u32) { *p = 7; }\n\
         kernel after(p: *mut u32) { launch child<<<1, 1>>>(p); let q = 0u64 as *mut u32; *q = 1; }\n\
         kernel before(p: *mut u32) { let q = 0u64 as *mut u32; *q = 1; launch child<<<1, 1>>>(p); }\n",
    );
    for (kernel, level) in [("after", 0), ("after", 1), ("after", 3), ("before", 1), ("before", 3)]
    {
        let call =
            format!("--kernel {kernel} -O {level} --grid 1 --block 1 --arg [1] --timeout 20");
        let output = run(&folder, &call);
        assert_eq!(output.status, 4, "{call}: {output:?}");
        let said = format!("error: kernel `{kernel}` read or wrote an invalid address: 0x0");
        assert!(output.stderr.starts_with(&said), "{call}: {output:?}");
    }
}

#[test]
fn barriers_shared_memory_and_warps_work() {
    let folder = program(
        "kernel sum(values: *const u32, out: *mut u32) {\n\
             dynamic shared parts: [u32];\n\
             let mut mine = values[block_idx.x * block_dim.x + thread_idx.x];\n\
             let mut step: u32 = 16;\n\
             while step > 0 { mine += shfl_down(0xffff_ffff, mine, step); step /= 2; }\n\
             if lane_id() == 0 { parts[thread_idx.x / 32] = mine; }\n\
             sync_threads();\n\
             if thread_idx.x == 0 {\n\
                 let mut all: u32 = 0;\n\
                 for warp in 0..block_dim.x / 32 { all += parts[warp]; }\n\
                 out[block_idx.x] = all;\n\
             }\n\
         }",
    );
    for seed in ["", "--seed 5", "--seed 6"] {
        let call = "--kernel sum --grid 4 --block 256 --shared 32 --arg [1024]=iota --arg [4] \
                    --print out:4 --json";
        let output = run(&folder, &format!("{call} {seed}"));
        assert_eq!(output.status, 0, "{output:?}");
        let block = |at: u32| (at * 256..(at + 1) * 256).sum::<u32>();
        assert_eq!(
            json(&output)["buffers"]["out"],
            serde_json::json!([block(0), block(1), block(2), block(3)])
        );
    }
}

/// Sizes that the user or the program chooses end in an error, not in an aborted process.
#[test]
fn sizes_beyond_the_memory_are_errors() {
    let folder = program(
        "kernel k(p: *mut u8) { p[0] = 1; }
        kernel long(p: *mut u8) { printf(\"%1500000000d|\", 1); printf(\"printed\\n\"); }
        kernel heap(p: *mut u8) { p[0] = if malloc(1500000000) as u64 == 0 { 1 } else { 2 }; }",
    );
    let run = |rest: &str| {
        let call = format!("run p.grid --device cpu --grid 1 --block 1 {rest}");
        let arguments: Vec<&str> = call.split(' ').collect();
        Gridlet::new(&folder).with_address_space(1500).run(&arguments)
    };
    for arguments in ["[4000000000]", "[4000000000]=fill:1", "[4000000000]=random:1"] {
        for more in ["", " --check"] {
            let output = run(&format!("--kernel k --arg {arguments}{more}"));
            assert_eq!(output.status, 4, "{arguments}{more}: {output:?}");
            assert!(output.stderr.contains("cannot allocate 4000000000 bytes"), "{output:?}");
        }
    }
    let output = run("--kernel k --arg [1000000000] --print p:1000000000");
    assert_eq!(output.status, 4, "{output:?}");
    let output = run("--kernel long --arg [1]");
    assert!(output.status == 0 && output.stdout.contains("|printed\n"), "{output:?}");
    let output = run("--kernel heap --arg [1] --print p");
    assert!(output.stdout.ends_with("p: [1]\n"), "{output:?}");
}

#[test]
fn printf_comes_out_in_order() {
    let folder =
        program("kernel k() { printf(\"thread %u of %u\\n\", thread_idx.x, block_dim.x); }");
    let output = run(&folder, "--kernel k --grid 1 --block 3");
    assert_eq!(output.status, 0, "{output:?}");
    assert!(
        output.stdout.starts_with("thread 0 of 3\nthread 1 of 3\nthread 2 of 3\n"),
        "{}",
        output.stdout
    );

    // The order of a thread's own lines, and of grids that wait for each other, is fixed whatever
    // the seed.
    let folder = program(
        "kernel child(n: u32) { printf(\"child %u\\n\", n); }
kernel k() {
    for i in 0u32..3 { printf(\"%u:%u\\n\", thread_idx.x, i); }
    if thread_idx.x == 0 {
        launch child<<<1, 1>>>(1);
        launch child<<<1, 1>>>(2);
        launch child<<<1, 1, stream = tail>>>(3);
    }
}",
    );
    for more in ["", "--seed 1", "--seed 2", "--check"] {
        let output = run(&folder, &format!("--kernel k --grid 1 --block 2 {more}"));
        assert_eq!(output.status, 0, "{more}: {output:?}");
        let lines = |start: &str| -> Vec<String> {
            let lines = output.stdout.lines().filter(|line| line.starts_with(start));
            lines.map(str::to_string).collect()
        };
        assert_eq!(lines("0:"), ["0:0", "0:1", "0:2"], "{more}");
        assert_eq!(lines("1:"), ["1:0", "1:1", "1:2"], "{more}");
        assert_eq!(lines("child"), ["child 1", "child 2", "child 3"], "{more}");
    }
}

#[test]
fn a_failed_assertion_says_which_thread_failed() {
    // Matches CUDA's message, also when the block's threads run as one loop, and for every seed.
    let folder = program(
        "fn check(n: u32) {\n    assert(n % 7 != 6, \"not six\");\n}\n\nkernel k(n: u32) {\n    \
         if block_idx.x == 1 && thread_idx.y == 2 { check(n + thread_idx.x); }\n}\n",
    );
    for more in ["", "--seed 1", "-O 0", "--check", "--check --seed 2"] {
        let call = format!("--kernel k --grid 2 --block 4,4 --arg 3 {more}");
        let output = run(&folder, &call);
        assert_eq!(output.status, 4, "{more}: {output:?}");
        let said = "p.grid:2: check: block: [1,0,0], thread: [3,2,0] Assertion `not six` failed.\n";
        assert!(output.stdout.contains(said), "{more}: {output:?}");
        assert!(output.stderr.contains("p.grid:2"), "{more}: {output:?}");
    }
}

#[test]
fn a_thread_that_uses_up_its_stack_ends_with_an_error() {
    // The overflow may also happen inside device code: printing, allocating and launching.
    for (what, more) in [
        ("atomic_add(p, 1);", ""),
        ("atomic_add(p, 1);", "--check"),
        ("printf(\"%u\\n\", n);", ""),
        ("free(malloc(8));", ""),
        ("if n % 64 == 0 { launch empty<<<1, 1>>>(); }", "--pending-launches 0"),
    ] {
        let folder = program(&format!(
            "kernel empty() {{}}
fn f(p: *mut u32, n: u32) -> u32 {{
    if n == 0xffff_ffff {{ return 0; }}
    {what}
    return f(p, n + 1) * 3 + f(p, n + 2);
}}
kernel k(p: *mut u32) {{ *p = f(p, 0); }}"
        ));
        let output = run(&folder, &format!("--kernel k --grid 1 --block 1 --arg [1] {more}"));
        assert_eq!(output.status, 4, "{what} {more}: {}", output.stderr);
        assert!(output.stderr.contains("used up its stack"), "{what} {more}: {}", output.stderr);
    }
}

#[test]
fn a_number_of_workers_that_is_none_is_said() {
    let folder = program("kernel k() {}");
    for value in ["0", "-1", "two", ""] {
        let call =
            ["run", "p.grid", "--device", "cpu", "--kernel", "k", "--grid", "1", "--block", "1"];
        let output = Gridlet::new(&folder).env("GRIDLET_CPU_THREADS", value).run(&call);
        assert_eq!(output.status, 3, "{value}: {output:?}");
        let said = format!("GRIDLET_CPU_THREADS is `{value}`, not a positive number");
        assert!(output.stderr.contains(&said), "{value}: {}", output.stderr);
    }
}

#[test]
fn checks_find_what_is_wrong_and_nothing_else() {
    let folder = program("kernel k(p: *mut u32) {\n    p[thread_idx.x] = 1;\n}\n");
    let right = run(&folder, "--kernel k --grid 1 --block 4 --arg [4] --check");
    assert_eq!(right.status, 0, "{right:?}");
    let wrong = run(&folder, "--kernel k --grid 1 --block 5 --arg [4] --check");
    assert_eq!(wrong.status, 4, "{wrong:?}");
    assert!(wrong.stderr.contains("p.grid:2"), "{}", wrong.stderr);
}

#[test]
fn every_pattern_of_launches_runs_checked_and_in_any_order() {
    let folder = program(include_str!("../../../../examples/programs/launch_cost.grid"));
    for (kernel, grid, block, argument, children) in [
        ("one_thread_default", 1, 1, 50, 50),
        ("one_thread_fire_and_forget", 1, 1, 50, 50),
        ("one_thread_tail", 1, 1, 50, 50),
        ("every_thread", 4, 32, 2, 256),
        ("tree", 1, 1, 5, (1 << 6) - 2),
        ("chain_tail", 1, 1, 50, 50),
    ] {
        for more in ["", "--check", "--seed 1", "--seed 2 --check"] {
            let call = format!(
                "--kernel {kernel} --grid {grid} --block {block} --arg {argument} --arg [1] --print done --json {more}"
            );
            let output = run(&folder, &call);
            assert_eq!((output.status, output.stderr.as_str()), (0, ""), "{kernel} {more}");
            assert_eq!(json(&output)["buffers"]["done"][0], children, "{kernel} {more}");
        }
    }
}

#[test]
fn a_launch_the_device_cannot_make_is_a_wrong_call() {
    let folder = CPU.refuses_launches(&[
        ("--grid 1 --block 1 --sms 100000", "100000"),
        ("--grid 1 --block 1 --sms 0", "0"),
    ]);
    for rest in ["--check", "--seed 1"] {
        let mut call = vec!["run", "p.grid", "--kernel", "k", "--grid", "1", "--block", "1"];
        call.extend(["--device", "cuda"]);
        call.extend(rest.split_whitespace());
        let output = Gridlet::new(&folder).run(&call);
        assert_eq!(output.status, 2, "{rest}: {output:?}");
        assert!(output.stderr.contains("--device cpu"), "{}", output.stderr);
    }
}

#[test]
fn device_lists_the_cpu() {
    let folder = folder();
    let call = |arguments: &[&str]| {
        let output = Gridlet::new(&folder).env("GRIDLET_CPU_THREADS", "3").run(arguments);
        assert_eq!(output.status, 0, "{output:?}");
        output
    };
    let devices = json(&call(&["device", "--json"]));
    let cpu = devices["devices"].as_array().unwrap().last().unwrap().clone();
    assert_eq!((&cpu["kind"], &cpu["sm_count"]), (&"cpu".into(), &3.into()));
    assert!(cpu["memory_bytes"].as_u64().unwrap() > 1 << 20);
    let text = call(&["device"]).stdout;
    assert!(text.contains("\ncpu  ") || text.starts_with("cpu  "), "{text}");
    assert!(text.contains("worker threads        3"), "{text}");
}

/// Runs a kernel in several orders, all of which must produce these values in `out`.
fn gives(folder: &TempDir, call: &str, expected: &[i64]) {
    for more in ["", "--seed 1", "--seed 2 -O 0", "--seed 3 --sms 1", "--check", "--check --seed 4"]
    {
        let output = run(folder, &format!("{call} --json {more}"));
        assert_eq!(output.status, 0, "{more}: {output:?}");
        assert_eq!(json(&output)["buffers"]["out"], serde_json::json!(expected), "{more}");
    }
}

#[test]
fn created_streams_are_in_order_and_outlive_their_end() {
    // Each step depends on the previous one; the second stream is never destroyed.
    let folder = program(
        "kernel step(out: *mut u32, factor: u32, add: u32) { *out = *out * factor + add; }
kernel k(out: *mut u32, other: *mut u32) {
    let mine = &out[thread_idx.x];
    let a = stream_create();
    let b = stream_create();
    memset_async(&other[thread_idx.x], 1, 4, a);
    launch step<<<1, 1, stream = a>>>(&other[thread_idx.x], 1, 1);
    memcpy_async(mine, &other[thread_idx.x], 4, a);
    launch step<<<1, 1, stream = a>>>(mine, 2, 3);
    launch step<<<1, 1, stream = a>>>(mine, 3, 1);
    launch step<<<1, 1, stream = b>>>(&out[4 + thread_idx.x], 1, 5);
    launch step<<<1, 1, stream = b>>>(&out[4 + thread_idx.x], 7, 1);
    stream_destroy(a);
}",
    );
    let value = (0x0101_0102_i64 * 2 + 3) * 3 + 1;
    let expected = [value, value, value, value, 36, 36, 36, 36];
    gives(&folder, "--kernel k --grid 1 --block 4 --arg [8] --arg [4] --print out:8", &expected);
}

#[test]
fn copies_and_fills_take_the_default_stream() {
    // Each thread's launches run in order, and grids launched after them see all of their results.
    let folder = program(
        "kernel sum(out: *mut u32) { for i in 0u32..4 { out[8] += out[4 + i]; } }
kernel k(out: *mut u32) {
    let i = thread_idx.x;
    memset_async(&out[i], 0x1ff, 1, default);
    memcpy_async(&out[4 + i], &out[i], 4, default);
    memset_async(&out[i], 0, 0, default);
    memcpy_async(&out[i], &out[8], 0, default);
    if i == 0 { launch sum<<<1, 1, stream = tail>>>(out); }
}",
    );
    let call = "--kernel k --grid 1 --block 4 --arg [9] --print out:9";
    gives(&folder, call, &[255, 255, 255, 255, 255, 255, 255, 255, 1020]);
}

#[test]
fn the_kernel_that_fills_on_gpus_is_right() {
    // The CPU device fills memory without a kernel: this runs the kernel that GPUs use. Bytes
    // around each fill stay unchanged.
    let source = "static area: [[u8; 128]; 1072] = [[0; 128]; 1072];
static large: [u8; 100100] = [0; 100100];

kernel small(out: *mut u32) {
    let offset = thread_idx.x as u64;
    let s = stream_create();
    for bytes in 0u64..67 {
        let to = &area[bytes * 16 + offset][offset + 1];
        assert(fill_async(to, 0x1a5, bytes, s) == 0);
    }
    stream_destroy(s);
    if offset == 0 { launch look<<<1, 1, stream = tail>>>(out); }
}

kernel look(out: *mut u32) {
    for bytes in 0u64..67 {
        for offset in 0u64..16 {
            for at in 0u64..128 {
                let inside = at > offset && at < offset + 1 + bytes;
                let value = if inside { 0xa5u8 } else { 0 };
                if area[bytes * 16 + offset][at] != value { *out += 1; }
            }
        }
    }
}

// Fewer threads than rows of 16 bytes.
kernel some(out: *mut u32) {
    launch fill<<<3, 256>>>(&large[3], 0x5a, 100021);
    launch look_at_large<<<1, 1, stream = tail>>>(out);
}

kernel look_at_large(out: *mut u32) {
    for at in 0u64..100100 {
        let value = if at >= 3 && at < 100024 { 0x5au8 } else { 0 };
        if large[at] != value { *out += 1; }
    }
}
";
    let folder = program(&[include_str!("../../../lang/src/launch/fill.grid"), source].concat());
    gives(&folder, "--kernel small --grid 1 --block 16 --arg [1] --print out:1", &[0]);
    gives(&folder, "--kernel some --grid 1 --block 1 --arg [1] --print out:1", &[0]);
}

#[test]
fn the_last_error_is_the_threads_own() {
    // Block (0) is an invalid launch; a destroyed stream is invalid.
    let folder = program(
        "kernel child() {}
kernel k(out: *mut i32, threads: u32) {
    if thread_idx.x == 1 { out[6] = try launch child<<<1, threads>>>(); }
    let s = stream_create();
    out[7] = stream_destroy(s);
    if thread_idx.x == 2 { out[4] = try launch child<<<1, 1, stream = s>>>(); }
    if thread_idx.x == 3 { out[5] = stream_destroy(s); }
    out[thread_idx.x] = device_last_error() + device_last_error() * 1000;
}",
    );
    let call = "--kernel k --grid 1 --block 4 --arg [8] --arg 0 --print out:8";
    for more in ["", "--seed 1", "--seed 2 -O 0"] {
        let output = run(&folder, &format!("{call} --json {more}"));
        assert_eq!(output.status, 0, "{more}: {output:?}");
        let expected = serde_json::json!([0, 9, 400, 400, 400, 400, 9, 0]);
        assert_eq!(json(&output)["buffers"]["out"], expected, "{more}");
    }
}

#[test]
fn the_heap_is_aligned_limited_and_reused() {
    let folder = program(
        "kernel k(out: *mut u32) {
    let most = malloc(1073741824);
    let more = malloc(16);
    free(most);
    let again = malloc(1073741823);
    free(again);
    let leaked = malloc(24);
    out[0] = (most as u64 % 16 + leaked as u64 % 16) as u32;
    if most as u64 != 0 { out[1] = 1; }
    if more as u64 == 0 { out[2] = 1; }
    if again as u64 != 0 { out[3] = 1; }
    if leaked as u64 != 0 { out[4] = 1; }
    if malloc(0xffff_ffff_ffff_fff0) as u64 == 0 { out[5] = 1; }
}",
    );
    let call = "--kernel k --grid 1 --block 1 --arg [6] --print out:6";
    gives(&folder, call, &[0, 1, 1, 1, 1, 1]);
}

#[test]
fn a_wrong_free_ends_the_kernel() {
    for body in ["let p = malloc(8); free(p); free(p);", "free(out as *mut u8);"] {
        let folder = program(&format!("kernel k(out: *mut u32) {{\n    {body}\n}}"));
        let output = run(&folder, "--kernel k --grid 1 --block 1 --arg [1]");
        assert_eq!(output.status, 4, "{output:?}");
        for said in ["freed an address that `malloc` did not return", "p.grid:2"] {
            assert!(output.stderr.contains(said), "`{said}` is not in: {}", output.stderr);
        }
    }
}

#[test]
fn halves_are_arguments_variables_and_results() {
    let source = "\
static total: f16 = 0.5;
kernel k(x: f16, data: *mut bf16, both: f16x2, sum: *mut f16) {
    let i = thread_idx.x;
    data[i] = data[i] / 3.0 + x as bf16;
    sum[i] = total + both.x * both.y;
    printf(\"%g\\n\", sum[i]);
}
";
    let folder = program(source);
    let call = "--kernel k --grid 1 --block 1 --arg 0.1 --arg [2]=fill:1 --arg {3,-0.25} --arg [2] \
                --print data:2 --print sum:1 --json";
    let output = run(&folder, call);
    assert_eq!(output.status, 0, "{output:?}");
    assert_eq!(output.stderr, "-0.25\n");
    let buffers = &json(&output)["buffers"];
    // 1/3 and 0.1 are 0.333984375 and 0.10009765625 in bf16; their sum lies halfway between two
    // values and rounds to even.
    assert_eq!(buffers["data"], serde_json::json!([0.43359375, 1.0]), "{output:?}");
    assert_eq!(buffers["sum"], serde_json::json!([-0.25]), "{output:?}");
}

/// Findings are messages like those of the compiler, with ids that `explain` knows.
#[test]
fn findings_are_json_lines() {
    let folder = program("kernel k(p: *mut u32) {\n    p[thread_idx.x + 1] = 1;\n}\n");
    let output = run(
        &folder,
        "--kernel k --grid 1 --block 4 --arg [4] --check --json --message-format json",
    );
    assert_eq!((output.status, output.stdout.as_str()), (4, ""));
    let finding: serde_json::Value = serde_json::from_str(&output.stderr).unwrap();
    let found = (&finding["file"], &finding["line"], &finding["severity"], &finding["id"]);
    let expected = ("p.grid".into(), 2.into(), "error".into(), "out-of-bounds".into());
    assert_eq!(found, (&expected.0, &expected.1, &expected.2, &expected.3));
    assert!(finding["message"].is_string() && finding["hint"].is_string(), "{finding}");
    assert!(reference::entry(finding["id"].as_str().unwrap()).is_some());
}

#[test]
fn what_kernels_print_is_not_in_the_json() {
    let folder = program("kernel k(p: *mut u32) { printf(\"printed %u\\n\", p[0]); p[0] = 7; }");
    for more in ["", "--check"] {
        let call = "--kernel k --grid 1 --block 1 --arg [1] --print p --json";
        let output = run(&folder, &format!("{call} {more}"));
        assert_eq!((output.status, output.stderr.as_str()), (0, "printed 0\n"), "{output:?}");
        assert_eq!(json(&output)["buffers"]["p"], serde_json::json!([7]));
    }
}

fn is_finding(id: &str) -> bool {
    gridlet_artifact::cpu::findings::Kind::ALL.iter().any(|kind| kind.id() == id)
}

#[test]
fn the_reference_explains_what_check_finds() {
    let mut wrong = String::new();
    let mut seen = 0;
    for entry in reference::entries().filter(|entry| is_finding(entry.id)) {
        for (at, source) in entry.programs().enumerate() {
            seen += 1;
            let folder = program(source);
            let output = run(&folder, "--check --kernel k --grid 1 --block 64 --arg [64]");
            let said = output.stderr.lines().find(|line| line.starts_with("error"));
            let is_as_said = match at {
                0 => said.is_some_and(|line| line.starts_with(&format!("error[{}]", entry.id))),
                _ => (output.status, output.stderr.as_str()) == (0, ""),
            };
            if !is_as_said {
                wrong += &format!("`{}`, program {at}: {output:?}\n", entry.id);
            }
        }
    }
    assert_eq!((wrong.as_str(), seen), ("", 20));
}

#[test]
fn what_is_shown_can_be_given() {
    let folder = program(
        "struct P { a: f32, v: f32x2, t: [u32; 2], on: bool }\n\
         kernel k(p: P, d: dim3, q: *mut P) { q[0] = p; q[0].t[1] += d.z; }",
    );
    let call = |p: &str, d: &str| {
        let mut arguments = vec!["run", "p.grid", "--device", "cpu", "--arg", p, "--arg", d];
        arguments.extend("--kernel k --grid 1 --block 1 --print q --arg [1]".split(' '));
        Gridlet::new(&folder).without_toolkit().run(&arguments)
    };
    let plain = call("{1, {2, 3}, {4, 5}, true}", "{1, 1, 0}");
    let shown = plain.stdout.lines().find_map(|line| line.strip_prefix("q: [")?.strip_suffix(']'));
    let shown = shown.unwrap_or_else(|| panic!("{plain:?}"));
    let again = call(shown, "{x: 1, y: 1, z: 0}");
    assert!(again.stdout.contains(shown), "{again:?}");
    let mut seen = String::new();
    for (p, d) in [
        ("{a: 1, t: {4, 5}, v: {2, 3}, on: true}", "{1, 1, 0}"),
        ("[1, [2, 3], [4, 5], true]", "{1, 1, 0}"),
        ("{1, [2, 3}, [4, 5], true}", "{1, 1, 0}"),
        ("{1, {2, 3}, {4, 5}, true}", "4"),
    ] {
        let output = call(p, d);
        assert_eq!(output.status, 2, "{output:?}");
        seen += &output.stderr;
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn findings_name_the_argument_whose_buffer_is_too_small() {
    let folder = program(
        "struct Pair { n: u32, values: *mut f32 }
kernel k(p: *const u32, of: Pair, which: u32) {
    if which == 0 { of.values[1] = 1.0; } else { of.values[0] = p[which] as f32; }
}
",
    );
    let run = |which: &str| {
        let run = ["run", "p.grid", "--check", "--kernel", "k", "--grid", "1", "--block", "1"];
        let arguments = ["--arg", "[1]", "--arg", "{1, [1]}", "--arg", which];
        Gridlet::new(&folder).run(&[&run[..], &arguments].concat()).stderr
    };
    let said = run("0");
    assert!(
        said.contains("just past the end of the buffer of `of.values: *mut f32` (4 bytes)"),
        "{said}"
    );
    let said = run("2");
    assert!(
        said.contains("4 bytes past the end of the buffer of `p: *const u32` (4 bytes)"),
        "{said}"
    );
}

/// The kernel that runs at the time-out is named, and with checks the line.
#[test]
fn a_run_that_does_not_end_says_where_it_is() {
    let source = "kernel child(p: *mut u32) {
    while *p != 2 {
        atomic_add(p + 1, 1);
    }
}
kernel main(p: *mut u32) { launch child<<<1, 1>>>(p); }
";
    let folder = program(source);
    let run = |more: &[&str]| {
        let run = ["run", "p.grid", "--device", "cpu", "--kernel", "main", "--timeout", "0.5"];
        let launch = ["--grid", "1", "--block", "1", "--arg", "[2]"];
        let output = Gridlet::new(&folder).run(&[&run[..], &launch, more].concat());
        assert_eq!(output.status, 4, "{output:?}");
        output.stderr
    };
    let checked = run(&["--check"]);
    let places = ["p.grid:2", "p.grid:3"]
        .map(|place| format!("`child` was cancelled, at {place}, in block"));
    assert!(places.iter().any(|place| checked.contains(place)), "{checked}");
    assert!(checked.contains("a loop that never ends around that line"), "{checked}");
    insta::assert_snapshot!(run(&[]));
}
