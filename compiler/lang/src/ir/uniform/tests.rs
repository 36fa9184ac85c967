//! Which kernels return early, from source text.

use super::*;
use crate::ir::verify::verify;
use crate::program::check;
use crate::source::SourceMap;
use crate::time::seconds;

/// The classes of the first kernel of a program: `b` for barriers, `w` for warp operations, `u` for those only in blocks
/// whose warps are not aligned.
fn class(source: &str) -> String {
    let program = check(SourceMap::single("test.grid", source));
    let module = program.unwrap_or_else(|error| panic!("{error}\n{source}")).module;
    let found = returns_before(&module)[0];
    let barriers = if found.barriers { "b" } else { "" };
    let warp_operations = match (found.warp_operations, found.in_aligned_warps) {
        (true, true) => "w",
        (true, false) => "u",
        (false, true) => panic!("only in aligned warps: {source}"),
        (false, false) => "",
    };
    format!("{barriers}{warp_operations}")
}

/// The class of a kernel with this body.
fn body(body: &str) -> String {
    class(&format!("kernel k(n: u32, p: *mut u32) {{ {body} }}"))
}

#[track_caller]
fn assert_bodies(class: &str, bodies: &[&str]) {
    for text in bodies {
        assert_eq!(body(text), class, "{text}");
    }
}

const FULL: &str = "const ALL: u32 = 0xffffffff;";

#[track_caller]
fn assert_warp_bodies(expected: &str, bodies: &[&str]) {
    for text in bodies {
        let source = format!("{FULL} kernel k(n: u32, p: *mut u32) {{ {text} }}");
        assert_eq!(class(&source), expected, "{text}");
    }
}

#[test]
fn threads_that_return_before_others_reach_a_barrier() {
    assert_bodies(
        "b",
        &[
            "if thread_idx.x >= n { return; } sync_threads();",
            "let i = block_idx.x * block_dim.x + thread_idx.x; if i >= n { return; } sync_threads();",
            "if lane_id() == n { return; } sync_threads();",
            "if atomic_add(p, 1) == n { return; } sync_threads();",
            "if p[thread_idx.x] == n { return; } sync_threads();",
            "if clock64() == 0 { return; } sync_threads();",
            "if active_mask() == 0 { return; } sync_threads();",
            "if ballot(0xffffffff, true) == 0 { return; } sync_threads();",
            "if (malloc(8) as u64) == 0 { return; } sync_threads();",
            // The barrier is in one branch, or in a loop that some leave earlier.
            "if thread_idx.x < n { sync_threads(); }",
            "if thread_idx.x < n { p[0] = 1; } else { sync_threads(); }",
            "for i in thread_idx.x..n { sync_threads(); }",
            "let mut i = 0u32; loop { i += 1; if i == thread_idx.x { break; } sync_threads(); }",
            "let mut i = 0u32; loop { i += 1; if i == thread_idx.x { return; } sync_threads(); }",
            // Endless for some threads.
            "if thread_idx.x < n { loop { sync_threads(); } }",
            "sync_threads(); if thread_idx.x >= n { return; } let c = sync_threads_count(true); p[0] = c;",
        ],
    );
}

#[test]
fn threads_that_return_together_or_after_all_barriers() {
    assert_bodies(
        "",
        &[
            "",
            "sync_threads();",
            "if n == 0 { return; } sync_threads();",
            "if block_idx.x >= grid_dim.x / 2 { return; } sync_threads();",
            "sync_threads(); if thread_idx.x >= n { return; } p[0] = 1;",
            "if thread_idx.x < n { p[0] = 1; } sync_threads();",
            "if thread_idx.x < n { p[0] = 1; } else { p[1] = 1; } sync_threads();",
            "if thread_idx.x < n && p[thread_idx.x] != 0 || n == 3 { p[0] = 1; } sync_threads();",
            "let mut step = block_dim.x / 2; while step > 0 {
                 if thread_idx.x < step { p[thread_idx.x] += p[thread_idx.x + step]; }
                 sync_threads(); step /= 2; }",
            "for i in 0..n { if i == 7 { break; } sync_threads(); }",
            "for i in 0..n { if thread_idx.x == i { continue; } p[i] = i; } sync_threads();",
            "let c = sync_threads_count(thread_idx.x < n); if c == 0 { return; } sync_threads();",
            "if sync_threads_or(thread_idx.x < n) { sync_threads(); }",
            // A trap ends the grid.
            "assert(thread_idx.x < n, \"\"); sync_threads();",
            "if thread_idx.x == n { trap(); } sync_threads();",
            "p[0] = n / thread_idx.x; sync_threads();",
        ],
    );
}

