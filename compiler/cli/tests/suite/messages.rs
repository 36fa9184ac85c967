//! Warnings and explanations as users of the `gridlet` program see them.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use crate::support::{Gridlet, json, program};

const WITH_WARNINGS: &str = "\
kernel k(p: *mut u32) {
    let mut x = 1u32;
    let unused = 2;
    p[0] = x;
    if thread_idx.x == 0 { sync_threads(); }
}
";

#[test]
fn warnings_are_shown_and_stop_nothing() {
    let folder = program(WITH_WARNINGS);
    let output = Gridlet::new(&folder).run(&["check", "p.grid"]);
    assert_eq!((output.status, output.stdout.as_str()), (0, ""));
    insta::assert_snapshot!(output.stderr);

    for call in [&["layout", "p.grid"][..], &["build", "p.grid", "--emit", "ir"]] {
        let other = Gridlet::new(&folder).run(call);
        assert_eq!(other.status, 0, "{other:?}");
        assert_eq!(other.stderr, output.stderr);
        assert!(!other.stdout.is_empty());
    }
}

#[test]
fn launches_that_are_not_resident_have_a_note() {
    let folder = program(
        "kernel part(p: *mut u32) {
            if thread_idx.x > 20 { return; }
            *p = reduce_add(0xffffffff, 1u32);
        }
        kernel all(p: *mut u32) { launch part<<<1, 32>>>(p); }",
    );
    let stderr = |options: &[&str]| {
        let call = [&["build", "p.grid", "--emit", "ir", "-o", "out"], options].concat();
        let output = Gridlet::new(&folder).run(&call);
        assert_eq!(output.status, 0, "{output:?}");
        output.stderr
    };
    let note = "note: launches are not resident, because threads of `part` may return before warp operations of others\n";
    assert_eq!(stderr(&[]), note);
    assert_eq!(stderr(&["--launch", "cdp"]), "");
    assert_eq!(stderr(&["--launch", "resident"]), "");
    assert_eq!(stderr(&["--arch", "cpu"]), "");
}

#[test]
fn warnings_can_be_json_lines() {
    let folder = program(WITH_WARNINGS);
    let output = Gridlet::new(&folder).run(&["--message-format", "json", "check", "p.grid"]);
    let messages: Vec<serde_json::Value> =
        output.stderr.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let shown =
        messages.iter().map(|m| (m["severity"].as_str(), m["id"].as_str(), m["line"].as_u64()));
    let warning = |id, line| (Some("warning"), Some(id), Some(line));
    let expected = [("unused-mut", 2), ("unused-variable", 3), ("divergent-barrier", 5)];
    assert!(shown.eq(expected.map(|(id, line)| warning(id, line))), "{messages:?}");
}

#[test]
fn warnings_are_denied_and_allowed_by_id_or_all_together() {
    let folder = program(WITH_WARNINGS);
    let cases: [(&[&str], i32, [usize; 2]); 7] = [
        (&[], 0, [0, 3]),
        (&["--deny", "warnings"], 1, [3, 0]),
        (&["-D", "unused-mut"], 1, [1, 2]),
        (&["-D", "unused-label"], 0, [0, 3]),
        (&["--allow", "unused-mut", "-A", "unused-variable"], 0, [0, 1]),
        (&["--allow", "warnings"], 0, [0, 0]),
        (&["-D", "warnings", "-A", "divergent-barrier", "-A", "unused-mut"], 1, [1, 0]),
    ];
    for (options, status, counts) in cases {
        let output = Gridlet::new(&folder).run(&[&["check", "p.grid"], options].concat());
        let count = |what| output.stderr.matches(what).count();
        assert_eq!(output.status, status, "{options:?}");
        assert_eq!([count("error["), count("warning[")], counts, "{options:?}");
    }
}

