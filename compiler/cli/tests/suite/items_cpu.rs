//! Programs of several files, with const parameters and with functions from linked modules, run by
//! the `gridlet` program on the CPU device. Needs a C compiler, as images for the CPU do.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::fs;
use std::process::Command;

use crate::support::{Gridlet, Output, folder, json};
use tempfile::TempDir;

/// A folder with files of these names and contents.
fn files(files: &[(&str, &str)]) -> TempDir {
    let folder = folder();
    for (name, text) in files {
        let path = folder.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    folder
}

/// Runs `gridlet` in a folder with a command line given as one text.
fn call(folder: &TempDir, line: &str) -> Output {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    Gridlet::new(folder).without_toolkit().run(&arguments)
}

/// Runs system tools in a folder, each with a command line given as one text.
fn tools(folder: &TempDir, lines: &[&str]) {
    for line in lines {
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().unwrap());
        let status = command.args(words).current_dir(folder.path()).status().unwrap();
        assert!(status.success(), "{line}");
    }
}

/// The elements that `--print NAME --json` printed.
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

#[test]
fn messages_name_files_as_they_are_reached_from_here() {
    let wrong = "kernel k(p: *mut u32) { *p = true; }";
    let folder =
        files(&[("a/p.grid", wrong), ("b/p.grid", "use \"lib/q.grid\";"), ("b/lib/q.grid", wrong)]);
    let output = call(&folder, "check a/p.grid b/p.grid");
    assert!(output.stderr.contains(" a/p.grid:1:30\n"), "{output:?}");
    assert!(output.stderr.contains(" b/lib/q.grid:1:30\n"), "{output:?}");
    let output = call(&folder, "check --message-format json b/p.grid");
    assert!(output.stderr.contains("\"file\":\"b/lib/q.grid\""), "{output:?}");
    let folder = files(&[
        ("c/p.grid", "use \"q.grid\";\nkernel k(p: *mut u32) { launch l<<<1, 2>>>(p); }"),
        ("c/q.grid", "kernel l(p: *mut u32) {\n    p[0] += 1;\n}"),
    ]);
    let run = "run c/p.grid --device cpu --check --kernel k --grid 1 --block 1 --arg [1]";
    let output = call(&folder, run);
    for shown in [" --> c/q.grid:2\n", " ::: c/q.grid:2\n", " at c/p.grid:2,", "p[0] += 1;"] {
        assert!(output.stderr.contains(shown), "{shown}: {output:?}");
    }
}

const INSTANCES: &str = "\
fn sum<const K: u32>(p: *const u32) -> u32 {
    if K == 0 { return 0; }
    return p[K - 1] + sum::<{ K - 1 }>(p);
}
fn choose<const FIRST: bool>(a: u32, b: u32) -> u32 { return if FIRST { a } else { b }; }
kernel k<const N: u32, const STEP: i8>(p: *mut u32) {
    shared part: [u32; N];
    part[thread_idx.x] = p[thread_idx.x];
    sync_threads();
    if thread_idx.x == 0 {
        p[N] = sum::<N>(&part[0]) + choose::<true>(1000, 1) + choose::<false>(1, 2000);
        if STEP < 0 { launch k::<{ N / 2 }, 1><<<1, N / 2>>>(p); }
    }
}
kernel start(p: *mut u32) { launch k::<4, -1><<<1, 4>>>(p); }
";

