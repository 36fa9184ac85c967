//! Runs trees on devices.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::thread;
use std::time::Duration;

use anyhow::{Context as _, anyhow};
use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::cache::Cache;
use gridlet::compile::{Backend, BuildOptions, CpuOptions, Session};
use gridlet::launch::LaunchStrategy;
use gridlet_runtime::{
    Arg, Artifact, Buffer, CpuConfig, Device, Dim3, Error, LaunchConfig, Program, Stream,
};

use super::check::{Summary, check};
use super::tables::Tables;
use super::{Tree, VARIANTS, Variant};
use crate::differential;

/// The kernel that the host launches.
const ENTRY: &str = "root";
/// Launches that may be pending with `cdp`: more than a tree has.
const PENDING_LAUNCHES: u64 = 65_536;
/// The same on the CPU device, where launches may fail.
const FEW_PENDING_LAUNCHES: u64 = 30;
/// Orders of grids, blocks and threads on the CPU device.
const CPU_ORDERS: u64 = 8;

/// A way to run a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Way {
    /// The CPU device.
    Cpu {
        /// Under `--check`.
        check: bool,
        /// With a pool of few pending launches, so that launches fail.
        few: bool,
    },
    /// A GPU, with `cdp`.
    Cdp,
    /// A GPU, with `resident` and this launch memory.
    Resident(Memory),
}

/// Launch memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Memory {
    /// So many MiB: enough for each tree.
    Enough(u64),
    /// So many bytes more than the least with which the tree starts: launches may fail. Workers keep spare records, so
    /// this may happen long before the tree has as many grids at a time as there are records.
    Scarce(u64),
}

impl Way {
    /// The ways that need no GPU.
    pub const CPU: [Way; 3] = [
        Way::Cpu { check: false, few: false },
        Way::Cpu { check: false, few: true },
        Way::Cpu { check: true, few: false },
    ];
    /// The ways on a GPU.
    pub const GPU: [Way; 5] = [
        Way::Cdp,
        Way::Resident(Memory::Enough(256)),
        Way::Resident(Memory::Scarce(4_000_000)),
        Way::Resident(Memory::Scarce(100_000)),
        Way::Resident(Memory::Scarce(0)),
    ];

    /// Whether launches may fail for want of memory.
    fn may_refuse(self) -> bool {
        matches!(self, Way::Cpu { few: true, .. } | Way::Resident(Memory::Scarce(_)))
    }

    /// The image that it runs.
    fn image(self) -> Image {
        match self {
            Way::Cpu { check, .. } => Image::Cpu { check },
            Way::Cdp => Image::Gpu(LaunchStrategy::Cdp),
            Way::Resident(_) => Image::Gpu(LaunchStrategy::Resident),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Way::Cpu { check: true, .. } => f.write_str("cpu-check"),
            Way::Cpu { few: true, .. } => f.write_str("cpu-few"),
            Way::Cpu { .. } => f.write_str("cpu"),
            Way::Cdp => f.write_str("cdp"),
            Way::Resident(Memory::Enough(mib)) => write!(f, "resident-{mib}-mib"),
            Way::Resident(Memory::Scarce(more)) => write!(f, "resident-least-{more}"),
        }
    }
}

impl FromStr for Way {
    type Err = String;

    /// Parses the text that `Display` of [`Way`] writes.
    fn from_str(text: &str) -> Result<Way, String> {
        let all = || Way::CPU.into_iter().chain(Way::GPU);
        all().find(|way| way.to_string() == text).ok_or_else(|| {
            let names: Vec<String> = all().map(|way| way.to_string()).collect();
            format!("there are {}", names.join(", "))
        })
    }
}

/// What is compiled for a way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Image {
    Cpu { check: bool },
    Gpu(LaunchStrategy),
}

/// Why a tree failed.
#[derive(Debug)]
pub struct Failure {
    /// The way that failed.
    pub way: Way,
    /// Whether the device is lost to this process.
    pub fatal: bool,
    /// The failure in words.
    pub message: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.way, self.message)
    }
}

/// Runs trees, one at a time.
pub struct Runner {
    images: HashMap<(Image, Variant), Artifact>,
    gpu: Option<Device>,
    loaded: HashMap<(Way, Variant, u64), Loaded>,
    time_out: Duration,
}

/// A program on a device, with a stream and the buffers that were used so far, by their size.
struct Loaded {
    device: Device,
    program: Program,
    stream: Stream,
    buffers: HashMap<usize, Buffer<u32>>,
}

impl Runner {
    /// Compiles the program for these ways, and opens the first GPU if one of them needs it.
    ///
    /// # Errors
    /// Errors of compiling. If there is no GPU, or none that Gridlet builds for.
    pub fn new(ways: &[Way], time_out: Duration) -> anyhow::Result<Runner> {
        Runner::of(ways, time_out, Variant::source)
    }

