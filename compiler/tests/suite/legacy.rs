//! The legacy dialect writer on a folder of LLVM 22 modules: `in/llvm/*.ll` become LLVM 7
//! text, and `in/llvm/refused/*.ll` errors. Both are snapshots.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use gridlet::nvvm::legacy::{self, LegacyOptions};
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;

/// The files in a folder of `in/llvm`, sorted by name.
fn inputs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/in/llvm").join(folder);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| file.extension().is_some_and(|extension| extension == "ll"));
    files.sort();
    assert!(!files.is_empty());
    files
}

fn stem(file: &Path) -> &str {
    file.file_stem().unwrap().to_str().unwrap()
}

/// The legacy text of a file, or the error. Checks that the module is unchanged.
fn write(file: &Path, options: &LegacyOptions) -> gridlet::Result<String> {
    let context = Context::create();
    let buffer =
        MemoryBuffer::create_from_memory_range_copy(&std::fs::read(file).unwrap(), stem(file));
    let module = context.create_module_from_ir(buffer).unwrap();
    let before = module.print_to_string().to_string();
    let written = legacy::write(&module, options);
    assert_eq!(before, module.print_to_string().to_string(), "the module was changed");
    written
}

fn snapshot(folder: &str, file: &Path, text: &str) {
    insta::with_settings!({
        prepend_module_to_snapshot => false,
        omit_expression => true,
        snapshot_path => format!("../out/{folder}"),
    }, {
        insta::assert_snapshot!(stem(file), text);
    });
}

#[test]
fn modules_become_llvm_7_text() {
    for file in inputs("") {
        let text = write(&file, &LegacyOptions::device_runtime())
            .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        snapshot("legacy", &file, &text);
    }
}

#[test]
fn modules_that_llvm_7_cannot_express_are_refused() {
    for file in inputs("refused") {
        let error = write(&file, &LegacyOptions::device_runtime()).expect_err(stem(&file));
        snapshot("legacy/refused", &file, &error.to_string());
    }
}

#[test]
fn debug_information_can_be_dropped() {
    let file = inputs("refused").into_iter().find(|file| stem(file) == "debug-info").unwrap();
    let text = write(&file, &LegacyOptions::default().with_drop_debug_info(true)).unwrap();
    assert!(!text.contains("dbg") && !text.contains("DI"), "{text}");
}

#[test]
fn the_declarations_are_the_seeds() {
    let file = inputs("").into_iter().find(|file| stem(file) == "launch").unwrap();
    let text = write(&file, &LegacyOptions::device_runtime()).unwrap();
    for line in [
        "declare i32 @cudaLaunchDeviceV2(i8*, %struct.CUstream_st*)",
        "declare i8* @cudaGetParameterBufferV2(i8*, %struct.dim3, %struct.dim3, i32)",
        "%struct.dim3 = type { i32, i32, i32 }",
        "%struct.CUstream_st = type opaque",
    ] {
        assert!(text.lines().any(|written| written == line), "{line}");
    }
}

#[test]
fn a_hint_for_a_non_pointer_is_refused() {
    let file = inputs("").into_iter().find(|file| stem(file) == "launch").unwrap();
    let mut options = LegacyOptions::device_runtime();
    options.pointees[0].function = "cudaGetParameterBufferV2".to_owned();
    let error = write(&file, &options).unwrap_err().to_string();
    assert!(
        error.contains("cudaGetParameterBufferV2") && error.contains("not a pointer"),
        "{error}"
    );
}