#[test]
fn variables_vary_with_what_is_stored_and_where() {
    assert_bodies(
        "b",
        &[
            "let mut x = n; x += thread_idx.x; if x == 0 { return; } sync_threads();",
            "let mut x = n; if thread_idx.x == 0 { x = 1; } if x == 0 { return; } sync_threads();",
            "let mut x = 0u32; for i in 0..thread_idx.x { x += 1; } if x == 3 { return; } sync_threads();",
            "let mut x = 0u32; while p[thread_idx.x] == 0 { x += 1; } if x == 3 { return; } sync_threads();",
            // Each use of a variable sees the stores of all iterations.
            "let mut x = 0u32; for i in 0..n { if x == 1 { return; } sync_threads(); x = thread_idx.x; }",
            // Addresses that escape, elements, and fields.
            "let mut x = n; let q = &x; *q = thread_idx.x; if x == 0 { return; } sync_threads();",
            "let mut x: [u32; 4] = [0, 0, 0, 0]; x[1] = thread_idx.x; if x[n % 4] == 0 { return; } sync_threads();",
            "let mut x: [u32; 4] = [0, 0, 0, 0]; x[thread_idx.x % 4] = 1; if x[0] == 0 { return; } sync_threads();",
            "let x: [u32; 4] = [0, 1, 2, 3]; if x[thread_idx.x % 4] == 0 { return; } sync_threads();",
            "let mut d = dim3(n, n, n); d.y = thread_idx.y; if d.x == 0 { return; } sync_threads();",
            "let x = if thread_idx.x == 0 { 1u32 } else { 2 }; if x == 1 { return; } sync_threads();",
        ],
    );
    assert_bodies(
        "",
        &[
            "let mut x = n; if n == 4 { x = 1; } if x == 0 { return; } sync_threads();",
            "let mut x = 0u32; for i in 0..n { x += i; } if x == 3 { return; } sync_threads();",
            "let mut x: [u32; 4] = [0, 0, 0, 0]; x[1] = n; if x[n % 4] == 0 { return; } sync_threads();",
            "let mut d = dim3(n, n, n); d.y = block_idx.y; if d.x == 0 { return; } sync_threads();",
            "let x = if n == 0 { 1u32 } else { 2 }; if x == 1 { return; } sync_threads();",
        ],
    );
}

#[test]
fn loads_from_one_address_are_uniform_unless_some_threads_synchronise() {
    assert_bodies(
        "",
        &[
            "if p[0] == 0 { return; } sync_threads();",
            "if p[block_idx.x] == p[block_idx.x + 1] { return; } sync_threads();",
            "shared x: u32; if thread_idx.x == 0 { x = p[3]; } sync_threads(); if x == 0 { return; } sync_threads();",
            // The barrier comes between.
            "shared x: u32; fence_device(); sync_threads(); if x == 0 { return; } sync_threads();",
            "for i in 0..n { sync_threads(); if p[i] == 0 { return; } sync_threads(); sync_warp(0xffffffff); }",
        ],
    );
    assert_bodies(
        "b",
        &[
            "fence_device(); if p[0] == 0 { return; } sync_threads();",
            "let x = atomic_load(p, acquire); if p[1] == 0 { return; } sync_threads();",
            "if atomic_load(p, relaxed) == 0 { return; } sync_threads();",
            "sync_warp(0xffffffff); if p[0] == 0 { return; } sync_threads();",
            "if thread_idx.x == 0 { fence_device(); } if p[0] == 0 { return; } sync_threads();",
            // Around the loop.
            "for i in 0..n { if p[i] == 0 { return; } sync_threads(); fence_block(); }",
        ],
    );
    // The order crosses calls in both directions.
    let with = |f: &str, k: &str| {
        class(&format!(
            "fn f(p: *mut u32) -> u32 {{ {f} }} kernel k(p: *mut u32) {{ {k} sync_threads(); }}"
        ))
    };
    assert_eq!(with("return *p;", "if f(p) == 0 { return; }"), "");
    assert_eq!(with("return *p;", "fence_device(); if f(p) == 0 { return; }"), "b");
    assert_eq!(with("fence_device(); return 1;", "if f(p) == *p { return; }"), "b");
    assert_eq!(with("fence_device(); return 1;", "if f(p) == 0 { return; }"), "");
}

