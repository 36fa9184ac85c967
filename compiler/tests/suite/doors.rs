//! The code that the ways to use Gridlet as a back end ask of an implementer is short, and has the number of lines that the guide
//! says: in the form that rustfmt gives it by default, without blank lines and comments.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::io::Write as _;
use std::process::{Command, Stdio};

const MAX_LINES: usize = 60;

/// The text in rustfmt's default form.
fn formatted(text: &str) -> String {
    let mut rustfmt = Command::new("rustfmt")
        .args(["--edition", "2024", "--config", "use_small_heuristics=Default,max_width=100"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    rustfmt.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    let output = rustfmt.wait_with_output().unwrap();
    assert!(output.status.success(), "{text}");
    String::from_utf8(output.stdout).unwrap()
}

/// The number of lines with code.
fn lines(text: &str) -> usize {
    let is_code = |line: &&str| !line.trim().is_empty() && !line.trim().starts_with("//");
    text.lines().filter(is_code).count()
}

const GUIDE: &str = include_str!("../../../docs/implementers.md");

/// Whether the guide says so; its lines are wrapped.
fn says(text: &str) -> bool {
    GUIDE.split_whitespace().collect::<Vec<_>>().join(" ").contains(text)
}

#[test]
fn the_examples_have_the_lines_that_the_guide_says() {
    let examples = [
        (include_str!("../../examples/own_ir.rs"), "of which {} lines are beyond the front end"),
        (include_str!("../../examples/own_module.rs"), "a whole program of {} lines"),
    ];
    for (text, figure) in examples {
        let text = formatted(text);
        // The parser of the toy language.
        let back_end = match text.split_once("\n// The front end.\n") {
            Some((before, rest)) => {
                let (_, rest) = rest.split_once("\n// The back end.\n").unwrap();
                format!("{before}\n{rest}")
            }
            None => text,
        };
        let count = lines(&back_end);
        assert!(says(&figure.replace("{}", &count.to_string())), "{count} lines:\n{back_end}");
        assert!((31..=MAX_LINES).contains(&count), "{count} lines:\n{back_end}");
    }
}

#[test]
fn the_programs_of_the_guide_are_short() {
    let programs: Vec<&str> =
        GUIDE.split("```rust\n").skip(1).map(|rest| rest.split_once("```").unwrap().0).collect();
    assert_eq!(programs.len(), 3, "one for each door");
    for program in &programs {
        let shown: String = program
            .lines()
            .filter(|line| !line.starts_with("# "))
            .map(|line| format!("{line}\n"))
            .collect();
        let count = lines(&formatted(&format!("fn main() {{\n{shown}}}\n"))) - 2;
        assert!(count <= MAX_LINES, "{count} lines:\n{shown}");
    }
    // With the nodes that give it the lines of another source.
    let text = programs[2].split_once("r#\"\n").unwrap().1.split_once("\"#;").unwrap().0;
    let nodes = GUIDE.split_once("```llvm\n").unwrap().1.split_once("```").unwrap().0;
    let nodes = nodes.lines().filter(|line| line.trim().starts_with('!')).count();
    let figure = format!("The module has {} lines, and {} with", lines(text), lines(text) + nodes);
    assert!(says(&figure), "{figure}");
}
