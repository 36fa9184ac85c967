//! The `gridlet` program as users see it: its output and exit statuses.
//!
//! These tests need neither a toolkit nor a GPU: they test the behaviour without them.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::fs;

use crate::support::{Gridlet, folder};

const KERNEL: &str =
    "kernel k(data: *mut u32, scale: f32) { data[thread_idx.x] = scale as u32; }\n";

#[test]
fn a_clean_program_checks_in_silence() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), KERNEL).unwrap();
    let output = Gridlet::new(&folder).run(&["check", "a.grid"]);
    assert_eq!((output.status, output.stdout.as_str(), output.stderr.as_str()), (0, "", ""));
}

#[test]
fn unreadable_input_says_what_is_wrong() {
    let folder = folder();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("latin1.grid"), b"kernel k() {}\n// caf\xe9\n").unwrap();
    fs::write(path("empty.grid"), "").unwrap();
    fs::create_dir(path("folder.grid")).unwrap();
    fs::write(path("braces.grid"), format!("kernel k() {}", "{".repeat(10_000))).unwrap();
    fs::write(path("parens.grid"), format!("const A: u32 = {}", "(".repeat(10_000))).unwrap();

    let mut seen = String::new();
    for (file, status) in [
        ("latin1.grid", 1),
        ("empty.grid", 1),
        ("folder.grid", 2),
        ("missing.grid", 2),
        ("braces.grid", 1),
        ("parens.grid", 1),
    ] {
        let output = Gridlet::new(&folder).run(&["check", file]);
        assert_eq!(output.status, status, "{file}: {}", output.stderr);
        seen.push_str(&format!("--- {file}: exit {status}\n{}", output.stderr));
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn wrong_calls_exit_2_and_say_what_would_be_right() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), KERNEL).unwrap();
    let run = ["run", "a.grid", "--grid", "1", "--block", "32"];
    let calls: Vec<Vec<&str>> = vec![
        vec!["layout", "a.grid", "--kernel", "q"],
        [&run[..], &["--kernel", "q"]].concat(),
        [&run[..], &["--kernel", "k"]].concat(),
        [&run[..], &["--kernel", "k", "--arg", "7", "--arg", "1.5"]].concat(),
        [&run[..], &["--kernel", "k", "--arg", "[32]", "--arg", "fast"]].concat(),
        [&run[..], &["--kernel", "k", "--arg", "[32]", "--arg", "1.5", "--print", "scale"]]
            .concat(),
        [&run[..], &["--kernel", "k", "--arg", "[32]", "--arg", "1.5", "--print", "data:x"]]
            .concat(),
        vec!["run", "a.grid", "--kernel", "k", "--grid", "1,2,3,4", "--block", "1"],
        vec!["run", "a.grid", "--kernel", "k", "--grid", "1", "--block", "1", "--device", "gpu"],
        vec!["run", "a.grid", "--kernel", "k", "--grid", "1", "--block", "1", "--timeout", "0"],
        vec!["build", "a.grid", "--arch", "sm_70"],
        vec!["build", "a.grid", "--emit", "elf"],
        vec!["build", "a.gridlet"],
        vec!["check", "a.gridlet"],
        vec!["check", "a.grid", "--arch", "sm_80"],
        vec!["compile", "a.grid"],
        vec!["build", "a.grid", "--check", "--native", "-O", "1"],
        vec!["build", "a.grid", "--arch", "cpu", "--backend", "nvptx", "--dialect", "legacy"],
        vec!["build", "a.grid", "--arch", "sm_90,cpu", "--fast-math"],
        vec!["build", "a.grid", "--arch", "cpu", "--fast-math"],
        vec!["build", "a.ll", "--fast-math"],
        [&run[..], &["--kernel", "k", "--device", "cpu", "--fast-math"]].concat(),
        vec!["build", "a.grid", "--arch", "sm_90,sm_100", "--dialect", "legacy"],
        vec!["build", "a.grid", "--arch", "sm_90", "--dialect", "modern", "--emit", "ptx"],
        vec!["build", "a.ll", "--instance", "k::<1>", "--stats", "--native"],
        [&run[..], &["--kernel", "k", "--device", "cpu", "--backend", "nvptx"]].concat(),
        [&run[..], &["--kernel", "k", "--device", "cuda", "-O", "1"]].concat(),
        vec![
            "run",
            "a.gridlet",
            "--grid",
            "1",
            "--block",
            "1",
            "--kernel",
            "k",
            "-O",
            "3",
            "-g",
            "--backend",
            "libnvvm",
        ],
        vec!["run", "a.gridlet", "--grid", "1", "--block", "1", "--kernel", "k", "--launch", "cdp"],
    ];
    let mut seen = String::new();
    for call in calls {
        let output = Gridlet::new(&folder).run(&call);
        assert_eq!(output.status, 2, "{call:?}: {}", output.stderr);
        assert_eq!(output.stdout, "", "{call:?}");
        seen.push_str(&format!("--- gridlet {}\n{}\n", call.join(" "), output.stderr.trim_end()));
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn without_a_toolkit_building_exits_3_and_says_how_to_get_it() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), KERNEL).unwrap();
    for (call, component) in [
        (&["build", "a.grid", "--emit", "ptx"][..], "libNVVM"),
        (&["build", "a.grid", "--emit", "cubin", "-o", "a.cubin"], "libNVVM"),
        (
            &["build", "a.grid", "--emit", "cubin", "--backend", "nvptx", "-o", "a.cubin"],
            "nvJitLink",
        ),
        (&["doctor"], "libNVVM"),
    ] {
        let output = Gridlet::new(&folder).without_toolkit().run(call);
        if output.status == 0 {
            eprintln!("SKIPPED: /usr/local/cuda has a toolkit that cannot be hidden");
            return;
        }
        assert_eq!(output.status, 3, "{call:?}: {}", output.stderr);
        for said in [component, "cargo xtask setup"] {
            assert!(
                output.stderr.contains(said),
                "{call:?} does not say {said}: {}",
                output.stderr
            );
        }
    }
    assert!(!folder.path().join("a.cubin").exists());
}

