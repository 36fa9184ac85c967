//! `gridlet build` for the CPU device. Needs a C compiler, as such builds do.

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
        ["build", "a.grid", "--arch", "sm_90", "--emit", "object"],
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
fn a_c_compiler_that_is_not_there_or_fails_is_an_error() {
    let folder = folder();
    fs::write(folder.path().join("a.grid"), SOURCE).unwrap();
    let mut seen = String::new();
    for (name, value) in [("CC", "no-such-cc -m64"), ("PATH", "/no/where"), ("CC", "false")] {
        let call = ["build", "a.grid", "--arch", "cpu"];
        let output = Gridlet::new(&folder).without_toolkit().env(name, value).run(&call);
        seen.push_str(&format!("{name}={value}: exit {}\n{}\n", output.status, output.stderr));
    }
    insta::assert_snapshot!(seen);
    assert!(!folder.path().join("a.gridlet").exists());
}