    /// As [`Runner::new`], with another program in place of [`Variant::source`].
    ///
    /// # Errors
    /// The errors of [`Runner::new`].
    pub fn of(
        ways: &[Way],
        time_out: Duration,
        source: impl Fn(Variant) -> String,
    ) -> anyhow::Result<Runner> {
        let mut gpu = None;
        let mut arch = CudaArch::DEFAULT;
        if ways.iter().any(|way| !matches!(way, Way::Cpu { .. })) {
            let device = Device::open(0)?;
            let capability = device.info().compute_capability;
            arch = CudaArch::for_device(capability.major, capability.minor).with_context(|| {
                format!("Gridlet cannot build for GPUs of capability {capability}")
            })?;
            device.set_pending_launch_limit(PENDING_LAUNCHES)?;
            gpu = Some(device);
        }
        let mut wanted = vec![];
        for image in ways.iter().map(|way| way.image()) {
            for variant in VARIANTS {
                if !wanted.contains(&(image, variant)) {
                    wanted.push((image, variant));
                }
            }
        }
        let session = Session::new().cached(Cache::of_user());
        let built: anyhow::Result<Vec<_>> = thread::scope(|scope| {
            let session = &session;
            let threads: Vec<_> = wanted
                .iter()
                .map(|&(image, variant)| {
                    let source = source(variant);
                    scope.spawn(move || build(session, image, &source, arch))
                })
                .collect();
            let joined = threads.into_iter().map(thread::ScopedJoinHandle::join);
            joined.map(|result| result.map_err(|_| anyhow!("a thread panicked"))?).collect()
        });
        let images = wanted.into_iter().zip(built?).collect();
        Ok(Runner { images, gpu, loaded: HashMap::new(), time_out })
    }

    /// Runs a tree in these ways and checks what it recorded. Returns how it ran in each way.
    ///
    /// # Errors
    /// The first failure.
    pub fn run(&mut self, tree: &Tree, ways: &[Way]) -> Result<Vec<Summary>, Failure> {
        let mut summaries = vec![];
        for &way in ways {
            let failure = |fatal, message| Failure { way, fatal, message };
            let tables = Tables::new(tree, way.may_refuse());
            let words = self.execute(tree, &tables, way).map_err(|error| {
                // After anything but a lost launch, the GPU may be unusable.
                let lost = matches!(error.downcast_ref(), Some(Error::LostLaunches(_)));
                let fatal = !lost && !matches!(way, Way::Cpu { .. });
                failure(fatal, format!("{error:#}"))
            })?;
            let checked = check(&tables, &tables.results(&words), way.may_refuse());
            summaries.push(checked.map_err(|broken| failure(false, broken))?);
        }
        Ok(summaries)
    }

    /// Runs a tree in one way, and returns the buffer of its tables.
    ///
    /// # Errors
    /// Errors of the device, lost launches and findings of `--check`.
    pub fn execute(
        &mut self,
        tree: &Tree,
        tables: &Tables<'_>,
        way: Way,
    ) -> anyhow::Result<Vec<u32>> {
        let time_out = self.time_out;
        let loaded = self.load(way, tree)?;
        let length = tables.words().next_power_of_two();
        let buffer = match loaded.buffers.remove(&length) {
            Some(buffer) => buffer,
            None => Buffer::alloc(&loaded.device, length)?,
        };
        let buffer = loaded.buffers.entry(length).or_insert(buffer);
        let mut words = tables.content(buffer.address());
        words.resize(length, 0);
        buffer.copy_from_host(&words)?;
        let kernel = loaded.program.kernel(ENTRY)?;
        let [grid, block] = [tree.root.grid, tree.root.block].map(|[x, y, z]| Dim3::new(x, y, z));
        let config = LaunchConfig::new(grid, block);
        // The parameter points to a struct that the host has no type for.
        let arguments = [Arg::address(buffer.address())];
        match way {
            Way::Resident(Memory::Enough(mib)) => loaded.device.set_launch_memory(mib << 20),
            Way::Resident(Memory::Scarce(more)) => {
                loaded.device.set_launch_memory(1);
                match loaded.stream.launch(&kernel, &config, &arguments) {
                    Err(Error::LaunchMemory { needed, .. }) => {
                        loaded.device.set_launch_memory(needed + more);
                    }
                    other => return Err(anyhow!("one byte of launch memory gave {other:?}")),
                }
            }
            Way::Cpu { .. } | Way::Cdp => {}
        }
        loaded.stream.launch(&kernel, &config, &arguments)?;
        loaded.stream.synchronize(time_out)?;
        buffer.copy_to_host(&mut words)?;
        Ok(words)
    }

    /// The program for the tree, loaded. On the CPU device, the order of threads depends on the tree's seed.
    fn load(&mut self, way: Way, tree: &Tree) -> anyhow::Result<&mut Loaded> {
        let order = match way {
            Way::Cpu { .. } => tree.seed % CPU_ORDERS,
            _ => 0,
        };
        let key = (way, tree.variant, order);
        if !self.loaded.contains_key(&key) {
            let device = match (way, &self.gpu) {
                (Way::Cpu { check, few }, _) => {
                    let mut config = CpuConfig { seed: Some(order), check, ..CpuConfig::default() };
                    if few {
                        config.pending_limit = FEW_PENDING_LAUNCHES;
                    }
                    Device::open_cpu(config)?
                }
                (_, Some(device)) => device.clone(),
                (_, None) => return Err(anyhow!("the runner has no GPU")),
            };
            let image = self.images.get(&(way.image(), tree.variant));
            let program = Program::load(&device, image.context("this way was not built")?)?;
            let stream = device.stream()?;
            let loaded = Loaded { device, program, stream, buffers: HashMap::new() };
            self.loaded.insert(key, loaded);
        }
        self.loaded.get_mut(&key).context("it was just loaded")
    }
}

fn build(
    session: &Session,
    image: Image,
    source: &str,
    arch: CudaArch,
) -> anyhow::Result<Artifact> {
    let checked = differential::check(source)?;
    Ok(match image {
        Image::Cpu { check } => {
            let options = CpuOptions::default().with_optimize(true).with_check(check);
            artifact::build_cpu(session, &checked, &options)?
        }
        Image::Gpu(strategy) => {
            let launch = strategy.into();
            let backend = Backend::LibNvvm;
            let options = BuildOptions::for_arch(arch).with_backend(backend).with_launch(launch);
            artifact::build(session, &checked, &[arch], &options)?
        }
    })
}