#[test]
fn what_needs_no_toolkit_works_without_one() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), KERNEL).unwrap();
    for (arguments, expected) in [
        (&["ir"][..], "kernel @k("),
        (&["layout"], "\"offset\": 8"),
        (&["nvvm"], "!nvvm.annotations"),
        (&["nvvm", "--dialect", "modern"], "define ptx_kernel void @k(ptr"),
        (&["ptx", "--backend", "nvptx"], ".entry k("),
    ] {
        let call = [&["build", "a.grid", "--emit"][..], arguments].concat();
        let output = Gridlet::new(&folder).without_toolkit().run(&call);
        assert_eq!(output.status, 0, "{call:?}: {}", output.stderr);
        assert!(output.stdout.contains(expected), "{call:?}: {}", output.stdout);
    }
}

#[test]
fn layouts_are_shown_as_a_table_and_as_json() {
    let folder = folder();
    fs::write(
        folder.path().join("a.grid"),
        "struct S { c: u8, d: f64, s: i16 }\n\
         kernel k(a: u8, s: S, p: *const f32, v: f32x3) {}\nkernel none() {}\n",
    )
    .unwrap();
    let table = Gridlet::new(&folder).run(&["layout", "a.grid"]);
    let json = Gridlet::new(&folder).run(&["layout", "a.grid", "--kernel", "k", "--json"]);
    assert_eq!((table.status, json.status), (0, 0), "{}{}", table.stderr, json.stderr);
    insta::assert_snapshot!(format!("{}\n{}", table.stdout, json.stdout));

    // A bundle has the same.
    let build = Gridlet::new(&folder).run(&["build", "a.grid", "--arch", "cpu"]);
    assert_eq!((build.status, build.stderr.as_str()), (0, ""));
    let of_bundle = Gridlet::new(&folder).run(&["layout", "a.gridlet"]);
    assert_eq!((of_bundle.status, of_bundle.stdout.as_str()), (0, table.stdout.as_str()));
    let of_bundle = Gridlet::new(&folder).run(&["layout", "a.gridlet", "--kernel", "k", "--json"]);
    assert_eq!((of_bundle.status, of_bundle.stdout.as_str()), (0, json.stdout.as_str()));
    let none = Gridlet::new(&folder).run(&["layout", "a.gridlet", "--kernel", "q"]);
    assert_eq!(none.status, 2);
    assert!(none.stderr.contains("the program has k, none"), "{}", none.stderr);
}

