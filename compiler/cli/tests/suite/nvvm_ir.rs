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

    // The names of the device runtime's functions depend on the architecture; the CPU device has all.
    for arch in ["sm_90,sm_100", "cpu"] {
        let check = Gridlet::new(&folder).run(&["check", "a.ll", "--arch", arch]);
        assert_eq!((check.status, check.stderr.as_str()), (0, ""));
    }
    let old = Gridlet::new(&folder).run(&["check", "a.ll", "--arch", "sm_90,sm_80"]);
    assert_eq!(old.status, 1);
    assert!(old.stderr.contains("a.ll:69: on sm_80, `cuda"), "{}", old.stderr);

    fs::write(folder.path().join("b.ll"), "define bogus").unwrap();
    for command in ["check", "layout"] {
        let bad = Gridlet::new(&folder).run(&[command, "b.ll", "--message-format", "json"]);
        assert_eq!(bad.status, 1, "{command}: {}", bad.stderr);
        let message: serde_json::Value = serde_json::from_str(&bad.stderr).unwrap();
        assert_eq!(message["id"], "nvvm-ir");
        let text = message["message"].as_str().unwrap();
        let place = (&message["file"], &message["line"], &message["column"]);
        assert_eq!(place, (&"b.ll".into(), &1.into(), &8.into()));
        assert!(text.starts_with("not a module that LLVM"), "{text}");
        assert!(text.contains("\ndefine bogus\n"), "LLVM's message is shown as it is: {text}");
    }

    // LLVM quotes the line, which may say anything to a terminal.
    fs::write(folder.path().join("c.ll"), b"define \x1b[31mred \xc2\x9b1m\x07").unwrap();
    let bad = Gridlet::new(&folder).run(&["check", "c.ll"]);
    assert!(bad.stderr.contains("define ?[31mred \u{bf}1m?\n"), "{bad:?}");
}

/// LLVM says only that it expects an instruction at the next label.
#[test]
fn a_block_that_does_not_end_is_explained() {
    let folder = folder();
    for (end, place) in [("next: ; more\n  ret void\n}\n", "a.ll:3:1"), ("}\n", "a.ll:3:1")] {
        let text = format!("define ptx_kernel void @k(ptr %p) {{\n  store i32 1, ptr %p\n{end}");
        fs::write(folder.path().join("a.ll"), text).unwrap();
        let bad = Gridlet::new(&folder).run(&["check", "a.ll"]);
        assert_eq!(bad.status, 1, "{bad:?}");
        let said = bad.stderr.strip_prefix(&format!("error: {place}: not a module that LLVM "));
        let said = said.unwrap_or_else(|| panic!("{}", bad.stderr));
        assert!(said.contains(": expected instruction opcode\n"), "{said}");
        assert!(said.contains("The block before this line does not end"), "{said}");
    }
    let other = "define ptx_kernel void @k(ptr %p) {\n  stare i32 1, ptr %p\n  ret void\n}\n";
    fs::write(folder.path().join("a.ll"), other).unwrap();
    let bad = Gridlet::new(&folder).run(&["check", "a.ll"]);
    assert!(bad.stderr.contains("a.ll:2:3: not a module") && !bad.stderr.contains("does not end"));
}

