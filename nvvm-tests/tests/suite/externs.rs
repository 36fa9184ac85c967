//! `extern fn` against CUDA C++: device functions that nvcc compiled are linked in and called with nvcc's calling
//! convention. Without nvcc, each test prints that it was skipped.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use gridlet::compile::{self, Backend, BuildOptions, Checked, LinkInput, Session};
use gridlet::diagnostics::render;
use gridlet::toolchain::{Component, Toolchain};
use gridlet::{Error, arch::CudaArch};
use nvvm_tests::{FOR_LINKING, toolchain_or_skip};

fn input(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../compiler/tests/in/extern").join(name)
}

fn program() -> Checked {
    compile::load(&input("device.grid")).and_then(compile::check).unwrap()
}

fn tools(test: &str) -> Option<Toolchain> {
    let needed = [Component::Nvcc, Component::LibNvvm, Component::NvJitLink, Component::CudaDevRt];
    toolchain_or_skip(test, &needed)
}

/// Compiles `source` by nvcc to a file with this extension.
fn compiled(toolchain: &Toolchain, source: &Path, arch: CudaArch, ending: &str) -> LinkInput {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join(format!("device.{ending}"));
    let how = match ending {
        "ptx" => "-ptx",
        "cubin" => "-cubin",
        _ => "-c",
    };
    let result = Command::new(toolchain.path(Component::Nvcc).unwrap())
        .args(["-rdc=true", &format!("-arch={arch}"), how, "-o"])
        .args([&output, source])
        .output()
        .unwrap();
    assert!(result.status.success(), "{}", String::from_utf8_lossy(&result.stderr));
    LinkInput::read(&output).unwrap()
}

/// The oldest architecture, the default, and one that takes the modern dialect.
fn arches() -> [CudaArch; 3] {
    ["sm_75", "sm_90", "sm_100"].map(|arch| arch.parse().unwrap())
}

#[test]
fn functions_of_cuda_are_linked_in_whatever_they_were_compiled_to() {
    let Some(toolchain) = tools("externs of nvcc") else { return };
    let program = program();
    for arch in arches() {
        for ending in ["ptx", "cubin", "o"] {
            let given = compiled(&toolchain, &input("device.cu"), arch, ending);
            let session = Session::with_toolchain(Toolchain::discover()).linking(vec![given]);
            for backend in [Backend::LibNvvm, Backend::Nvptx] {
                let what = format!("{ending} for {arch} by {backend:?}");
                let options = BuildOptions::for_arch(arch).with_backend(backend);
                let built = session.cubin(&program, &options);
                let built = built.unwrap_or_else(|error| match error {
                    Error::Program(messages) => {
                        panic!("{what}: {}", render(&messages, &program.sources, false))
                    }
                    other => panic!("{what}: {other}"),
                });
                assert_eq!(built.log, "", "{what}");
            }
        }
    }
}

