//! Which operations of a program become which functions of the scheduler.

use super::plan::{CAN_PACK, IN_PARTS, Plan, takes_mask};
use crate::arch::CudaArch;
use crate::builtins::Builtin;
use crate::ir::parse::parse;
use crate::ir::print::print;
use crate::ir::{InstKind, Module};
use crate::launch::{LaunchOptions, LaunchStrategy, fill};
use crate::layout::compute_layouts;
use crate::program::check;
use crate::source::SourceMap;

fn lower(source: &str) -> Module {
    let program = check(SourceMap::single("test.grid", source)).unwrap();
    let options = LaunchOptions::for_arch(LaunchStrategy::Resident, CudaArch::DEFAULT);
    program.lower(&options).unwrap()
}

/// The functions that call a function of the scheduler, the scheduler's own aside.
fn callers(module: &Module, callee: &str) -> Vec<String> {
    let callee = format!("gridlet.{callee}");
    let calls = |kind: &InstKind| matches!(kind, InstKind::Call { function, .. } if module.function(*function).name == callee);
    let functions = module.functions.iter();
    let callers = functions.filter(|f| f.instructions.iter().any(|inst| calls(&inst.kind)));
    let names = callers.map(|f| f.name.trim_end_matches(".body").to_owned());
    names.filter(|name| !name.starts_with("gridlet.") || name.starts_with("gridlet.run.")).collect()
}

#[test]
fn lanes_meet_where_threads_may_have_returned() {
    let module = lower(
        "const FULL: u32 = 0xffff_ffff;
         fn shared_by_both() { sync_warp(FULL); }
         fn own() { sync_warp(FULL); }
         fn aligned() { sync_warp(FULL); }
         kernel early(n: u32) { if thread_idx.x >= n { return; } shared_by_both(); }
         kernel late() { shared_by_both(); own(); }
         kernel alone() { own(); }
         kernel first_warp() { if thread_idx.x < 32 { aligned(); } }
         kernel without() {}
         kernel ordinary(n: u32) { if thread_idx.x >= n { return; } own(); }
         kernel root() {
             launch early<<<1, 32>>>(7);
             launch late<<<1, 32>>>();
             launch alone<<<1, 32>>>();
             launch first_warp<<<1, 64>>>();
             launch without<<<1, 32>>>();
         }",
    );
    assert_eq!(callers(&module, "meet"), ["shared_by_both"]);
    assert_eq!(callers(&module, "meet_unaligned"), ["aligned"]);
    assert_eq!(callers(&module, "lanes"), ["own.resident"]);
    // Also the kernel that shares a function with the one whose threads return.
    for edge in ["enter_lanes", "leave_lanes"] {
        assert_eq!(callers(&module, edge), ["gridlet.run.early", "gridlet.run.late"]);
    }
    for edge in ["enter_unaligned_lanes", "leave_unaligned_lanes"] {
        assert_eq!(callers(&module, edge), ["gridlet.run.first_warp"]);
    }
}

#[test]
fn warps_whose_lanes_all_have_a_thread_run_copies_that_ask_nobody() {
    let module = lower(
        "const FULL: u32 = 0xffff_ffff;
         fn inner(n: u32) -> u32 { return shfl(FULL, n, 0); }
         fn outer(n: u32) -> u32 { return if n == 0 { inner(n) } else { outer(n - 1) }; }
         fn without(n: u32) -> u32 { return n + 1; }
         kernel whole(p: *mut u32) { *p = outer(without(3)); sync_threads(); }
         kernel rows(p: *mut u32) { if thread_idx.y == 2 { return; } *p = inner(1); }
         kernel early(p: *mut u32) { if thread_idx.x == 2 { return; } *p = shfl(FULL, 1, 0); }
         kernel plain(p: *mut u32) { *p = without(3); }
         kernel root(p: *mut u32) {
             launch whole<<<1, 32>>>(p);
             launch rows<<<1, 32>>>(p);
             launch early<<<1, 32>>>(p);
             launch plain<<<1, 32>>>(p);
         }",
    );
    assert_eq!(callers(&module, "warp_is_whole"), [] as [&str; 0]);
    assert_eq!(
        callers(&module, "warp_is_whole_and_aligned"),
        ["gridlet.run.whole", "gridlet.run.rows"]
    );
    // The text names the copies, so a module that is read from it has them.
    let text = print(&module);
    let read = parse(&text).unwrap();
    let copies = |module: &Module| module.kernels.iter().filter(|k| k.whole.is_some()).count();
    assert_eq!((copies(&module), copies(&read)), (2, 2));
    assert_eq!(print(&read), text);
    let text = own_text(&module);
    let copies = text.split("\n\n").filter(|part| {
        part.lines().any(|line| {
            line.ends_with('{') && line.contains(".whole(") && !line.contains("gridlet.run.")
        })
    });
    insta::assert_snapshot!(copies.collect::<Vec<_>>().join("\n\n"));
}