#[test]
fn only_warnings_are_denied_and_allowed() {
    let folder = program(WITH_WARNINGS);
    let mut seen = String::new();
    for id in ["unused-mutt", "type-mismatch", "something-else"] {
        let output = Gridlet::new(&folder).run(&["check", "p.grid", "--deny", id]);
        assert_eq!(output.status, 2, "{id}");
        seen += &output.stderr;
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn errors_hide_warnings() {
    let folder = program("kernel k(p: *mut u32) { let unused = 1; p[0] = 1.5; }");
    let output = Gridlet::new(&folder).run(&["check", "p.grid"]);
    assert_eq!(output.status, 1);
    assert!(output.stderr.contains("error[type-mismatch]"), "{output:?}");
    assert!(!output.stderr.contains("warning"), "{output:?}");
}

#[test]
fn explain_prints_an_entry_of_the_reference() {
    let folder = program("");
    let output = Gridlet::new(&folder).run(&["explain", "unset-variable"]);
    assert_eq!((output.status, output.stderr.as_str()), (0, ""));
    insta::assert_snapshot!(output.stdout);
    // As copied from a message.
    let copied = Gridlet::new(&folder).run(&["explain", "error[unset-variable]"]);
    assert_eq!(copied.stdout, output.stdout);
}

#[test]
fn explain_lists_every_id() {
    let folder = program("");
    let output = Gridlet::new(&folder).run(&["explain"]);
    assert_eq!(output.status, 0);
    let ids: Vec<&str> =
        output.stdout.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let expected: Vec<&str> = gridlet::diagnostics::ids::explained().map(|(id, _)| id).collect();
    assert_eq!(ids, expected);
}

#[test]
fn explain_of_no_id_names_the_nearest() {
    let folder = program("");
    let mut seen = String::new();
    for id in ["unset-varable", "races", "nothing-like-any", "", "a\x1b(B", &"x".repeat(1000)] {
        let output = Gridlet::new(&folder).run(&["explain", id]);
        assert_eq!((output.status, output.stdout.as_str()), (2, ""), "{id}");
        seen += &output.stderr;
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn json_is_one_object_a_message_also_for_wrong_calls() {
    let folder = program("kernel k(p: *mut u32) { *p = 1; }");
    let calls: [&[&str]; 4] = [
        &["--message-format", "json", "explain", "x"],
        &["run", "p.grid", "--no-such-option", "--message-format=json"],
        &["run", "p.grid", "--message-format", "json", "--grid", "x"],
        &["--message-format", "json", "no-such-command"],
    ];
    for call in calls {
        let mut output = Gridlet::new(&folder).run(call);
        assert_eq!((output.status, output.stdout.as_str()), (2, ""), "{output:?}");
        std::mem::swap(&mut output.stdout, &mut output.stderr);
        let message = json(&output);
        assert_eq!((&message["id"], &message["severity"]), (&"wrong-call".into(), &"error".into()));
        assert!(message["message"].as_str().is_some_and(|text| !text.is_empty()), "{message}");
    }
    let help = Gridlet::new(&folder).run(&["--message-format", "json", "--help"]);
    assert!(help.status == 0 && help.stdout.contains("Usage"), "{help:?}");
}

#[test]
fn explain_knows_the_id_of_every_failure() {
    let folder = program(
        "kernel trapped(p: *mut u32) { trap(); }\nkernel beyond(p: *mut u32) { p[64] = 1; }\n",
    );
    let run = "run p.grid --device cpu --grid 1 --block 1 --arg [1] --kernel";
    for (call, status, id) in [
        ("check none.grid", 2, "file"),
        ("fmt none.grid", 2, "file"),
        (&format!("{run} none"), 2, "wrong-call"),
        (&format!("{run} trapped"), 4, "run-failed"),
        (&format!("{run} beyond --check"), 4, "out-of-bounds"),
    ] {
        let call: Vec<&str> =
            ["--message-format", "json"].into_iter().chain(call.split(' ')).collect();
        let output = Gridlet::new(&folder).run(&call);
        assert_eq!((output.status, output.stdout.as_str()), (status, ""), "{output:?}");
        let messages = output.stderr.lines().map(|line| serde_json::from_str(line).unwrap());
        let errors: Vec<serde_json::Value> =
            messages.filter(|message: &serde_json::Value| message["severity"] == "error").collect();
        assert!(errors.len() == 1 && errors[0]["id"] == id, "{output:?}");
        let explained = Gridlet::new(&folder).run(&["explain", id]);
        assert!(explained.status == 0 && explained.stdout.contains(id), "{explained:?}");
    }
}
