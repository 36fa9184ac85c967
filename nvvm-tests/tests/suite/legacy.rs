//! The output of the legacy dialect writer through libNVVM and ptxas: the modules of its own tests, and every program,
//! for every architecture that takes the dialect.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use gridlet::arch::{CudaArch, Dialect};
use gridlet::check::parse_and_check;
use gridlet::codegen;
use gridlet::ir::build::build_ir;
use gridlet::launch::{self, LaunchOptions, LaunchStrategy};
use gridlet::layout::compute_layouts;
use gridlet::modules;
use gridlet::nvvm::legacy::LegacyOptions;
use gridlet::nvvm::{self, NvvmModule};
use gridlet::ptx::libnvvm::compile;
use gridlet::ptx::{Ptx, PtxOptions};
use gridlet::toolchain::Component;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use nvvm_tests::{Tools, files, toolchain_or_skip};

fn legacy_arches() -> impl Iterator<Item = CudaArch> + Clone {
    CudaArch::SUPPORTED.into_iter().filter(|arch| arch.dialect() == Dialect::Legacy)
}

/// Assembles PTX that may call undefined functions.
fn assemble(ptxas: &Path, ptx: &Ptx, arch: CudaArch, what: &str) {
    let folder = tempfile::tempdir().unwrap();
    let input = folder.path().join("module.ptx");
    std::fs::write(&input, &ptx.0).unwrap();
    let output = Command::new(ptxas)
        .args(["-c", "-arch", &arch.sm(), "-o"])
        .arg(folder.path().join("module.cubin"))
        .arg(&input)
        .output()
        .unwrap();
    assert!(
        output.status.success(),
        "{what}: {}\n{}",
        String::from_utf8_lossy(&output.stderr),
        ptx.0
    );
}

/// The oldest architecture that supports every operation of a module of the writer's tests.
fn oldest(file: &Path) -> CudaArch {
    let name = if file.ends_with("hopper.ll") { "sm_90" } else { "sm_75" };
    name.parse().unwrap()
}

/// Modules with constructs that libNVVM of the modern dialect lacks, as [`nvvm::modern_text`] writes them.
#[test]
fn libnvvm_and_ptxas_take_every_modern_module() {
    let Some(tools) = Tools::or_skip("modern") else { return };
    let Some(toolchain) = toolchain_or_skip("modern", &[Component::Ptxas]) else { return };
    let ptxas = toolchain.path(Component::Ptxas).unwrap();
    for file in files("compiler/tests/in/llvm/modern", "ll") {
        let context = Context::create();
        let buffer =
            MemoryBuffer::create_from_memory_range_copy(&std::fs::read(&file).unwrap(), "module");
        let module = context.create_module_from_ir(buffer).unwrap();
        let written = nvvm::modern_text(&module).unwrap();
        let arches = CudaArch::SUPPORTED.into_iter();
        for arch in arches.filter(|arch| arch.dialect() == Dialect::Modern) {
            for opt_level in [0, 3] {
                let what = format!("{} for {arch} at -O {opt_level}", file.display());
                let options = PtxOptions::default().with_opt_level(opt_level);
                let output = compile(&tools.libnvvm, &written, None, arch, &options)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                assemble(ptxas, &output.ptx, arch, &what);
            }
        }
    }
}

#[test]
fn libnvvm_and_ptxas_take_every_module() {
    let Some(tools) = Tools::or_skip("legacy") else { return };
    let Some(toolchain) = toolchain_or_skip("legacy", &[Component::Ptxas]) else { return };
    let ptxas = toolchain.path(Component::Ptxas).unwrap();
    for file in files("compiler/tests/in/llvm", "ll") {
        let context = Context::create();
        let buffer =
            MemoryBuffer::create_from_memory_range_copy(&std::fs::read(&file).unwrap(), "module");
        let module = context.create_module_from_ir(buffer).unwrap();
        let written =
            nvvm::text(&module, Dialect::Legacy, &LegacyOptions::device_runtime()).unwrap();
        for arch in legacy_arches().filter(|&arch| arch >= oldest(&file)) {
            for opt_level in [0, 3] {
                let what = format!("{} for {arch} at -O {opt_level}", file.display());
                let options = PtxOptions::default().with_opt_level(opt_level);
                let output = compile(&tools.libnvvm, &written, None, arch, &options)
                    .unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(output.log, "", "{what}");
                assemble(ptxas, &output.ptx, arch, &what);
            }
        }
    }
}

