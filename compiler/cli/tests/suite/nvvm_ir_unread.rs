//! Modules of NVVM IR over which tools end or stop, which they drop in part, or which they read for ever: each is an error that says where.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::fs;

use crate::nvvm_ir_refused::{LAUNCHING, check, gridlet};
use crate::support::{Gridlet, folder};

/// libNVVM crashes over the first; it calls the second as a function, and refuses the others without a line.
#[test]
fn what_ends_or_stops_the_compiler_is_named_at_its_line() {
    let module = |declared: &str, call: &str| {
        format!(
            "@n = private constant [1 x i8] c\"k\"\n{declared}\ndefine ptx_kernel void @k(ptr %p, i32 %n) {{\n  {call}\n  ret void\n}}\n"
        )
    };
    let unknown = module(
        "declare i32 @llvm.nvvm.no.such.thing(i32)",
        "%x = call i32 @llvm.nvvm.no.such.thing(i32 %n)",
    );
    let all = [
        module(
            "declare void @llvm.instrprof.increment(ptr, i64, i32, i32)",
            "call void @llvm.instrprof.increment(ptr @n, i64 0, i32 1, i32 0)",
        ),
        unknown,
        module(
            "declare ptr @llvm.nvvm.mapa(ptr, i32)",
            "%x = call ptr @llvm.nvvm.mapa(ptr %p, i32 %n)\n  store i32 1, ptr %x",
        ),
    ];
    // Where one of two calls is meant, it is that one; where it may be either, the declaration.
    let twice = |text: &String| {
        let call = text.lines().find(|line| line.contains(" call ")).unwrap();
        text.replace(call, &format!("{}\n{call}", call.replace("%x", "%first")))
    };
    let all: Vec<String> = all.iter().cloned().chain(all.iter().map(twice)).collect();
    let check = |text: &String| gridlet(text, &["check", "FILE", "--arch", "sm_100"]);
    let said: Vec<String> = all.iter().map(check).map(|output| output.stderr).collect();
    insta::assert_snapshot!(said.concat());
}

/// ptxas names no line, and says nothing of dynamic memory.
#[test]
fn too_much_static_shared_memory_is_an_error() {
    let text = "\
@a = internal addrspace(3) global [40000 x i8] undef
@b = internal addrspace(3) global [9153 x i8] undef
@unused = internal addrspace(3) global [90000 x i8] undef
@dynamic = external addrspace(3) global [0 x i32]
define void @f(i32 %n) {
  store i32 %n, ptr addrspacecast (ptr addrspace(3) @b to ptr)
  ret void
}
define ptx_kernel void @fits(ptr %p, i32 %n) {
  store i32 %n, ptr addrspace(3) @a
  store i32 %n, ptr addrspace(3) @dynamic
  ret void
}
define ptx_kernel void @k(ptr %p, i32 %n) {
  store i32 %n, ptr addrspace(3) @a
  call void @f(i32 %n)
  ret void
}
";
    let mut seen = String::new();
    for call in [&["check", "FILE"][..], &["build", "FILE", "--emit", "ptx", "--arch", "sm_100"]] {
        seen += &gridlet(text, call).stderr;
    }
    let fits = gridlet(&text.replace("9153", "9152"), &["check", "FILE"]);
    assert_eq!((fits.status, fits.stderr.as_str()), (0, ""));
    let program = "\
fn fill(n: u32) {
    shared more: [u32; 2000];
    more[0] = n;
}
kernel child(p: *mut u32) {
    shared all: [u32; 11000];
    all[thread_idx.x] = p[0];
    fill(p[0]);
    sync_threads();
    p[1] = all[0];
}
kernel k(p: *mut u32) {
    launch child<<<1, 32>>>(p);
}
";
    let much = program.replace("11000", "60000");
    for (text, launch) in [(program, "cdp"), (program, "resident"), (&much, "resident")] {
        let folder = folder();
        fs::write(folder.path().join("p.grid"), text).unwrap();
        let call = ["build", "p.grid", "-o", "p.gridlet", "--launch", launch];
        seen += &format!("--launch {launch}\n{}", Gridlet::new(&folder).run(&call).stderr);
    }
    insta::assert_snapshot!(seen);
}

