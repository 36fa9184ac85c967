//! Output is a function of the input: the same in each compilation and in each process.

use std::collections::BTreeSet;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use gridlet::arch::CudaArch;
use gridlet::compile::{self, Backend, BuildOptions, Checked, Session};
use gridlet::launch::{LaunchChoice, LaunchStrategy};
use gridlet::toolchain::Component;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use nvvm_tests::{FOR_PTX, files, toolchain_or_skip};

/// The file into which this test, as a child of itself, writes what it compiled.
const TARGET: &str = "GRIDLET_SAME_OUTPUT";

/// The ways to compile the program of that number. libNVVM orders variables by addresses in the first one; of the others, each is for
/// a few programs.
fn ways(at: usize) -> Vec<BuildOptions> {
    let arch = |name: &str| BuildOptions::for_arch(name.parse::<CudaArch>().unwrap());
    let resident = LaunchChoice::Fixed(LaunchStrategy::Resident);
    let mut ways = vec![arch("sm_100").with_optimize(false)];
    ways.extend(match at % 32 {
        0 | 16 => Some(arch("sm_90")),
        4 | 20 => Some(arch("sm_100").with_backend(Backend::Nvptx)),
        8 => Some(arch("sm_75").with_optimize(false).with_launch(resident).with_debug_lines(true)),
        12 => Some(arch("sm_90").with_backend(Backend::Nvptx).with_launch(resident)),
        _ => None,
    });
    ways
}

/// A hash of the PTX of a program.
fn compiled(session: &Session, program: &Checked, options: &BuildOptions) -> u64 {
    let (ptx, _) = session.ptx(program, options).unwrap();
    let mut hasher = DefaultHasher::new();
    ptx.0.hash(&mut hasher);
    hasher.finish()
}

#[test]
fn output_is_a_function_of_the_input() {
    let test = "output_is_a_function_of_the_input";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_PTX) else { return };
    let session = Session::with_toolchain(toolchain);
    let mut programs: Vec<(usize, PathBuf)> =
        files("compiler/tests/in/ok", "grid").into_iter().enumerate().collect();
    let lines = |(at, path): &(usize, PathBuf)| -> Vec<String> {
        let program = compile::load(path).and_then(compile::check).unwrap();
        let line = |options| {
            let hash = compiled(&session, &program, &options);
            format!("{} {hash:016x} {options:?}", path.display())
        };
        ways(*at).into_iter().map(line).collect()
    };
    if let Some(target) = std::env::var_os(TARGET) {
        programs.reverse();
        let lines: Vec<String> = programs.iter().flat_map(lines).collect();
        std::fs::write(target, lines.join("\n")).unwrap();
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let target = folder.path().join("lines");
    let mut other = Command::new(std::env::current_exe().unwrap())
        .args([&format!("same_output::{test}"), "--exact"])
        .env(TARGET, &target)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let ours: BTreeSet<String> = programs.iter().flat_map(lines).collect();
    assert!(other.wait().unwrap().success());
    let theirs = std::fs::read_to_string(&target).unwrap();
    let differ: Vec<&str> = theirs.lines().filter(|line| !ours.contains(*line)).collect();
    assert_eq!(theirs.lines().count(), ours.len());
    assert!(differ.is_empty(), "{} differ:\n{}", differ.len(), differ.join("\n"));
    // In the same process again, where addresses in memory are others.
    for program in programs.iter().step_by(25) {
        for line in lines(program) {
            assert!(ours.contains(&line), "{line}");
        }
    }
}

#[test]
fn variables_of_other_compilers_keep_their_order() {
    let test = "variables_of_other_compilers_keep_their_order";
    let Some(toolchain) = toolchain_or_skip(test, &[Component::LibNvvm]) else { return };
    let session = Session::with_toolchain(toolchain);
    let names: Vec<String> = (0..12).map(|at| format!("v{at}")).collect();
    let address = |name: &String| format!("ptr addrspacecast (ptr addrspace(1) @{name} to ptr)");
    let addresses: Vec<String> = names.iter().map(address).collect();
    let list = format!("[{} x ptr] [{}]", names.len(), addresses.join(", "));
    let variable = |name: &String| format!("@{name} = addrspace(1) global i32 7, align 4\n");
    let variables: String = names.iter().map(variable).collect();
    let text = format!(
        "target triple = \"nvptx64-nvidia-cuda\"
        @table = addrspace(1) global {list}, align 8
        {variables}
        @llvm.used = appending global {list}, section \"llvm.metadata\"
        define ptx_kernel void @k() {{
            store volatile i32 1, ptr addrspace(1) @v3
            ret void
        }}"
    );
    let context = Context::create();
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "module");
    let module = context.create_module_from_ir(buffer).unwrap();
    for arch in ["sm_90", "sm_100"] {
        let options = BuildOptions::for_arch(arch.parse().unwrap());
        for backend in [Backend::LibNvvm, Backend::Nvptx] {
            for optimize in [false, true] {
                let options = options.with_backend(backend).with_optimize(optimize);
                let (ptx, _) = session.ptx_of(&module, &options).unwrap();
                let lines = ptx.0.lines().filter(|line| line.starts_with(".visible .global"));
                let found = lines.filter_map(|line| {
                    line.split([' ', '[']).find(|word| word.starts_with(['v', 't']))
                });
                let mut wanted: Vec<&str> = names.iter().map(String::as_str).collect();
                wanted.push("table");
                assert_eq!(found.collect::<Vec<_>>(), wanted, "{options:?}");
            }
        }
    }
}
