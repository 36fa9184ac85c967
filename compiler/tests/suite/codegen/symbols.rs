//! The symbols that programs define: none meets a symbol of the C library, the linker, LLVM or PTX,
//! because only kernels and `extern fn`s have symbols that a name in another language can spell.

use std::path::Path;

use gridlet::arch::CudaArch;
use gridlet::codegen;
use gridlet::compile::{self, Checked};
use gridlet::cpu::{self, CpuOptions};
use gridlet::ir::symbol;
use gridlet::launch::{LaunchOptions, LaunchStrategy};
use inkwell::context::Context;

/// The names in LLVM's text of functions and variables with a definition, without those of private
/// constants, which are not symbols.
fn defined(text: &str) -> Vec<&str> {
    let is_definition = |line: &&str| {
        line.starts_with("define ") || (line.starts_with('@') && !line.contains(" = private "))
    };
    text.lines().filter(is_definition).map(name_in).collect()
}

/// The first name of a line: `f` in `define void @f(`. LLVM writes odd names in quotes.
fn name_in(line: &str) -> &str {
    let (_, name) = line.split_once('@').expect("a name");
    match name.strip_prefix('"') {
        Some(quoted) => quoted.split('"').next(),
        None => name.split(|c: char| !(c.is_alphanumeric() || "._$-".contains(c))).next(),
    }
    .expect("a first part")
}

/// Whether no name in the source, C, LLVM or PTX is spelled so, or Gridlet reserves the name.
fn is_apart(name: &str) -> bool {
    ["own.", "static$", "llvm.used", "__gridlet_", "gridlet_cpu_"]
        .iter()
        .any(|prefix| name.starts_with(prefix))
}

fn lowered(program: &Checked, options: &LaunchOptions) -> gridlet::ir::Module {
    program.lower(options).expect("lowered IR")
}

#[test]
fn only_kernels_on_gpus_define_symbols_that_a_name_can_spell() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/in/ok");
    let mut programs = 0;
    for entry in folder.read_dir().expect("the folder") {
        let path = entry.expect("an entry").path();
        let program = compile::check(compile::load(&path).expect("sources")).expect("a program");
        let gpu =
            lowered(&program, &LaunchOptions::for_arch(LaunchStrategy::Cdp, CudaArch::DEFAULT));
        let context = Context::create();
        let module = codegen::build_module(&context, &gpu).expect("a module");
        let text = module.print_to_string().to_string();
        let kernels: Vec<_> =
            gpu.kernels.iter().map(|kernel| symbol::external(&kernel.name)).collect();
        for name in defined(&text) {
            let is_kernel = kernels.iter().any(|kernel| kernel == name);
            assert!(is_kernel || is_apart(name), "{}: {name}, for a GPU", path.display());
        }
        let host = lowered(&program, &LaunchOptions::CPU);
        for check in [false, true] {
            let options = CpuOptions::default().with_check(check);
            let text = cpu::llvm_text(&host, &options).expect("a module");
            for name in defined(&text) {
                assert!(is_apart(name), "{}: {name}, for the CPU", path.display());
            }
        }
        programs += 1;
    }
    assert!(programs > 100);
}
