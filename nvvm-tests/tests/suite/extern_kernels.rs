//! `extern kernel`: kernels of CUDA C++, and of programs that are compiled apart.

use std::path::{Path, PathBuf};
use std::process::Command;

use gridlet::arch::CudaArch;
use gridlet::compile::{self, Backend, BuildOptions, Checked, LinkInput, Session};
use gridlet::diagnostics::render;
use gridlet::error::Error;
use gridlet::launch::LaunchChoice;
use gridlet::link::cubin::parameter_records;
use gridlet::source::SourceMap;
use gridlet::toolchain::{Component, Toolchain};
use gridlet_runtime::manifest::Manifest;
use nvvm_tests::{FOR_CUBINS, toolchain_or_skip};

fn input(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/in/extern").join(name)
}

fn program(name: &str) -> Checked {
    compile::load(&input(name)).and_then(compile::check).unwrap()
}

fn options(arch: &str, backend: Backend) -> BuildOptions {
    BuildOptions::for_arch(arch.parse().unwrap())
        .with_backend(backend)
        .with_launch(LaunchChoice::Auto)
}

fn linking(inputs: Vec<LinkInput>) -> Session {
    Session::with_toolchain(Toolchain::discover()).linking(inputs)
}

fn cubin(program: &Checked, session: &Session, options: &BuildOptions) -> Vec<String> {
    let built = session.cubin(program, options).unwrap_or_else(|error| match error {
        Error::Program(messages) => panic!("{}", render(&messages, &program.sources, false)),
        other => panic!("{other}"),
    });
    assert_eq!(built.log, "");
    let records = parameter_records(&built.cubin).unwrap().into_iter();
    // Below sm_90, the device runtime has kernels of its own.
    records.map(|records| records.kernel).filter(|name| !name.starts_with("__")).collect()
}

#[test]
fn kernels_of_cuda_and_of_another_program_are_launched() {
    let needed = [Component::Nvcc, Component::LibNvvm, Component::NvJitLink, Component::CudaDevRt];
    let test = "kernels_of_cuda_and_of_another_program_are_launched";
    let Some(toolchain) = toolchain_or_skip(test, &needed) else { return };
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("sm_75", "cubin", Backend::LibNvvm),
        ("sm_90", "o", Backend::LibNvvm),
        ("sm_90", "ptx", Backend::Nvptx),
        ("sm_100", "cubin", Backend::LibNvvm),
        ("sm_100", "o", Backend::Nvptx),
    ];
    for (arch, ending, backend) in cases {
        let options = options(arch, backend);
        let file = folder.path().join(format!("kernels.{ending}"));
        let how = if ending == "o" { "-c".into() } else { format!("-{ending}") };
        let output = Command::new(toolchain.path(Component::Nvcc).unwrap())
            .args(["-rdc=true", &format!("-arch={arch}"), &how, "-o"])
            .args([&file, &input("kernels.cu")])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let apart = linking(vec![]).object(&program("apart.grid"), &options).unwrap();
        let apart = LinkInput::new("apart.cubin", apart.0).unwrap();
        let session = linking(vec![LinkInput::read(&file).unwrap(), apart]);
        let kernels = cubin(&program("kernels.grid"), &session, &options);
        assert_eq!(kernels, ["relay", "scaled", "start", "step"], "{arch} {ending} {backend:?}");

        // The other way round: each program can be the one that links.
        let object = session.object(&program("kernels.grid"), &options).unwrap();
        let object = LinkInput::new("kernels.cubin", object.0).unwrap();
        let session = linking(vec![LinkInput::read(&file).unwrap(), object]);
        let kernels = cubin(&program("apart.grid"), &session, &options);
        assert_eq!(kernels, ["relay", "scaled", "start", "step"], "{arch} {ending} {backend:?}");
    }
}

const LAUNCHER: &str = "extern kernel far(p: *mut u32, n: u32, x: [u8; 3]);
extern kernel unused(p: *mut u32);

kernel k(p: *mut u32) {
    launch far<<<1, 32>>>(p, 1, [1, 2, 3]);
}
";