/// PTX without comments, which name the module and the compiler's build.
fn instructions(ptx: &str) -> Vec<&str> {
    let is_code = |line: &&str| !line.starts_with("//") && !line.is_empty();
    ptx.lines().map(str::trim).filter(is_code).collect()
}

#[test]
fn text_that_is_read_again_means_the_same() {
    let Some(tools) = Tools::or_skip("legacy") else { return };
    let options = LegacyOptions::device_runtime();
    for file in files("compiler/tests/in/llvm", "ll") {
        let context = Context::create();
        let bytes = std::fs::read(&file).unwrap();
        let module = modules::read(&context, "m.ll", &bytes).unwrap();
        let first = nvvm::text(&module, Dialect::Legacy, &options).unwrap();
        let other = Context::create();
        let again = modules::read(&other, "m.ll", &first.bytes).unwrap();
        let again = nvvm::text(&again, Dialect::Legacy, &options).unwrap();
        let ptx = |module: &NvvmModule| {
            let options = PtxOptions::default().with_opt_level(3);
            compile(&tools.libnvvm, module, None, oldest(&file), &options).unwrap().ptx.0
        };
        let (first, again) = (ptx(&first), ptx(&again));
        assert_eq!(instructions(&first), instructions(&again), "{}", file.display());
    }
}

/// Compiles a program to a module for an architecture; also returns whether it calls libdevice.
fn program(file: &Path, arch: CudaArch) -> (NvvmModule, bool) {
    let sources = Arc::new(gridlet::compile::load(file).unwrap());
    let ir = build_ir(&parse_and_check(&sources).0.unwrap(), Arc::clone(&sources)).unwrap();
    let layouts = compute_layouts(&ir).unwrap();
    let lowered =
        launch::lower(&ir, &layouts, &LaunchOptions::for_arch(LaunchStrategy::Cdp, arch)).unwrap();
    let context = Context::create();
    let module = codegen::build_module(&context, &lowered).unwrap();
    let text = nvvm::text(&module, arch.dialect(), &LegacyOptions::device_runtime())
        .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    (text, codegen::uses_libdevice(&module))
}

#[test]
fn every_program_becomes_a_cubin_by_way_of_the_legacy_dialect() {
    let Some(tools) = Tools::or_skip("legacy") else { return };
    let programs =
        files("examples/programs", "grid").into_iter().chain(files("compiler/tests/in/ok", "grid"));
    for (at, file) in programs.enumerate() {
        // The many programs that check themselves are compiled for one architecture each, in rotation.
        let checks_itself = std::fs::read_to_string(&file).unwrap().contains("kernel test(");
        let some = if checks_itself { 1 } else { legacy_arches().count() };
        for (turn, arch) in legacy_arches().cycle().skip(at).take(some).enumerate() {
            let what = format!("{} for {arch}", file.display());
            let (module, uses_libdevice) = program(&file, arch);
            assert_eq!(module.dialect, Dialect::Legacy);
            let libdevice = uses_libdevice.then(|| tools.toolchain.libdevice().unwrap());
            let opt_level = if (at + turn).is_multiple_of(2) { 0 } else { 3 };
            let options = PtxOptions::default().with_opt_level(opt_level);
            let output = compile(&tools.libnvvm, &module, libdevice, arch, &options)
                .unwrap_or_else(|error| panic!("{what} at -O {opt_level}: {error}"));
            tools
                .link(&output.ptx, arch)
                .unwrap_or_else(|error| panic!("{what}: {error}\n{}", output.ptx.0));
        }
    }
}
