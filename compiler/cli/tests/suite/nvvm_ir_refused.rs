//! Modules of NVVM IR that are refused: what the message says, and where.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::fs;

use crate::support::{Gridlet, Output, folder};

/// Runs a command on a module `a.ll`.
pub(crate) fn gridlet(text: &str, call: &[&str]) -> Output {
    let folder = folder();
    fs::write(folder.path().join("a.ll"), text).unwrap();
    let given = call.iter().map(|word| if *word == "FILE" { "a.ll" } else { word });
    Gridlet::new(&folder).run(&given.collect::<Vec<_>>())
}

pub(crate) fn check(text: &str) -> Output {
    gridlet(text, &["check", "FILE"])
}

/// The messages in JSON.
fn messages(text: &str) -> Vec<serde_json::Value> {
    let output = gridlet(text, &["check", "FILE", "--message-format", "json"]);
    let lines = output.stderr.lines();
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line}"))).collect()
}

/// LLVM would print why, and drop the debug information.
#[test]
fn broken_debug_information_is_an_error() {
    let unit = "\
define ptx_kernel void @k(ptr %p) !dbg !3 {
  store i32 1, ptr %p, !dbg !4
  ret void, !dbg !4
}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: \"a.toy\", directory: \".\")
!2 = !{i32 2, !\"Debug Info Version\", i32 3}
!3 = distinct !DISubprogram(name: \"k\", file: !1, line: 6, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DILocation(line: 7, scope: !3)
";
    let refused = check(unit);
    assert_eq!(refused.status, 1, "{refused:?}");
    let said = "error: a.ll:6: not valid LLVM IR: DICompileUnit not listed in llvm.dbg.cu\n";
    assert!(refused.stderr.starts_with(said), "{}", refused.stderr);
    let all = messages(unit);
    assert_eq!(all.len(), 1);
    assert_eq!((&all[0]["file"], &all[0]["line"]), (&"a.ll".into(), &6.into()));

    let listed = format!("{unit}!llvm.dbg.cu = !{{!0}}\n");
    let accepted = check(&listed);
    assert_eq!((accepted.status, accepted.stderr.as_str()), (0, ""));
    // Debug information of another version is no error: LLVM does not read it.
    let other = check(&listed.replace("Version\", i32 3", "Version\", i32 2"));
    assert_eq!((other.status, other.stderr.as_str()), (0, ""));
    // The verifier quotes an instruction.
    let wrong = unit
        .replace("  ret void, !dbg !4", "  %x = add i32 %y, 1\n  %y = add i32 1, 2\n  ret void");
    let wrong = check(&wrong);
    assert!(wrong.stderr.starts_with("error: a.ll:4: not valid LLVM IR: "), "{}", wrong.stderr);
}

/// LLVM, and Gridlet behind it, recurse over types.
#[test]
fn deep_types_are_refused_and_do_not_end_the_process() {
    let nested = |depth: usize| format!("{}i32{}", "{ ".repeat(depth), " }".repeat(depth));
    let literal = |depth: usize| {
        format!("define ptx_kernel void @k({} %p) {{\n  ret void\n}}\n", nested(depth))
    };
    let outputs: [&[&str]; 4] = [
        &["check", "FILE"],
        &["layout", "FILE"],
        &["build", "FILE", "--emit", "nvvm"],
        &["build", "FILE", "--arch", "cpu"],
    ];
    for call in outputs {
        let refused = gridlet(&literal(50_000), call);
        assert_eq!(refused.status, 1, "{call:?}: {refused:?}");
        let said = "error: a.ll:1:1025: more than 500 brackets are open here";
        assert!(refused.stderr.starts_with(said), "{}", refused.stderr);
    }
    assert_eq!(check(&literal(400)).status, 0);
    // Strings and comments are not code.
    let hidden = "{".repeat(600);
    let hidden = format!("; {hidden}\n@s = constant [600 x i8] c\"{hidden}\"\n{}", literal(1));
    assert_eq!(check(&hidden).status, 0);

    let names: String =
        (0..4_000).map(|at| format!("%a{at} = type {{ %a{} }}\n", at + 1)).collect();
    let names = format!("{names}%a4000 = type {{ i32 }}\n");
    let kernel = "define ptx_kernel void @k() {\n  ret void\n}\n";
    let uses = [
        "define ptx_kernel void @k(%a0 %p) {\n  ret void\n}\n".to_owned(),
        "define ptx_kernel void @k(ptr byval(%a0) %p) {\n  ret void\n}\n".into(),
        "define ptx_kernel void @k() {\n  %x = alloca %a0\n  ret void\n}\n".into(),
        format!("@g = addrspace(1) global [2 x %a0] zeroinitializer\n{kernel}"),
    ];
    for text in uses {
        for call in outputs {
            let refused = gridlet(&format!("{names}{text}"), call);
            let said = "error: a.ll:1: this type has more than 500 others inside each other";
            assert!(refused.stderr.starts_with(said), "{call:?}: {refused:?}");
            assert_eq!(refused.status, 1);
        }
    }
}

/// Each mistake is a message of its own, at its place.
#[test]
fn messages_for_tools_have_places() {
    let text = concat!(
        device_runtime!(),
        "define ptx_kernel void @child(i32 %n, i17 %m) {
  ret void
}
define ptx_kernel void @start() {
  %b = call ptr @cudaGetParameterBufferV2(ptr @child, %struct.dim3 zeroinitializer, %struct.dim3 zeroinitializer, i32 0)
  %s = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)
  ret void
}
"
    );
    let all = messages(text);
    let lines: Vec<_> = all.iter().map(|one| one["line"].as_u64().unwrap_or_default()).collect();
    assert!(lines.contains(&4) && lines.contains(&8), "{all:?}");
    for one in &all {
        let said = one["message"].as_str().unwrap();
        assert!(one["file"] == "a.ll" && one["id"] == "nvvm-ir" && !said.contains("a.ll"), "{one}");
    }
    // For people nothing has changed.
    let human = check(text).stderr;
    assert!(
        human.starts_with("error: a.ll:4: kernel `child`") && human.contains("\na.ll:8: "),
        "{human}"
    );
    let all = messages("define bogus");
    assert_eq!((&all[0]["line"], &all[0]["column"]), (&1.into(), &8.into()));
}

