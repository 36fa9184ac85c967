//! What libNVVM gets in the modern dialect: `in/llvm/modern/*.ll`, whose constructs it lacks or understands in another way, and the PTX of
//! LLVM's own back end for the atomic operations.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use gridlet::arch::CudaArch;
use gridlet::compile::{Backend, BuildOptions, Session};
use gridlet::nvvm;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/in/llvm/modern")
}

fn module<'ctx>(context: &'ctx Context, file: &Path) -> Module<'ctx> {
    let name = file.file_name().unwrap().to_str().unwrap();
    let buffer = MemoryBuffer::create_from_memory_range_copy(&std::fs::read(file).unwrap(), name);
    context.create_module_from_ir(buffer).unwrap()
}

#[test]
fn constructs_become_those_that_libnvvm_has() {
    let mut files: Vec<_> =
        std::fs::read_dir(folder()).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let context = Context::create();
        let module = module(&context, &file);
        let before = module.print_to_string().to_string();
        let text = nvvm::modern_text(&module).unwrap();
        assert_eq!(before, module.print_to_string().to_string(), "the module was changed");
        insta::with_settings!({
            prepend_module_to_snapshot => false,
            omit_expression => true,
            snapshot_path => "../out/modern",
        }, {
            let stem = file.file_stem().unwrap().to_str().unwrap();
            insta::assert_snapshot!(stem, String::from_utf8(text.bytes).unwrap());
        });
    }
}

#[test]
fn llvms_back_end_keeps_orders_and_scopes() {
    let context = Context::create();
    let module = module(&context, &folder().join("atomics.ll"));
    let arch: CudaArch = "sm_120".parse().unwrap();
    let options = BuildOptions::for_arch(arch).with_backend(Backend::Nvptx);
    let (ptx, _) = Session::new().ptx_of(&module, &options).unwrap();
    let words = ["atom.", "membar", "fence", "ld.acquire", "ld.relaxed", "st.release"];
    let lines =
        ptx.0.lines().map(str::trim).filter(|line| words.iter().any(|w| line.starts_with(w)));
    let text: Vec<&str> = lines.filter_map(|line| line.split([' ', ';']).next()).collect();
    insta::assert_snapshot!(text.join("\n"));
}
