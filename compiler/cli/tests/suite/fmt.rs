//! `gridlet fmt` as users run it.

use std::fs;

use crate::support::{Gridlet, folder, program};

const UGLY: &str = "kernel k( ) { let x=1 ;\n}";
const PRETTY: &str = "kernel k() {\n    let x = 1;\n}\n";

#[test]
fn files_are_rewritten_and_a_second_time_left_alone() {
    let folder = program(UGLY);
    let path = folder.path().join("p.grid");
    let output = Gridlet::new(&folder).run(&["fmt", "p.grid"]);
    assert_eq!((output.status, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
    assert_eq!(fs::read_to_string(&path).expect("the file is there"), PRETTY);
    let modified = || fs::metadata(&path).and_then(|data| data.modified()).expect("a time");
    let before = modified();
    assert_eq!(Gridlet::new(&folder).run(&["fmt", "p.grid"]).status, 0);
    assert_eq!(modified(), before);
    let entries = fs::read_dir(folder.path()).expect("the folder can be read").count();
    assert_eq!(entries, 1, "something was left behind");
}

#[test]
fn check_shows_what_would_change_and_changes_nothing() {
    let folder = program(UGLY);
    fs::write(folder.path().join("q.grid"), PRETTY).expect("the folder can be written");
    let output = Gridlet::new(&folder).run(&["fmt", "--check", "p.grid", "q.grid"]);
    assert_eq!(output.status, 1);
    let expected = "\
--- p.grid
+++ p.grid, formatted
@@ -1,2 +1,3 @@
-kernel k( ) { let x=1 ;
-}
\\ No newline at end of file
+kernel k() {
+    let x = 1;
+}
";
    assert_eq!(output.stdout, expected);
    assert_eq!(output.stderr, "error: p.grid: is not formatted\n");
    let text = fs::read_to_string(folder.path().join("p.grid")).expect("the file is there");
    assert_eq!(text, UGLY);
    assert_eq!(Gridlet::new(&folder).run(&["fmt", "--check", "q.grid"]).status, 0);
    let output =
        Gridlet::new(&folder).run(&["--message-format", "json", "fmt", "--check", "p.grid"]);
    assert!(output.stderr.contains("\"id\":\"not-formatted\""), "{}", output.stderr);
}

#[test]
fn check_compares_only_so_many_lines() {
    let lines = |ugly: &str| {
        let middle = format!("    let x = 1;{ugly}\n").repeat(9000);
        format!("kernel k() {{\n    let x = 1;\n{middle}    let x = 1;\n}}\n")
    };
    let check = |text: &str| {
        let folder = program(text);
        let output = Gridlet::new(&folder).run(&["fmt", "--check", "p.grid"]);
        assert_eq!(output.status, 1);
        output.stdout
    };
    let expected = "\
--- p.grid
+++ p.grid, formatted
too many changes to show, in lines 3 to 9002
";
    assert_eq!(check(&lines(" ")), expected);
    // Small changes in long programs are shown.
    assert!(check(&lines("").replacen("    let", "let", 1)).contains("\n-let x = 1;\n"));
}

#[test]
fn folders_mean_the_programs_in_them() {
    let folder = folder();
    for sub in ["a", "a/b", ".hidden"] {
        fs::create_dir(folder.path().join(sub)).expect("the folder can be written");
        fs::write(folder.path().join(sub).join("p.grid"), UGLY).expect("it can be written");
        fs::write(folder.path().join(sub).join("p.txt"), UGLY).expect("it can be written");
    }
    assert_eq!(Gridlet::new(&folder).run(&["fmt", "."]).status, 0);
    let text =
        |path: &str| fs::read_to_string(folder.path().join(path)).expect("the file is there");
    assert_eq!([text("a/p.grid"), text("a/b/p.grid")], [PRETTY, PRETTY]);
    assert_eq!([text("a/p.txt"), text(".hidden/p.grid")], [UGLY, UGLY]);
}

#[test]
fn standard_input_goes_to_standard_output() {
    let folder = program(UGLY);
    let input = || Gridlet::new(&folder).input(&folder.path().join("p.grid"));
    let output = input().run(&["fmt", "-"]);
    assert_eq!((output.status, output.stdout.as_str()), (0, PRETTY));
    let output = input().run(&["fmt", "--check", "-"]);
    assert_eq!(output.status, 1);
    assert!(output.stdout.contains("+    let x = 1;"), "{}", output.stdout);
}

#[test]
fn what_cannot_be_formatted_is_left_as_it_is() {
    let folder = program("kernel k( {");
    fs::write(folder.path().join("bytes.grid"), [0x6b, 0xff]).expect("it can be written");
    fs::write(folder.path().join("ugly.grid"), UGLY).expect("it can be written");
    let output = Gridlet::new(&folder).run(&["fmt", "p.grid", "ugly.grid"]);
    assert_eq!(output.status, 1);
    assert!(output.stderr.contains("error[syntax-error]"), "{}", output.stderr);
    let text =
        |name: &str| fs::read_to_string(folder.path().join(name)).expect("the file is there");
    assert_eq!([text("p.grid"), text("ugly.grid")], ["kernel k( {", PRETTY]);
    let output = Gridlet::new(&folder).run(&["fmt", "bytes.grid"]);
    assert_eq!(output.status, 1);
    assert_eq!(
        output.stderr,
        "error: bytes.grid: not UTF-8 text at byte 1; save the file as UTF-8\n"
    );
    let output = Gridlet::new(&folder).run(&["fmt", "missing.grid"]);
    assert_eq!(output.status, 2);
}

#[cfg(unix)]
#[test]
fn links_and_permissions_stay() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = program(UGLY);
    let path = |name: &str| folder.path().join(name);
    fs::set_permissions(path("p.grid"), fs::Permissions::from_mode(0o640))
        .expect("they can be set");
    std::os::unix::fs::symlink("p.grid", path("link.grid")).expect("a link can be made");
    assert_eq!(Gridlet::new(&folder).run(&["fmt", "link.grid"]).status, 0);
    assert!(path("link.grid").is_symlink());
    assert_eq!(fs::read_to_string(path("p.grid")).expect("the file is there"), PRETTY);
    let mode = fs::metadata(path("p.grid")).expect("the file is there").permissions().mode();
    assert_eq!(mode & 0o777, 0o640);
    fs::write(path("p.grid"), UGLY).expect("it can be written");
    fs::set_permissions(path("p.grid"), fs::Permissions::from_mode(0o440))
        .expect("they can be set");
    let output = Gridlet::new(&folder).run(&["fmt", "p.grid"]);
    assert_eq!(output.status, 2, "a read-only file was written");
}