/// The tools write PTX that ptxas cannot read, drop these parts, or take them for something else.
#[test]
fn what_no_device_has_is_refused_for_every_target() {
    let kernel = "define ptx_kernel void @k(ptr %p) {\n  ret void\n}\n";
    let with = |before: &str| format!("{before}\n{kernel}");
    let list = "[{ i32, ptr, ptr } { i32 65535, ptr @k, ptr null }]";
    let all = [
        with(&format!("@llvm.global_ctors = appending global [1 x {{ i32, ptr, ptr }}] {list}")),
        with("@x = thread_local global i32 1"),
        with("module asm \".global .u32 x;\""),
        with("%s = type { i32, i32, i32 }").replace("ptr %p", "ptr byval(%s) align 16 %s"),
    ];
    let only_on_gpus = [
        kernel.replace("ptr %p", "{} %p"),
        kernel.replace("ptr %p", "i32 %n, [0 x i32] %p"),
        with("%e = type {}").replace("ptr %p", "ptr byval(%e) %p"),
        with("declare {} @f()").replace("  ret", "  %x = call {} @f()\n  ret"),
        with("declare void @f({ {}, [0 x i32] })"),
    ];
    let mut seen = String::new();
    for (texts, archs) in
        [(&all[..], &["sm_90", "sm_100", "cpu"][..]), (&only_on_gpus[..], &["sm_90", "sm_100"])]
    {
        for text in texts {
            let check = |arch: &&str| gridlet(text, &["check", "FILE", "--arch", arch]).stderr;
            let mut said: Vec<String> = archs.iter().map(check).collect();
            said.dedup();
            seen += &said.concat();
        }
    }
    insta::assert_snapshot!(seen);
    let by_llvm =
        ["build", "FILE", "--arch", "sm_100", "--backend", "nvptx", "--emit", "ptx", "-o", "-"];
    let ptx = gridlet(&all[2], &by_llvm);
    assert!(ptx.status == 0 && ptx.stdout.contains(".global .u32 x;"), "{ptx:?}");
}

