//! The IR of whole programs, before and after launches are lowered, and their layouts: one snapshot per
//! program and stage. `INSTA_UPDATE=always cargo test -p gridlet-lang --test suite ir` updates them.
//!
//! A program that checks itself (see `corpus.rs`) has no snapshots, and one without launches to lower has no
//! lowered snapshot.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use gridlet_lang::arch::CudaArch;
use gridlet_lang::check::parse_and_check;
use gridlet_lang::diagnostics::render;
use gridlet_lang::ir::graph;
use gridlet_lang::ir::uniform::{EarlyReturns, returns_before};
use gridlet_lang::ir::{Module, build::build_ir, parse::parse, print::print, verify::verify};
use gridlet_lang::launch::{self, LaunchOptions, LaunchStrategy};
use gridlet_lang::layout::{Layouts, ParamLayout, compute_layouts};
use gridlet_lang::load::load;
use gridlet_lang::source::SourceMap;
use gridlet_lang::types::Structs;

/// The examples and the programs under `in/ok`, sorted by name.
fn all_programs() -> Vec<PathBuf> {
    let root = crate::compiler();
    let mut files = vec![];
    for folder in ["../examples/programs", "tests/in/ok", "tests/in/extern"] {
        let entries = walkdir::WalkDir::new(root.join(folder)).into_iter().flatten();
        let entries = entries.map(walkdir::DirEntry::into_path);
        files.extend(entries.filter(|path| path.extension().is_some_and(|ext| ext == "grid")));
    }
    files.sort_by_key(|path| path.file_name().map(ToOwned::to_owned));
    assert!(files.len() >= 3, "the examples are not there");
    files
}

/// The programs that have snapshots.
fn programs() -> Vec<PathBuf> {
    let mut files = all_programs();
    let text = |path: &PathBuf| std::fs::read_to_string(path).expect("the program can be read");
    files.retain(|path| !text(path).contains("kernel test("));
    files
}

fn build(path: &Path) -> (Module, Layouts) {
    let name = path.file_name().expect("a file").to_string_lossy().into_owned();
    let sources = Arc::new(load(&crate::Disk, path).expect("the program can be read"));
    let (program, diagnostics) = parse_and_check(&sources);
    let Some(program) = program else {
        panic!("{name}:\n{}", render(&diagnostics, &sources, false));
    };
    let module = build_ir(&program, sources).expect("a checked tree");
    verify(&module).unwrap_or_else(|error| panic!("{name}: {error}\n{}", print(&module)));
    let layouts = compute_layouts(&module).expect("no buffer is too large");
    (module, layouts)
}

fn lower(module: &Module, layouts: &Layouts) -> Module {
    let options = LaunchOptions::for_arch(LaunchStrategy::Cdp, CudaArch::DEFAULT);
    launch::lower(module, layouts, &options).expect("launches can be lowered")
}

/// A parameter buffer as a table, with the padding before each parameter.
fn table(layout: &ParamLayout, structs: &Structs) -> String {
    let mut text = format!("{} ({} bytes)\n", layout.kernel, layout.size);
    let mut end = 0;
    for slot in &layout.slots {
        let padding = slot.offset - end;
        let ty = slot.ty.display(structs);
        let line = format!("{:>6} {:>5} {:>5}", slot.offset, slot.size, slot.alignment);
        let _ = writeln!(text, "{line} +{padding}  {}: {ty}", slot.name);
        end = slot.offset + slot.size;
    }
    text
}

fn check(stage: &str, path: &Path, text: &str) {
    let stem = path.file_stem().expect("a file").to_string_lossy().into_owned();
    insta::with_settings!({
        prepend_module_to_snapshot => false,
        omit_expression => true,
        snapshot_path => format!("../../../tests/out/{stage}"),
    }, {
        insta::assert_snapshot!(stem, text);
    });
}

#[test]
fn programs_become_ir() {
    for path in programs() {
        check("ir", &path, &print(&build(&path).0));
    }
}

#[test]
fn launches_are_lowered() {
    for path in programs() {
        let (module, layouts) = build(&path);
        let lowered = print(&lower(&module, &layouts));
        // The first line says whether the module is lowered.
        if lowered.lines().skip(1).ne(print(&module).lines().skip(1)) {
            check("launch", &path, &lowered);
        }
    }
}

#[test]
fn parameters_are_laid_out() {
    for path in programs() {
        let (module, layouts) = build(&path);
        let tables = layouts.kernels.iter().map(|layout| table(layout, &module.structs));
        check("layout", &path, &tables.collect::<Vec<_>>().join("\n"));
    }
}

/// The kernels whose threads wait for others, and whether some may return before.
#[test]
fn early_returns_are_found() {
    let mut text = String::new();
    for path in all_programs() {
        let (module, _) = build(&path);
        let file = path.file_stem().expect("a file").to_string_lossy();
        let found = returns_before(&module).into_iter().zip(graph::waits(&module));
        for ((found, waits), kernel) in found.zip(&module.kernels) {
            let EarlyReturns { barriers, warp_operations, in_aligned_warps, .. } = found;
            let class = |waits: bool, early: bool| match (waits, early) {
                (false, false) => "-",
                (true, false) => "none",
                (true, true) => "early",
                (false, true) => panic!("{file} {}: nobody waits", kernel.name),
            };
            let (block, warp) = (class(waits.block, barriers), class(waits.warp, warp_operations));
            let warp =
                if warp_operations && !in_aligned_warps { "early unless aligned" } else { warp };
            if waits.block || waits.warp {
                let _ = writeln!(text, "{file} {}: block {block}, warp {warp}", kernel.name);
            }
        }
    }
    check("early_returns", Path::new("all"), &text);
}