#[test]
fn blocks_as_large_as_a_worker_run_copies_that_keep_barriers() {
    let module = lower(
        "const FULL: u32 = 0xffff_ffff;
         fn waits(n: u32) -> u32 { sync_threads(); return shfl(FULL, n, 0); }
         kernel fills(p: *mut u32, n: u32) { *p = waits(n); if sync_threads_or(n == 0) { *p = 1; } }
         kernel sometimes(p: *mut u32) { sync_threads(); *p = 1; }
         kernel smaller(p: *mut u32) { *p = waits(1); }
         kernel early(p: *mut u32) { if thread_idx.x == 2 { return; } sync_threads(); *p = 1; }
         kernel without(p: *mut u32) { *p = shfl(FULL, 1, 0); }
         kernel rows(p: *mut u32) { if thread_idx.y == 2 { return; } without_barriers(p); }
         fn without_barriers(p: *mut u32) { *p = shfl(FULL, 1, 0); }
         #[launch_bounds(64)]
         kernel root(p: *mut u32, n: u32) {
             sync_threads();
             launch fills<<<1, 64>>>(p, n);
             launch sometimes<<<1, 32>>>(p);
             launch sometimes<<<1, dim3(8, 8, 1)>>>(p);
             launch smaller<<<1, 48>>>(p);
             launch bounded<<<1, n>>>(p);
             launch early<<<1, 64>>>(p);
             launch without<<<1, 64>>>(p);
             launch rows<<<1, 64>>>(p);
         }
         #[launch_bounds(64)]
         kernel bounded(p: *mut u32) { sync_threads(); *p = 1; }",
    );
    let of_worker = ["gridlet.run.fills", "gridlet.run.sometimes", "gridlet.run.root"];
    assert_eq!(callers(&module, "worker_is_whole"), of_worker);
    assert_eq!(callers(&module, "end_block_of_worker"), of_worker);
    assert_eq!(callers(&module, "worker_is_whole_and_aligned"), [] as [&str; 0]);
    let of_warp = ["gridlet.run.smaller", "gridlet.run.without"];
    assert_eq!(callers(&module, "warp_is_whole"), of_warp);
    assert_eq!(callers(&module, "warp_is_whole_and_aligned"), ["gridlet.run.rows"]);
    let text = own_text(&module);
    let copies = text.split("\n\n").filter(|part| {
        let is_copy = |line: &str| line.ends_with('{') && line.contains(".worker(");
        part.lines().any(|line| is_copy(line) && !line.contains("@root."))
    });
    insta::assert_snapshot!(copies.collect::<Vec<_>>().join("\n\n"));
}

/// For blocks of one warp, a barrier of the hardware takes longer than one of a warp.
#[test]
fn workers_of_one_warp_have_no_copies_with_barriers() {
    let module = lower(
        "kernel child(p: *mut u32) { sync_threads(); *p = 1; }
         kernel root(p: *mut u32) { launch child<<<1, 32>>>(p); }",
    );
    assert_eq!(callers(&module, "worker_is_whole"), [] as [&str; 0]);
}

#[test]
fn operations_in_a_kernel_that_returns_early_all_meet() {
    let operations = [
        "sync_warp(m)",
        "let x = shfl_xor(m, m, 1)",
        "let x = ballot(m, true)",
        "let x = all(m, true)",
        "let x = match_any(m, 7u32)",
        "let x = reduce_add(m, 7u32)",
        "let x = reduce_max(m, 7.0f64)",
    ];
    for operation in operations {
        let body = |before: &str| {
            let source = format!(
                "kernel k(m: u32) {{ {before} {operation}; }}
                 kernel root() {{ launch k<<<1, 32>>>(7); }}"
            );
            let module = lower(&source);
            (callers(&module, "meet").len(), callers(&module, "lanes").len())
        };
        assert_eq!(body("if thread_idx.x == 3 { return; }"), (1, 0), "{operation}");
        assert_eq!(body(""), (0, 1), "{operation}");
    }
}