#[test]
fn calls_pass_variation_on() {
    let with = |f: &str, k: &str| {
        class(&format!("fn f(x: u32) -> u32 {{ {f} }} kernel k(n: u32, p: *mut u32) {{ {k} }}"))
    };
    let returns_x = "return x + 1;";
    assert_eq!(with(returns_x, "if f(n) == 0 { return; } sync_threads();"), "");
    assert_eq!(with(returns_x, "if f(thread_idx.x) == 0 { return; } sync_threads();"), "b");
    assert_eq!(with("return thread_idx.x;", "if f(n) == 0 { return; } sync_threads();"), "b");
    assert_eq!(with("return block_idx.x;", "if f(n) == 0 { return; } sync_threads();"), "");
    let chooses = "if x == 0 { return 1; } return 2;";
    assert_eq!(with(chooses, "if f(n) == 1 { return; } sync_threads();"), "");
    assert_eq!(with(chooses, "if f(thread_idx.x) == 1 { return; } sync_threads();"), "b");
    let recursive = "if x == 0 { return 1; } return f(x - 1);";
    assert_eq!(with(recursive, "if f(n) == 1 { return; } sync_threads();"), "");
    assert_eq!(with(recursive, "if f(thread_idx.x) == 1 { return; } sync_threads();"), "b");
    // A barrier in the function.
    let waits = "if x == 3 { return 1; } sync_threads(); return 2;";
    assert_eq!(with(waits, "f(n);"), "");
    assert_eq!(with(waits, "f(thread_idx.x);"), "b");
    assert_eq!(with("sync_threads(); return x;", "if thread_idx.x < n { f(n); }"), "b");
    assert_eq!(with("sync_threads(); return x;", "if n == 4 { return; } f(thread_idx.x);"), "");
    // Another thread's variable is at the same address.
    let by_pointer = "fn f(x: *mut u32) -> u32 { return *x; }
        kernel k() { let mut x = thread_idx.x; if f(&x) == 0 { return; } sync_threads(); }";
    assert_eq!(class(by_pointer), "b");
}

#[test]
fn the_result_of_a_call_depends_on_its_own_arguments() {
    let with = |f: &str, k: &str| {
        class(&format!(
            "fn f(x: u32, y: u32) -> u32 {{ {f} }} kernel k(n: u32, p: *mut u32) {{ {k} }}"
        ))
    };
    // Another call has an argument that varies.
    let both = |call: &str| {
        format!(
            "p[f(thread_idx.x, thread_idx.x)] = 1; if {call} == 0 {{ return; }} sync_threads();"
        )
    };
    let adds = "return x + y;";
    assert_eq!(with(adds, &both("f(n, n)")), "");
    assert_eq!(with(adds, &both("f(n, thread_idx.x)")), "b");
    assert_eq!(with(adds, &both("f(thread_idx.x, n)")), "b");
    // Only one parameter decides, by its value or by a branch.
    assert_eq!(with("return x;", &both("f(n, thread_idx.x)")), "");
    assert_eq!(with("return x;", &both("f(thread_idx.x, n)")), "b");
    let branches = "if y == 3 { return 1; } return 2;";
    assert_eq!(with(branches, &both("f(thread_idx.x, n)")), "");
    assert_eq!(with(branches, &both("f(n, thread_idx.x)")), "b");
    // A call that some threads make.
    let partial = "let mut x = 0u32; if thread_idx.x < n { x = f(n, n); } if x == 0 { return; } sync_threads();";
    assert_eq!(with(adds, partial), "b");
    // Through another function, which is defined later.
    let outer = |k: &str| {
        class(&format!(
            "fn g(x: u32) -> u32 {{ return f(x, 5); }} fn f(x: u32, y: u32) -> u32 {{ return x * y; }}
             kernel k(n: u32, p: *mut u32) {{ p[g(thread_idx.x)] = f(n, lane_id()); {k} }}"
        ))
    };
    assert_eq!(outer("if g(n) == 0 { return; } sync_threads();"), "");
    assert_eq!(outer("if g(lane_id()) == 0 { return; } sync_threads();"), "b");
    // A barrier in a function counts for all its calls.
    assert_eq!(
        with("if x == 3 { return 1; } sync_threads(); return 2;", "f(n, 0); f(thread_idx.x, 0);"),
        "b"
    );
}

