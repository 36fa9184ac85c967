//! Programs of several files, with const parameters and with functions of other modules, through the
//! `gridlet` program and on the CPU device. Needs a C compiler, as images for the CPU do.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

mod support;

use std::fs;

use support::{Gridlet, Output, folder, json};
use tempfile::TempDir;

/// A folder with files of these names and texts.
fn files(files: &[(&str, &str)]) -> TempDir {
    let folder = folder();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// A call in a folder, given as one text.
fn call(folder: &TempDir, line: &str) -> Output {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    Gridlet::new(folder).without_toolkit().run(&arguments)
}

/// The elements that `--print NAME --json` showed.
fn printed(output: &Output, name: &str) -> Vec<i64> {
    assert_eq!(output.status, 0, "{output:?}");
    let elements = json(output)["buffers"][name].as_array().unwrap().clone();
    elements.iter().map(|element| element.as_i64().unwrap()).collect()
}

#[test]
fn a_program_of_several_files_runs() {
    let folder = files(&[
        ("p.grid", "use \"lib/a.grid\";\nkernel k(p: *mut u32) { launch twice<<<1, N>>>(p); }"),
        ("lib/a.grid", "use \"../n.grid\";\nkernel twice(p: *mut u32) { p[thread_idx.x] *= 2; }"),
        ("n.grid", "use \"lib/a.grid\";\nconst N: u32 = 3;"),
    ]);
    let run =
        "run p.grid --device cpu --kernel k --grid 1 --block 1 --arg [4]=iota --print p --json";
    assert_eq!(printed(&call(&folder, run), "p"), [0, 2, 4, 3]);

    let check = call(&folder, "check p.grid lib/a.grid");
    assert_eq!((check.status, check.stdout + &check.stderr), (0, String::new()));
    let layout = call(&folder, "layout p.grid --kernel twice");
    assert!(layout.stdout.starts_with("kernel twice: 8 of"), "{layout:?}");
    let manifest = call(&folder, "build p.grid --arch cpu --emit manifest");
    let sources = &json(&manifest)["sources"];
    assert_eq!(*sources, serde_json::json!(["p.grid", "lib/a.grid", "n.grid"]));
}

#[test]
fn what_happens_in_a_used_file_is_placed_there() {
    let folder = files(&[
        (
            "p.grid",
            "use \"lib/a.grid\";\n\n\n\n\n\n\n\nkernel k(p: *mut u32) { launch divides<<<1, 1>>>(p); }\n\
             kernel l(p: *mut u32) { launch launches<<<1, 1>>>(p); }",
        ),
        (
            "lib/a.grid",
            "kernel divides(p: *mut u32) {\n    p[0] = 1 / p[1];\n}\n\
             kernel launches(p: *mut u32) {\n    for i in 0..9 {\n        launch divides<<<1, 1>>>(p);\n    }\n}\n\
             kernel outside(p: *mut u32) {\n    p[8] = 1;\n}\n",
        ),
    ]);
    let run = "run p.grid --device cpu --grid 1 --block 1 --arg [2]";
    let fault = call(&folder, &format!("{run} --kernel k"));
    assert_eq!(fault.status, 4, "{fault:?}");
    assert!(fault.stderr.contains("lib/a.grid:2"), "{fault:?}");
    let lost = call(&folder, &format!("{run}=fill:1 --kernel l --pending-launches 2"));
    assert_eq!(lost.status, 4, "{lost:?}");
    assert!(lost.stderr.contains("lib/a.grid:6"), "{lost:?}");
    let checked = call(&folder, &format!("{run} --kernel outside --check"));
    assert_eq!(checked.status, 4, "{checked:?}");
    assert!(checked.stderr.contains("lib/a.grid:10"), "{checked:?}");
    assert!(checked.stderr.contains("p[8] = 1;"), "the line is not shown: {checked:?}");
}

#[test]
fn a_used_file_that_is_not_there_is_an_error_of_the_program() {
    let folder = files(&[("p.grid", "kernel k() {}\nuse \"a.grid\";")]);
    let output = call(&folder, "check p.grid");
    assert_eq!(output.status, 1, "{output:?}");
    assert!(output.stderr.contains("p.grid:2:5"), "{output:?}");
}