#[test]
fn a_definition_of_another_signature_is_an_error_where_it_can_be_seen() {
    let Some(toolchain) = tools("signatures of nvcc") else { return };
    let program = program();
    let arch = CudaArch::DEFAULT;
    let source = fs::read_to_string(input("device.cu")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device.cu");
    let changes = [
        // 24 bytes for 16, aligned to 4 for 8, 64 bits for 32, nothing for something, a float more in a result.
        ("bool flag;", "bool flag; double more;", 2),
        ("float2 v,", "Small v,", 1),
        ("narrow(int x)", "narrow(long x)", 1),
        ("void nothing() {}", "int nothing() { return 1; }", 1),
        (
            "float2 turned(float2 v) { return make_float2(v.y, v.x)",
            "float3 turned(float2 v) { return make_float3(v.y, v.x, 0)",
            1,
        ),
    ];
    for (from, to, count) in changes {
        let small = "struct Small { float x; float y; };\n";
        fs::write(&path, format!("{small}{}", source.replace(from, to))).unwrap();
        let given = compiled(&toolchain, &path, arch, "ptx");
        let session = Session::with_toolchain(Toolchain::discover()).linking(vec![given]);
        match session.cubin(&program, &BuildOptions::for_arch(arch)) {
            Err(Error::Program(messages)) => {
                let text = render(&messages, &program.sources, false);
                assert!(text.contains("differs from its declaration"), "{to}: {text}");
                assert_eq!(messages.len(), count, "{to}: {text}");
            }
            other => panic!("{to}: {other:?}"),
        }
    }
}

#[test]
fn what_nobody_defines_is_said_whatever_is_linked() {
    let Some(toolchain) = tools("undefined externs") else { return };
    let program = program();
    let arch = CudaArch::DEFAULT;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("device.cu");
    fs::write(&path, "extern \"C\" __device__ void nothing() {}\n").unwrap();
    for ending in ["ptx", "o"] {
        let given = compiled(&toolchain, &path, arch, ending);
        let session = Session::with_toolchain(Toolchain::discover()).linking(vec![given]);
        let error = session.cubin(&program, &BuildOptions::for_arch(arch)).unwrap_err();
        let Error::Program(messages) = error else { panic!("{ending}: {error}") };
        let text = render(&messages, &program.sources, false);
        for name in ["weighted", "above", "narrow"] {
            assert!(text.contains(&format!("no linked module defines `{name}`")), "{text}");
        }
        assert!(!text.contains("`nothing`"), "{text}");
    }
}

#[test]
fn llvm_ir_is_linked_before_it_is_compiled() {
    let Some(toolchain) = toolchain_or_skip("externs of LLVM IR", &FOR_LINKING) else { return };
    let source = "extern fn g(x: f32, take: bool) -> f32;\n\
                  kernel k(p: *mut f32) { p[0] = g(p[0], p[1] > 1.0); }";
    let program = compile::check(gridlet::source::SourceMap::single("p.grid", source)).unwrap();
    let ir = "define float @g(float %x, i1 zeroext %take) {\n  %y = select i1 %take, float %x, float 0.0\n  \
              ret float %y\n}\n";
    let given = LinkInput::new("g.ll", ir.as_bytes().to_vec()).unwrap();
    let session = Session::with_toolchain(toolchain).linking(vec![given]);
    for arch in arches() {
        for backend in [Backend::LibNvvm, Backend::Nvptx] {
            let options = BuildOptions::for_arch(arch).with_backend(backend);
            let built = session.cubin(&program, &options).unwrap();
            // The function was inlined, so no call remains.
            assert!(!built.ptx.0.contains(".extern .func"), "{arch} {backend:?}: {}", built.ptx.0);
        }
    }
}

#[test]
fn pointers_to_shared_memory_keep_their_size_in_linked_llvm_ir() {
    let test = "pointers_to_shared_memory_keep_their_size_in_linked_llvm_ir";
    let Some(toolchain) = toolchain_or_skip(test, &[Component::LibNvvm]) else { return };
    let source = "extern fn size() -> u32;\nkernel k(p: *mut u32) { p[0] = size(); }";
    let program = compile::check(gridlet::source::SourceMap::single("p.grid", source)).unwrap();
    let ir = "define i32 @size() {\n  ret i32 ptrtoint (ptr getelementptr (ptr addrspace(3), ptr null, i32 1) to i32)\n}\n";
    let given = LinkInput::new("size.ll", ir.as_bytes().to_vec()).unwrap();
    let session = Session::with_toolchain(toolchain).linking(vec![given]);
    for arch in arches() {
        for backend in [Backend::LibNvvm, Backend::Nvptx] {
            let options = BuildOptions::for_arch(arch).with_backend(backend);
            let (ptx, _) = session.ptx(&program, &options).unwrap();
            assert!(ptx.0.contains(", 8;"), "{arch} {backend:?}: {}", ptx.0);
        }
    }
}
