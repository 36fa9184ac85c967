//! Conformance with other toolkits: every program of the corpora through libNVVM's verifier and compiler, ptxas and, where the
//! toolkit has all its parts, nvJitLink of each toolkit that `GRIDLET_TOOLKITS` lists, separated by colons.
//!
//! `cargo xtask conformance` fetches the oldest and the newest toolkit that Gridlet claims to work with, and runs this.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use gridlet::arch::CudaArch;
use gridlet::compile::{self, Backend, BuildOptions, Checked, Session};
use gridlet::launch::LaunchStrategy;
use gridlet::toolchain::{Component, Search, Toolchain, Version};

/// Folders with programs, below the workspace.
const CORPORA: [&str; 5] = [
    "examples/programs",
    "examples/nested",
    "examples/kernels",
    "compiler/tests/in/ok",
    "compiler/tests/in/extern",
];

/// The programs of the corpora, by path.
fn programs() -> Vec<(String, Checked)> {
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut open, mut files) = (CORPORA.map(|folder| workspace.join(folder)).to_vec(), vec![]);
    while let Some(folder) = open.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                _ if path.is_dir() => open.push(path),
                Some(ending) if ending == "grid" => files.push(path),
                _ => {}
            }
        }
    }
    files.push(workspace.join("compiler/tests/in/built_ins.grid"));
    files.sort();
    let checked = files.into_iter().map(|path| {
        let program = compile::load(&path).and_then(compile::check);
        let program = program.unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        (path.strip_prefix(&workspace).unwrap().display().to_string(), program)
    });
    checked.collect()
}

/// One way to machine code.
#[derive(Clone, Copy)]
struct Way {
    arch: CudaArch,
    backend: Backend,
    optimize: bool,
    /// Linked with the device runtime or, with `resident`, assembled whole; otherwise a relocatable object.
    linked: Option<LaunchStrategy>,
}

/// Compiles in one way. Each way verifies the module and compares the parameter records with the layouts.
fn build(session: &Session, program: &Checked, way: Way) -> Result<(), String> {
    let options = BuildOptions::for_arch(way.arch)
        .with_backend(way.backend)
        .with_optimize(way.optimize)
        .with_launch(way.linked.unwrap_or(LaunchStrategy::Cdp).into());
    let built = match way.linked {
        Some(_) => session.cubin(program, &options).map(|built| built.log),
        None => session.object(program, &options).map(|_| String::new()),
    };
    match built {
        Ok(log) if log.is_empty() => Ok(()),
        Ok(log) => Err(format!("it says: {log}")),
        Err(error) => Err(error.to_string()),
    }
}

/// The ways for a program: all architectures in both dialects, and each back end and level for one of them.
fn ways(session: &Session, name: &str, program: &Checked) -> Vec<Way> {
    let arch = |name: &str| -> CudaArch { name.parse().unwrap() };
    let way = |arch, backend, optimize| Way { arch, backend, optimize, linked: None };
    let mut ways = vec![
        way(arch("sm_90"), Backend::LibNvvm, false),
        way(arch("sm_100"), Backend::LibNvvm, false),
        way(arch("sm_90"), Backend::Nvptx, true),
    ];
    let of_examples = name.starts_with("examples/programs") || name.ends_with("built_ins.grid");
    let archs = match of_examples {
        true => CudaArch::SUPPORTED.to_vec(),
        false => ["sm_75", "sm_90", "sm_100", "sm_120"].map(arch).to_vec(),
    };
    ways.extend(archs.iter().map(|arch| way(*arch, Backend::LibNvvm, true)));
    let needs_others = program.module.externs.iter().any(|item| item.span.is_some())
        || program.module.extern_kernels().next().is_some();
    if of_examples && !needs_others {
        let resident = name.ends_with("quicksort.grid").then_some(LaunchStrategy::Resident);
        let has_runtime = session.toolchain().path(Component::CudaDevRt).is_ok();
        let cdp = has_runtime.then_some(LaunchStrategy::Cdp);
        for linked in [resident, cdp].into_iter().flatten() {
            let linked = |arch| Way { linked: Some(linked), ..way(arch, Backend::LibNvvm, true) };
            ways.extend(archs.iter().copied().map(linked));
        }
    }
    ways
}

#[test]
fn every_toolkit_takes_every_program() {
    let Some(roots) = std::env::var_os("GRIDLET_TOOLKITS").filter(|roots| !roots.is_empty()) else {
        eprintln!(
            "SKIPPED: every_toolkit_takes_every_program needs GRIDLET_TOOLKITS: run `cargo xtask conformance`"
        );
        return;
    };
    let programs = programs();
    let mut report = String::new();
    let mut failed = BTreeMap::new();
    for root in std::env::split_paths(&roots) {
        let (line, wrong) = run(&root, &programs);
        eprintln!("{line}");
        report.push_str(&line);
        failed.extend(wrong);
    }
    let shown: Vec<_> =
        failed.iter().take(20).map(|(what, why)| format!("{what}: {why}")).collect();
    assert!(failed.is_empty(), "{report}\n{} failed\n{}", failed.len(), shown.join("\n"));
}

/// Compiles all programs with one toolkit. Returns a line with the counts, and what failed.
fn run(root: &Path, programs: &[(String, Checked)]) -> (String, BTreeMap<String, String>) {
    let toolchain = Toolchain::search(Search::from_roots([root.to_path_buf()]));
    for component in
        [Component::LibNvvm, Component::LibDevice, Component::NvJitLink, Component::Ptxas]
    {
        toolchain.path(component).unwrap();
    }
    let version = toolchain.toolkit_version(Component::LibNvvm).unwrap_or(Version::MINIMUM_CUDA);
    let session = Session::with_toolchain(toolchain);
    let (next, count) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let failed = Mutex::new(BTreeMap::new());
    let work = || {
        while let Some((name, program)) = programs.get(next.fetch_add(1, Ordering::Relaxed)) {
            for way in ways(&session, name, program) {
                count.fetch_add(1, Ordering::Relaxed);
                if let Err(why) = build(&session, program, way) {
                    let Way { arch, backend, optimize, linked } = way;
                    let what = format!(
                        "CUDA {version}: {name} for {arch}, {backend:?}, optimize {optimize}, {linked:?}"
                    );
                    failed.lock().unwrap().insert(what, why);
                }
            }
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        (0..threads).for_each(|_| _ = scope.spawn(work));
    });
    let failed = failed.into_inner().unwrap();
    let linked = if session.toolchain().path(Component::CudaDevRt).is_ok() {
        "with the device runtime"
    } else {
        "without libcudadevrt, so nothing was linked with it"
    };
    let line = format!(
        "CUDA {version}: {} programs in {} ways, {} failed; {linked}",
        programs.len(),
        count.into_inner(),
        failed.len()
    );
    (line, failed)
}