#[test]
fn instances_run_and_are_named() {
    let folder = files(&[("p.grid", INSTANCES)]);
    let run = |kernel: &str, block: u32| {
        let rest = "--device cpu --grid 1 --arg [9]=iota --print p --json";
        call(&folder, &format!("run p.grid --kernel {kernel} --block {block} {rest}"))
    };
    // The parent's sum of 4 elements, then the child's of 2.
    assert_eq!(printed(&run("start", 1), "p"), [0, 1, 3001, 3, 3006, 5, 6, 7, 8]);
    // An instance that the program does not launch itself.
    assert_eq!(printed(&run("k::<8,1>", 8), "p"), [0, 1, 2, 3, 4, 5, 6, 7, 3028]);
    assert_eq!(printed(&run("k::<0x2,1>", 2), "p"), [0, 1, 3001, 3, 4, 5, 6, 7, 8]);

    for (kernel, said) in [
        ("k", "the program has start, k::<4, -1>, k::<2, 1>"),
        ("other::<1>", "no kernel `other::<1>`"),
        ("k::<1>", "`u32`, `i8`"),
        ("k::<1,200>", "there cannot be a kernel `k::<1, 200>`"),
        ("k::<true,1>", "there cannot be a kernel `k::<true, 1>`"),
        ("start::<1>", "`start` takes no constants"),
        ("k::<N,1>", "`N` is neither an integer nor a `bool`"),
        ("k::<1,1", "between `::<` and `>`"),
    ] {
        let output = run(kernel, 1);
        assert!(matches!(output.status, 1 | 2), "{kernel}: {output:?}");
        assert!(output.stderr.contains(said), "{kernel}: {output:?}");
    }
}

#[test]
fn a_manifest_names_instances_and_their_symbols() {
    let folder = files(&[("p.grid", INSTANCES)]);
    let manifest = "build p.grid --arch cpu --emit manifest";
    let kernels = |output: &Output| {
        let kernels = json(output)["kernels"].as_array().unwrap().clone();
        let shown = kernels.iter().map(|kernel| {
            let symbol = kernel["symbol"].as_str().unwrap_or("-");
            format!("{} {symbol} {}", kernel["name"].as_str().unwrap(), kernel["launches"])
        });
        shown.collect::<Vec<_>>()
    };
    let expected =
        ["start - [\"k::<4, -1>\"]", "k::<4, -1> k$4$m1 [\"k::<2, 1>\"]", "k::<2, 1> k$2$1 []"];
    assert_eq!(kernels(&call(&folder, manifest)), expected);
    let wanted = call(&folder, &format!("{manifest} --instance k::<2,1> --instance k::<16,0>"));
    assert_eq!(
        kernels(&wanted),
        ["start - [\"k::<4, -1>\"]", "k::<2, 1> k$2$1 []", "k::<16, 0> k$16$0 []", expected[1]]
    );
    let layout = call(&folder, "layout p.grid --kernel k::<32,0>");
    assert!(layout.stdout.starts_with("kernel k::<32, 0>: 8 of"), "{layout:?}");
    let bundle = call(&folder, "build p.grid --arch cpu --instance k::<8,0> -o p.gridlet");
    assert_eq!(bundle.status, 0, "{bundle:?}");
    let run = "run p.gridlet --device cpu --kernel k::<8,0> --grid 1 --block 8 --arg [9]=iota --print p --json";
    assert_eq!(printed(&call(&folder, run), "p")[8], 3028);
}

#[test]
fn a_program_may_hold_kernels_that_nobody_names_an_instance_of() {
    let source = "kernel k<const N: u32>(p: *mut [u32; N]) { (*p)[0] = N; }";
    let folder = files(&[("p.grid", source)]);
    for line in ["check p.grid", "build p.grid --arch cpu -o p.gridlet"] {
        let output = call(&folder, line);
        assert_eq!((output.status, output.stdout + &output.stderr), (0, String::new()), "{line}");
    }
}

const EXTERNS: &str = "\
extern fn mixed(take: bool, c: i8, h: u16, x: f32, y: f64, p: *const u32) -> f64;
extern fn above(x: i8) -> bool;
extern fn narrow(x: i32) -> i8;
kernel k(p: *mut u32, out: *mut f64) {
    let c = narrow(p[0] as i32 + 500);
    out[0] = mixed(above(c), c, 65535, 0.5, 0.25, p);
    out[1] = mixed(above(-100), -100, 1, 0.0, 0.0, p);
}
";

const DEFINITIONS: &str = "\
#include <stdbool.h>
#include \"factor.h\"
double mixed(bool take, signed char c, unsigned short h, float x, double y, const unsigned *p) {
    return FACTOR * ((take ? 1000000 : 0) + c + h + x + y + p[1]);
}
bool above(signed char x) { return x > 3; }
signed char narrow(int x) { return (signed char)x; }
";

