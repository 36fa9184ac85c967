//! `gridlet build` for the CPU device. Needs a C compiler, for modules in C.

use std::fs;

use crate::support::{Gridlet, folder};
use gridlet_runtime::artifact::{Artifact, cpu_arch};
use gridlet_runtime::manifest::ImageKind;
use object::{Object, ObjectSection};

const SOURCE: &str = "\
kernel k(data: *mut u32) {
    data[thread_idx.x] = 7;
}
";

#[test]
fn a_bundle_holds_an_image_for_the_cpu() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), SOURCE).unwrap();
    let call = ["build", "a.grid", "--arch", "cpu", "-o", "a.gridlet"];
    let output = Gridlet::new(&folder).without_toolkit().run(&call);
    assert_eq!((output.status, output.stdout + &output.stderr), (0, String::new()));
    let artifact = Artifact::open(folder.path().join("a.gridlet")).unwrap();
    let (image, bytes) = artifact.images().next().unwrap();
    assert_eq!((image.kind, image.arch.clone()), (ImageKind::SharedObject, cpu_arch()));
    assert_eq!(image.file, "a.cpu.so");
    let file = object::File::parse(bytes).unwrap();
    assert_eq!(file.kind(), object::ObjectKind::Dynamic);
    assert!(file.section_by_name(".debug_line").is_none());
}

#[test]
fn remarks_of_llvm_do_not_reach_standard_error() {
    let folder = folder();
    // LLVM cannot unroll this loop, and prints that.
    let source = "kernel k(p: *mut u32) {
        let mut i = 0u32;
        #[unroll(4)]
        while p[i] != 0 {
            i += 1;
            sync_threads();
            printf(\"x\");
        }
        p[0] = i;
    }";
    fs::write(folder.path().join("a.grid"), source).unwrap();
    for options in [&[][..], &["-O1"], &["--check"]] {
        let call = [&["build", "a.grid", "--arch", "cpu"], options].concat();
        let output = Gridlet::new(&folder).without_toolkit().run(&call);
        assert_eq!((output.status, output.stdout + &output.stderr), (0, String::new()), "{call:?}");
    }
}

#[test]
fn every_stage_can_be_written() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), SOURCE).unwrap();
    let emit = "ir,nvvm,object,shared-object,manifest";
    let call = ["build", "a.grid", "--arch", "cpu", "--emit", emit, "-g", "--check", "-O0"];
    let output = Gridlet::new(&folder).without_toolkit().run(&call);
    assert_eq!((output.status, output.stdout + &output.stderr), (0, String::new()));
    let read = |name: &str| fs::read(folder.path().join(name)).unwrap();
    let text = |name: &str| String::from_utf8(read(name)).unwrap();
    assert!(text("a.gir").contains("kernel"), "{}", text("a.gir"));
    assert!(text("a.ll").contains("define internal void @own.k.body"), "{}", text("a.ll"));
    assert!(text("a.json").contains(&cpu_arch()), "{}", text("a.json"));
    for name in ["a.o", "a.so"] {
        let bytes = read(name);
        let file = object::File::parse(bytes.as_slice()).unwrap();
        let lines = file.section_by_name(".debug_line").expect("lines").data().unwrap();
        let is_named = lines.windows(6).any(|window| window == b"a.grid");
        assert!(is_named, "{name} does not name the source");
    }
}

#[test]
fn what_a_target_does_not_have_is_a_wrong_call() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), SOURCE).unwrap();
    fs::write(folder.path().join("a.ll"), "").unwrap();
    let mut seen = String::new();
    for call in [
        ["build", "a.grid", "--arch", "cpu", "--emit", "ptx"],
        ["build", "a.grid", "--arch", "sm_90", "--emit", "shared-object"],
        ["build", "a.ll", "--arch", "cpu", "--emit", "nvvm"],
        ["build", "a.grid", "--arch", "cpu,sm_90", "--emit", "shared-object"],
    ] {
        let output = Gridlet::new(&folder).without_toolkit().run(&call);
        seen.push_str(&format!(
            "$ {}\nexit {}\n{}\n",
            call.join(" "),
            output.status,
            output.stderr
        ));
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn the_c_compiler_may_have_arguments() {
    use std::os::unix::fs::PermissionsExt as _;
    let folder = folder();
    fs::write(folder.path().join("a.grid"), SOURCE).unwrap();
    let wrapper = folder.path().join("ccache");
    fs::write(&wrapper, "#!/bin/sh\nexec \"$@\"\n").unwrap();
    fs::set_permissions(&wrapper, fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", folder.path().display(), std::env::var("PATH").unwrap());
    fs::write(folder.path().join("none.c"), "").unwrap();
    let call = ["build", "a.grid", "--arch", "cpu", "--link", "none.c"];
    let output = Gridlet::new(&folder).env("PATH", &path).env("CC", "ccache cc").run(&call);
    assert_eq!(output.status, 0, "{output:?}");
}

#[test]
fn a_c_compiler_that_is_not_there_or_fails_is_an_error() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), SOURCE).unwrap();
    fs::write(folder.path().join("none.c"), "").unwrap();
    let mut seen = String::new();
    for (name, value) in [("CC", "no-such-cc -m64"), ("PATH", "/no/where"), ("CC", "false")] {
        let call = ["build", "a.grid", "--arch", "cpu", "--link", "none.c"];
        let output = Gridlet::new(&folder).without_toolkit().env(name, value).run(&call);
        seen.push_str(&format!("{name}={value}: exit {}\n{}\n", output.status, output.stderr));
    }
    insta::assert_snapshot!(seen);
    assert!(!folder.path().join("a.gridlet").exists());
}