/// The messages for [`LAUNCHER`] with these inputs; none if it is built.
fn messages(inputs: Vec<LinkInput>) -> String {
    let program = compile::check(SourceMap::single("main.grid", LAUNCHER)).unwrap();
    let options = options("sm_90", Backend::LibNvvm);
    match linking(inputs).cubin(&program, &options) {
        Ok(_) => String::new(),
        Err(Error::Program(messages)) => render(&messages, &program.sources, false),
        Err(other) => panic!("{other}"),
    }
}

/// PTX with one symbol: `directive` is `.entry` or `.func`.
fn ptx(directive: &str, parameters: &str) -> Vec<u8> {
    format!(
        ".version 8.0\n.target sm_90\n.address_size 64\n.visible {directive} far({parameters})\n{{\n\tret;\n}}\n"
    )
    .into_bytes()
}

#[test]
fn the_definition_of_a_kernel_must_have_the_declared_parameters() {
    let test = "the_definition_of_a_kernel_must_have_the_declared_parameters";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_CUBINS) else { return };
    let with = |parameters: &str| {
        messages(vec![LinkInput::new("far.ptx", ptx(".entry", parameters)).unwrap()])
    };
    let right = ".param .u64 p, .param .u32 n, .param .align 1 .b8 x[3]";
    assert_eq!(with(right), "");
    let wrong = [
        ("a wider number", ".param .u64 p, .param .u64 n, .param .align 1 .b8 x[3]"),
        ("another alignment", ".param .u64 p, .param .u32 n, .param .align 8 .b8 x[3]"),
        ("fewer", ".param .u64 p, .param .u32 n"),
        ("none", ""),
    ];
    let mut text = String::new();
    for (what, parameters) in wrong {
        text.push_str(&format!("---- {what}\n{}", with(parameters)));
    }
    let none = messages(vec![]);
    let function = LinkInput::new("far.ptx", ptx(".func", ".param .b64 p")).unwrap();
    text.push_str(&format!("---- no module\n{none}---- a function\n{}", messages(vec![function])));
    insta::assert_snapshot!(text);

    // Machine code and LLVM IR are checked, too; nothing can be read from the former before it is linked.
    let source = String::from_utf8(ptx(".entry", wrong[0].1)).unwrap();
    let session = Session::with_toolchain(toolchain);
    let options = options("sm_90", Backend::LibNvvm);
    let object = session.assemble_object(&gridlet::ptx::Ptx(source), &options).unwrap();
    let object = messages(vec![LinkInput::new("far.cubin", object.0).unwrap()]);
    assert!(object.contains("the definition of `far` in `far.cubin` differs"), "{object}");
    let kernel = "define ptx_kernel void @far(ptr %p) {\n  ret void\n}\n";
    let input = |text: &str| LinkInput::new("far.ll", text.as_bytes().to_vec()).unwrap();
    let ir = messages(vec![input(kernel)]);
    assert!(ir.contains("the definition has 1 parameters, the declaration 3"), "{ir}");
    let ir = messages(vec![input(&kernel.replace("ptx_kernel ", ""))]);
    assert!(ir.contains("a linked module defines a function of that name"), "{ir}");
}

/// The names of a manifest's kernels, and whether other modules define them.
fn kernels(manifest: &Manifest) -> Vec<(&str, bool)> {
    manifest.kernels.iter().map(|kernel| (kernel.name.as_str(), kernel.external)).collect()
}

