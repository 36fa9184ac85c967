//! Line tables of cubins (`-g`), as NVIDIA's disassembler reads them.

use gridlet::arch::{CudaArch, Dialect};
use gridlet::compile::{self, Backend, BuildOptions, Session};
use gridlet::launch::LaunchStrategy;
use gridlet::modules;
use gridlet::source::SourceMap;
use gridlet::toolchain::{Component, Toolchain};
use inkwell::context::Context;
use nvvm_tests::{FOR_DISASSEMBLY, nvdisasm, toolchain_or_skip};
use object::{Object, ObjectSection};

const SOURCE: &str = "\
fn mix(x: u32) -> u32 {
    return (x % 1000003) ^ (x >> 3);
}

kernel child(p: *mut u32, n: u32) {
    let i = block_idx.x * block_dim.x + thread_idx.x;
    if i < n {
        p[i] += mix(i);
    }
}

kernel parent(p: *mut u32, n: u32) {
    launch child<<<(n + 31) / 32, 32>>>(p, n);
}
";

/// The lines of a function's table, as nvdisasm prints them.
fn lines(toolchain: &Toolchain, cubin: &[u8]) -> Vec<u32> {
    let text = nvdisasm(toolchain, &["-g"], cubin);
    let line = |text: &str| {
        let number = text.split("lines.grid\", line ").nth(1)?;
        let digits = number.find(|c: char| !c.is_ascii_digit()).unwrap_or(number.len());
        number[..digits].parse().ok()
    };
    let mut found: Vec<u32> = text.lines().filter_map(line).collect();
    found.sort_unstable();
    found.dedup();
    found
}

/// The machine code of each kernel and function.
fn code(cubin: &[u8]) -> Vec<(String, Vec<u8>)> {
    let file = object::File::parse(cubin).unwrap();
    let sections = file.sections().filter_map(|section| {
        let name = section.name().ok()?.to_owned();
        name.starts_with(".text").then(|| (name, section.data().unwrap().to_vec()))
    });
    sections.collect()
}

#[test]
fn cubins_have_line_tables_and_the_same_code() {
    let test = "cubins_have_line_tables_and_the_same_code";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_DISASSEMBLY) else { return };
    let session = Session::with_toolchain(Toolchain::discover());
    let program = compile::check(SourceMap::single("lines.grid", SOURCE)).unwrap();
    for arch in ["sm_90", "sm_120"] {
        let arch: CudaArch = arch.parse().unwrap();
        for backend in [Backend::LibNvvm, Backend::Nvptx] {
            for optimize in [true, false] {
                let what = format!("{arch} by {backend:?}, optimised: {optimize}");
                let plain =
                    BuildOptions::for_arch(arch).with_backend(backend).with_optimize(optimize);
                let built = session.cubin(&program, &plain.with_debug_lines(true));
                let built = built.unwrap_or_else(|error| panic!("{what}: {error}"));
                assert_eq!(built.log, "", "{what}");
                let found = lines(&toolchain, &built.cubin.0);
                // The division of `mix`, the store and the launch; not the declarations alone.
                let missing: Vec<u32> =
                    [2, 8, 13].into_iter().filter(|line| !found.contains(line)).collect();
                assert!(missing.is_empty(), "{what}: {missing:?} are not among {found:?}");

                let without = session.cubin(&program, &plain).unwrap();
                assert!(lines(&toolchain, &without.cubin.0).is_empty(), "{what}");
                // Without optimisation, LLVM keeps other instructions.
                let same = code(&built.cubin.0) == code(&without.cubin.0);
                assert!(same || !optimize, "{what}: other code");
            }
        }
    }
}

const NESTED: &str = "\
kernel turned(p: *mut u32, n: u32) {
    shared tile: [u32; 64];
    for i in 0..n {
        tile[thread_idx.x] = p[i * 64 + thread_idx.x];
        sync_threads();
        p[i * 64 + thread_idx.x] = tile[63 - thread_idx.x] % 1000003;
        sync_threads();
    }
}

