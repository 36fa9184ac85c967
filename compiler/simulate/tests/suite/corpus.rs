//! Runs the self-checking programs of `in/ok` that launch nothing: see `compiler/tests/devices/corpus.rs`.

use std::io;
use std::path::{Path, PathBuf};

use gridlet_lang::arch::CudaArch;
use gridlet_lang::launch::{self, LaunchOptions, LaunchStrategy};
use gridlet_lang::load::{Files, load};
use gridlet_lang::program::{self, Checked};
use gridlet_simulate::{Device, Grid, Options, Policy, Program};

pub(crate) const WORDS: usize = 64;

struct Disk;

impl Files for Disk {
    fn identity(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }
}

pub(crate) struct Case {
    pub(crate) name: String,
    pub(crate) checked: Checked,
    pub(crate) grid: Grid,
}

/// The programs that check themselves: those that launch, or the others.
pub(crate) fn cases(that_launch: bool) -> Vec<Case> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/in/ok");
    let entries = walkdir::WalkDir::new(folder).sort_by_file_name();
    let paths = entries.into_iter().map(|entry| entry.unwrap().into_path());
    paths
        .filter(|path| path.extension().is_some_and(|ext| ext == "grid"))
        .filter_map(|path| case(path, that_launch))
        .collect()
}

fn case(path: PathBuf, that_launches: bool) -> Option<Case> {
    let name = path.file_name().unwrap().to_string_lossy().into_owned();
    let sources = load(&Disk, &path).unwrap();
    let mut grid = Grid::new(1, WORDS as u32);
    for pair in sources.files()[0].text.lines().filter_map(|line| line.strip_prefix("//@")) {
        for (key, value) in pair.split_whitespace().filter_map(|pair| pair.split_once('=')) {
            let value = value.parse().unwrap();
            match key {
                "grid" => grid.grid[0] = value,
                "block" => grid.block[0] = value,
                _ => grid.shared = value,
            }
        }
    }
    let checked = program::check(sources).unwrap_or_else(|error| panic!("{name}: {error}"));
    let runs = checked.parameter_buffers().any(|layout| layout.kernel == "test");
    let strategy = LaunchStrategy::Cdp;
    let launches =
        checked.needs_device_runtime(strategy) || launch::makes_grids(&checked.module, strategy);
    (runs && launches == that_launches).then_some(Case { name, checked, grid })
}

fn run(case: &Case, program: &Program, options: &Options) -> Result<(), String> {
    let mut device = Device::new(program);
    let out = device.allocate(WORDS * 4);
    for (kernel, grid) in [("test", case.grid), ("check", Grid::new(1, 1))] {
        if case.checked.parameter_buffers().any(|layout| layout.kernel == kernel) {
            let launched = device.launch(kernel, grid, &out.to_le_bytes(), options);
            launched.map_err(|failure| format!("{}: {options:?}: {failure}", case.name))?;
        }
    }
    Ok(())
}

#[test]
fn self_checking_programs_pass() {
    let cases = cases(false);
    assert!(cases.len() > 60, "only {} programs", cases.len());
    let mut failed = vec![];
    for case in &cases {
        let archs = [CudaArch::DEFAULT, "sm_75".parse().unwrap()];
        let gpus = archs.map(|arch| LaunchOptions::for_arch(LaunchStrategy::Cdp, arch));
        for (at, lowering) in [gpus[0], gpus[1], LaunchOptions::CPU].iter().enumerate() {
            let program = Program::new(&case.checked.lower(lowering).unwrap()).unwrap();
            for (seed, policy) in (0..).zip(Policy::ALL) {
                let weak = (at as u64 + seed).is_multiple_of(2);
                let running_blocks = (seed % 3) as u32;
                let options = Options { policy, weak, running_blocks, ..Options::seed(seed) };
                failed.extend(run(case, &program, &options).err());
            }
        }
    }
    assert!(failed.is_empty(), "{} of them:\n{}", failed.len(), failed.join("\n"));
}