/// On a GPU, threads of a warp that have diverged may come together inside a function, after some of them took the mask of
/// those that were active: shuffles with that mask then wait for ever.
#[test]
fn the_scheduler_takes_no_mask_from_those_that_are_together() {
    let module = lower("kernel k() {} kernel root() { launch k<<<1, 1>>>(); }");
    let has = |function: &crate::ir::Function, is: &dyn Fn(&InstKind) -> bool| {
        function.instructions.iter().any(|inst| is(&inst.kind))
    };
    let is_mask =
        |kind: &InstKind| matches!(kind, InstKind::Builtin { builtin: Builtin::ActiveMask, .. });
    let takers = module.functions.iter().filter(|f| has(f, &is_mask) && has(f, &takes_mask));
    // It branches only after its last warp operation.
    let names: Vec<_> = takers.map(|function| function.name.as_str()).collect();
    assert_eq!(names, ["gridlet.meet"]);
}

#[test]
fn operations_of_all_lanes_ask_nobody_while_all_are_there() {
    let module = lower(
        "kernel child(p: *mut u32, n: u32) {
             if thread_idx.x == n { return; }
             #[unroll(2)]
             for i in 0..n {
                 p[i] = shfl(0xffffffff, n, i);
                 sync_warp(0xffffffff);
             }
             p[n] = ballot(n, true);
         }
         kernel parent(p: *mut u32) { launch child<<<2, 48>>>(p, 1); }",
    );
    let text = own_text(&module);
    let body = text.split("\n\n").find(|part| part.contains("body @child.body("));
    insta::assert_snapshot!(body.expect("the body"));
}

/// The program's own functions and the functions that run its kernels, as text.
fn own_text(module: &Module) -> String {
    let text = print(module);
    let is_own = |part: &&str| {
        let head = part.lines().find(|line| line.contains('@')).unwrap_or_default();
        !head.contains("@gridlet.") || head.contains("@gridlet.run.")
    };
    text.split("\n\n").filter(is_own).collect::<Vec<_>>().join("\n\n")
}

#[test]
fn kernels_become_bodies_behind_the_scheduler() {
    let module = lower(
        "kernel child(p: *mut u32, n: u32) {
             shared sum: u32;
             if thread_idx.x == 0 { sum = n; }
             sync_threads();
             p[thread_idx.x] = shfl(0xffffffff, sum, 0);
         }
         kernel parent(p: *mut u32, s: stream) {
             launch child<<<2, 48, stream = fire_and_forget>>>(p, 1);
             if (try launch child<<<1, 32, stream = s>>>(p, 2)) != 0 { trap(); }
         }
         kernel ordinary(p: *mut u32) { shared x: u32; x = 1; sync_threads(); *p = x; }",
    );
    insta::assert_snapshot!(own_text(&module));
}

#[test]
fn an_index_is_kept_unless_registers_may_be_few() {
    let keep = |stream: &str| {
        let module = lower(&format!(
            "kernel short(p: *mut u32) {{ p[block_idx.y] = 1; }}
             kernel long(p: *mut u32, n: u32) {{ for i in 0..n {{ p[i] = block_idx.y; }} }}
             kernel root(p: *mut u32) {{
                 launch short<<<9, 64, stream = {stream}>>>(p);
                 launch long<<<9, 64, stream = {stream}>>>(p, 5);
             }}"
        ));
        callers(&module, "next_index")
    };
    let all = ["short", "long", "root"].map(|kernel| format!("gridlet.run.{kernel}"));
    assert_eq!(keep("default"), all);
    assert_eq!(keep("fire_and_forget"), [all[0].clone(), all[2].clone()]);
}

/// Whether the scheduler may run 32 grids of one thread of a kernel in the lanes of a warp.
fn can_pack(child: &str) -> bool {
    let source = format!(
        "fn help(p: *mut u32) {{ launch child<<<1, 1, stream = fire_and_forget>>>(p); }}
         kernel other(p: *mut u32) {{ *p = 1; }}
         kernel child(p: *mut u32) {{ {child} }}
         kernel root(p: *mut u32) {{ help(p); }}"
    );
    let mut module = check(SourceMap::single("test.grid", source)).unwrap().module;
    fill::by_kernels(&mut module, true).unwrap();
    let plan = Plan::of(&module, &compute_layouts(&module).unwrap()).unwrap();
    plan.flags[1] & CAN_PACK != 0
}