#[test]
fn functions_of_c_are_linked_into_images_for_the_cpu() {
    let folder = files(&[
        ("p.grid", EXTERNS),
        ("lib/defs.c", DEFINITIONS),
        ("lib/factor.h", "#define FACTOR 2\n"),
        // The C types of machine words; the IR has the attributes that a C compiler would add.
        (
            "narrow.ll",
            "define signext i8 @narrow(i32 %x) {\n  %y = trunc i32 %x to i8\n  ret i8 %y\n}\n",
        ),
    ]);
    // 500 is -12 as an `i8`.
    let expected = |c: f64| 2.0 * (c + 65535.0 + 0.75 + 1.0);
    let run = "run p.grid --device cpu --kernel k --grid 1 --block 1 --arg [2]=iota --arg [2] --print out --json";
    let outputs = |output: &Output| {
        assert_eq!(output.status, 0, "{output:?}");
        let elements = json(output)["buffers"]["out"].as_array().unwrap().clone();
        elements.iter().map(|element| element.as_f64().unwrap()).collect::<Vec<_>>()
    };
    let result = outputs(&call(&folder, &format!("{run} --link lib/defs.c")));
    assert_eq!(result, [expected(-12.0), 2.0 * (-100.0 + 1.0 + 1.0)]);
    assert_eq!(outputs(&call(&folder, &format!("{run} --link lib/defs.c -O 0"))), result);

    // The same as an object file, as an archive, and partly as LLVM IR.
    tools(&folder, &["cc -c -fPIC lib/defs.c -o defs.o", "ar rcs defs.a defs.o"]);
    assert_eq!(outputs(&call(&folder, &format!("{run} --link defs.o"))), result);
    assert_eq!(outputs(&call(&folder, &format!("{run} --link defs.a"))), result);
    let rest = DEFINITIONS.replace("signed char narrow(int x) { return (signed char)x; }", "");
    fs::write(folder.path().join("lib/rest.c"), rest).unwrap();
    let parts = call(&folder, &format!("{run} --link lib/rest.c --link narrow.ll"));
    assert_eq!(outputs(&parts), result);
}

#[test]
fn what_cannot_be_linked_in_is_refused_by_name() {
    let source = "extern fn g(x: f32) -> f32;\nkernel k(p: *mut f32) { p[0] = g(p[0]); }\n";
    let folder = files(&[("p.grid", source), ("g.c", "float g(float x) { return x; }\n")]);
    let path = |name: &str| folder.path().join(name);
    tools(&folder, &["cc -c g.c -o g.o", "cc -shared -fPIC g.c -o g.so"]);
    fs::copy(path("g.so"), path("renamed.o")).unwrap();
    let object = fs::read(path("g.o")).unwrap();
    // The machine is the 16-bit word at 18 (System V ABI, "ELF Header"); 243 is RISC-V.
    let mut other = object.clone();
    other[18..20].copy_from_slice(&243_u16.to_le_bytes());
    fs::write(path("other.o"), other).unwrap();
    fs::write(path("cut.o"), &object[..100]).unwrap();
    fs::write(path("text.a"), "no archive").unwrap();
    fs::write(path("thin.a"), "!<thin>\n").unwrap();
    for name in ["empty.o", "empty.a", "empty.cubin", "empty.fatbin"] {
        fs::write(path(name), "").unwrap();
    }
    fs::create_dir(path("folder.o")).unwrap();
    let mut seen = String::new();
    for name in [
        "g.so",
        "renamed.o",
        "other.o",
        "cut.o",
        "text.a",
        "thin.a",
        "empty.o",
        "empty.a",
        "empty.cubin",
        "empty.fatbin",
        "folder.o",
    ] {
        let output = call(&folder, &format!("build p.grid --arch cpu -o p.gridlet --link {name}"));
        seen.push_str(&format!("$ {name}\nexit {}\n{}\n", output.status, output.stderr));
    }
    insta::assert_snapshot!(seen);
    // An input without code for this machine does not affect the others.
    let build = "build p.grid --arch cpu -o p.gridlet --link other.o --link g.o";
    assert_eq!(call(&folder, build).status, 0);
}

