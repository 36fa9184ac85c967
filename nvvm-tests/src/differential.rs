//! Runs one program in several ways and compares the results.

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use anyhow::{Context as _, anyhow, ensure};
use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::compile::{self, Backend, BuildOptions, Checked, CpuOptions, Session};
use gridlet::diagnostics::render;
use gridlet::error::Error;
use gridlet::launch::LaunchStrategy;
use gridlet::source::SourceMap;
use gridlet_runtime::{
    Arg, Artifact, Buffer, CpuConfig, Device, Dim3, LaunchConfig, Limit, Program as Loaded,
};

use crate::generate::{self, Program};

/// Default time limit of a program: far longer than any takes, even under `--check` on a busy machine.
const TIME_OUT: Duration = Duration::from_secs(120);
/// The stack of a thread on a GPU. Without optimisation, the frame of a kernel can have more than the default of 1,024 bytes,
/// which the driver does not raise for a kernel that calls a recursive function.
const STACK_BYTES: u64 = 8192;
/// Launches that may be pending on a GPU.
const PENDING_LAUNCHES: u64 = 8192;

/// A way to machine code and a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Way {
    /// The CPU device.
    Cpu {
        /// `-O 3` instead of `-O 0`.
        optimize: bool,
        /// `--check`: a finding is an error.
        check: bool,
    },
    /// A GPU.
    Gpu {
        /// The back end that writes the PTX.
        backend: Backend,
        /// `-O 3` instead of `-O 0`.
        optimize: bool,
        /// How kernels launch kernels.
        launch: LaunchStrategy,
    },
}

const fn gpu(backend: Backend, optimize: bool, launch: LaunchStrategy) -> Way {
    Way::Gpu { backend, optimize, launch }
}

impl Way {
    /// The ways that need no GPU. The first is the reference for all others, because it applies the fewest
    /// transformations.
    pub const CPU: [Way; 3] = [
        Way::Cpu { optimize: false, check: false },
        Way::Cpu { optimize: true, check: false },
        Way::Cpu { optimize: true, check: true },
    ];
    /// The ways to run on a GPU.
    pub const GPU: [Way; 6] = [
        gpu(Backend::LibNvvm, true, LaunchStrategy::Cdp),
        gpu(Backend::LibNvvm, false, LaunchStrategy::Cdp),
        gpu(Backend::Nvptx, true, LaunchStrategy::Cdp),
        gpu(Backend::Nvptx, false, LaunchStrategy::Cdp),
        gpu(Backend::LibNvvm, true, LaunchStrategy::Resident),
        gpu(Backend::Nvptx, true, LaunchStrategy::Resident),
    ];

    /// Whether launches are resident.
    pub fn is_resident(self) -> bool {
        matches!(self, Way::Gpu { launch: LaunchStrategy::Resident, .. })
    }
}

impl FromStr for Way {
    type Err = String;

    /// Parses the text that `Display` of [`Way`] writes.
    fn from_str(text: &str) -> Result<Way, String> {
        let all = || Way::CPU.into_iter().chain(Way::GPU);
        all().find(|way| way.to_string() == text).ok_or_else(|| {
            let names: Vec<String> = all().map(|way| format!("`{way}`")).collect();
            format!("there are {}", names.join(", "))
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (name, optimize) = match self {
            Way::Cpu { optimize, check: false } => ("cpu", optimize),
            Way::Cpu { optimize, check: true } => ("cpu --check", optimize),
            Way::Gpu { backend: Backend::Nvptx, optimize, .. } => ("nvptx", optimize),
            Way::Gpu { optimize, .. } => ("libnvvm", optimize),
        };
        write!(f, "{name} -O {}", if *optimize { 3 } else { 0 })?;
        match self {
            Way::Gpu { launch: LaunchStrategy::Resident, .. } => f.write_str(" resident"),
            _ => Ok(()),
        }
    }
}

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// The output.
    pub slots: Vec<u64>,
    /// The variables of the program, as their bytes.
    pub statics: Vec<(String, Vec<u8>)>,
}

impl Outcome {
    /// A description of the first difference, if any.
    pub fn difference(&self, other: &Outcome) -> Option<String> {
        let slots = self.slots.iter().zip(&other.slots);
        let differing = slots.clone().filter(|(a, b)| a != b).count();
        if let Some((at, (a, b))) = slots.enumerate().find(|(_, (a, b))| a != b) {
            let of = self.slots.len();
            return Some(format!(
                "out[{at}] is {a:#x} and {b:#x}; {differing} of {of} slots differ"
            ));
        }
        let statics = self.statics.iter().zip(&other.statics);
        statics
            .clone()
            .find(|(a, b)| a != b)
            .map(|((name, a), (_, b))| format!("`{name}` has the bytes {a:x?} and {b:x?}"))
    }
}

/// Why a program failed.
#[derive(Debug)]
pub struct Failure {
    /// The way that failed; `None` if the text is not a valid program.
    pub way: Option<Way>,
    /// Whether it ran and gave a different result.
    pub differs: bool,
    /// The failure in words.
    pub message: String,
}

impl Failure {
    /// Whether the process may be unable to run another program: a device that hit an error stays unusable.
    pub fn is_fatal(&self) -> bool {
        self.way.is_some() && !self.differs
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.way {
            Some(way) if self.differs => write!(f, "{} and {way}: {}", Way::CPU[0], self.message),
            Some(way) => write!(f, "{way}: {}", self.message),
            None => f.write_str(&self.message),
        }
    }
}

/// Runs programs. Many threads may share it; the GPU runs one program at a time.
pub struct Runner {
    session: Session,
    gpu: Option<(CudaArch, Option<Mutex<Device>>)>,
    time_out: Duration,
}

impl Runner {
    /// A runner for the CPU device only.
    pub fn new() -> Runner {
        Runner { session: Session::new(), gpu: None, time_out: TIME_OUT }
    }