#[test]
fn kernels_are_packed_if_no_thread_needs_the_block() {
    for packed in ["*p = 1;", "help(p);", "atomic_add(p, 1); assert(*p > 0);"] {
        assert!(can_pack(packed), "{packed}");
    }
    for alone in [
        "sync_threads();",
        "sync_warp(1);",
        "*p = lane_id();",
        "*p = active_mask();",
        "shared x: u32; x = 1; *p = x;",
        "dynamic shared x: [u32]; *p = x[0];",
        "launch other<<<1, 1>>>(p);",
        "launch other<<<1, 1, stream = tail>>>(p);",
        "memset_async(p as *mut u8, 0, 4, default);",
    ] {
        assert!(!can_pack(alone), "{alone}");
    }
}

/// Whether one warp may run all of a block of a kernel that is launched so.
fn runs_in_parts(child: &str, launch: &str) -> bool {
    let source = format!(
        "extern fn foreign(p: *mut u32);
         fn again(p: *mut u32, n: u32) {{ if n != 0 {{ again(p, n - 1); }} *p = n; }}
         fn short(p: *mut u32) {{ atomic_add(p, 1); }}
         kernel other(p: *mut u32) {{ *p = 1; }}
         kernel child(p: *mut u32, n: u32) {{ {child} }}
         kernel root(p: *mut u32, n: u32) {{ launch child<<<{launch}>>>(p, n); }}"
    );
    let module = check(SourceMap::single("test.grid", source)).unwrap().module;
    let plan = Plan::of(&module, &compute_layouts(&module).unwrap()).unwrap();
    plan.flags[1] & IN_PARTS != 0
}

#[test]
fn a_warp_runs_all_of_a_block_if_that_is_short_and_no_warp_waits_for_another() {
    let alone = "1, 64, stream = fire_and_forget";
    for short in [
        "*p = 1;",
        "if thread_idx.x < n { short(p); }",
        "launch other<<<1, 1, stream = fire_and_forget>>>(p);",
    ] {
        assert!(runs_in_parts(short, alone), "{short}");
    }
    for long in [
        "for i in 0..n { p[i] = 1; }",
        "while atomic_load(p, relaxed) == 0 {}",
        "again(p, n);",
        "foreign(p);",
        "sync_threads();",
        "*p = ballot(0xffff_ffff, true);",
        "shared x: u32; x = 1; *p = x;",
        "launch other<<<1, 1>>>(p);",
    ] {
        assert!(!runs_in_parts(long, alone), "{long}");
    }
    assert!(runs_in_parts("*p = 1;", "n, n, stream = fire_and_forget"));
    // Other grids do not pile up, or have one warp.
    for other in ["1, 64", "1, 64, stream = tail", "1, 32, stream = fire_and_forget"] {
        assert!(!runs_in_parts("*p = 1;", other), "{other}");
    }
}

#[test]
fn workers_are_as_large_as_the_largest_launch() {
    let described = |launch: &str| {
        let module = lower(&format!(
            "#[launch_bounds(96)] kernel bound(p: *mut u32, n: u32) {{ *p = n; }}
             kernel loose(p: *mut u32, n: u32) {{ shared x: [u32; 10]; x[0] = n; *p = x[0]; }}
             kernel root(p: *mut u32, n: u32) {{ {launch} }}"
        ));
        let resident = module.resident.unwrap();
        (resident.max_block_threads, resident.shared_bytes)
    };
    assert_eq!(described("launch bound<<<n, 64>>>(p, n);"), (64, 0));
    assert_eq!(described("launch bound<<<1, n>>>(p, n);"), (96, 0));
    assert_eq!(described("launch loose<<<1, n>>>(p, n);"), (1024, 48));
    assert_eq!(described("launch loose<<<1, dim3(4, 4, 2), shared = 100>>>(p, n);"), (32, 160));
    assert_eq!(described("launch bound<<<1, 1, shared = n>>>(p, n);"), (1, 32 * 1024));
}