#[test]
fn the_host_launches_declared_kernels_that_all_images_define() {
    let test = "the_host_launches_declared_kernels_that_all_images_define";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_CUBINS) else { return };
    let apart = compile::check(SourceMap::single("apart.grid", APART)).unwrap();
    let object = |arch: &str| {
        let options = options(arch, Backend::LibNvvm);
        let object = linking(vec![]).object(&apart, &options).unwrap();
        LinkInput::new(format!("apart.{arch}.cubin"), object.0).unwrap()
    };
    let built = |source: &str, archs: &[&str], inputs: Vec<LinkInput>| {
        let program = compile::check(SourceMap::single("main.grid", source)).unwrap();
        let session = Session::with_toolchain(toolchain.clone()).linking(inputs);
        let archs: Vec<CudaArch> = archs.iter().map(|arch| arch.parse().unwrap()).collect();
        let options = options("sm_90", Backend::LibNvvm);
        let built = gridlet::artifact::build(&session, &program, &archs, &options);
        built.map(|artifact| artifact.manifest().clone())
    };

    // This program launches nothing itself; the kernel of the other one may lose launches.
    let source = "extern kernel tile(p: *mut u32, n: u32); extern kernel absent(p: *mut u32);
        kernel own(p: *mut u32) { *p = 1; }";
    let manifest = built(source, &["sm_90"], vec![object("sm_90")]).unwrap();
    assert_eq!(kernels(&manifest), [("own", false), ("tile", true)]);
    let tile = &manifest.kernels[1];
    let parameters: Vec<_> = tile.parameters.iter().map(|slot| (slot.offset, slot.size)).collect();
    assert_eq!((parameters, tile.static_shared_bytes), (vec![(0, 8), (8, 4)], 256));
    assert!(manifest.device_runtime.is_some());

    let only_90 = source.replace("absent", "only_90");
    let more = LinkInput::new("more.ptx", ptx(".entry", ".param .u64 p"));
    let text = String::from_utf8(more.unwrap().bytes).unwrap().replace("far", "only_90");
    let more = || LinkInput::new("more.ptx", text.clone().into_bytes()).unwrap();
    let manifest = built(&only_90, &["sm_90"], vec![object("sm_90"), more()]).unwrap();
    assert_eq!(kernels(&manifest), [("own", false), ("tile", true), ("only_90", true)]);

    // Nothing that is linked launches or is declared.
    let plain = "kernel own(p: *mut u32) { *p = 1; }";
    let manifest = built(plain, &["sm_90"], vec![more()]).unwrap();
    assert_eq!(kernels(&manifest), [("own", false)]);
    assert_eq!(manifest.device_runtime, None);

    // A declaration for the host alone is compared, too.
    let wrong = source.replace("n: u32", "n: u64");
    let Err(Error::Program(messages)) = built(&wrong, &["sm_90"], vec![object("sm_90")]) else {
        panic!("a wrong declaration passed")
    };
    assert!(messages[0].message.contains("the definition of `tile`"), "{messages:?}");
}

/// A program whose kernel the host of another one launches.
const APART: &str = "kernel tile(p: *mut u32, n: u32) {
    shared part: [u32; 64];
    part[thread_idx.x] = n;
    sync_threads();
    p[thread_idx.x] = part[63 - thread_idx.x];
    if n > 0 {
        launch tile<<<1, 64>>>(p, n - 1);
    }
}
";

#[test]
fn only_launches_by_the_device_runtime_reach_other_modules() {
    let program = compile::check(SourceMap::single("main.grid", LAUNCHER)).unwrap();
    let manifest = gridlet::artifact::describe(&program, LaunchChoice::Auto);
    let reason = "the program launches `far`, a kernel of another module";
    assert_eq!(manifest.launch_reason.as_deref(), Some(reason));
    assert_eq!(kernels(&manifest), [("k", false), ("far", true), ("unused", true)]);
    assert_eq!(manifest.kernels[0].launches, ["far"]);

    let resident: LaunchChoice = "resident".parse().unwrap();
    let options = BuildOptions::for_arch(CudaArch::DEFAULT).with_launch(resident);
    let error = compile::lower(&program, &options).unwrap_err().to_string();
    let start = "`far` is an `extern kernel`, which cannot be launched with `--launch resident`";
    assert!(error.starts_with(start), "{error}");

    let error = compile::cpu_llvm(&program, &compile::CpuOptions::default()).unwrap_err();
    let Error::Program(messages) = error else { panic!("{error}") };
    let text = render(&messages, &program.sources, false);
    assert!(text.contains("images for the CPU device have no `extern kernel`: `far`"), "{text}");
}