#[test]
fn a_program_without_c_needs_no_c_compiler() {
    let folder = folder();
    let source = "kernel k(out: *mut u32) { launch l<<<1, 1>>>(out); }\n\
                  kernel l(out: *mut u32) { *out = 42; }";
    fs::write(folder.path().join("a.grid"), source).unwrap();
    for level in ["0", "1", "3"] {
        let call = ["build", "a.grid", "--arch", "cpu", "-g", "-O", level];
        let alone = Gridlet::new(&folder).env("PATH", "/no/where").env("CC", "false");
        let output = alone.run(&call);
        assert_eq!(output.status, 0, "{output:?}");
        let call = ["run", "a.gridlet", "--kernel", "k", "--grid", "1", "--block", "1"];
        let call = [&call[..], &["--device", "cpu", "--arg", "[4]", "--print", "out:1"]].concat();
        let output = Gridlet::new(&folder).run(&call);
        assert_eq!((output.status, output.stdout.contains("out: [42]")), (0, true), "{output:?}");
    }
}

/// A limit of the file size stands for a full disk: the write fails in the middle.
#[test]
fn a_failed_write_leaves_the_old_file() {
    for (emit, name) in [("nvvm", "a.ll"), ("bundle", "a.gridlet")] {
        let folder = folder();
        fs::write(folder.path().join("a.grid"), SOURCE).unwrap();
        let path = folder.path().join(name);
        fs::write(&path, "old").unwrap();
        let call = ["build", "a.grid", "--arch", "cpu", "--emit", emit, "-o", name];
        let output = Gridlet::new(&folder).in_shell("trap '' XFSZ; ulimit -f 1").run(&call);
        assert_eq!(output.status, 3, "{output:?}");
        assert!(output.stderr.starts_with(&format!("error: {name}: ")), "{output:?}");
        assert_eq!(fs::read(&path).unwrap(), b"old");
        let names = fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.collect();
        names.sort();
        assert_eq!(names, ["a.grid", name]);
        let output = Gridlet::new(&folder).run(&call);
        assert!(output.status == 0 && fs::read(&path).unwrap().len() > 1024, "{output:?}");
    }
}

#[test]
fn a_build_that_a_signal_ends_leaves_nothing() {
    use std::os::unix::fs::PermissionsExt as _;
    use std::process::{Command, Stdio};
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    fs::write(at("a.grid"), SOURCE).unwrap();
    // The linker waits until it is told to go on; the signal arrives before.
    fs::write(at("cc"), "#!/bin/sh\ntouch started\nread line < go\n").unwrap();
    fs::set_permissions(at("cc"), fs::Permissions::from_mode(0o755)).unwrap();
    fs::write(at("none.c"), "").unwrap();
    fs::create_dir(at("tmp")).unwrap();
    assert!(Command::new("mkfifo").arg(at("go")).status().unwrap().success());
    for (signal, status) in [("TERM", 15), ("HUP", 1)] {
        use std::os::unix::process::ExitStatusExt as _;
        let program =
            std::env::var_os("GRIDLET_BIN").unwrap_or(env!("CARGO_BIN_EXE_gridlet").into());
        let mut build = Command::new(program)
            .args(["build", "a.grid", "--arch", "cpu", "--link", "none.c"])
            .current_dir(folder.path())
            .env("TMPDIR", at("tmp"))
            .env("CC", at("cc"))
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while !at("started").exists() {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        assert!(fs::read_dir(at("tmp")).unwrap().next().is_some());
        let id = build.id().to_string();
        assert!(Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        assert_eq!(build.wait().unwrap().signal(), Some(status));
        assert!(fs::read_dir(at("tmp")).unwrap().next().is_none(), "{signal}");
        // Lets the waiting linker end.
        fs::write(at("go"), "\n").unwrap();
        fs::remove_file(at("started")).unwrap();
    }
    assert!(!at("a.gridlet").exists());
}

#[test]
fn variables_beyond_an_image_are_refused() {
    let folder = folder();
    let source = |count: u32| {
        let variables = (0..2).map(|at| {
            format!("static v{at}: [u64; {count}] = [0; {count}];\nkernel k{at}(o: *mut u64) {{ o[0] = v{at}[{count} - 1]; }}\n")
        });
        variables.collect::<String>()
    };
    let path = folder.path().join("a.grid");
    let call = ["build", "a.grid", "--arch", "cpu", "-o", "a.gridlet"];
    fs::write(&path, source(1 << 27)).unwrap();
    let output = Gridlet::new(&folder).run(&call);
    assert_eq!(output.status, 2, "{output:?}");
    assert!(output.stderr.contains("the `static` variables take 2147483648 bytes"), "{output:?}");
    fs::write(&path, source(31 << 22)).unwrap();
    let output = Gridlet::new(&folder).run(&call);
    assert_eq!(output.status, 0, "{output:?}");
}

#[test]
fn an_error_in_linked_c_is_the_programs() {
    let folder = folder();
    let source = "extern fn f(x: u32) -> u32;\nkernel k(o: *mut u32) { o[0] = f(o[0]); }\n";
    fs::write(folder.path().join("a.grid"), source).unwrap();
    let right = "unsigned f(unsigned x) { return x; }\n";
    let call = ["build", "a.grid", "--arch", "cpu", "--link", "f.c", "--link", "g.c"];
    for (f, g, said) in [
        ("unsigned f(unsigned x) { return x }\n", "", "f.c:1:"),
        (right, right, "multiple definition"),
    ] {
        fs::write(folder.path().join("f.c"), f).unwrap();
        fs::write(folder.path().join("g.c"), g).unwrap();
        let output = Gridlet::new(&folder).run(&call);
        assert_eq!(output.status, 1, "{output:?}");
        assert!(output.stderr.contains(said), "{output:?}");
    }
}