    /// A runner that also uses the GPU with this number.
    ///
    /// # Errors
    /// If there is no such GPU, or none that Gridlet builds for.
    pub fn with_gpu(number: u32) -> anyhow::Result<Runner> {
        let device = Device::open(number)?;
        let capability = device.info().compute_capability;
        let arch = CudaArch::for_device(capability.major, capability.minor)
            .with_context(|| format!("Gridlet cannot build for GPUs of capability {capability}"))?;
        device.set_pending_launch_limit(PENDING_LAUNCHES)?;
        device.set_limit(Limit::StackBytes, STACK_BYTES)?;
        Ok(Runner { gpu: Some((arch, Some(Mutex::new(device)))), ..Runner::new() })
    }

    /// A runner that also builds for a GPU architecture, without running there.
    pub fn building_for(arch: CudaArch) -> Runner {
        Runner { gpu: Some((arch, None)), ..Runner::new() }
    }

    /// Sets the time limit of a program. After a time-out of the GPU, the device is unusable in this process.
    pub fn with_time_out(self, time_out: Duration) -> Runner {
        Runner { time_out, ..self }
    }

    /// Runs a program in all of these ways.
    ///
    /// # Errors
    /// The first failure, or the first result that differs from the reference.
    pub fn compare(&self, program: &Program, ways: &[Way]) -> Result<(), Failure> {
        let failure = |way, differs, message| Failure { way, differs, message };
        let checked =
            check(&program.source).map_err(|error| failure(None, false, error.to_string()))?;
        let mut expected: Option<Outcome> = None;
        for &way in ways {
            let outcome = self
                .run(program, &checked, way)
                .map_err(|error| failure(Some(way), false, format!("{error:#}")))?;
            match (&expected, outcome) {
                (None, outcome) => expected = outcome,
                (Some(_), None) => {}
                (Some(expected), Some(outcome)) => {
                    if let Some(difference) = expected.difference(&outcome) {
                        return Err(failure(Some(way), true, difference));
                    }
                }
            }
        }
        Ok(())
    }

    /// Builds and runs a program in one way; `None` if there is no device to run it on.
    ///
    /// # Errors
    /// Errors of building and running, and findings of `--check`.
    pub fn run(
        &self,
        program: &Program,
        checked: &Checked,
        way: Way,
    ) -> anyhow::Result<Option<Outcome>> {
        match way {
            Way::Cpu { optimize, check } => {
                let options = CpuOptions::default().with_optimize(optimize).with_check(check);
                let built = artifact::build_cpu(&self.session, checked, &options)?;
                // Each way uses its own order of threads, blocks and grids.
                let seed = Some(program.seed * 4 + u64::from(optimize) * 2 + u64::from(check));
                let config = CpuConfig { threads: Some(2), seed, check, ..CpuConfig::default() };
                self.execute(program, &built, &Device::open_cpu(config)?).map(Some)
            }
            Way::Gpu { backend, optimize, launch } => {
                let (arch, device) = self.gpu.as_ref().context("the runner is for no GPU")?;
                let launch = launch.into();
                let options = BuildOptions::for_arch(*arch)
                    .with_backend(backend)
                    .with_optimize(optimize)
                    .with_launch(launch);
                let built = artifact::build(&self.session, checked, &[*arch], &options)?;
                let Some(device) = device else { return Ok(None) };
                let device = device.lock().unwrap_or_else(PoisonError::into_inner);
                self.execute(program, &built, &device).map(Some)
            }
        }
    }

    fn execute(
        &self,
        program: &Program,
        built: &Artifact,
        device: &Device,
    ) -> anyhow::Result<Outcome> {
        let loaded = Loaded::load(device, built)?;
        let (kernel, stream) = (loaded.kernel(generate::ENTRY)?, device.stream()?);
        let mut out = Buffer::<u64>::alloc_zeroed(device, program.slots)?;
        let dim3 = |[x, y, z]: [u32; 3]| Dim3::new(x, y, z);
        let config = LaunchConfig::new(dim3(program.grid), dim3(program.block))
            .with_shared(program.shared_bytes);
        let arguments = [Arg::from(&mut out), Arg::from(0u64), Arg::from(program.argument)];
        stream.launch(&kernel, &config, &arguments)?;
        stream.synchronize(self.time_out)?;
        let slots = out.to_vec()?;
        let mut statics = vec![];
        for name in &program.statics {
            let memory = loaded.global(name)?;
            ensure!(memory.len() <= 8, "`{name}` has {} bytes", memory.len());
            let mut bytes = vec![0; memory.len() as usize];
            memory.copy_to_host(&mut bytes)?;
            statics.push((name.clone(), bytes));
        }
        Ok(Outcome { slots, statics })
    }
}

impl Default for Runner {
    fn default() -> Self {
        Runner::new()
    }
}

/// Checks a program.
///
/// # Errors
/// Its messages, as the user sees them.
pub fn check(source: &str) -> anyhow::Result<Checked> {
    let sources = SourceMap::single("generated.grid", source);
    compile::check(sources.clone()).map_err(|error| match error {
        Error::Program(diagnostics) => anyhow!("{}", render(&diagnostics, &sources, false)),
        error => error.into(),
    })
}