#[test]
fn several_outputs_go_to_a_folder_and_one_to_a_file() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), KERNEL).unwrap();
    let emit =
        ["build", "a.grid", "--emit", "ir,nvvm,layout", "--arch", "sm_90,sm_100", "-o", "out"];
    assert_eq!(Gridlet::new(&folder).run(&emit).status, 0);
    let mut names: Vec<String> = fs::read_dir(folder.path().join("out"))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    assert_eq!(
        names,
        ["a.layout.json", "a.sm_100.gir", "a.sm_100.ll", "a.sm_90.gir", "a.sm_90.ll"]
    );
    let text = |name: &str| fs::read_to_string(folder.path().join("out").join(name)).unwrap();
    assert!(text("a.sm_90.ll").contains("i8*"), "the legacy dialect");
    assert!(!text("a.sm_100.ll").contains("i8*"), "the modern dialect");

    let emit = ["build", "a.grid", "--emit", "bitcode", "-o", "b.bc"];
    assert_eq!(Gridlet::new(&folder).run(&emit).status, 0);
    assert!(fs::read(folder.path().join("b.bc")).unwrap().starts_with(b"BC"));
}

#[test]
fn outputs_do_not_replace_sources() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), KERNEL).unwrap();
    fs::write(folder.path().join("b.grid"), KERNEL).unwrap();
    let build = ["build", "a.grid", "--emit"];
    let bitcode = Gridlet::new(&folder).run(&[&build[..], &["bitcode"]].concat());
    assert_eq!(bitcode.status, 0, "{}", bitcode.stderr);
    let bytes = fs::read(folder.path().join("a.bc")).unwrap();
    let mut seen = String::new();
    for call in [
        [&build[..], &["nvvm", "-o", "a.grid"]].concat(),
        [&build[..], &["nvvm", "-o", "b.grid"]].concat(),
        [&build[..], &["ir,nvvm", "-o", "a.grid"]].concat(),
        // The output would have the input's own name.
        vec!["build", "a.bc", "--emit", "bitcode"],
    ] {
        let output = Gridlet::new(&folder).run(&call);
        assert_eq!(output.status, 2, "{call:?}: {output:?}");
        seen += &output.stderr;
    }
    insta::assert_snapshot!(seen, @"
    error: a.grid: is an input; name another file with -o
    error: b.grid: already exists, and .grid files are sources; name another file with -o
    error: a.grid: is a file; several outputs need a folder
    error: ./a.bc: is an input; name another file with -o
    ");
    for name in ["a.grid", "b.grid"] {
        assert_eq!(fs::read_to_string(folder.path().join(name)).unwrap(), KERNEL);
    }
    assert_eq!(fs::read(folder.path().join("a.bc")).unwrap(), bytes);
}

#[test]
fn a_dash_is_standard_output() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), KERNEL).unwrap();
    let build = ["build", "a.grid", "--emit", "ir"];
    let plain = Gridlet::new(&folder).run(&build);
    let dashed = Gridlet::new(&folder).run(&[&build[..], &["-o", "-"]].concat());
    assert_eq!((dashed.status, &dashed.stdout), (0, &plain.stdout), "{}", dashed.stderr);
    let several = ["build", "a.grid", "--emit", "ir,nvvm", "-o", "-"];
    let output = Gridlet::new(&folder).run(&several);
    assert_eq!((output.status, output.stdout.as_str()), (2, ""));
    assert!(!folder.path().join("-").exists());
}