/// `start` launches `child`.
pub(crate) const LAUNCHING: &str = concat!(
    device_runtime!(),
    "define ptx_kernel void @child(i32 %n) {
  ret void
}
define ptx_kernel void @start() {
  %b = ",
    buffer_of!("child"),
    "  %none = icmp eq ptr %b, null
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

#[test]
fn names_of_gridlet_and_cuda_are_refused() {
    assert_eq!(check(LAUNCHING).status, 0);
    let kernels = ["__gridlet_lost_launches", "malloc", "cudaMalloc", "A7", "gridlet_cpu_kernels"];
    let kernels = kernels.map(|name| (name, LAUNCHING.replace("@child", &format!("@{name}")), 4));
    let others = [
        ("__gridlet_lost_launches", "define void @__gridlet_lost_launches() {\n  ret void\n}\n"),
        ("__gridlet_lost_launches", "@__gridlet_lost_launches = addrspace(1) global i32 0\n"),
        (
            "__gridlet_lost_launches",
            "@__gridlet_lost_launches = global [4 x i32] zeroinitializer\n",
        ),
        (
            "own.gridlet.record_lost_launch",
            "define void @own.gridlet.record_lost_launch(i32 %x) {\n  ret void\n}\n",
        ),
    ];
    let others = others.map(|(name, text)| (name, format!("{LAUNCHING}{text}"), 18));
    for (name, text, line) in kernels.into_iter().chain(others) {
        for call in [
            &["check", "FILE"][..],
            &["layout", "FILE"],
            &["build", "FILE", "--arch", "cpu"],
            &["build", "FILE", "--emit", "nvvm"],
        ] {
            let refused = gridlet(&text, call);
            assert_eq!(refused.status, 1, "{refused:?}");
            let said =
                format!("error: a.ll:{line}: the name `{name}` is reserved for Gridlet and CUDA");
            assert!(refused.stderr.starts_with(&said), "{}", refused.stderr);
        }
    }
    // The record itself, and names of other compilers.
    let record = "@__gridlet_lost_launches = addrspace(1) externally_initialized global [4 x i32] zeroinitializer\n";
    let fine =
        [format!("{LAUNCHING}{record}"), LAUNCHING.replace("@child", "@__omp_offloading_main")];
    for text in fine {
        let fine = check(&text);
        assert_eq!((fine.status, fine.stderr.as_str()), (0, ""), "{text}");
    }
}

/// A target that is named twice counts once.
#[test]
fn a_target_may_be_named_twice() {
    for (arch, emit, files) in [
        ("cpu,cpu", "bundle", &["a.gridlet"][..]),
        ("sm_90,sm_90,cpu,sm_90", "bundle", &["a.gridlet"]),
        ("sm_90,sm_90", "ptx", &["a.ptx"]),
        ("cpu,sm_90,cpu", "nvvm", &["a.cpu.ll", "a.sm_90.ll"]),
    ] {
        let folder = folder();
        for (name, text) in [("a.ll", LAUNCHING), ("a.grid", "kernel k(p: *mut u32) { *p = 1; }\n")]
        {
            fs::write(folder.path().join(name), text).unwrap();
            let out = folder.path().join("out");
            fs::create_dir(&out).unwrap();
            let build = ["build", name, "--arch", arch, "--emit", emit, "-o", "out"];
            let built = Gridlet::new(&folder).run(&build);
            assert_eq!((built.status, built.stderr.as_str()), (0, ""), "{name} {arch}");
            let mut found: Vec<String> = fs::read_dir(&out)
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            found.sort();
            assert_eq!(found, files, "{name} {arch}");
            fs::remove_dir_all(out).unwrap();
        }
    }
}

/// A kernel with two calls of an intrinsic of a function of `ty`, in lines 4 and 5.
fn calling(intrinsic: &str, ty: &str, flags: &str) -> String {
    format!(
        "declare {ty} @{intrinsic}({ty})
define ptx_kernel void @k(ptr %p) {{
  %x = load {ty}, ptr %p
  %y = call {flags}{ty} @{intrinsic}({ty} %x)
  %z = call {flags}{ty} @{intrinsic}({ty} %y)
  store {ty} %z, ptr %p
  ret void
}}
"
    )
}

/// libNVVM names no line, and for some of them it writes PTX that ptxas cannot read.
#[test]
fn intrinsics_that_libnvvm_lacks_are_refused_at_their_line() {
    for (intrinsic, ty, instead, archs) in [
        ("llvm.sin.f32", "float", "call `__nv_sinf` of libdevice", &["sm_90", "sm_100"][..]),
        ("llvm.exp.f64", "double", "call `__nv_exp` of libdevice", &["sm_90", "sm_100", "sm_120"]),
        ("llvm.log2.v2f32", "<2 x float>", "call `__nv_log2f` of libdevice, for each", &["sm_100"]),
        ("llvm.round.f32", "float", "call `__nv_round` or `__nv_roundf`", &["sm_100"]),
        ("llvm.bswap.v2i32", "<2 x i32>", "use it on `i16`, `i32`, `i64`", &["sm_100"]),
    ] {
        let text = calling(intrinsic, ty, "");
        for arch in archs {
            let said = format!("error: a.ll:4: libNVVM has no `{intrinsic}` for {arch}; {instead}");
            for call in [&["check"][..], &["build"], &["build", "--emit", "ptx"]] {
                let refused = gridlet(&text, &[call, &["FILE", "--arch", arch]].concat());
                assert_eq!(refused.status, 1, "{refused:?}");
                assert!(refused.stderr.starts_with(&said), "{call:?}: {}", refused.stderr);
                assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
            }
        }
        // The CPU device has its own functions, or says what it lacks.
        let check = gridlet(&text, &["check", "FILE", "--arch", "cpu"]);
        assert!(!check.stderr.contains("libNVVM"), "{}", check.stderr);
    }
    // LLVM's own back end has more.
    let text = calling("llvm.round.f32", "float", "");
    let build = ["build", "FILE", "--arch", "sm_100", "--emit", "ptx"];
    let built = gridlet(&text, &[&build[..], &["--backend", "nvptx"]].concat());
    assert_eq!(built.status, 0, "{}", built.stderr);
    for intrinsic in ["llvm.trunc.f32", "llvm.rint.f32", "llvm.nearbyint.f32"] {
        let built = gridlet(&calling(intrinsic, "float", ""), &build);
        assert_eq!(built.status, 0, "{intrinsic}: {}", built.stderr);
    }
}

/// Only the tool knows, because a newer one has them.
#[test]
fn intrinsics_that_an_older_libnvvm_lacks_are_named() {
    for (intrinsic, ty, flags) in [
        ("llvm.canonicalize.f32", "float", ""),
        ("llvm.trunc.f16", "half", ""),
        ("llvm.tanh.f32", "float", "afn "),
    ] {
        let text = calling(intrinsic, ty, flags);
        for call in [&["check"][..], &["build"], &["build", "--emit", "ptx"]] {
            let refused = gridlet(&text, &[call, &["FILE", "--arch", "sm_100"]].concat());
            if refused.status == 0 {
                continue;
            }
            assert!(refused.stderr.starts_with("error: a.ll:4: "), "{}", refused.stderr);
            assert!(refused.stderr.contains(intrinsic), "{}", refused.stderr);
            assert!(refused.stderr.contains("libNVVM of CUDA 13.5 has it"), "{}", refused.stderr);
        }
    }
}

/// `check` cannot know what a build links.
#[test]
fn functions_that_nothing_defines_are_warnings() {
    let text = "\
declare i32 @helper(i32)
declare float @__nv_sinf(float)
declare i32 @vprintf(ptr, ptr)
declare void @unused()
define ptx_kernel void @k(ptr %p, float %f) {
  %x = load i32, ptr %p
  %y = call i32 @helper(i32 %x)
  %z = call float @__nv_sinf(float %f)
  store i32 %y, ptr %p
  store float %z, ptr %p
  %n = call i32 @vprintf(ptr %p, ptr null)
  ret void
}
";
    let warned = check(text);
    assert_eq!(warned.status, 0, "{warned:?}");
    insta::assert_snapshot!(warned.stderr);
    let denied = gridlet(text, &["check", "FILE", "--deny", "undefined-function"]);
    assert_eq!(denied.status, 1, "{denied:?}");
    assert!(denied.stderr.starts_with("error[undefined-function]"), "{}", denied.stderr);
    let allowed = gridlet(text, &["check", "FILE", "--allow", "undefined-function"]);
    assert_eq!((allowed.status, allowed.stderr.as_str()), (0, ""));
    let object = gridlet(text, &["build", "FILE", "--emit", "object", "-o", "a.o"]);
    assert_eq!((object.status, object.stderr.as_str()), (0, ""));
    let bundle = gridlet(text, &["build", "FILE"]);
    let said = "error: a.ll:1: neither the module nor one that is linked in defines `helper`";
    assert!(bundle.status == 1 && bundle.stderr.starts_with(said), "{}", bundle.stderr);
}

/// NVIDIA's tools drop such kernels, or crash on them.
#[test]
fn kernels_that_no_tool_can_make_are_refused() {
    let kernel = |words: &str, after: &str| {
        format!(
            "define {words} ptx_kernel void @k(ptr %p) {after} {{\n  store i32 1, ptr %p\n  ret void\n}}\n"
        )
    };
    let annotated = |what: &str| {
        let text = kernel("", "");
        format!("{text}!nvvm.annotations = !{{!0}}\n!0 = !{{ptr @k, !\"{what}\", i32 -5}}\n")
    };
    let keeps = ["internal", "private", "available_externally", "linkonce", "linkonce_odr"];
    let kept = keeps.map(|word| {
        let said = format!(
            "the kernel `k` is `{word}`, so the machine code need not have it, and nobody could launch it; remove `{word}`"
        );
        (kernel(word, ""), said)
    });
    let bound = |said: &str| format!("the kernel `k` has {said}");
    let threads = "it must be 1 to 1024, 1 to 1024, 1 to 64, and their product at most 1024";
    let bounds = [
        (annotated("maxntidx"), bound(&format!("`maxntid` -5; {threads}"))),
        (annotated("reqntidx"), bound(&format!("`reqntid` -5; {threads}"))),
        (annotated("minctasm"), bound("`minctasm` -5; it must be 1 to 32")),
        (annotated("maxnreg"), bound("`maxnreg` -5; it must be 1 to 255")),
        (kernel("", "\"nvvm.maxntid\"=\"64,32\""), bound(&format!("`maxntid` 64,32; {threads}"))),
    ];
    for (text, said) in kept.into_iter().chain(bounds) {
        for call in ["check", "build"] {
            let refused = gridlet(&text, &[call, "FILE", "--arch", "sm_90,sm_100"]);
            assert_eq!(refused.status, 1, "{text}: {refused:?}");
            assert!(refused.stderr.starts_with(&format!("error: a.ll:1: {said}")), "{refused:?}");
        }
    }
    let fits = check(&kernel("weak", "\"nvvm.maxntid\"=\"32,32\" \"nvvm.maxnreg\"=\"64\""));
    assert_eq!((fits.status, fits.stderr.as_str()), (0, ""));

    let large = "define ptx_kernel void @k([40000 x i8] %p) {\n  ret void\n}\n";
    for arch in ["sm_90", "cpu"] {
        let refused = gridlet(large, &["check", "FILE", "--arch", arch]);
        let said = "error: a.ll:1: the kernel `k` takes 40000 bytes of parameters, but no kernel can take more than 32764;";
        assert!(refused.stderr.starts_with(said), "{refused:?}");
    }
}

/// What a build would refuse is no module that is right.
#[test]
fn check_compiles_and_names_the_place() {
    let module = |before: &str, line: &str| {
        format!("{before}define ptx_kernel void @k(ptr %p) {{\n{line}\n  ret void\n}}\n")
    };
    let scope = "  fence syncscope(\"wat\") acquire";
    let resolver = "@f = ifunc void (), ptr @r\ndefine ptr @r() {\n  ret ptr null\n}\n";
    let large = "@g = addrspace(4) constant [80000 x i8] zeroinitializer\n";
    let read = "  %x = load i8, ptr addrspace(4) @g\n  store i8 %x, ptr %p";
    for (text, said) in [
        (
            module("", scope),
            "error: a.ll:2: NVPTX has no synchronisation scope `wat`; use `block`, ",
        ),
        (module(resolver, ""), "error: a.ll:1: PTX has no `ifunc`, as `f`; call through a pointer"),
        (
            module("@t = thread_local global i32 7\n", ""),
            "error: a.ll:1: no device has a `thread_local` variable for each thread, as `t`; use an `alloca`",
        ),
        (
            module(large, read),
            "error: a.ll:1: the variables in constant memory (`addrspace(4)`) take 80000 bytes",
        ),
        (
            module("", "  call void asm sideeffect \"mov.b32 $0, %blub;\", \"r\"(i32 1)"),
            "error: a.ll:2: ptxas refuses this inline PTX: ",
        ),
        (
            module("", "  %x = frem float 1.0, 2.0\n  store float %x, ptr %p"),
            "error: a.ll:2: legacy dialect writer: writing function `k` failed:",
        ),
        // libNVVM drops it, and succeeds.
        (
            module("", "  call void asm sideeffect \"membar.gl;\", \"={eax}\"()"),
            "error: a.ll:2: PTX has no constraint `{eax}` of inline assembly; use `h`, `r`, ",
        ),
    ] {
        for call in ["check", "build"] {
            let refused = gridlet(&text, &[call, "FILE"]);
            assert_eq!(refused.status, 1, "{call}: {refused:?}");
            // A bundle is linked by another tool.
            let tool = said.contains("ptxas") && call == "build";
            assert!(tool || refused.stderr.starts_with(said), "{call}: {refused:?}");
        }
    }
}

/// A module without kernels, too, is named once.
#[test]
fn a_library_is_named_once_where_it_is_refused() {
    let text = "define void @f(ptr %p, float %x) {\n  %y = frem float %x, 2.0\n  store float %y, ptr %p\n  ret void\n}\n";
    let refused = gridlet(text, &["build", "FILE", "--emit", "ptx"]);
    let said = "error: a.ll:2: legacy dialect writer: writing function `f` failed:";
    assert!(refused.stderr.starts_with(said), "{refused:?}");
}

/// The device runtime's functions have their own signatures where the CPU device stands for it, too.
#[test]
fn wrong_signatures_are_no_bug_of_the_cpu_device() {
    let call = "  %status = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)";
    let module = |runtime: &str, call: &str| {
        format!("{runtime}define ptx_kernel void @k(ptr %b) {{\n{call}\n  ret void\n}}\n")
    };
    for (text, said) in [
        (
            module(
                "declare void @cudaLaunchDeviceV2(ptr, ptr)\n",
                &call.replace("%status = call i32", "call void"),
            ),
            "error: a.ll:1: `cudaLaunchDeviceV2` has the wrong signature `void (ptr, ptr)`",
        ),
        (
            module("declare i32 @cudaLaunchDeviceV2(ptr)\n", &call.replace(", ptr null", "")),
            "error: a.ll:1: `cudaLaunchDeviceV2` has the wrong signature `i32 (ptr)`",
        ),
        (
            module(
                "declare i32 @cudaLaunchDeviceV2(ptr, ptr)\n",
                &call.replace("ptr null", "ptr null, i32 0"),
            ),
            "error: a.ll:3: `cudaLaunchDeviceV2` is called as `i32 (ptr, ptr, i32)`, but declared as `i32 (ptr, ptr)`;",
        ),
    ] {
        for arch in ["sm_90", "cpu"] {
            let refused = gridlet(&text, &["check", "FILE", "--arch", arch]);
            assert_eq!(refused.status, 1, "{arch}: {refused:?}");
            assert!(refused.stderr.starts_with(said), "{arch}: {}", refused.stderr);
        }
    }
}

/// libNVVM would end the process over them where it reads LLVM 22's own form.
#[test]
fn marks_of_lifetimes_compile_for_every_architecture() {
    let text = "\
declare void @llvm.lifetime.start.p0(ptr)
declare void @llvm.lifetime.end.p0(ptr)
define ptx_kernel void @k(ptr %p) {
  %a = alloca i32
  call void @llvm.lifetime.start.p0(ptr %a)
  store i32 7, ptr %a
  %x = load i32, ptr %a
  call void @llvm.lifetime.end.p0(ptr %a)
  store i32 %x, ptr %p
  ret void
}
";
    let old = text.replace("(ptr)", "(i64, ptr)").replace("(ptr %a)", "(i64 4, ptr %a)");
    for text in [text, &old] {
        let built = gridlet(text, &["build", "FILE", "--arch", "sm_80,sm_90,sm_100,sm_120"]);
        assert_eq!((built.status, built.stderr.contains("error")), (0, false), "{built:?}");
    }
}

/// LLVM's reader ends the process over them.
#[test]
fn what_ends_llvms_reader_is_an_error() {
    let module = |node: &str| {
        format!(
            "define void @k(ptr %p) {{\n  ret void\n}}\n!nvvm.annotations = !{{!0}}\n!0 = !{{{node}}}\n"
        )
    };
    for node in ["", "ptr @k, !\"kernel\"", "ptr @k, !\"kernel\", !\"1\""] {
        let refused = check(&module(node));
        assert_eq!(refused.status, 1, "{node}: {refused:?}");
        let said = "error: a.ll:5: wrong node of `!nvvm.annotations`: ";
        assert!(refused.stderr.starts_with(said), "{node}: {refused:?}");
    }
    assert_eq!(check(&module("ptr @k, !\"kernel\", i32 1")).status, 0);
    let call = "declare i32 @llvm.nvvm.rotate.b32()\ndefine ptx_kernel void @k() {\n  %x = call i32 @llvm.nvvm.rotate.b32()\n  ret void\n}\n";
    let refused = check(call);
    assert_eq!(refused.status, 1, "{refused:?}");
    assert!(refused.stderr.contains("a call of an intrinsic with other arguments"), "{refused:?}");
    // Other mistakes keep their places.
    let wrong = check(&module("ptr @k, !\"kernel\", i32 1").replace("ret void", "ret i32 %x"));
    assert!(wrong.stderr.starts_with("error: a.ll:2:7: "), "{wrong:?}");
}

/// Undefined values do not make LLVM drop the launches around them.
#[test]
fn undefined_code_loses_no_launch_on_the_cpu_device() {
    let start = concat!(
        device_runtime!(),
        "define ptx_kernel void @child(ptr %p) {
  store i32 7, ptr %p
  ret void
}
define ptx_kernel void @start(ptr %p, i32 %n) {
  %v = alloca i32
  %w = alloca ptr
  %buffer = ",
        buffer_of!("child"),
        "  store ptr %p, ptr %buffer
  %status = call i32 @cudaLaunchDeviceV2(ptr %buffer, ptr null)
"
    );
    let module = |code: &str| format!("{start}{code}\n  ret void\n}}\n");
    let null = "invalid address: 0x0";
    for (code, said) in [
        ("  store i32 1, ptr undef", null),
        ("  store i32 1, ptr poison", null),
        ("  %q = load ptr, ptr %w\n  store i32 1, ptr %q", null),
        (
            "  %q = load i32, ptr %v\n  %z = udiv i32 %n, %q\n  store i32 %z, ptr %p",
            "divided an integer by zero, at a.ll:",
        ),
        (
            "  %q = load i32, ptr %v\n  %c = icmp eq i32 %q, 3\n  br i1 %c, label %x, label %y\nx:\n  ret void\ny:",
            "p: [7]",
        ),
    ] {
        for level in ["0", "1", "3"] {
            let call = ["run", "FILE", "--device", "cpu", "--kernel", "start", "-O", level];
            let rest =
                ["--grid", "1", "--block", "1", "--arg", "[1]", "--arg", "5", "--print", "p:1"];
            let output = gridlet(&module(code), &[&call[..], &rest].concat());
            let all = format!("{}{}", output.stdout, output.stderr);
            assert!(all.contains(said), "-O {level}, {code}: {output:?}");
        }
    }
    // A launch of an address in a kernel is a launch that fails.
    let inside = module("").replace("(ptr @child", "(ptr getelementptr (i8, ptr @child, i64 4)");
    let call =
        ["run", "FILE", "--device", "cpu", "--kernel", "start", "--grid", "1", "--block", "1"];
    let output = gridlet(&inside, &[&call[..], &["--arg", "[1]", "--arg", "5"]].concat());
    assert!(output.stderr.contains("lost 1 launch"), "{output:?}");
}

/// A struct of the arguments fills a buffer, though it ends in padding behind the last one.
#[test]
fn padding_behind_the_parameters_is_no_argument() {
    let module = |fields: &str| {
        let mut text = String::from(device_runtime!());
        text += "define ptx_kernel void @child(ptr %p, i32 %n) {\n  ret void\n}\n";
        text += "define ptx_kernel void @start(ptr %p) {\n  %buffer = ";
        text += buffer_of!("child");
        text += &format!("  store {fields}, ptr %buffer\n");
        text += "  %status = call i32 @cudaLaunchDeviceV2(ptr %buffer, ptr null)\n  ret void\n}\n";
        text
    };
    let fits = check(&module("{ ptr, i32 } zeroinitializer"));
    assert_eq!((fits.status, fits.stderr.as_str()), (0, ""));
    let large = check(&module("{ ptr, i32, i32 } zeroinitializer"));
    assert!(large.stderr.contains("stores bytes 0 to 15 of its parameters"), "{large:?}");
}

/// What is right reaches the tools: a byte order mark, more parameters than older PTX takes, and the padding of a struct that is copied
/// into a parameter buffer.
#[test]
fn what_is_unusual_and_right_is_taken() {
    let marked =
        "\u{feff}define ptx_kernel void @k(ptr %p) {\n  store i32 1, ptr %p\n  ret void\n}\n";
    let many = "define ptx_kernel void @k(ptr %p, [5000 x i32] %x) {\n  %y = extractvalue [5000 x i32] %x, 7\n  store i32 %y, ptr %p\n  ret void\n}\n";
    let copied = "\
%struct.dim3 = type { i32, i32, i32 }
%arguments = type { ptr, i32 }
declare ptr @cudaGetParameterBufferV2(ptr, %struct.dim3, %struct.dim3, i32)
declare i32 @cudaLaunchDeviceV2(ptr, ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define ptx_kernel void @child(ptr %p, i32 %n) {
  ret void
}
define ptx_kernel void @k(ptr %p) {
  %a = alloca %arguments
  store %arguments zeroinitializer, ptr %a
  %b = call ptr @cudaGetParameterBufferV2(ptr @child, %struct.dim3 { i32 1, i32 1, i32 1 }, %struct.dim3 { i32 1, i32 1, i32 1 }, i32 0)
  call void @llvm.memcpy.p0.p0.i64(ptr %b, ptr %a, i64 16, i1 false)
  %s = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)
  ret void
}
";
    for text in [marked, many, copied] {
        for backend in ["libnvvm", "nvptx"] {
            let built = gridlet(text, &["build", "FILE", "--arch", "sm_90", "--backend", backend]);
            assert_eq!(built.status, 0, "{backend}: {built:?}");
        }
    }
    let wrong = format!("{marked}wrong\n");
    let refused = gridlet(&wrong, &["check", "FILE"]);
    assert!(refused.stderr.starts_with("error: a.ll:5:1: "), "{refused:?}");
    // Without its padding, the copy is too long.
    let wrong = copied.replace("%arguments = type { ptr, i32 }", "%arguments = type { ptr, ptr }");
    let refused = gridlet(&wrong, &["check", "FILE"]);
    assert!(refused.stderr.contains("stores bytes 0 to 15 of its parameters"), "{refused:?}");
}

/// A check and a build say the same, also of what is no error.
#[test]
fn warnings_come_from_check_and_build() {
    let text = "\
%struct.dim3 = type { i32, i32, i32 }
declare ptr @cudaGetParameterBufferV2(ptr, %struct.dim3, %struct.dim3, i32)
define ptx_kernel void @k(ptr %p) {
  %b = call ptr @cudaGetParameterBufferV2(ptr @k, %struct.dim3 { i32 1, i32 1, i32 1 }, %struct.dim3 { i32 1, i32 1, i32 1 }, i32 0)
  ret void
}
";
    let run = ["run", "FILE", "--kernel", "k", "--grid", "1", "--block", "1", "--arg", "[8]"];
    for call in [
        &["check", "FILE"][..],
        &["check", "FILE", "--arch", "cpu"],
        &["build", "FILE", "--arch", "cpu"],
        &["build", "FILE", "--arch", "sm_90,sm_120"],
        &run,
    ] {
        let made = gridlet(text, call);
        assert_eq!(made.status, 0, "{call:?}: {made:?}");
        assert_eq!(made.stderr.matches("warning[unused-buffer]").count(), 1, "{call:?}: {made:?}");
    }
}