#[test]
fn only_kernels_that_reach_the_function_return_early() {
    let source = "fn f(x: u32) { if x == 3 { return; } sync_threads(); }
        kernel a() { f(thread_idx.x); } kernel b() { sync_threads(); } kernel c() { a_too(); }
        fn a_too() { f(1); }";
    let module = check(SourceMap::single("test.grid", source)).unwrap().module;
    let barriers: Vec<bool> = returns_before(&module).iter().map(|is| is.barriers).collect();
    // All calls of a function count together.
    assert_eq!(barriers, [true, false, true]);
}

#[test]
fn lanes_that_return_before_others_reach_a_warp_operation() {
    assert_warp_bodies(
        "w",
        &[
            "if thread_idx.x >= n { return; } sync_warp(ALL);",
            "if thread_idx.x >= n { return; } p[0] = shfl_down(ALL, n, 1);",
            "if thread_idx.x < n { p[0] = reduce_add(ALL, n); }",
            "for i in thread_idx.x..n { if any(ALL, i == 5) { p[i] = 1; } }",
            "let mut i = 0u32; loop { i += 1; if i == thread_idx.x { return; } sync_warp(ALL); }",
            "if thread_idx.x < n { if n == 4 { return; } sync_warp(ALL); } sync_warp(ALL);",
        ],
    );
    assert_warp_bodies("bw", &["if thread_idx.x >= n { return; } sync_threads(); sync_warp(ALL);"]);
    assert_warp_bodies(
        "",
        &[
            "sync_warp(ALL);",
            "if n == 0 { return; } sync_warp(ALL);",
            "if thread_idx.x < n { p[0] = 1; } sync_warp(ALL);",
            "sync_warp(ALL); if thread_idx.x < n { return; }",
            // All lanes wait for these before they return.
            "if thread_idx.x < 32 { p[0] = shfl_down(ALL, n, 1); } sync_threads();",
            "if thread_idx.x < 32 { sync_warp(ALL); } sync_warp(ALL);",
            // It does not wait.
            "if thread_idx.x >= n { return; } p[0] = active_mask();",
            // The same for all lanes of a warp.
            "if any(ALL, thread_idx.x == n) { return; } sync_warp(ALL);",
            "if ballot(ALL, thread_idx.x == n) == 0 { return; } sync_warp(ALL);",
            "if reduce_add(ALL, thread_idx.x) == 0 { return; } sync_warp(ALL);",
            "if shfl(ALL, thread_idx.x, 0) == 0 { return; } sync_warp(ALL);",
        ],
    );
    assert_warp_bodies(
        "w",
        &[
            "if any(n, thread_idx.x == n) { return; } sync_warp(ALL);",
            "if shfl(ALL, thread_idx.x, thread_idx.x % 2) == 0 { return; } sync_warp(ALL);",
            "if shfl_up(ALL, n, 1) == 0 { return; } sync_warp(ALL);",
        ],
    );
    // Barriers that only some threads pass order no loads.
    let some = "if thread_idx.x < n { sync_threads(); }";
    let load = "if p[0] == 0 { return; } sync_warp(ALL);";
    let call = "if f(p) == 0 { return; } sync_warp(ALL);";
    assert_warp_bodies("bw", &[&format!("{some} {load}")]);
    let load = |first: &str| {
        format!(
            "{FULL} kernel k(n: u32, p: *mut u32) {{ {first} {call} }}
             fn f(p: *mut u32) -> u32 {{ return *p; }}"
        )
    };
    assert_eq!(class(&load(some)), "bw");
    assert_eq!(class(&load("sync_threads();")), "");
    assert_warp_bodies("b", &["if any(ALL, thread_idx.x == n) { return; } sync_threads();"]);
}

