//! The cache of `gridlet run`, and `gridlet cache`.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::fs;
use std::path::PathBuf;

use tempfile::TempDir;

use crate::support::{Gridlet, Output, json, program};

const SOURCE: &str = "\
use \"number.grid\";
kernel parent(out: *mut u32) { launch child<<<1, 1>>>(out); }
kernel child(out: *mut u32) { *out = NUMBER; }
";

fn written(number: u32) -> TempDir {
    let folder = program(SOURCE);
    let text = format!("const NUMBER: u32 = {number};");
    fs::write(folder.path().join("number.grid"), text).unwrap();
    folder
}

fn gridlet(folder: &TempDir) -> Gridlet {
    let cache = folder.path().join("cache");
    Gridlet::new(folder)
        .without_toolkit()
        .env("GRIDLET_CACHE", cache.to_str().unwrap())
        .env("GRIDLET_CACHE_SIZE", "1000000")
}

fn run(folder: &TempDir, more: &[&str]) -> Output {
    let call = ["run", "p.grid", "--kernel", "parent", "--grid", "1", "--block", "1"];
    let call = [&call[..], &["--device", "cpu", "--arg", "[1]", "--print", "out"], more].concat();
    let output = gridlet(folder).run(&call);
    assert_eq!(output.status, 0, "{output:?}");
    output
}

fn entries(folder: &TempDir) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.path().join("cache/compiled")).unwrap();
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn a_second_run_takes_the_image_of_the_first() {
    let folder = written(42);
    let first = run(&folder, &["--json"]);
    let [entry] = &entries(&folder)[..] else { panic!("{:?}", entries(&folder)) };
    // An entry that is written again is another file: hard links tell whether it was.
    fs::hard_link(entry, folder.path().join("kept")).unwrap();
    let second = run(&folder, &["--json"]);
    let is_kept = || {
        use std::os::unix::fs::MetadataExt as _;
        fs::metadata(entry).unwrap().ino()
            == fs::metadata(folder.path().join("kept")).unwrap().ino()
    };
    assert!(is_kept());
    assert_eq!(json(&first)["buffers"], json(&second)["buffers"]);
    // Damage is found, and the entry is made anew.
    let mut bytes = fs::read(entry).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(entry, &bytes).unwrap();
    assert!(run(&folder, &[]).stdout.contains("out: [42]"));
    assert!(!is_kept());
    assert_eq!(entries(&folder).len(), 1);
}

#[test]
fn a_change_of_a_used_file_or_an_option_compiles() {
    let folder = written(1);
    assert!(run(&folder, &[]).stdout.contains("out: [1]"));
    fs::write(folder.path().join("number.grid"), "const NUMBER: u32 = 2;").unwrap();
    assert!(run(&folder, &[]).stdout.contains("out: [2]"));
    for (option, count) in [("-O0", 3), ("-O1", 4), ("--check", 5), ("--stats", 6), ("-O0", 6)] {
        assert!(run(&folder, &[option]).stdout.contains("out: [2]"), "{option}");
        assert_eq!(entries(&folder).len(), count, "{option}");
    }
}

#[test]
fn linked_modules_in_c_are_compiled_each_time() {
    let folder =
        program("extern fn number() -> u32; kernel parent(out: *mut u32) { *out = number(); }");
    fs::write(folder.path().join("n.c"), "#include \"n.h\"\nunsigned number(void) { return N; }")
        .unwrap();
    for number in [3, 4] {
        fs::write(folder.path().join("n.h"), format!("#define N {number}\n")).unwrap();
        let shown = run(&folder, &["--link", "n.c"]).stdout;
        assert!(shown.contains(&format!("out: [{number}]")), "{shown}");
    }
    let text = "define i32 @number() { ret i32 5 }\n";
    fs::write(folder.path().join("n.ll"), text).unwrap();
    assert!(run(&folder, &["--link", "n.ll"]).stdout.contains("out: [5]"));
    fs::write(folder.path().join("n.ll"), text.replace('5', "6")).unwrap();
    assert!(run(&folder, &["--link", "n.ll"]).stdout.contains("out: [6]"));
    assert_eq!(entries(&folder).len(), 2);
}

#[test]
fn the_cache_is_shown_and_cleared() {
    let folder = written(1);
    let show = |call: &[&str]| gridlet(&folder).run(&[&["cache"], call].concat());
    assert_eq!(show(&[]).stdout, "cache/compiled\n0 images, 0 KiB of at most 976 KiB\n");
    run(&folder, &[]);
    let shown = json(&show(&["--json"]));
    assert_eq!(shown["holds"]["entries"], 1, "{shown}");
    assert_eq!(shown["limit"], 1_000_000, "{shown}");
    // Compiler parts in the same cache stay.
    let part = folder.path().join("cache/toolkit/cuda/complete");
    fs::create_dir_all(part.parent().unwrap()).unwrap();
    fs::write(&part, "").unwrap();
    let cleared = show(&["--clear"]);
    assert!(cleared.stdout.starts_with("cache/compiled\nremoved 1 image, "), "{cleared:?}");
    assert!(part.exists() && entries(&folder).is_empty());
    let output = Gridlet::new(&folder).run(&["cache"]);
    assert_eq!((output.status, output.stdout.as_str()), (2, ""));
    insta::assert_snapshot!(output.stderr);
}