kernel parent(p: *mut u32, n: u32) {
    launch turned<<<n, 64>>>(p, n);
}
";

/// Also of kernels that are inlined into the resident kernel, and of loops with an address of `shared` memory.
#[test]
fn nested_programs_have_line_tables_and_the_same_code() {
    let test = "nested_programs_have_line_tables_and_the_same_code";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_DISASSEMBLY) else { return };
    let session = Session::with_toolchain(Toolchain::discover());
    let program = compile::check(SourceMap::single("lines.grid", NESTED)).unwrap();
    for backend in [Backend::LibNvvm, Backend::Nvptx] {
        for strategy in [LaunchStrategy::Cdp, LaunchStrategy::Resident] {
            let what = format!("{backend:?}, {strategy:?}");
            let plain = BuildOptions::default().with_backend(backend).with_launch(strategy.into());
            let built = session.cubin(&program, &plain.with_debug_lines(true));
            let built = built.unwrap_or_else(|error| panic!("{what}: {error}"));
            let found = lines(&toolchain, &built.cubin.0);
            let missing: Vec<u32> =
                [4, 6].into_iter().filter(|line| !found.contains(line)).collect();
            assert!(missing.is_empty(), "{what}: {missing:?} are not among {found:?}");
            let without = session.cubin(&program, &plain).unwrap();
            assert!(code(&built.cubin.0) == code(&without.cubin.0), "{what}: other code");
        }
    }
}