#[test]
fn lanes_of_aligned_warps_have_the_number_of_the_warp_in_common() {
    assert_warp_bodies(
        "u",
        &[
            "if thread_idx.x < 32 { p[0] = reduce_add(ALL, n); }",
            "if thread_idx.x >= 64 { return; } sync_warp(ALL);",
            "if 64 > thread_idx.x { sync_warp(ALL); }",
            "if thread_idx.x > 31 { return; } sync_warp(ALL);",
            "if thread_idx.x <= 31 { sync_warp(ALL); }",
            "if thread_idx.x / 32 == 0 { sync_warp(ALL); }",
            "if thread_idx.x >> 5 == n { return; } sync_warp(ALL);",
            "if (thread_idx.x & 0xffffffe0) == n { return; } sync_warp(ALL);",
            "let warp = thread_idx.x / 64; if warp == 0 { return; } sync_warp(ALL);",
            "let x = thread_idx.x as u64; if x / 32 == 1 { return; } sync_warp(ALL);",
            "if thread_idx.y == n { return; } sync_warp(ALL);",
            "if shfl(ALL, thread_idx.x, thread_idx.z) == 0 { return; } sync_warp(ALL);",
        ],
    );
    assert_warp_bodies(
        "w",
        &[
            "if thread_idx.x < 33 { sync_warp(ALL); }",
            "if thread_idx.x <= 32 { sync_warp(ALL); }",
            "if thread_idx.x > 32 { return; } sync_warp(ALL);",
            "if 32 < thread_idx.x { return; } sync_warp(ALL);",
            "if thread_idx.x / 48 == 0 { sync_warp(ALL); }",
            "if thread_idx.x >> 4 == n { return; } sync_warp(ALL);",
            "if (thread_idx.x & 31) == n { return; } sync_warp(ALL);",
            "if thread_idx.x % 32 == 0 { sync_warp(ALL); }",
            "if thread_idx.x == 32 { return; } sync_warp(ALL);",
            "if thread_idx.x as u8 / 32 == 1 { return; } sync_warp(ALL);",
            "let mut x = thread_idx.x; if n == 2 { x = n * thread_idx.x; } if x / 32 == 0 { return; } sync_warp(ALL);",
            "if (thread_idx.x + 1) / 32 == 0 { return; } sync_warp(ALL);",
            "if block_dim.x / thread_idx.x == 32 { return; } sync_warp(ALL);",
        ],
    );
    // All lanes of a warp, but not all threads of a block.
    assert_warp_bodies("b", &["if thread_idx.x < 32 { return; } sync_threads();"]);
}

#[test]
fn what_follows_a_call_holds_lanes_up() {
    let with = |f: &str, k: &str| {
        class(&format!("{FULL} fn f(x: u32) {{ {f} }} kernel k(n: u32, p: *mut u32) {{ {k} }}"))
    };
    let some = "if x == 3 { sync_warp(ALL); }";
    assert_eq!(with(some, "f(thread_idx.x);"), "w");
    assert_eq!(with(some, "f(thread_idx.x); sync_threads();"), "");
    assert_eq!(with(some, "f(thread_idx.x); if n == 3 { sync_threads(); }"), "w");
    assert_eq!(with(some, "loop { f(thread_idx.x); if *p == 1 { break; } } p[1] = 2;"), "w");
    // A function in which all paths wait, and one with a path that does not.
    let waits = "if x == 3 { sync_threads(); } else { sync_warp(ALL); }";
    let branch = "if thread_idx.x < 32 { sync_warp(ALL); } f(n);";
    assert_eq!(with(waits, branch), "");
    assert_eq!(with(some, branch), "u");
}

/// Two nested loops that the source cannot express with a value in the outer one: the value is defined outside the inner
/// loop, which some threads leave early to compute it anew.
const ANEW: &str = "launches symbolic

kernel @k(n: u32) body @k.body

body @k.body(%geometry: geometry, %n: u32) {
  slot $i: u32
entry:
  store $i, 0u32
  jump outer
outer:
  %0: u32 = load $i
  jump inner
inner:
  %1: u32 = load $i
  %2: u32 = add %1, 1u32
  store $i, %2
  %3: bool = ge %2, %n
  branch %3, exit, again
again:
  %4: dim3 = extract %geometry .thread_idx
  %5: u32 = extract %4 .x
  %6: bool = eq %5, %n
  branch %6, outer, inner
exit:
  %7: bool = eq %0, 2u32
  branch %7, quit, wait
quit:
  return
wait:
  sync_threads()
  return
}

