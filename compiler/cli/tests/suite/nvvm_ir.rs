//! NVVM IR as a program: `check`, `layout`, `build` and `run` treat it as they treat a `.grid` file.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::fs;

use crate::support::{Gridlet, folder};

/// The modules of other producers.
macro_rules! module {
    ($name:literal) => {
        include_str!(concat!("../../../tests/in/modules/", $name))
    };
}

#[test]
fn a_module_is_checked_and_laid_out() {
    let folder = folder();
    fs::write(folder.path().join("a.ll"), module!("clang.ll")).unwrap();
    let check = Gridlet::new(&folder).run(&["check", "a.ll"]);
    assert_eq!((check.status, check.stderr.as_str()), (0, ""));
    let layout = Gridlet::new(&folder).run(&["layout", "a.ll", "--kernel", "fill"]);
    assert_eq!(layout.status, 0, "{}", layout.stderr);
    insta::assert_snapshot!(layout.stdout);
    let none = Gridlet::new(&folder).run(&["layout", "a.ll", "--kernel", "nothing"]);
    assert_eq!(none.status, 2);
    assert!(none.stderr.contains("the program has fill, start"), "{}", none.stderr);

    fs::write(folder.path().join("b.ll"), "define bogus").unwrap();
    for command in ["check", "layout"] {
        let bad = Gridlet::new(&folder).run(&[command, "b.ll", "--message-format", "json"]);
        assert_eq!(bad.status, 1, "{command}: {}", bad.stderr);
        let message: serde_json::Value = serde_json::from_str(&bad.stderr).unwrap();
        assert_eq!(message["id"], "nvvm-ir");
        let text = message["message"].as_str().unwrap();
        assert!(text.starts_with("b.ll: not a module that LLVM"), "{text}");
        assert!(text.contains("\ndefine bogus\n"), "LLVM's message is shown as it is: {text}");
    }
}

#[test]
fn a_module_runs_on_the_cpu_device() {
    let folder = folder();
    for (name, text) in [("clang.ll", module!("clang.ll")), ("rust.ll", module!("rust.ll"))] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let launch = ["--kernel", "start", "--grid", "1", "--block", "1", "--arg", "[8]", "--arg", "6"];
    let run = ["run", "clang.ll", "--device", "cpu", "--print", "out"];
    let output = Gridlet::new(&folder).run(&[&run[..], &launch].concat());
    assert!(output.stdout.contains("out: [0.0, 0.5, 1.5, 2.5, 3.5, 4.5, 5.5, 0.0]"), "{output:?}");

    // As a bundle, whose images need no module any more.
    let build = ["build", "clang.ll", "--arch", "cpu"];
    assert_eq!(Gridlet::new(&folder).run(&build).status, 0);
    let run = ["run", "clang.gridlet", "--device", "cpu", "--print", "out"];
    let output = Gridlet::new(&folder).run(&[&run[..], &launch].concat());
    assert!(output.stdout.contains("out: [0.0, 0.5, 1.5, 2.5, 3.5"), "{output:?}");

    let reduce = [
        "run", "rust.ll", "--device", "cpu", "--check", "--kernel", "reduce", "--grid", "3",
        "--block", "8", "--arg", "[8]=iota", "--arg", "8", "--arg", "[1]", "--print", "output",
    ];
    let output = Gridlet::new(&folder).run(&reduce);
    assert!(output.stdout.contains("output: [84]"), "{output:?}");
}

#[test]
fn a_module_in_the_style_of_nvidias_samples_runs() {
    let folder = folder();
    fs::write(folder.path().join("a.ll"), module!("nvvm_samples.ll")).unwrap();
    for command in ["check", "layout"] {
        let output = Gridlet::new(&folder).run(&[command, "a.ll"]);
        assert_eq!((output.status, output.stderr.as_str()), (0, ""));
    }
    let launch =
        ["--kernel", "countdown", "--grid", "1", "--block", "4", "--arg", "2", "--arg", "[1]"];
    let run = ["run", "a.ll", "--device", "cpu", "--check", "--print", "total"];
    let output = Gridlet::new(&folder).run(&[&run[..], &launch].concat());
    let printed = "2 left,  3.0 so far\n1 left,  6.0 so far\n0 left,  9.0 so far\n";
    assert!(output.stdout.contains(printed), "{output:?}");
    assert!(output.stdout.contains("total: [9.0]"), "{output:?}");
}