/// A module in the style of an optimising compiler: its kernel holds a function of another file.
const INLINED: &str = "\
define ptx_kernel void @k(ptr %p, i32 %n) !dbg !10 {
  %x = udiv i32 %n, 10, !dbg !20
  store i32 %x, ptr %p, align 4
  ret void, !dbg !22
}
!llvm.dbg.cu = !{!2}
!llvm.module.flags = !{!3}
!2 = distinct !DICompileUnit(language: DW_LANG_C99, file: !4, emissionKind: FullDebug)
!3 = !{i32 2, !\"Debug Info Version\", i32 3}
!4 = !DIFile(filename: \"a.toy\", directory: \".\")
!5 = !DIFile(filename: \"b.toy\", directory: \".\")
!6 = !DISubroutineType(types: !7)
!7 = !{null}
!10 = distinct !DISubprogram(name: \"k\", scope: !4, file: !4, line: 3, type: !6, scopeLine: 3, spFlags: DISPFlagDefinition, unit: !2)
!11 = distinct !DISubprogram(name: \"tenth\", scope: !5, file: !5, line: 7, type: !6, scopeLine: 7, spFlags: DISPFlagDefinition, unit: !2)
!20 = !DILocation(line: 8, column: 5, scope: !11, inlinedAt: !21)
!21 = distinct !DILocation(line: 4, column: 3, scope: !10)
!22 = !DILocation(line: 5, column: 1, scope: !10)
";

#[test]
fn lines_of_other_compilers_reach_the_legacy_dialect() {
    let test = "lines_of_other_compilers_reach_the_legacy_dialect";
    if toolchain_or_skip(test, &[Component::LibNvvm]).is_none() {
        return;
    }
    let context = Context::create();
    let module = modules::read(&context, "a.ll", INLINED.as_bytes()).unwrap();
    let arch = CudaArch::DEFAULT;
    assert_eq!(arch.dialect(), Dialect::Legacy);
    let options = BuildOptions::for_arch(arch).with_debug_lines(true);
    let (ptx, _) = Session::new().ptx_of(&module, &options).unwrap();
    let directive = |start: &str| {
        let found: Vec<&str> = ptx.0.lines().map(str::trim).collect();
        found.into_iter().filter(|line| line.starts_with(start)).collect::<Vec<_>>().join("\n")
    };
    let (files, places) = (directive(".file"), directive(".loc"));
    let number = |name: &str| {
        let line = files.lines().find(|line| line.contains(name));
        line.unwrap_or_else(|| panic!("{files}")).split_whitespace().nth(1).unwrap().to_owned()
    };
    let (own, other) = (number("a.toy"), number("b.toy"));
    for wanted in [format!(".loc\t{own} 5 1"), format!(".loc\t{other} 8 5")] {
        assert!(places.contains(&wanted), "{wanted}: {files}\n{places}");
    }
}

/// ptxas does not optimise what asks for more than `.loc` directives.
#[test]
fn debug_information_of_other_compilers_does_not_keep_code_from_being_optimised() {
    let name = "debug_information_of_other_compilers_does_not_keep_code_from_being_optimised";
    let Some(toolchain) = toolchain_or_skip(name, &FOR_DISASSEMBLY) else { return };
    let text = r#"
define ptx_kernel void @k(ptr %p, i32 %n) !dbg !3 {
  switch i32 %n, label %end [
    i32 1, label %one
    i32 2, label %two
  ], !dbg !4
one:
  store i32 1, ptr %p, !dbg !4
  br label %end, !dbg !4
two:
  store float 2.0, ptr %p, !dbg !4
  br label %end, !dbg !4
end:
  ret void, !dbg !4
}
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!2}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: LineTablesOnly)
!1 = !DIFile(filename: "lines.grid", directory: ".")
!2 = !{i32 2, !"Debug Info Version", i32 3}
!3 = distinct !DISubprogram(name: "k", file: !1, line: 3, unit: !0, spFlags: DISPFlagDefinition)
!4 = !DILocation(line: 7, scope: !3)
"#;
    for kind in ["LineTablesOnly", "FullDebug"] {
        for arch in ["sm_90", "sm_100"] {
            for backend in [Backend::LibNvvm, Backend::Nvptx] {
                let context = Context::create();
                let text = text.replace("LineTablesOnly", kind);
                let own = modules::Own::read(&context, "lines.ll", text.as_bytes()).unwrap();
                let options = BuildOptions::for_arch(arch.parse().unwrap());
                let options = options.with_backend(backend).with_debug_lines(true);
                let session = Session::with_toolchain(toolchain.clone());
                let cubin = session.own_cubin(&own, &options).unwrap();
                let lines = lines(&toolchain, &cubin.0);
                assert!(lines.contains(&7), "{kind} {arch} {backend:?}: {lines:?}");
            }
        }
    }
}

/// libNVVM asks for the version of debug information with `-g`, also where a module has none. The module that is added for the record
/// of lost launches must not state another version.
#[test]
fn modules_without_debug_information_compile_with_lines() {
    let test = "modules_without_debug_information_compile_with_lines";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_DISASSEMBLY) else { return };
    let text = "\
%struct.dim3 = type { i32, i32, i32 }
declare ptr @cudaGetParameterBufferV2(ptr, %struct.dim3, %struct.dim3, i32)
declare i32 @cudaLaunchDeviceV2(ptr, ptr)
define ptx_kernel void @child() {
  ret void
}
define ptx_kernel void @start() {
  %b = call ptr @cudaGetParameterBufferV2(ptr @child, %struct.dim3 { i32 1, i32 1, i32 1 },
                                          %struct.dim3 { i32 1, i32 1, i32 1 }, i32 0)
  %status = call i32 @cudaLaunchDeviceV2(ptr %b, ptr null)
  ret void
}
";
    for arch in ["sm_90", "sm_100", "sm_120"] {
        let context = Context::create();
        let own = modules::Own::read(&context, "a.ll", text.as_bytes()).unwrap();
        let options = BuildOptions::for_arch(arch.parse().unwrap()).with_debug_lines(true);
        let session = Session::with_toolchain(toolchain.clone());
        session.own_cubin(&own, &options).unwrap();
    }
}
