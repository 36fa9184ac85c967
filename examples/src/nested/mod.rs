//! The suite: programs whose kernels launch kernels, each beside CUDA C++ that does the same with nested launches and
//! without them. `bench --only nested` measures them; `nested/` beside `src/` has the device code.
//!
//! All versions of a program read the same [`Input`] and give their result as words, which one check judges.

pub mod bezier;
pub mod bfs;
pub mod cholesky;
pub mod colouring;
mod graph;
mod input;
pub mod mandelbrot;
pub mod patterns;
pub mod quadtree;
pub mod queens;
pub mod quicksort;
pub mod refinement;
pub mod segments;
pub mod simple_quicksort;
pub mod sssp;
pub mod triangles;
pub mod uts;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, ensure};
use gridlet_runtime::{Device, Kernel, LaunchConfig, Program, Stream};

pub use input::{Input, words};

use crate::TIME_OUT;

/// Every program of the suite, the launch costs first.
pub const SUITE: [Nested; 15] = [
    patterns::PROGRAM,
    mandelbrot::PROGRAM,
    uts::PROGRAM,
    simple_quicksort::PROGRAM,
    quicksort::PROGRAM,
    bfs::PROGRAM,
    sssp::PROGRAM,
    queens::PROGRAM,
    segments::PROGRAM,
    colouring::PROGRAM,
    triangles::PROGRAM,
    refinement::PROGRAM,
    bezier::PROGRAM,
    cholesky::PROGRAM,
    quadtree::PROGRAM,
];

/// A program of the suite.
pub struct Nested {
    /// Its name, and its folder's.
    pub name: &'static str,
    /// A description in one line.
    pub what: &'static str,
    /// Its source in Gridlet.
    pub source: &'static str,
    /// Its sources in CUDA C++, with nested launches and without.
    pub cuda: [&'static str; 2],
    /// What they include from their folder: name and text.
    pub headers: &'static [(&'static str, &'static str)],
    /// Launches that may be pending at once in CUDA's device runtime.
    pub pending_launches: u64,
    /// Its inputs.
    pub cases: fn(Size) -> Vec<Case>,
    /// The host side in Gridlet.
    pub load: fn(&Place, &Input) -> anyhow::Result<Box<dyn Work>>,
    /// Judges a result; describes it if it is right.
    pub check: fn(&Input, Version, &[u32]) -> anyhow::Result<String>,
}

/// How large the inputs are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    /// For tests on slow devices.
    Small,
    /// For measurements.
    Full,
}

/// A version of a program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Version {
    /// Gridlet, launching through CUDA's device runtime.
    Cdp,
    /// Gridlet with resident launches.
    Resident,
    /// CUDA C++ with nested launches.
    #[value(name = "nvcc-nested")]
    CudaNested,
    /// CUDA C++ without nested launches.
    #[value(name = "nvcc-flat")]
    CudaFlat,
}

impl Version {
    /// All of them, in the order of the table.
    pub const ALL: [Version; 4] =
        [Version::Resident, Version::Cdp, Version::CudaNested, Version::CudaFlat];

    /// Its name in tables and in JSON.
    pub fn name(self) -> &'static str {
        match self {
            Version::Cdp => "cdp",
            Version::Resident => "resident",
            Version::CudaNested => "nvcc nested",
            Version::CudaFlat => "nvcc flat",
        }
    }
}

/// One input of a program.
pub struct Case {
    /// Its name.
    pub name: String,
    /// The input.
    pub input: Input,
    /// The launches that a nested version makes, if the case measures the cost of one.
    pub launches: Option<u64>,
    /// The versions that can run it.
    pub versions: &'static [Version],
}

/// A Gridlet program that is loaded for the suite.
pub struct Place {
    /// The device, for memory.
    pub device: Device,
    /// The stream to launch into.
    pub stream: Stream,
    /// The program.
    pub program: Program,
}

impl Place {
    fn kernel(&self, name: &str) -> anyhow::Result<Kernel> {
        Ok(self.program.kernel(name)?)
    }

    /// Launches and waits for the grid with all its children.
    fn run(
        &self,
        kernel: &Kernel,
        config: &LaunchConfig,
        arguments: &[gridlet_runtime::Arg<'_>],
    ) -> anyhow::Result<()> {
        self.stream.launch(kernel, config, arguments)?;
        Ok(self.stream.synchronize(TIME_OUT)?)
    }
}

impl Clone for Place {
    fn clone(&self) -> Place {
        let Place { device, stream, program } = self;
        Place { device: device.clone(), stream: stream.clone(), program: program.clone() }
    }
}

/// A program with its input, ready to run any number of times.
pub trait Work {
    /// Before each run, not timed.
    ///
    /// # Errors
    /// The errors of the runtime.
    fn reset(&mut self) -> anyhow::Result<()>;

    /// The whole work, to its end.
    ///
    /// # Errors
    /// The errors of the runtime.
    fn run(&mut self) -> anyhow::Result<()>;

    /// The result of the last run.
    ///
    /// # Errors
    /// The errors of the runtime.
    fn result(&self) -> anyhow::Result<Vec<u32>>;
}

/// Loads a case into a program, runs it once and checks it.
///
/// # Errors
/// The errors of the runtime, or a wrong result.
pub fn run_once(
    program: &Nested,
    place: &Place,
    case: &Case,
    version: Version,
) -> anyhow::Result<String> {
    let mut work = (program.load)(place, &case.input)?;
    work.reset()?;
    work.run()?;
    (program.check)(&case.input, version, &work.result()?)
        .with_context(|| format!("{}, {}", program.name, case.name))
}

/// The header of all programs in CUDA C++.
const SERVE: &str = include_str!("../../nested/common/serve.h");

/// Writes the sources in CUDA C++ to a folder of the program's name, with their headers; returns the paths of the version with
/// nested launches and of the one without.
///
/// # Errors
/// A file cannot be written.
pub fn write_cuda(program: &Nested, folder: &Path) -> anyhow::Result<[PathBuf; 2]> {
    let own = folder.join(program.name);
    let common = folder.join("common");
    fs::create_dir_all(&own)?;
    fs::create_dir_all(&common)?;
    fs::write(common.join("serve.h"), SERVE)?;
    for (name, text) in program.headers {
        fs::write(own.join(name), text)?;
    }
    let paths = ["nested.cu", "flat.cu"].map(|name| own.join(name));
    for (path, text) in paths.iter().zip(program.cuda) {
        fs::write(path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    Ok(paths)
}

/// Compares results word by word.
fn equal(found: &[u32], expected: &[u32]) -> anyhow::Result<()> {
    ensure!(found.len() == expected.len(), "{} words instead of {}", found.len(), expected.len());
    if let Some(at) = (0..found.len()).find(|&at| found[at] != expected[at]) {
        anyhow::bail!("word {at} is {}, expected {}", found[at], expected[at]);
    }
    Ok(())
}

/// Does each piece of work, on all cores.
fn in_parallel<T: Send>(work: Vec<T>, each: impl Fn(T) + Sync) {
    let queue = std::sync::Mutex::new(work.into_iter());
    let next = || queue.lock().ok().and_then(|mut queue| queue.next());
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some(piece) = next() {
                    each(piece);
                }
            });
        }
    });
}