/// PTX has no such parameters: ptxas refuses them, and libNVVM crashes over those of more than 64 bits.
#[test]
fn parameters_of_unusual_widths_are_refused() {
    let folder = folder();
    let module = |ty: &str| {
        let text = format!(
            "define ptx_kernel void @k(ptr %p, {ty} %n) {{\n  \
             store {ty} %n, ptr %p\n  ret void\n}}\n"
        );
        fs::write(folder.path().join("a.ll"), text).unwrap();
    };
    let outputs = ["bundle", "ptx", "object", "cubin"];
    for (ty, instead) in [("i17", "i32"), ("i2", "i8"), ("i65", "i128"), ("<3 x i1>", "i8")] {
        module(ty);
        let check = Gridlet::new(&folder).run(&["check", "a.ll"]);
        let build = |output| {
            let build = ["build", "a.ll", "--arch", "sm_90", "-o", "a.out", "--emit", output];
            Gridlet::new(&folder).run(&build)
        };
        for refused in [check].into_iter().chain(outputs.map(build)) {
            assert_eq!(refused.status, 1, "{ty}: {refused:?}");
            let said = format!("a.ll:1: kernel `k`: the parameter `n` has the type `{ty}`");
            assert!(refused.stderr.contains(&said), "{}", refused.stderr);
            let remedy = format!("declare it as `{instead}`");
            assert!(refused.stderr.contains(&remedy), "{}", refused.stderr);
        }
    }
    for ty in ["i1", "i8", "i64", "i128", "{ i17 }", "[2 x i17]", "<4 x i8>", "<2 x i17>"] {
        module(ty);
        for arch in ["sm_90", "sm_100"] {
            let build = Gridlet::new(&folder).run(&["build", "a.ll", "--arch", arch]);
            assert_eq!(build.status, 0, "{ty} on {arch}: {build:?}");
        }
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

/// Launches `child` twice, the second time with a block of `threads`, and drops both statuses.
const DROPPING: &str = concat!(
    "target triple = \"nvptx64-nvidia-cuda\"\n",
    device_runtime!(),
    "define ptx_kernel void @child(i32 %x) {
  ret void
}
define ptx_kernel void @start(i32 %threads) {
  %b = ",
    buffer_of!("child"),
    "  %none = icmp eq ptr %b, null
  br i1 %none, label %second, label %first
first:
  store i32 1, ptr %b
  %s = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)
  br label %second
second:
  %block = insertvalue ",
    one!(),
    ", i32 %threads, 0
  %c = call ptr @cudaGetParameterBufferV2(ptr @child, ",
    one!(),
    ", %struct.dim3 %block, i32 0)
  %full = icmp eq ptr %c, null
  br i1 %full, label %end, label %again
again:
  store i32 2, ptr %c
  %t = call i32 @cudaLaunchDeviceV2(ptr %c, ptr null)
  br label %end
end:
  ret void
}
"
);

#[test]
fn launches_whose_status_a_module_drops_are_not_lost_in_silence() {
    let folder = folder();
    let path = folder.path().join("a.ll");
    let run = |text: &str, threads: &str, pending: &str| {
        fs::write(&path, text).unwrap();
        let build = Gridlet::new(&folder).run(&["build", "a.ll", "--arch", "cpu"]);
        assert_eq!((build.status, build.stderr.as_str()), (0, ""));
        // One worker, so that no child ends before the second launch.
        let run = ["run", "a.gridlet", "--device", "cpu", "--sms", "1", "--kernel", "start"];
        let launch = ["--grid", "1", "--block", "1", "--arg", threads];
        let limit = ["--pending-launches", pending];
        Gridlet::new(&folder).run(&[&run[..], &launch, &limit].concat())
    };
    assert_eq!(run(DROPPING, "1", "2").status, 0);
    // The pool is full, or the block is too large.
    for (threads, pending, line) in [("1", "1", "a.ll:23"), ("4000", "2", "a.ll:23")] {
        let lost = run(DROPPING, threads, pending);
        assert_eq!(lost.status, 4, "{lost:?}");
        assert!(lost.stderr.contains("1 launch") && lost.stderr.contains(line), "{lost:?}");
    }
    let positions = DROPPING.replace("ptr %c, ptr null)", "ptr %c, ptr null), !dbg !4").replace(
        "@start(i32 %threads) {",
        "@start(i32 %threads) !dbg !3 {",
    ) + "!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: \"a.toy\", directory: \".\")
!2 = !{i32 2, !\"Debug Info Version\", i32 3}
!3 = distinct !DISubprogram(name: \"start\", file: !1, line: 3, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DILocation(line: 7, scope: !3)
";
    let lost = run(&positions, "4000", "2");
    assert!(lost.status == 4 && lost.stderr.contains("a.toy:7"), "{lost:?}");
    let broken = run(&positions.replace("\"a.toy\"", "\"a\\0Ab\\09.toy\""), "4000", "2");
    assert!(broken.status == 4 && broken.stderr.contains("a?b?.toy:7"), "{broken:?}");
    // What uses the status handles failures itself.
    let handled = DROPPING
        .replace("  br label %end\nend:\n", "  call void @handle(i32 %t)\n  br label %end\nend:\n");
    let handled = handled
        + "@seen = addrspace(1) global i32 0\n\
        define internal void @handle(i32 %status) {\n  store i32 %status, ptr addrspace(1) @seen\n  ret void\n}\n";
    assert_eq!(run(&handled, "4000", "2").status, 0);
}

/// A module that reads the record declares it, or defines it as Gridlet does.
#[test]
fn a_module_may_name_the_record_of_lost_launches() {
    let folder = folder();
    for record in [
        "external addrspace(1) global [4 x i32]",
        "addrspace(1) global [4 x i32] zeroinitializer",
        "addrspace(1) externally_initialized global [16 x i8] zeroinitializer, align 4",
        "internal addrspace(1) global [4 x i32] zeroinitializer",
    ] {
        for stream in ["null", "inttoptr (i64 3 to ptr)"] {
            let text = DROPPING.replace("ptr %c, ptr null)", &format!("ptr %c, ptr {stream})"));
            let text = text.replace(
                "end:\n",
                "end:\n  %seen = load i32, ptr addrspace(1) @__gridlet_lost_launches\n",
            );
            let text = format!("{text}@__gridlet_lost_launches = {record}\n");
            fs::write(folder.path().join("a.ll"), text).unwrap();
            let run = ["run", "a.ll", "--device", "cpu", "--kernel", "start", "--arg", "4000"];
            let lost =
                Gridlet::new(&folder).run(&[&run[..], &["--grid", "1", "--block", "1"]].concat());
            assert!(lost.status == 4 && lost.stderr.contains("a.ll:23"), "{record}: {lost:?}");
            let ptx = ["build", "a.ll", "--arch", "sm_90", "--emit", "nvvm", "-o", "-"];
            let written = Gridlet::new(&folder).run(&ptx);
            assert_eq!((written.status, written.stderr.as_str()), (0, ""), "{record}");
        }
    }
    for wrong in [
        "addrspace(1) constant [4 x i32] zeroinitializer",
        "addrspace(1) global [4 x i32] [i32 1, i32 0, i32 0, i32 0]",
    ] {
        let text = format!("{DROPPING}@__gridlet_lost_launches = {wrong}\n");
        fs::write(folder.path().join("a.ll"), text).unwrap();
        let check = Gridlet::new(&folder).run(&["check", "a.ll"]);
        let said = "a.ll:28: the name `__gridlet_lost_launches` is reserved";
        assert!(check.status == 1 && check.stderr.contains(said), "{wrong}: {check:?}");
    }
}

/// A status that is only copied to a variable that nothing reads is dropped.
#[test]
fn a_status_that_is_copied_and_not_read_is_recorded() {
    let copying = |read: &str| {
        let copy = format!(
            "ptr %c, ptr null)
  store i32 %t, ptr %from
  call void @llvm.memcpy.p0.p0.i64(ptr %to, ptr %from, i64 4, i1 false)
{read}"
        );
        let text = DROPPING.replace("ptr %c, ptr null)\n", &copy);
        let locals = "{\n  %from = alloca i32\n  %to = alloca i32\n";
        text.replace("@start(i32 %threads) {\n", &format!("@start(i32 %threads) {locals}"))
            + "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)\n\
               declare void @llvm.trap()\n"
    };
    let read = "  %u = load i32, ptr %to
  %failed = icmp ne i32 %u, 0
  br i1 %failed, label %trap, label %end
trap:
  call void @llvm.trap()
";
    let folder = folder();
    for (read, said) in [("", "a.ll:25"), (read, "trap")] {
        fs::write(folder.path().join("a.ll"), copying(read)).unwrap();
        let run = ["run", "a.ll", "--device", "cpu", "--kernel", "start", "--arg", "4000"];
        let lost =
            Gridlet::new(&folder).run(&[&run[..], &["--grid", "1", "--block", "1"]].concat());
        assert!(lost.status == 4 && lost.stderr.contains(said), "{read}: {lost:?}");
    }
}

/// Some compilers write pointers as numbers.
#[test]
fn the_heap_takes_pointers_as_numbers() {
    let text = "declare i64 @malloc(i64)
declare void @free(i64)
define ptx_kernel void @k(ptr %p) {
  %number = call i64 @malloc(i64 4)
  %memory = inttoptr i64 %number to ptr
  store i32 7, ptr %memory
  %value = load i32, ptr %memory
  store i32 %value, ptr %p
  call void @free(i64 %number)
  ret void
}
";
    let folder = folder();
    fs::write(folder.path().join("a.ll"), text).unwrap();
    let run = ["run", "a.ll", "--check", "--kernel", "k", "--grid", "1", "--block", "1"];
    let checked =
        Gridlet::new(&folder).run(&[&run[..], &["--arg", "[1]", "--print", "p"]].concat());
    assert_eq!((checked.status, checked.stderr.as_str()), (0, ""));
    assert!(checked.stdout.contains("p: [7]"), "{}", checked.stdout);
}

/// The device runtime writes the handle of a stream.
#[test]
fn a_checked_run_knows_the_variable_with_a_stream() {
    let text = DROPPING.replace("ptr %c, ptr null)\n", "ptr %c, ptr %stream)\n").replace(
        "@start(i32 %threads) {\n",
        "@start(i32 %threads) {
  %at = alloca ptr
  %made = call i32 @cudaStreamCreateWithFlags(ptr %at, i32 1)
  %stream = load ptr, ptr %at
",
    ) + "declare i32 @cudaStreamCreateWithFlags(ptr, i32)\n";
    let folder = folder();
    fs::write(folder.path().join("a.ll"), &text).unwrap();
    let run = ["run", "a.ll", "--check", "--kernel", "start", "--grid", "1", "--block", "1"];
    let checked = Gridlet::new(&folder).run(&[&run[..], &["--arg", "1"]].concat());
    assert_eq!((checked.status, checked.stderr.as_str()), (0, ""));
    fs::write(folder.path().join("a.ll"), text.replace("(ptr %at, i32 1)", "(ptr null, i32 1)"))
        .unwrap();
    let wrong = Gridlet::new(&folder).run(&[&run[..], &["--arg", "1"]].concat());
    assert!(wrong.status == 4 && wrong.stderr.contains("a.ll:10"), "{wrong:?}");
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

/// Statuses of launches that a module takes and never reads, and statuses that it reads.
#[test]
fn a_status_that_nothing_reads_is_dropped() {
    let call = "  %t = call i32 @cudaLaunchDeviceV2(ptr %c, ptr null)\n";
    let slot = "  %slot = alloca i32\n  store i32 0, ptr %slot\n  %b = call";
    let stored = format!("{call}  store i32 %t, ptr %slot\n");
    let compared = "  %e = icmp ne i32 %t, 0\n  %f = zext i1 %e to i32\n";
    let loaded = format!("{stored}  %l = load i32, ptr %slot\n  %e = icmp eq i32 %l, 0\n");
    let branch = "  br i1 %e, label %end, label %trap\ntrap:\n";
    let wrapped = "  %t = call i32 @wrapped(ptr %c)\n";
    // The code behind the launch, and whether it reads the status.
    let cases = [
        (call.to_owned(), false),
        (stored.clone(), false),
        (format!("{call}{compared}"), false),
        (format!("{call}{compared}  store i32 %f, ptr %slot\n"), false),
        (format!("{call}{compared}  %g = select i1 %e, i32 %f, i32 2\n"), false),
        (format!("{stored}  %l = load i32, ptr %slot\n  %e = icmp eq i32 %l, 0\n"), false),
        (format!("{loaded}{branch}"), true),
        (format!("{call}{compared}{branch}"), true),
        (format!("{call}{compared}  store i32 %f, ptr addrspace(1) @seen\n"), true),
        (format!("{call}  call void @note(i32 %t)\n"), true),
        (format!("{call}  call void @ignore(i32 %t)\n"), false),
        (wrapped.into(), false),
        (format!("{wrapped}{compared}{branch}"), true),
        (format!("{stored}  call void @look(ptr %slot)\n"), true),
    ];
    let functions = "@seen = addrspace(1) global i32 0\n\
        define internal void @ignore(i32 %x) noinline {\n  ret void\n}\n\
        define internal void @note(i32 %x) noinline {\n  store i32 %x, ptr addrspace(1) @seen\n  ret void\n}\n\
        define internal i32 @wrapped(ptr %c) noinline {\n  %t = call i32 @cudaLaunchDeviceV2(ptr %c, ptr null)\n  ret i32 %t\n}\n\
        define internal void @look(ptr %x) noinline {\n  ret void\n}\n";
    let folder = folder();
    for (code, is_read) in cases {
        let text = DROPPING.replacen("  %b = call", slot, 1).replace(call, &code) + functions;
        fs::write(folder.path().join("a.ll"), text).unwrap();
        let run = ["run", "a.ll", "--device", "cpu", "--kernel", "start", "--arg", "4000"];
        let output =
            Gridlet::new(&folder).run(&[&run[..], &["--grid", "1", "--block", "1"]].concat());
        let expected = if is_read { 0 } else { 4 };
        assert_eq!(output.status, expected, "{code}\n{output:?}");
        assert_eq!(output.stderr.contains("1 launch"), !is_read, "{code}\n{output:?}");
    }
}

/// `outside` stores behind the numbers of `p`: in line 3 of `a.toy` by a function that is inlined from line 5, then again without
/// a position.
const POSITIONS: &str = "\
target triple = \"nvptx64-nvidia-cuda\"
define ptx_kernel void @outside(ptr %p, i32 %n) !dbg !3 {
  switch i32 %n, label %end [
    i32 1, label %one
    i32 2, label %two
  ]
one:
  %q = getelementptr i32, ptr %p, i64 8, !dbg !5
    #dbg_value(i32 %n, !8, !DIExpression(), !5)
  store i32 1, ptr %q, !dbg !5
  ret void
two:
  %r = getelementptr i32,
       ptr %p, i64 9
  store i32 1, ptr %r
  ret void
end:
  ret void
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: \"a.toy\", directory: \"src\")
!2 = !{i32 2, !\"Debug Info Version\", i32 3}
!3 = distinct !DISubprogram(name: \"outside\", file: !1, line: 4, unit: !0, spFlags: DISPFlagDefinition)
!4 = distinct !DISubprogram(name: \"store\", file: !1, line: 2, unit: !0, spFlags: DISPFlagDefinition)
!5 = !DILocation(line: 3, scope: !7, inlinedAt: !6)
!6 = distinct !DILocation(line: 5, scope: !3)
!7 = distinct !DILexicalBlock(scope: !4, file: !1, line: 2)
!8 = !DILocalVariable(name: \"n\", scope: !4, file: !1, line: 2)
";

#[test]
fn findings_are_at_the_positions_of_the_debug_information() {
    let folder = folder();
    let write = |name: &str, text: &str| fs::write(folder.path().join(name), text).unwrap();
    fs::create_dir(folder.path().join("src")).unwrap();
    let find = |file: &str, which: &str| {
        let run = ["run", file, "--device", "cpu", "--check", "--kernel", "outside"];
        let launch = ["--grid", "1", "--block", "1", "--arg", "[8]", "--arg", which];
        let output = Gridlet::new(&folder).run(&[&run[..], &launch].concat());
        assert_eq!(output.status, 4, "{output:?}");
        output.stderr
    };
    write("a.ll", POSITIONS);
    let found = find("a.ll", "1");
    assert!(found.contains("--> a.toy:3\n  = thread 0"), "the source is missing: {found}");
    // Without a position: the line of the file.
    let found = find("a.ll", "2");
    assert!(
        found.contains("--> a.ll:15\n") && found.contains("15 |   store i32 1, ptr %r\n"),
        "{found}"
    );

    write("src/a.toy", "one\ntwo\n  store here\nfour\n");
    let later = find("a.ll", "1");
    assert!(later.contains("--> a.toy:3\n  = thread 0"), "changed after the module: {later}");
    write("a.ll", POSITIONS);
    let quoted = |found: &str| found.contains("--> a.toy:3\n  |\n3 |   store here\n  |\n");
    let found = find("a.ll", "1");
    assert!(quoted(&found), "{found}");

    // A bundle knows the text that its source had.
    let build = ["build", "a.ll", "--arch", "cpu", "--check", "-o", "src/a.gridlet"];
    let built = Gridlet::new(&folder).run(&build);
    assert_eq!((built.status, built.stderr.as_str()), (0, ""));
    let found = find("src/a.gridlet", "1");
    assert!(quoted(&found), "{found}");
    write("src/a.toy", "one\ntwo\n  other here\nfour\n");
    let found = find("src/a.gridlet", "1");
    assert!(found.contains("--> a.toy:3\n  = thread 0"), "the source has changed: {found}");
    let found = find("src/a.gridlet", "2");
    assert!(found.contains("--> a.ll:15\n"), "{found}");
    assert!(found.contains("15 |   store i32 1, ptr %r\n"), "in the current folder: {found}");
}

/// Ways in which other compilers test a buffer before they launch it.
#[test]
fn no_test_of_a_buffer_hides_a_lost_launch() {
    let text = concat!(
        device_runtime!(),
        "define ptx_kernel void @child(i32 %n) {
  ret void
}
define internal ptr @request() noinline {
  %b = ",
        buffer_of!("child"),
        "  ret ptr %b
}
define internal i1 @is_null(ptr %b) noinline {
  %none = icmp eq ptr %b, null
  ret i1 %none
}
define internal void @go(ptr %b) noinline {
  %s = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)
  ret void
}
define ptx_kernel void @start(i32 %n) {
entry:
  %slot = alloca ptr
  br label %ask
ask:
  %first = ",
        buffer_of!("child"),
        "BUFFER
  br i1 %none, label %end, label %launch
launch:
  store i32 7, ptr %b
  %s = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)
  br label %end
end:
  ret void
}
"
    );
    let kernel = |buffer: &str| text.replace("BUFFER", buffer);
    let plain = "  %b = bitcast ptr %first to ptr\n  %none = icmp eq ptr %b, null";
    let ways = [
        kernel(plain),
        kernel(
            "  store ptr %first, ptr %slot\n  %b = load ptr, ptr %slot\n  %none = icmp eq ptr %b, null",
        ),
        kernel(
            "  %bits = ptrtoint ptr %first to i64\n  %none = icmp eq i64 %bits, 0\n  \
             %b = inttoptr i64 %bits to ptr",
        ),
        kernel(
            "  %is_one = icmp eq i32 %n, 1\n  %b = select i1 %is_one, ptr %first, ptr null\n  \
             %none = icmp eq ptr %b, null",
        ),
        kernel("  %b = call ptr @request()\n  %none = icmp eq ptr %b, null"),
        kernel("  %b = bitcast ptr %first to ptr\n  %none = call i1 @is_null(ptr %b)"),
        kernel(plain).replace(
            "%s = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)\n  br",
            "call void @go(ptr %b)\n  br",
        ),
    ];
    let folder = folder();
    for way in ways {
        fs::write(folder.path().join("a.ll"), &way).unwrap();
        let run = |pending| {
            let run = ["run", "a.ll", "--device", "cpu", "--sms", "1", "--kernel", "start"];
            let launch = ["--grid", "1", "--block", "8", "--arg", "1"];
            let limit = ["--pending-launches", pending];
            Gridlet::new(&folder).run(&[&run[..], &launch, &limit].concat())
        };
        assert_eq!(run("8").status, 0, "{way}");
        let lost = run("3");
        assert_eq!(lost.status, 4, "{way}\n{lost:?}");
        assert!(lost.stderr.contains("5 launches"), "{way}\n{}", lost.stderr);
    }
}

#[test]
fn the_text_of_gridlets_ir_is_a_program() {
    let folder = folder();
    let text = include_str!("../../../c/tests/fill.gir");
    fs::write(folder.path().join("a.gir"), text).unwrap();
    let gridlet = |call: &[&str]| Gridlet::new(&folder).run(call);
    let check = gridlet(&["check", "a.gir"]);
    assert_eq!((check.status, check.stderr.as_str()), (0, ""));
    let layout = gridlet(&["layout", "a.gir", "--kernel", "fill"]);
    assert!(layout.stdout.contains("kernel fill: 8 of 4096 bytes"), "{layout:?}");
    let launch = ["--kernel", "start", "--grid", "1", "--block", "1", "--arg", "[4]"];
    let run = ["run", "a.gir", "--device", "cpu", "--check", "--print", "p"];
    let run = gridlet(&[&run[..], &launch].concat());
    assert!(run.stdout.contains("p: [7, 8, 9, 10]"), "{run:?}");
    assert_eq!(gridlet(&["build", "a.gir", "--arch", "cpu"]).status, 0);
    let instance = gridlet(&["build", "a.gir", "--arch", "cpu", "--instance", "fill::<8>"]);
    assert!(instance.status == 2 && instance.stderr.contains("has no instances"), "{instance:?}");

    fs::write(folder.path().join("b.gir"), text.replace("store %2, %3", "store %2, %9")).unwrap();
    let wrong = gridlet(&["check", "b.gir"]);
    assert_eq!(wrong.status, 1, "{wrong:?}");
    assert!(wrong.stderr.contains("b.gir:13"), "{wrong:?}");
}

/// In the files that its positions name, or at its own lines.
#[test]
fn mistakes_in_the_text_of_gridlets_ir_have_places() {
    let folder = folder();
    let text = include_str!("../../../c/tests/fill.gir");
    let gridlet = |call: &[&str], text: &str| {
        fs::write(folder.path().join("a.gir"), text).unwrap();
        Gridlet::new(&folder).run(call)
    };
    let check = |text: &str| {
        let json = ["check", "a.gir", "--message-format", "json"];
        let (human, json) = (gridlet(&["check", "a.gir"], text), gridlet(&json, text));
        assert_eq!((human.status, json.status), (1, 1), "{human:?} {json:?}");
        let message: serde_json::Value = serde_json::from_str(json.stderr.trim()).unwrap();
        let place = format!("{}:{}", message["file"].as_str().unwrap(), message["line"]);
        assert!(human.stderr.contains(&format!("─ {place}:")), "{human:?}");
        (place, message["id"].as_str().unwrap().to_owned())
    };
    let is = |place: &str, id: &str| (place.to_owned(), id.to_owned());
    let large = text.replace("aggregate 4u32", "aggregate 2000u32");
    assert_eq!(check(&large), is("fill.toy:6", "block-too-large"));
    let plain = large.replace("  ; fill.toy:6", "");
    assert_eq!(check(&plain), is("a.gir:28", "block-too-large"));
    let number = text.replace("<<<%0, %1", "<<<4u32, %1");
    assert_eq!(check(&number), is("fill.toy:6", "gridlet-ir"));
    assert_eq!(check(&text.replace("add %1", "cast %1")), is("a.gir:12", "gridlet-ir"));

    let run = ["run", "a.gir", "--device", "cpu", "--kernel", "start", "--grid", "1", "--block"];
    let run = |text: &str, more: &[&str]| gridlet(&[&run[..], &["1"], more].concat(), text).stderr;
    let unset = text.replace(
        "{\nentry:\n  %0: dim3 = extract",
        "{\n  slot $x: u32, unset\nentry:\n  %0: dim3 = extract",
    );
    let unset = unset.replace("%3: u32 = add %1, 7u32", "%3: u32 = load $x");
    let found = run(&unset, &["--arg", "[4]", "--check"]);
    assert!(found.contains(" --> a.gir:13\n") && found.contains("%3: u32 = load $x"), "{found}");
    let lost =
        text.replace("%1: dim3 = aggregate 4u32", "%2: u32 = load %p\n  %1: dim3 = aggregate %2");
    let lost = run(&lost.replace("  ; fill.toy:6", ""), &["--arg", "[9999]"]);
    assert!(lost.contains("a.gir:29"), "{lost}");
}

/// Outputs without a manifest need no kernels, so the module is read as a library.
#[test]
fn every_output_names_the_line_of_the_text() {
    let folder = folder();
    let wrong = DROPPING.replace("store i32 2, ptr %c", "store i64 2, ptr %c");
    // The finding is that of the request for the buffer.
    let line = 1 + wrong.lines().position(|line| line.contains("%c = call ptr")).unwrap();
    fs::write(folder.path().join("a.ll"), &wrong).unwrap();
    let build = |output: &str| {
        Gridlet::new(&folder).run(&["build", "a.ll", "--emit", output, "-o", "a.out"]).stderr
    };
    let bundle = build("bundle");
    assert!(
        bundle.starts_with(&format!("error: a.ll:{line}: `start` launches `child`")),
        "{bundle}"
    );
    for output in ["ptx", "object", "cubin"] {
        assert_eq!(build(output), bundle, "{output}");
    }
}

/// The help speaks of no syntax of the language, and names the likely reason: only a run shows these addresses.
#[test]
fn local_addresses_that_a_run_finds_are_explained_for_modules() {
    let functions = "define internal ptr @same(ptr %p) noinline {\n  ret ptr %p\n}\n\
        define ptx_kernel void @add() {\n  %v = alloca i32\n  \
        %r = atomicrmw add ptr %v, i32 1 seq_cst\n  ret void\n}\n";
    let passing = DROPPING
        .replace("@child(i32 %x) {\n", "@child(ptr %x) {\n  store i32 1, ptr %x\n")
        .replace("  %b = call", "  %v = alloca i32\n  %w = call ptr @same(ptr %v)\n  %b = call")
        .replace("store i32 1, ptr %b", "store ptr %w, ptr %b")
        .replace("store i32 2, ptr %c", "store ptr %w, ptr %c")
        + functions;
    let folder = folder();
    fs::write(folder.path().join("a.ll"), passing).unwrap();
    let run = |kernel: &str, arguments: &[&str]| {
        let run = ["run", "a.ll", "--check", "--grid", "1", "--block", "1", "--kernel", kernel];
        Gridlet::new(&folder).run(&[&run[..], arguments].concat()).stderr
    };
    let said = run("start", &["--arg", "1"]);
    // The child may run on the stack of its launcher.
    assert!(said.contains("local variable of another thread"), "{said}");
    let atomic = run("add", &[]);
    assert!(atomic.contains("on global and shared memory only"), "{atomic}");
}

#[test]
fn code_that_cannot_be_reached_traps_at_its_own_line() {
    let folder = folder();
    let text = "define ptx_kernel void @k(ptr %p) {\n  store i32 1, ptr %p\n  br label %end\nend:\n  unreachable\n}\n";
    fs::write(folder.path().join("a.ll"), text).unwrap();
    let run = ["run", "a.ll", "--device", "cpu", "--kernel", "k", "--grid", "1", "--block", "1"];
    let run = |more: &[&str]| {
        Gridlet::new(&folder).run(&[&run[..], &["--arg", "[1]"], more].concat()).stderr
    };
    let plain = run(&[]);
    assert!(plain.contains("reached code assumed to be unreachable, at a.ll:5"), "{plain}");
    let checked = run(&["--check"]);
    assert!(checked.contains(" --> a.ll:5\n"), "{checked}");

    let text = include_str!("../../../c/tests/fill.gir");
    let text = text.replacen("  return\n", "  unreachable  ; fill.toy:9\n", 1);
    fs::write(folder.path().join("a.gir"), text).unwrap();
    let run = ["run", "a.gir", "--device", "cpu", "--kernel", "fill", "--grid", "1", "--block"];
    let found = Gridlet::new(&folder).run(&[&run[..], &["1", "--arg", "[1]"]].concat()).stderr;
    assert!(found.contains("at fill.toy:9"), "{found}");
}

/// LLVM leaves them undefined, and removes tests of the divisor because of them.
#[test]
fn divisions_by_zero_trap_at_their_line() {
    let folder = folder();
    let text = "define ptx_kernel void @k(ptr %p, i32 %n) {
  %is_zero = icmp eq i32 %n, 0
  store i32 9, ptr %p
  br i1 %is_zero, label %zero, label %other
zero:
  %x = sdiv i32 7, %n
  store i32 %x, ptr %p
  ret void
other:
  %least = urem i32 7, %n
  store i32 %least, ptr %p
  ret void
}
";
    fs::write(folder.path().join("a.ll"), text).unwrap();
    let run = |n: &str, more: &[&str]| {
        let run =
            ["run", "a.ll", "--device", "cpu", "--kernel", "k", "--grid", "1", "--block", "1"];
        Gridlet::new(&folder).run(&[&run[..], &["--arg", "[1]", "--arg", n], more].concat())
    };
    assert_eq!(run("2", &["--check"]).status, 0);
    let found = run("0", &["--check"]);
    assert!(
        found.stderr.contains("kernel `k` divides an integer by zero\n --> a.ll:6"),
        "{found:?}"
    );
    let plain = run("0", &[]);
    assert!(plain.stderr.contains("divided an integer by zero, at a.ll:6"), "{plain:?}");
}

/// What Clang makes of common code with optimisation.
#[test]
fn common_intrinsics_run_on_the_cpu_device() {
    let folder = folder();
    let text = "\
declare i32 @llvm.abs.i32(i32, i1)
declare i32 @llvm.fshl.i32(i32, i32, i32)
declare i64 @llvm.fshr.i64(i64, i64, i64)
declare i16 @llvm.bswap.i16(i16)
declare i32 @llvm.bswap.i32(i32)
declare i64 @llvm.bswap.i64(i64)
declare i32 @llvm.expect.i32(i32, i32)
define ptx_kernel void @k(ptr %p, i32 %n, i32 %s, float %f) {
  %a = call i32 @llvm.abs.i32(i32 %n, i1 0)
  store i32 %a, ptr %p
  %p1 = getelementptr i32, ptr %p, i64 1
  %b = call i32 @llvm.fshl.i32(i32 %n, i32 305419896, i32 %s)
  store i32 %b, ptr %p1
  %p2 = getelementptr i32, ptr %p, i64 2
  %s64 = zext i32 %s to i64
  %c = call i64 @llvm.fshr.i64(i64 1, i64 1311768467463790320, i64 %s64)
  %c1 = lshr i64 %c, 32
  %c2 = trunc i64 %c1 to i32
  store i32 %c2, ptr %p2
  %p3 = getelementptr i32, ptr %p, i64 3
  %d = call i32 @llvm.bswap.i32(i32 305419896)
  store i32 %d, ptr %p3
  %p4 = getelementptr i32, ptr %p, i64 4
  %e = call i16 @llvm.bswap.i16(i16 4660)
  %e1 = zext i16 %e to i32
  %e2 = call i32 @llvm.expect.i32(i32 %e1, i32 0)
  store i32 %e2, ptr %p4
  %p5 = getelementptr i32, ptr %p, i64 5
  %g = call i64 @llvm.bswap.i64(i64 1311768467463790320)
  %g1 = trunc i64 %g to i32
  store i32 %g1, ptr %p5
  %p6 = getelementptr i32, ptr %p, i64 6
  %h = fcmp uno float %f, 0x7FF8000000000000
  %h1 = zext i1 %h to i32
  store i32 %h1, ptr %p6
  ret void
}
";
    fs::write(folder.path().join("a.ll"), text).unwrap();
    // The absolute value, the two funnel shifts, bytes of 32, 16 and 64 bits, a comparison with NaN.
    let swapped = "2018915346, 13330, 2018915346, 1";
    for (by, shifted) in [("0", "-5, 305419896"), ("8", "-1262, 17970262"), ("40", "-1262, 0")] {
        for level in ["0", "3"] {
            let call = format!(
                "run a.ll --device cpu -O {level} --kernel k --grid 1 --block 1 --arg [8] --arg -5 --arg {by} --arg 1.5 --print p:7"
            );
            let words: Vec<&str> = call.split(' ').collect();
            let output = Gridlet::new(&folder).run(&words);
            let said = format!("p: [5, {shifted}, {swapped}]");
            assert!(output.stdout.contains(&said), "{by}, -O {level}: {output:?}");
        }
    }
}

/// LLVM's names have any characters, and its structs dots.
#[test]
fn the_header_of_a_module_is_c() {
    let folder = folder();
    let text = r#"%struct.Point = type { i32, i32 }
%Point = type { i32, float }
%"class.pair<int>" = type { i64, i32 }
%"a\22\0A\5C" = type { i32, i16 }
%struct_Point = type { i64, i64 }
%load = type { double, double }
define ptx_kernel void @a(ptr byval(%struct.Point) align 4 %p, %Point %y, %"class.pair<int>" %z, %struct_Point %w,
    %"a\22\0A\5C" %g, [2 x %load] %list) {
  ret void
}
define ptx_kernel void @b(i32 %"größe", i32 %"a\0Ab", i32 %"*/ x\5C", i64 %x.coerce, i32 %stream, i32 %int) {
  ret void
}
"#;
    fs::write(folder.path().join("a.ll"), text).unwrap();
    let build = ["build", "a.ll", "--arch", "cpu", "--emit", "header", "-o", "a.h"];
    let built = Gridlet::new(&folder).run(&build);
    assert_eq!((built.status, built.stderr.as_str()), (0, ""));
    let header = fs::read_to_string(folder.path().join("a.h")).unwrap();
    let own = header.split_once("program);\n}").unwrap().1;
    insta::assert_snapshot!(own);
    fs::write(folder.path().join("a.c"), "#include \"a.h\"\nint main(void) { return 0; }\n")
        .unwrap();
    let include = concat!("-I", env!("CARGO_MANIFEST_DIR"), "/../../runtime/include");
    let options = ["-std=c99", "-Wall", "-Wextra", "-Werror", "-fsyntax-only", include, "a.c"];
    let mut cc = std::process::Command::new("cc");
    assert!(cc.args(options).current_dir(folder.path()).status().unwrap().success());
}