#[test]
fn a_format_that_is_unknown_needs_a_gpu() {
    let folder = folder();
    let from_memory =
        module!("nvvm_samples.ll").replace("private addrspace(1) constant", "addrspace(1) global");
    let unknown = module!("nvvm_samples.ll").replace("%4.1f", "%4.1y");
    for (text, why) in [
        (from_memory, "`vprintf` whose format is not a constant string"),
        (unknown, "`vprintf` with the format \"%d left, %4.1y so far\\n\""),
    ] {
        fs::write(folder.path().join("a.ll"), text).unwrap();
        let build = Gridlet::new(&folder).run(&["build", "a.ll", "--arch", "cpu"]);
        assert!(build.stderr.contains(why), "{}", build.stderr);
    }
}

#[test]
fn findings_of_a_checked_run_name_lines_of_the_module() {
    let folder = folder();
    // The barrier is missing: the sum races with the stores.
    let racing = module!("rust.ll").replace("  call void @llvm.nvvm.barrier0()\n", "");
    fs::write(folder.path().join("a.ll"), &racing).unwrap();
    let reduce = [
        "run", "a.ll", "--check", "--kernel", "reduce", "--grid", "1", "--block", "8", "--arg",
        "[8]=iota", "--arg", "8", "--arg", "[1]",
    ];
    let output = Gridlet::new(&folder).run(&reduce);
    assert_eq!(output.status, 4, "{output:?}");
    let line = 1 + racing
        .lines()
        .position(|line| line.contains("%value = load i32, ptr addrspace(3)"))
        .unwrap();
    assert!(output.stderr.contains(&format!("a.ll:{line}")), "{line}: {}", output.stderr);
    assert!(output.stderr.contains("race"), "{}", output.stderr);
}

#[test]
fn a_module_that_only_a_gpu_runs_says_why() {
    let folder = folder();
    let text = "define ptx_kernel void @k() {\n  call void asm sideeffect \"brkpt;\", \"\"()\n  ret void\n}\n";
    fs::write(folder.path().join("a.ll"), text).unwrap();
    let run = ["run", "a.ll", "--device", "cpu", "--kernel", "k", "--grid", "1", "--block", "1"];
    let output = Gridlet::new(&folder).run(&run);
    assert_eq!(output.status, 1, "{output:?}");
    assert!(output.stderr.contains("function `k`: inline PTX"), "{}", output.stderr);
}

#[test]
fn options_without_effect_on_a_module_are_refused() {
    let folder = folder();
    for name in ["a.ll", "b.ll"] {
        fs::write(folder.path().join(name), module!("clang.ll")).unwrap();
    }
    let run = ["run", "a.ll", "--kernel", "start", "--grid", "1", "--block", "1"];
    let build = ["build", "a.ll"];
    for (call, more, said) in [
        (&run[..], &["--link", "b.ll"][..], "NVVM IR links only with PTX and machine code"),
        (&build, &["--link", "b.ll"], "NVVM IR links only with PTX and machine code"),
        (&run, &["--launch", "cdp"], "--launch has no effect"),
        (&run, &["--stats"], "--stats has no effect"),
        (&build, &["--native"], "add `--arch cpu`"),
        (&build, &["--dialect", "modern"], "libNVVM requires the legacy dialect"),
    ] {
        let output = Gridlet::new(&folder).run(&[call, more].concat());
        assert_eq!(output.status, 2, "{more:?}: {output:?}");
        assert!(output.stderr.contains(said), "{more:?}: {}", output.stderr);
    }
}
