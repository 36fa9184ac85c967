//! What the model reports of programs that fail, and which mistakes it finds.

use gridlet_simulate::{Device, Failure, FailureKind, Grid, Options};

use crate::compile;

/// Runs `kernel test(out: *mut u32)`, with 64 words, under many seeds; the first failure.
fn fail(source: &str, grid: Grid, weak: bool) -> Option<Box<Failure>> {
    let program = compile(source);
    (0..100).find_map(|seed| {
        let mut device = Device::new(&program);
        let out = device.allocate(256);
        let options = Options { weak, max_steps: 300_000, ..Options::seed(seed) };
        device.launch("test", grid, &out.to_le_bytes(), &options).err()
    })
}

#[track_caller]
fn fails(source: &str, grid: Grid, kind: FailureKind, messages: &[&str]) {
    let failure = fail(source, grid, false).expect("a failure");
    let text = failure.to_string();
    assert_eq!(failure.kind, kind, "{text}");
    for message in messages {
        assert!(text.contains(message), "`{message}` is missing:\n{text}");
    }
}

#[test]
fn wrong_accesses_are_found() {
    let access = |body: &str| format!("kernel test(out: *mut u32) {{\n{body}\n}}");
    let cases = [
        ("out[64] = 1;", "outside its allocation"),
        ("out[-1] = 1;", "an access of 4 bytes"),
        ("*(0 as *mut u32) = 1;", "no memory"),
        ("*((out as u64 + 2) as *mut u32) = 1;", "not a multiple of 4"),
        ("shared a: [u32; 4]; a[200u32 + thread_idx.x] = 1;", "outside its allocation"),
    ];
    for (body, message) in cases {
        fails(&access(body), Grid::new(1, 1), FailureKind::Wrong, &[message, "test.grid:2"]);
    }
}

#[test]
fn asserts_and_traps_are_reported() {
    let assert = "kernel test(out: *mut u32) {\n assert(thread_idx.x != 7, \"seven\");\n}";
    let place = ["seven", "block (0, 0, 0) thread 7: test.body (test.grid:2)"];
    fails(assert, Grid::new(1, 8), FailureKind::Assert, &place);
    let trap = "kernel test(out: *mut u32) {\n if block_idx.x == 1 { trap(); }\n}";
    fails(trap, Grid::new(2, 1), FailureKind::Trap, &["block (1, 0, 0) thread 0"]);
}

#[test]
fn a_lane_that_never_comes_is_a_dead_lock() {
    let source = "kernel test(out: *mut u32) {
        if thread_idx.x != 3 { sync_warp(0xff); }
        sync_threads();
    }";
    let said =
        ["threads 0-2 4-7: waits at Sync of lanes 0x000000ff", "threads 3: waits for the block"];
    fails(source, Grid::new(1, 8), FailureKind::Deadlock, &said);
}

#[test]
fn endless_loops_end() {
    let source = "kernel test(out: *mut u32) {
        while atomic_load(out, relaxed) == 0 {}
    }";
    fails(source, Grid::new(1, 2), FailureKind::Endless, &["runs in test.body"]);
    let quiet = "kernel test(out: *mut u32) { loop {} }";
    fails(quiet, Grid::new(1, 2), FailureKind::Endless, &["runs in test.body"]);
}

/// Two threads add without an atomic operation: some order loses one.
#[test]
fn races_show() {
    let source = "kernel test(out: *mut u32) {
        out[0] += 1;
        sync_threads();
        assert(out[0] == 2, \"lost\");
    }";
    fails(source, Grid::new(1, 2), FailureKind::Assert, &["lost"]);
}

/// Thread 0 of the first block hands a value to the second block; the flag is at 16 words' distance.
fn hand_over(before: &str, after: &str) -> String {
    format!(
        "kernel test(out: *mut u32) {{
            if block_idx.x == 0 {{
                out[0] = 7;
                {before}
                atomic_exch(&out[16], 1);
            }} else {{
                let old = out[0];
                while atomic_load(&out[16], relaxed) == 0 {{}}
                {after}
                assert(old == 7 || old == 0);
                assert(out[0] == 7, \"stale\");
            }}
        }}"
    )
}

