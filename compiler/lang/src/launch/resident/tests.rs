//! Which operations of a program become which functions of the scheduler.

use crate::arch::CudaArch;
use crate::ir::{InstKind, Module};
use crate::launch::{LaunchOptions, LaunchStrategy};
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
         kernel early(n: u32) { if thread_idx.x >= n { return; } shared_by_both(); }
         kernel late() { shared_by_both(); own(); }
         kernel alone() { own(); }
         kernel without() {}
         kernel ordinary(n: u32) { if thread_idx.x >= n { return; } own(); }
         kernel root() {
             launch early<<<1, 32>>>(7);
             launch late<<<1, 32>>>();
             launch alone<<<1, 32>>>();
             launch without<<<1, 32>>>();
         }",
    );
    assert_eq!(callers(&module, "meet"), ["shared_by_both"]);
    assert_eq!(callers(&module, "lanes"), ["own.resident"]);
    // Also the kernel that shares a function with the one whose threads return.
    for edge in ["enter_lanes", "leave_lanes"] {
        assert_eq!(callers(&module, edge), ["gridlet.run.early", "gridlet.run.late"]);
    }
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