#[test]
fn nvvm_ir_is_an_input_too() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), KERNEL).unwrap();
    let emit = ["build", "a.grid", "--emit", "bitcode", "-o", "a.bc"];
    assert_eq!(Gridlet::new(&folder).run(&emit).status, 0);
    let from_source = Gridlet::new(&folder).run(&["build", "a.grid", "--emit", "nvvm"]);
    let from_bitcode = Gridlet::new(&folder).run(&["build", "a.bc", "--emit", "nvvm"]);
    assert_eq!(from_bitcode.status, 0, "{}", from_bitcode.stderr);
    assert_eq!(
        from_bitcode.stdout, from_source.stdout,
        "the legacy text of the module is the same"
    );

    // A module without a version and a data layout.
    let plain = "define ptx_kernel void @k(ptr %p) { store i32 1, ptr %p ret void }";
    fs::write(folder.path().join("plain.ll"), plain).unwrap();
    for (arch, said) in
        [("sm_90", "!{void (i8*)* @k, !\"kernel\", i32 1}"), ("sm_100", "!nvvmir.version")]
    {
        let call = ["build", "plain.ll", "--emit", "nvvm", "--arch", arch];
        let output = Gridlet::new(&folder).run(&call);
        assert_eq!(output.status, 0, "{arch}: {}", output.stderr);
        assert!(output.stdout.contains(said), "{arch}: {}", output.stdout);
    }

    let other = "target triple = \"x86_64-linux-gnu\"\ndefine void @f() { ret void }";
    fs::write(folder.path().join("other.ll"), other).unwrap();
    let output = Gridlet::new(&folder).run(&["build", "other.ll", "--emit", "nvvm"]);
    assert_eq!(output.status, 1, "{}", output.stderr);
    assert!(output.stderr.contains("nvptx64-nvidia-cuda"), "{}", output.stderr);

    fs::write(folder.path().join("bad.ll"), "define nonsense").unwrap();
    let bad = Gridlet::new(&folder).run(&["build", "bad.ll", "--emit", "ptx"]);
    assert_eq!(bad.status, 1, "{}", bad.stderr);
    let layout = Gridlet::new(&folder).run(&["build", "a.bc", "--emit", "layout"]);
    assert!(layout.stdout.contains("\"kernel\": \"k\""), "{}", layout.stderr);
}

#[test]
fn messages_can_be_json_lines() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), "kernel k() { x = 1; y = 2; }").unwrap();
    let call = ["check", "a.grid", "missing.grid", "--message-format", "json"];
    let output = Gridlet::new(&folder).run(&call);
    assert_eq!(output.status, 2, "the worst of 1 and 2: {}", output.stderr);
    let lines: Vec<serde_json::Value> =
        output.stderr.lines().map(|line| serde_json::from_str(line).expect(line)).collect();
    assert_eq!(lines.len(), 3, "{}", output.stderr);
    assert!(lines.iter().all(|line| line["severity"] == "error" && line["id"].is_string()));
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_takes_the_messages_and_not_the_status() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), "kernel k() { x = 1; }").unwrap();
    for format in ["human", "json"] {
        for (file, status) in [("a.grid", 1), ("missing.grid", 2)] {
            let full = fs::File::options().write(true).open("/dev/full").unwrap();
            let mut check = std::process::Command::new(env!("CARGO_BIN_EXE_gridlet"));
            check.args(["check", "--message-format", format, file]).current_dir(folder.path());
            assert_eq!(
                check.stderr(full).status().unwrap().code(),
                Some(status),
                "{file}, {format}"
            );
        }
    }
}

#[test]
fn output_is_the_same_every_time() {
    let folder = folder();
    let source = include_str!("../../../../examples/programs/mandelbrot.grid");
    fs::write(folder.path().join("a.grid"), source).unwrap();
    for emit in ["ir", "nvvm", "layout"] {
        let once = || Gridlet::new(&folder).run(&["build", "a.grid", "--emit", emit]).stdout;
        assert_eq!(once(), once(), "{emit}");
    }
}