entry @k(%n: u32) {
entry:
  %0: geometry = hardware_geometry
  call @k.body(%0, %n)
  return
}
";

#[test]
fn a_value_that_some_threads_compute_anew_varies() {
    let module = crate::ir::parse::parse(ANEW).unwrap_or_else(|error| panic!("{error}"));
    verify(&module).unwrap_or_else(|error| panic!("{error}"));
    assert!(returns_before(&module)[0].barriers);
}

#[test]
fn a_variable_that_gets_a_common_value_no_longer_varies() {
    assert_bodies(
        "",
        &[
            "let mut x = thread_idx.x; p[x] = 1; x = n; if x == 3 { return; } sync_threads();",
            // Each round begins with another value.
            "let mut x = 0u32; for i in 0..n { x = p[thread_idx.x]; p[x] = i; x = i; sync_threads(); }
             if x == 3 { return; } sync_threads();",
        ],
    );
    assert_warp_bodies(
        "",
        &[
            "let mut sum = p[lane_id()]; sum = reduce_add(ALL, sum); if sum < 9 { return; } p[n] = reduce_add(ALL, n);",
        ],
    );
    assert_bodies(
        "b",
        &[
            // The value from before reaches the branch, on one way or by the loop.
            "let mut x = thread_idx.x; if n == 4 { x = n; } if x == 3 { return; } sync_threads();",
            "let mut x = 0u32; for i in 0..n { if x == 3 { return; } x = i; sync_threads(); x = thread_idx.x; }",
            "let mut x = thread_idx.x; while n != 0 { if x == 3 { return; } sync_threads(); x = n; }",
            // Some threads assign.
            "let mut x = n; p[x] = 1; x = 4; if thread_idx.x == 0 { x = n; } if x == 3 { return; } sync_threads();",
            // By a pointer.
            "let mut x = thread_idx.x; let q = &x; p[x] = 1; x = n; *q = thread_idx.x; if x == 3 { return; } sync_threads();",
        ],
    );
}

#[test]
fn thousands_of_variables_over_many_blocks_take_linear_time() {
    let mut text = String::new();
    for at in 0..1000 {
        text += &format!("let mut v{at} = p[{at}];");
    }
    for at in 0..1000 {
        text += &format!("if n == {at} {{ v{at} = n; }} p[v{at}] = v{};", 999 - at);
    }
    let text = format!("kernel k(n: u32, p: *mut u32) {{ {text} sync_threads(); }}");
    let module = check(SourceMap::single("test.grid", text)).unwrap().module;
    let seconds = seconds(|| assert!(!returns_before(&module)[0].barriers));
    assert!(seconds < 5.0, "{seconds}");
}

#[test]
fn thousands_of_functions_take_linear_time() {
    let mut text = String::from("fn f0(x: u32, y: u32) -> u32 { return x + y; }");
    for at in 1..3000 {
        text += &format!(
            "fn f{at}(x: u32, y: u32) -> u32 {{ if x == {at} {{ return y; }} return f{}(x, y + 1); }}",
            at - 1
        );
    }
    let text =
        format!("{text} kernel k(n: u32) {{ if f2999(n, n) == 0 {{ return; }} sync_threads(); }}");
    let module = check(SourceMap::single("test.grid", text)).unwrap().module;
    let seconds = seconds(|| assert!(!returns_before(&module)[0].barriers));
    assert!(seconds < 5.0, "{seconds}");
}

#[test]
fn thousands_of_branches_take_linear_time() {
    let mut text = String::new();
    for at in 0..3000 {
        text += &match at % 3 {
            0 => format!("if thread_idx.x == {at} {{ p[0] = {at}; return; }}"),
            1 => {
                format!("for i in 0..n {{ if p[i] == {at} {{ break; }} x += i; sync_threads(); }}")
            }
            _ => format!("if x == {at} && n != {at} || p[{at}] == 0 {{ x = f(x); }}"),
        };
    }
    let text = format!(
        "fn f(x: u32) -> u32 {{ return x + 1; }}
         kernel k(n: u32, p: *mut u32) {{ let mut x = 0u32; {text} }}"
    );
    let module = check(SourceMap::single("test.grid", text)).unwrap().module;
    let seconds = seconds(|| assert!(returns_before(&module)[0].barriers));
    assert!(seconds < 5.0, "{seconds}");
}