#[test]
fn an_extern_function_must_be_defined_as_it_is_declared() {
    let source = "extern fn g(x: f32) -> f32;\nextern fn unused();\nkernel k(p: *mut f32) { p[0] = g(p[0]); }\n";
    let folder = files(&[
        ("p.grid", source),
        ("g.ll", "define float @g(double %x) {\n  ret float 1.0\n}\n"),
        (
            "gpu.ll",
            "target triple = \"nvptx64-nvidia-cuda\"\ndefine float @g(float %x) {\n  ret float %x\n}\n",
        ),
        ("bad.ll", "define float"),
        ("twice.ll", "define float @g(float %x) {\n  ret float %x\n}\n"),
        ("empty.c", ""),
        ("wrong.c", "float g(float x) { return }"),
    ]);
    let build = "build p.grid --arch cpu -o p.gridlet";
    let mut seen = String::new();
    for more in [
        "",
        "--link empty.c",
        "--link gpu.ll",
        "--link g.ll",
        "--link bad.ll",
        "--link twice.ll --link twice.ll",
        "--link none.o",
        "--link p.txt",
    ] {
        fs::write(folder.path().join("p.txt"), "").unwrap();
        let output = call(&folder, &format!("{build} {more}"));
        seen.push_str(&format!("$ {more}\nexit {}\n{}\n", output.status, output.stderr));
    }
    insta::assert_snapshot!(seen);
    let output = call(&folder, &format!("{build} --link wrong.c"));
    assert_eq!(output.status, 1, "{output:?}");
    assert!(output.stderr.contains("wrong.c:1"), "{output:?}");
    let output = call(&folder, "build p.grid --arch cpu --emit manifest --link twice.ll");
    assert_eq!(output.status, 0, "{output:?}");
}

/// A linked module has launches only on GPUs, where those whose status it drops are recorded.
#[test]
fn launches_of_linked_modules_are_recorded_or_refused() {
    let module = "%dim3 = type { i32, i32, i32 }
declare ptr @cudaGetParameterBufferV2(ptr, %dim3, %dim3, i32)
declare i32 @cudaLaunchDeviceV2(ptr, ptr)
declare ptx_kernel void @child(ptr)
define void @go(ptr %p) {
  %b = call ptr @cudaGetParameterBufferV2(ptr @child, %dim3 { i32 1, i32 1, i32 1 }, %dim3 { i32 1, i32 1, i32 1 }, i32 0)
  store ptr %p, ptr %b
  %s = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)
  ret void
}
";
    let program = "extern fn go(p: *mut u32);\nkernel child(p: *mut u32) { *p = 1; }\n";
    let calling = format!("{program}kernel main(p: *mut u32) {{ go(p); }}\n");
    let both =
        format!("{program}kernel main(p: *mut u32) {{ go(p); launch child<<<1, 1>>>(p); }}\n");
    let folder = files(&[("a.grid", &calling), ("b.grid", &both), ("go.ll", module)]);
    let refused = call(&folder, "build a.grid --link go.ll --arch cpu");
    assert_eq!(refused.status, 1);
    insta::assert_snapshot!(refused.stderr);
    for name in ["a.grid", "b.grid"] {
        for arch in ["sm_90", "sm_100"] {
            let options = "--launch cdp --backend nvptx --emit ptx -o -";
            let ptx = call(&folder, &format!("build {name} --link go.ll --arch {arch} {options}"));
            assert_eq!((ptx.status, ptx.stderr.as_str()), (0, ""), "{name}");
            let defined =
                ptx.stdout.lines().filter(|line| line.contains(".b8 __gridlet_lost_launches"));
            assert_eq!(defined.count(), 1, "{}", ptx.stdout);
            // 2,147,483,648 is file 0 of a linked object.
            assert!(
                ptx.stdout.contains("2147483648") && ptx.stdout.contains(", 8;"),
                "{}",
                ptx.stdout
            );
        }
    }
}