#[test]
fn missing_fences_show_in_weak_memory() {
    let grid = Grid::new(2, 1);
    let run = |before, after, weak| fail(&hand_over(before, after), grid, weak).is_some();
    let fence = "fence_device();";
    assert!(!run(fence, fence, true));
    assert!(!run("", "", false));
    for (before, after) in [("", fence), (fence, ""), ("", ""), ("fence_block();", fence)] {
        assert!(run(before, after, true), "`{before}` and `{after}` suffice");
    }
}

#[test]
fn acquire_and_release_order_plain_accesses() {
    let ends_well = |release: &str, acquire: &str| {
        let source = format!(
            "kernel test(out: *mut u32) {{
                if block_idx.x == 0 {{
                    out[0] = 7;
                    {release};
                }} else {{
                    let old = out[0];
                    while {acquire} == 0 {{}}
                    assert(old + out[0] >= 7, \"stale\");
                }}
            }}"
        );
        fail(&source, Grid::new(2, 1), true).is_none()
    };
    let (release, acquire) =
        ("atomic_store(&out[16], 1, release)", "atomic_load(&out[16], acquire)");
    assert!(ends_well(release, acquire));
    assert!(!ends_well("atomic_store(&out[16], 1, relaxed)", acquire));
    // The scope has both blocks.
    let of = |call: &str, scope: &str| call.replace('(', &format!("_{scope}("));
    assert!(ends_well(&of(release, "system"), &of(acquire, "system")));
    assert!(!ends_well(&of(release, "block"), acquire));
    assert!(!ends_well(release, &of(acquire, "block")));
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let source = "kernel test(out: *mut u32) {
        let at = atomic_add(out, 1);
        out[1 + at] = thread_idx.x;
    }";
    let program = compile(source);
    let run = |seed, weak| {
        let mut device = Device::new(&program);
        let out = device.allocate(256);
        let options = Options { weak, ..Options::seed(seed) };
        device.launch("test", Grid::new(1, 32), &out.to_le_bytes(), &options).unwrap();
        device.read_words(out, 33)
    };
    for weak in [false, true] {
        assert_eq!(run(3, weak), run(3, weak));
        assert!((0..20).any(|seed| run(seed, weak) != run(20, weak)));
    }
}

#[test]
fn accesses_that_nothing_orders_are_found() {
    let races = |body: &str| {
        let source =
            format!("kernel test(out: *mut u32) {{\n shared cells: [u32; 64];\n{body}\n}}");
        let program = compile(&source);
        let mut device = Device::new(&program);
        let out = device.allocate(256);
        let options = Options { races: true, ..Options::seed(5) };
        device.launch("test", Grid::new(1, 40), &out.to_le_bytes(), &options).unwrap().races
    };
    let neighbour = "out[thread_idx.x] = cells[(thread_idx.x + 1) % 40];";
    let own = "cells[thread_idx.x] = thread_idx.x + 1;";
    let found = races(&format!("{own}\n{neighbour}"));
    assert!(
        found.iter().any(|race| race.contains("Store in test.body (test.grid:3)")),
        "{found:?}"
    );
    assert!(found.iter().any(|race| race.contains("Load in test.body (test.grid:4)")), "{found:?}");
    // A warp's own barrier is not enough for 40 threads.
    assert!(!races(&format!("{own}\nsync_warp(0xffff_ffff);\n{neighbour}")).is_empty());
    let apart = |of_first: &str, of_others: &str| {
        races(&format!("if thread_idx.x == 0 {{ {of_first} }} else {{ {of_others} }}"))
    };
    assert!(!apart("atomic_add(out, 1);", "out[thread_idx.x] = *out;").is_empty());
    assert!(!apart("*out = 1;", "out[thread_idx.x] = atomic_load(out, relaxed);").is_empty());
    let ordered = [
        "out[thread_idx.x + 1] = *out + atomic_load(out, relaxed);".to_owned(),
        format!("{own}\nsync_threads();\n{neighbour}"),
        "(out as *mut u8)[thread_idx.x] = thread_idx.x as u8;".to_owned(),
        "atomic_add(out, 1);".to_owned(),
        "if thread_idx.x == 0 { out[1] = 7; atomic_store(out, 1, release); }
         else if atomic_load(out, acquire) == 1 { out[1 + thread_idx.x] = out[1]; }"
            .to_owned(),
    ];
    for body in ordered {
        assert_eq!(races(&body), Vec::<String>::new(), "{body}");
    }
}
