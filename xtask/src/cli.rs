//! The commands and their options.

use std::path::PathBuf;

/// Every developer command of Gridlet.
#[derive(clap::Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", version, max_term_width = 100)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(clap::Subcommand)]
pub(crate) enum Command {
    Setup(Setup),
    /// Compile the example programs, and run and check them where there is an NVIDIA GPU
    Demo(Passed),
    Test(Test),
    Bless(Bless),
    /// Measure compile times, and launch costs where there is an NVIDIA GPU
    Bench(Passed),
    Bundle(Bundle),
    /// Pack the crates as for publishing, and check and document the packages without LLVM
    Package,
    /// Compare the libraries' public interfaces with the last release, by cargo-semver-checks
    Semver,
    Conformance(Conformance),
    Fuzz(Fuzz),
    /// Build the Python package as a wheel, install it into an empty environment, and test it there
    Wheel,
}

/// Make this machine ready to build and test Gridlet
///
/// Looks for LLVM 22 (LLVM_SYS_221_PREFIX, llvm-config-22 on PATH, /usr/lib/llvm-22) and, where apt-get is there
/// and the user is root or sudo asks for no password, installs what is missing. Looks for NVIDIA's compiler parts in a
/// CUDA toolkit of version 12.8 or newer (GRIDLET_TOOLKIT, CUDA_HOME, CUDA_PATH, /usr/local/cuda); without one, it
/// fetches the packages that xtask/toolkit.txt pins through pip, about 150 MB, into a cache that survives `cargo
/// clean` (GRIDLET_CACHE, else $XDG_CACHE_HOME/gridlet, else ~/.cache/gridlet). It detects and repairs
/// interrupted or damaged downloads. The other commands do all this themselves when something is missing.
#[derive(clap::Args, Default)]
pub(crate) struct Setup {
    /// Check the hash of every file of the cache, not just its size
    #[arg(long)]
    pub(crate) verify: bool,
    /// Use the pinned packages even if there is a CUDA toolkit
    #[arg(long)]
    pub(crate) pinned: bool,
}

// No doc comment: clap would show it instead of the command's own.
#[derive(clap::Args)]
pub(crate) struct Passed {
    /// Passed to the program unchanged
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
}

/// Check everything that CI checks: format, lints, documentation, packages, tests, snapshots
///
/// Every step runs, also after one that failed, and a summary closes the run.
#[derive(clap::Args)]
pub(crate) struct Test {
    /// Only the tests and snapshots: no format, lints, documentation or packages
    #[arg(long)]
    pub(crate) quick: bool,
    /// Passed to `cargo test`, such as `-p gridlet` or a test's name; implies --quick
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
}

/// Run the tests and accept every changed snapshot
///
/// Afterwards it lists the snapshot files that changed: read the diff before you commit it. If all tests of the
/// workspace ran and passed, it also deletes the snapshot files that no test uses any more.
#[derive(clap::Args)]
pub(crate) struct Bless {
    /// Passed to `cargo test`, such as `-p gridlet` or a test's name
    #[arg(last = true, value_name = "ARGUMENTS")]
    pub(crate) arguments: Vec<String>,
}

/// Make a folder that tests and measures Gridlet on a GPU machine without Rust or LLVM
///
/// It holds release programs, the tests that need a GPU, example programs, prebuilt artifacts, and the scripts
/// `run-tests` and `run-bench`; it is at most 60 MB and runs with the glibc of this machine or a newer one.
#[derive(clap::Args)]
pub(crate) struct Bundle {
    /// Where to make the folder; a bundle that is there is replaced
    #[arg(long, default_value = "bundle", value_name = "FOLDER")]
    pub(crate) out: PathBuf,
    /// Make a bundle of the fuzz targets and their corpora instead, with the script `run-fuzz`, which needs no GPU
    #[arg(long)]
    pub(crate) fuzz: bool,
}

/// Compile every program of the corpora with the toolkits that Gridlet claims to work with
///
/// Fetches the oldest and the newest of them, which xtask/conformance pins, and the pinned toolkit of `setup` through pip: about
/// 400 MB at the first time, and 1 GB in the cache. Each program goes through libNVVM, ptxas and, where a toolkit has all
/// its parts, nvJitLink, in both dialects; the parameter records are compared with the layouts.
#[derive(clap::Args)]
pub(crate) struct Conformance {
    /// These toolkits instead, by their folders
    #[arg(value_name = "FOLDER")]
    pub(crate) toolkits: Vec<PathBuf>,
}

/// Run the fuzz targets, which feed random bytes to everything that reads files
///
/// libFuzzer runs each target on inputs that it generates, until the time is up or one makes the target panic. The
/// targets are in compiler/fuzz; cargo-fuzz is installed under target/ if it is missing.
#[derive(clap::Args)]
pub(crate) struct Fuzz {
    /// Only this target; otherwise all, one after another
    #[arg(value_name = "TARGET")]
    pub(crate) target: Option<String>,
    /// How long each target runs
    #[arg(long, default_value_t = 60, value_name = "N")]
    pub(crate) seconds: u64,
}