/// To ptxas, a quote ends the name of a file, also behind a backslash.
#[test]
fn files_may_have_any_name() {
    let text = "\
define ptx_kernel void @k(ptr %p) !dbg !3 {
  store i32 1, ptr %p, !dbg !4
  ret void, !dbg !4
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: \"a\\22b\\0A\\01c\\5Cd.toy\", directory: \"/x\\22y\\0Az\")
!2 = !{i32 2, !\"Debug Info Version\", i32 3}
!3 = distinct !DISubprogram(name: \"k\\22\\0A\", file: !1, line: 6, type: !5, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DILocation(line: 7, scope: !3)
!5 = !DISubroutineType(types: !{null})
";
    for backend in ["libnvvm", "nvptx"] {
        for level in ["0", "3"] {
            let call = ["build", "FILE", "--arch", "sm_90,sm_100", "-g", "-O", level];
            let built = gridlet(text, &[&call[..], &["--backend", backend]].concat());
            assert_eq!((built.status, built.stderr.as_str()), (0, ""), "{backend} -O {level}");
        }
    }
    let folder = folder();
    fs::write(folder.path().join("a\"b\n.grid"), "kernel k(p: *mut u32) { *p = 1; }\n").unwrap();
    let built = Gridlet::new(&folder).run(&["build", "a\"b\n.grid", "-g", "-o", "a.gridlet"]);
    assert_eq!((built.status, built.stderr.as_str()), (0, ""));
}

/// The CPU device would run them as far as it gets.
#[test]
fn parameter_buffers_are_checked_for_the_cpu_device() {
    let wrong = LAUNCHING.replace("store i32 7, ptr %b", "store i64 7, ptr %b");
    let large = LAUNCHING.replace("@child(i32 %n)", "@child(ptr byval([4097 x i8]) %n)");
    for (text, said) in
        [(&wrong, "stores bytes 0 to 7 of its parameters"), (&large, "take 4097 bytes")]
    {
        for arch in ["sm_90", "cpu"] {
            for call in [&["check", "FILE", "--arch", arch][..], &["build", "FILE", "--arch", arch]]
            {
                let refused = gridlet(text, call);
                assert!(
                    refused.status == 1 && refused.stderr.contains(said),
                    "{call:?} {refused:?}"
                );
            }
        }
        let call =
            ["run", "FILE", "--device", "cpu", "--kernel", "start", "--grid", "1", "--block", "1"];
        let refused = gridlet(text, &call);
        assert!(refused.status == 1 && refused.stderr.contains(said), "{refused:?}");
    }
}

/// The error names the instruction only if no other looks the same.
#[test]
fn no_position_is_guessed() {
    let wat = "  call void asm sideeffect inteldialect \"membar.gl;\", \"\"()\n";
    let module = |name: &str, code: &str| {
        format!(
            "define ptx_kernel void @k() {{\n  ret void\n}}\ndefine void @{name}(ptr %p) {{\n{code}  ret void\n}}\n"
        )
    };
    let fine = "  store i32 1, ptr %p\n";
    for (text, line) in [
        (module("f", &format!("{fine}{wat}")), 6),
        (module("f", &format!("{fine}{wat}{wat}")), 4),
        (module("\"k`\"", &format!("{fine}{wat}")), 4),
    ] {
        let said = format!("error: a.ll:{line}: legacy dialect writer: writing ");
        let refused = check(&text);
        assert!(refused.stderr.starts_with(&said), "{text}{refused:?}");
    }
}

/// Reading a pipe that nobody writes never ends.
#[test]
fn pipes_and_folders_are_no_modules() {
    let folder = folder();
    fs::write(folder.path().join("p.grid"), "kernel k(p: *mut u32) { *p = 1; }\n").unwrap();
    fs::create_dir(folder.path().join("folder.ll")).unwrap();
    for name in ["a.ll", "a.gir", "a.c", "a.grid"] {
        let made = std::process::Command::new("mkfifo").arg(folder.path().join(name)).status();
        assert!(made.unwrap().success());
    }
    let calls: [&[&str]; 8] = [
        &["check", "a.ll"],
        &["layout", "a.ll"],
        &["build", "a.ll", "--emit", "ptx"],
        &["run", "a.ll", "--device", "cpu", "--kernel", "k", "--grid", "1", "--block", "1"],
        &["check", "a.gir"],
        &["check", "a.grid"],
        &["build", "p.grid", "--link", "a.c"],
        &["check", "folder.ll"],
    ];
    let mut seen = String::new();
    for call in calls {
        let refused = Gridlet::new(&folder).run(call);
        assert_eq!(refused.status, 2, "{call:?}: {refused:?}");
        seen += &refused.stderr;
    }
    insta::assert_snapshot!(seen);
}

/// LLVM's verifier follows them for ever.
#[test]
fn debug_locations_in_themselves_are_refused() {
    let text = "\
define ptx_kernel void @k(ptr %p) !dbg !3 {
  ret void, !dbg !4
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: \"a.toy\", directory: \".\")
!2 = !{i32 2, !\"Debug Info Version\", i32 3}
!3 = distinct !DISubprogram(name: \"k\", file: !1, line: 6, unit: !0, spFlags: DISPFlagDefinition)
!5 = distinct !DILocation(line: 8, scope: !3)
!4 = distinct !DILocation(line: 7, scope: !3, inlinedAt: !5)
";
    assert_eq!(check(text).status, 0);
    let inlined = text.replace("line: 8, scope: !3)", "line: 8, scope: !3, inlinedAt: !4)");
    let block = text.replace(
        "!4 = distinct !DILocation(line: 7, scope: !3, inlinedAt: !5)",
        "!4 = !DILocation(line: 7, scope: !6)\n!6 = distinct !DILexicalBlock(scope: !6, file: !1, line: 3)",
    );
    for (text, line) in [(inlined, 10), (block, 12)] {
        let start = std::time::Instant::now();
        let refused = check(&text);
        let said = format!("error: a.ll:{line}: this debug location or scope lies in itself");
        assert!(refused.stderr.starts_with(&said), "{refused:?}");
        assert!(start.elapsed().as_secs() < 20 && refused.status == 1, "{refused:?}");
    }
}