#[test]
fn loops_that_read_memory_are_found() {
    let source = "
        fn total(p: *const u32) -> u32 {
            let mut sum = 0u32;
            for i in 0u32..4 { sum += p[i]; }
            return sum;
        }
        kernel by_call(p: *mut u32) { *p = total(p); }
        kernel in_while(p: *mut u32) { let mut i = 0u32; while p[i] > 7 { i += 1; } *p = i; }
        kernel of_array(p: *mut u32) { let a = [1u32, 2, 3]; for i in 0u32..3 { *p = a[i]; } }
        kernel without_memory(p: *mut u32) { let mut i = *p; while i > 7 { i /= 2; } *p = i; }
        kernel stores(p: *mut u32) { for i in 0u32..4 { p[i] = i; } }
        kernel after(p: *mut u32) { for i in 0u32..4 { p[i] = i; } p[4] = p[0]; }
    ";
    let mut sources = SourceMap::default();
    sources.add("loops.grid", source);
    let module = gridlet_lang::program::check(sources).expect("a program").module;
    let found = graph::reads_in_loops(&module).into_iter().zip(&module.kernels);
    let found: Vec<_> = found.filter(|(reads, _)| *reads).map(|(_, k)| k.name.as_str()).collect();
    assert_eq!(found, ["by_call", "in_while", "of_array"]);
    assert_eq!(graph::has_loops(&module), [true; 6]);
    assert!(!graph::orders_grids(&module));
}

/// What ptxas loads together depends on the order in the stack frame.
#[test]
fn slots_have_the_order_of_the_declarations() {
    let text = "kernel k(p: *mut u32) {
        let first: [u32; 2];
        let mut second = 7u32;
        let third: u32;
        third = 1;
        first = [third, second];
        second = first[1];
        p[0] = second;
    }";
    let sources = Arc::new(SourceMap::single("slots.grid", text));
    let (program, _) = parse_and_check(&sources);
    let module = build_ir(&program.expect("a right program"), sources).expect("a checked tree");
    let text = print(&module);
    let places = ["first", "second", "third"].map(|name| text.find(&format!("slot ${name}:")));
    assert!(places.is_sorted() && places[0].is_some(), "{places:?}\n{text}");
}

#[test]
fn launches_that_order_grids_are_found() {
    for (stream, orders) in [
        ("stream = fire_and_forget", false),
        ("stream = tail", true),
        ("stream = stream_create()", true),
        ("", true),
    ] {
        let comma = if stream.is_empty() { "" } else { ", " };
        let launch = format!("launch child<<<1, 1{comma}{stream}>>>();");
        let source = format!("kernel child() {{}}\nkernel parent() {{ {launch} }}\n");
        let mut sources = SourceMap::default();
        sources.add("streams.grid", source);
        let module = gridlet_lang::program::check(sources).expect("a program").module;
        assert_eq!(graph::orders_grids(&module), orders, "`{stream}`");
        assert_eq!(graph::has_loops(&module), [false; 2]);
    }
}

#[test]
fn the_text_is_a_function_of_the_source() {
    for path in all_programs() {
        let (first, layouts) = build(&path);
        let (second, _) = build(&path);
        assert_eq!(print(&first), print(&second));
        assert_eq!(print(&lower(&first, &layouts)), print(&lower(&second, &layouts)));
    }
}

/// The text contains everything that the launch stage for GPUs needs, except the lines of built-ins that become
/// calls. For the CPU, a function made from a built-in also has its position.
#[test]
fn printed_ir_is_read_back() {
    let gpu = LaunchOptions::for_arch(LaunchStrategy::Cdp, CudaArch::DEFAULT);
    let counting = gpu.with_count_launches(true);
    let old_gpu =
        LaunchOptions::for_arch(LaunchStrategy::Cdp, "sm_75".parse().expect("an architecture"));
    for path in all_programs() {
        let (module, layouts) = build(&path);
        let read = read_back(&path, &module);
        // As a front end's, it keeps the rules of names, too. Only programs for the host have kernels.
        if module.kernels.iter().any(|kernel| !kernel.is_extern()) {
            let own = gridlet_lang::builder::read("a.gir", &print(&module));
            let own = own.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            assert_eq!(print(&own.module).lines().count(), print(&module).lines().count());
        }
        let lower = |module: &Module, options: LaunchOptions| {
            let lowered = launch::lower(module, &layouts, &options);
            lowered.expect("launches can be lowered")
        };
        read_back(&path, &lower(&module, LaunchOptions::CPU));
        for options in [gpu, counting, old_gpu] {
            let lowered = lower(&module, options);
            read_back(&path, &lowered);
            let of_read = without_positions(&lower(&read, options));
            assert_eq!(of_read, without_positions(&lowered), "{}", path.display());
        }
        let instrumented = launch::instrument(&module).expect("a sound module");
        read_back(&path, &instrumented);
        let of_read = launch::instrument(&read).expect("a sound module");
        assert_eq!(print(&of_read), print(&instrumented), "{}", path.display());
    }
}

fn without_positions(module: &Module) -> String {
    let text = print(module);
    let lines = text.lines().map(|line| line.split("  ; ").next().unwrap_or(line));
    lines.collect::<Vec<_>>().join("\n")
}

/// What is read from the text of a module: the same text again, and as sound.
fn read_back(path: &Path, module: &Module) -> Module {
    let text = print(module);
    let read = parse(&text).unwrap_or_else(|error| panic!("{}:{error}\n{text}", path.display()));
    assert_eq!(print(&read), text, "{}", path.display());
    verify(&read).unwrap_or_else(|error| panic!("{}: {error}\n{text}", path.display()));
    read
}
