//! The legacy dialect writer against a folder of modules as LLVM 22 writes them: `in/llvm/*.ll` become LLVM 7
//! text, and `in/llvm/refused/*.ll` errors. Both are snapshots.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::path::{Path, PathBuf};

use gridlet::nvvm::legacy::{self, HintPlace, LegacyOptions, PointeeHint};
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;

/// The files in a folder of `in/llvm`, by name.
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

/// What the seed says of `cudaLaunchDeviceV2`.
fn options() -> LegacyOptions {
    let stream = PointeeHint {
        function: "cudaLaunchDeviceV2".to_owned(),
        place: HintPlace::Parameter(1),
        structure: "struct.CUstream_st".to_owned(),
    };
    LegacyOptions { pointees: vec![stream], drop_debug_info: false }
}

/// The legacy text of a file, or the error; and the module as it was before and after.
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

#[test]
fn modules_become_llvm_7_text() {
    for file in inputs("") {
        let text =
            write(&file, &options()).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
        insta::assert_snapshot!(format!("legacy_{}", stem(&file)), text);
    }
}

#[test]
fn what_the_dialect_cannot_say_is_refused() {
    for file in inputs("refused") {
        let error = write(&file, &options()).expect_err(stem(&file));
        insta::assert_snapshot!(format!("legacy_refused_{}", stem(&file)), error);
    }
}

#[test]
fn debug_information_can_be_given_up() {
    let file = inputs("refused").into_iter().find(|file| stem(file) == "debug-info").unwrap();
    let text = write(&file, &LegacyOptions { drop_debug_info: true, ..options() }).unwrap();
    assert!(!text.contains("dbg") && !text.contains("DI"), "{text}");
}

#[test]
fn the_declarations_are_the_seeds() {
    let file = inputs("").into_iter().find(|file| stem(file) == "launch").unwrap();
    let text = write(&file, &options()).unwrap();
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
fn a_hint_for_what_is_no_pointer_is_refused() {
    let file = inputs("").into_iter().find(|file| stem(file) == "launch").unwrap();
    let mut options = options();
    options.pointees[0].function = "cudaGetParameterBufferV2".to_owned();
    let error = write(&file, &options).unwrap_err().to_string();
    assert!(error.contains("cudaGetParameterBufferV2") && error.contains("no pointer"), "{error}");
}