#[test]
fn an_old_driver_is_an_error_and_a_missing_one_leaves_the_cpu() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), KERNEL).unwrap();
    let run = [
        "run", "a.grid", "--kernel", "k", "--grid", "1", "--block", "1", "--arg", "[1]", "--arg",
        "1",
    ];

    // The runtime's tests have a fake driver without a GPU, of any version.
    let source =
        concat!(env!("CARGO_MANIFEST_DIR"), "/../../runtime/tests/suite/fake_driver/fake.c");
    let library = folder.path().join("libcuda.so.1");
    let mut cc = std::process::Command::new("cc");
    let built = cc.args(["-shared", "-fPIC", "-o"]).arg(&library).arg(source).output();
    assert!(built.as_ref().is_ok_and(|output| output.status.success()), "cc: {built:?}");
    let path = folder.path().to_str().unwrap();
    let old = |call: &[&str]| {
        Gridlet::new(&folder).env("LD_LIBRARY_PATH", path).env("FAKE_VERSION", "11040").run(call)
    };
    for call in [&run[..], &["device"]] {
        let output = old(call);
        assert_eq!(output.status, 3, "{call:?}: {output:?}");
        for said in ["too old", "11.4", "12.0"] {
            assert!(
                output.stderr.contains(said),
                "{call:?} does not say {said}: {}",
                output.stderr
            );
        }
    }

    // An empty file in place of the driver hides the machine's own.
    fs::write(&library, "").unwrap();
    fs::write(folder.path().join("libcuda.so"), "").unwrap();
    let without = |call: &[&str]| Gridlet::new(&folder).env("LD_LIBRARY_PATH", path).run(call);
    let output = without(&[&run[..], &["--device", "cuda"]].concat());
    assert_eq!(output.status, 3, "{output:?}");
    assert!(output.stderr.contains("no NVIDIA driver"), "{}", output.stderr);
    let output = without(&run);
    assert_eq!(output.status, 0, "{output:?}");
    assert!(output.stdout.starts_with("k on cpu: "), "{}", output.stdout);
    let output = without(&["device"]);
    assert_eq!(output.status, 0, "{output:?}");
    assert!(output.stdout.contains("no NVIDIA driver") && output.stdout.contains("\ncpu  "));
}

#[test]
fn the_readme_s_program_is_a_program() {
    let readme = include_str!("../../../../README.md");
    let program = readme.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next());
    let folder = folder();
    fs::write(folder.path().join("tree.grid"), program.expect("a program in the README")).unwrap();
    let output = Gridlet::new(&folder).run(&["layout", "tree.grid"]);
    assert_eq!(output.status, 0, "{}", output.stderr);
    for line in output.stdout.lines().filter(|line| !line.is_empty()) {
        assert!(readme.contains(line), "the README does not show {line}");
    }
}

#[test]
fn the_launch_queue_needs_a_gpu() {
    let folder = folder();
    // An empty file in place of the driver hides the machine's own.
    let drivers = folder.path().join("drivers");
    fs::create_dir(&drivers).unwrap();
    for name in ["libcuda.so", "libcuda.so.1"] {
        fs::write(drivers.join(name), "").unwrap();
    }
    let probe = |more: &[&str]| {
        let call = [&["probe", "launch-queue"], more].concat();
        Gridlet::new(&folder).env("LD_LIBRARY_PATH", &drivers.display().to_string()).run(&call)
    };
    let output = probe(&[]);
    assert_eq!((output.status, output.stdout.as_str()), (3, ""), "{output:?}");
    assert!(output.stderr.contains("no NVIDIA driver"), "{}", output.stderr);
    for (wrong, said) in [
        (&["--device", "cpu"][..], "give --device cuda or cuda:N"),
        (&["--plot", "depth.png"], "give a name with .svg"),
        (&["--streams", "0"], "0 is not in 1..=1024"),
        (&["--streams", "1,,3"], "--streams"),
        (&["--timeout", "0"], "give a number of seconds"),
        (&["--measure", "1"], "DEVICE,STREAMS,BLOCKS,THREADS,LIMIT"),
    ] {
        let output = probe(wrong);
        assert_eq!(output.status, 2, "{wrong:?}: {output:?}");
        assert!(output.stderr.contains(said), "{wrong:?}: {}", output.stderr);
    }
}
