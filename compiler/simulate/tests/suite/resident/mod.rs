//! The strategy `resident` on the model: its scheduler runs in many orders, with few workers and little memory.

mod corpus;
mod handing_over;
mod lists;
mod recycling;
mod returns;
mod shared;
mod streams;
mod trees;
mod whole;

use gridlet_artifact::launch::Dim3;
use gridlet_artifact::manifest::Resident;
use gridlet_artifact::resident::{Layout, PARAMETERS_OFFSET, RootGrid, Shape};
use gridlet_lang::arch::CudaArch;
use gridlet_lang::diagnostics::render;
use gridlet_lang::launch::{
    LOST_LAUNCH_RECORD, LaunchOptions, LaunchStrategy, resident_shared_bytes,
};
use gridlet_lang::program::{self, Checked};
use gridlet_lang::source::SourceMap;
use gridlet_simulate::{Device, Failure, Grid, Options, Outcome, Policy, Program};

/// A program whose launches are resident.
struct Nested {
    checked: Checked,
    program: Program,
    resident: Resident,
    /// By kernel, the bytes of its `shared` variables.
    shared: Vec<u32>,
}

/// The resources of a resident launch.
#[derive(Clone, Copy, Debug)]
struct Workers {
    count: u32,
    /// Warps in excess of those that the program needs.
    more_warps: u32,
    /// Records in excess of those that the host insists on.
    more_records: u32,
}

/// A launch by the host.
struct Root<'r> {
    kernel: &'r str,
    grid: Grid,
    parameters: &'r [u8],
}

impl Nested {
    fn new(source: &str) -> Nested {
        let sources = SourceMap::single("test.grid", source);
        let shown = sources.clone();
        Nested::of(program::check(sources).unwrap_or_else(|error| match error {
            gridlet_lang::Error::Program(messages) => {
                panic!("{}", render(&messages, &shown, false))
            }
            error => panic!("{error}"),
        }))
    }

    fn of(checked: Checked) -> Nested {
        let options = LaunchOptions::for_arch(LaunchStrategy::Resident, CudaArch::DEFAULT);
        let lowered = checked.lower(&options).unwrap();
        let shared = resident_shared_bytes(&checked.module, LaunchStrategy::Resident);
        Nested {
            program: Program::new(&lowered).unwrap(),
            resident: lowered.resident.expect("a program that launches"),
            shared: shared.into_iter().map(|bytes| bytes.unwrap_or(0)).collect(),
            checked,
        }
    }

    /// The number of a kernel.
    fn kernel(&self, name: &str) -> Option<usize> {
        self.checked.module.kernels.iter().position(|kernel| kernel.name == name)
    }

    /// Bytes of launch memory.
    fn bytes(&self, workers: &Workers) -> u64 {
        let least = Layout::min_bytes(self.resident.record_bytes, workers.count);
        least + u64::from(workers.more_records) * u64::from(self.resident.record_bytes)
    }

    /// Launch memory.
    fn memory(&self, device: &mut Device<'_>, workers: &Workers) -> u64 {
        device.allocate(self.bytes(workers) as usize)
    }

    /// Launches a kernel through the resident kernel, and waits for everything that it launches.
    fn launch(
        &self,
        device: &mut Device<'_>,
        memory: u64,
        root: &Root<'_>,
        workers: &Workers,
        options: &Options,
    ) -> Result<Outcome, Box<Failure>> {
        let number = self.kernel(root.kernel).expect("a kernel");
        let threads = root.grid.block.iter().product();
        let own_shared = self.shared[number].next_multiple_of(16) + root.grid.shared;
        let mut shape = Shape::new(&self.resident, threads, own_shared);
        shape.warps = (shape.warps + workers.more_warps).min(32);
        let [grid, block] = [root.grid.grid, root.grid.block].map(|[x, y, z]| Dim3 { x, y, z });
        let root_grid =
            RootGrid { kernel: number as u32, grid, block, shared_bytes: root.grid.shared };
        let bytes = self.bytes(workers);
        let layout = Layout::new(self.resident.record_bytes, workers.count, bytes).unwrap();
        let words = root_grid.words(shape, &layout);
        let mut buffer = memory.to_le_bytes().to_vec();
        buffer.extend(words.iter().flat_map(|word| word.to_le_bytes()));
        buffer.extend(root.parameters);
        buffer.resize(PARAMETERS_OFFSET + self.resident.parameter_words as usize * 8, 0);
        let whole =
            Grid { shared: shape.shared_bytes, ..Grid::new(workers.count, shape.threads()) };
        device.launch(&self.resident.symbol, whole, &buffer, options)
    }

    /// Runs a kernel `root` with 40 threads and a pointer to words in many orders, with few workers and little memory, until
    /// no launch is left. Each time the words must become `expected`.
    fn always_gives(&self, expected: &[u32]) {
        for (seed, policy) in (0..3).flat_map(|round| (round * 6..).zip(Policy::ALL)) {
            let mut device = Device::new(&self.program);
            let out = device.allocate(expected.len() * 4);
            let workers = Workers {
                count: 1 + seed as u32 % 3,
                more_warps: seed as u32 / 6 % 2,
                more_records: 64,
            };
            let memory = self.memory(&mut device, &workers);
            let parameters = out.to_le_bytes();
            let root = Root { kernel: "root", grid: Grid::new(1, 40), parameters: &parameters };
            let options = Options { policy, ..Options::seed(seed) };
            let launched = self.launch(&mut device, memory, &root, &workers, &options);
            launched.unwrap_or_else(|failure| panic!("{workers:?} {options:?}: {failure}"));
            assert_eq!(self.lost(&device)[0], 0, "{workers:?} {options:?}");
            let words = device.read_words(out, expected.len());
            assert_eq!(words, expected, "{workers:?} {options:?}");
        }
    }

    /// Runs a kernel in one thread, with `words` counters and then `numbers` as arguments, and gives the counters. The run
    /// must end and lose no launch.
    fn count(
        &self,
        kernel: &str,
        words: usize,
        numbers: &[u32],
        workers: &Workers,
        options: &Options,
    ) -> Vec<u32> {
        let mut device = Device::new(&self.program);
        let counters = device.allocate(words * 4);
        let memory = self.memory(&mut device, workers);
        let mut parameters = counters.to_le_bytes().to_vec();
        parameters.extend(numbers.iter().flat_map(|number| number.to_le_bytes()));
        let root = Root { kernel, grid: Grid::new(1, 1), parameters: &parameters };
        let launched = self.launch(&mut device, memory, &root, workers, options);
        launched.unwrap_or_else(|failure| panic!("{options:?}, {workers:?}: {failure}"));
        assert_eq!(self.lost(&device)[0], 0, "{options:?}, {workers:?}");
        device.read_words(counters, words)
    }

    /// The status of the launch that was lost first, or 0.
    fn lost(&self, device: &Device<'_>) -> Vec<u32> {
        let (record, _) = device.variable(LOST_LAUNCH_RECORD).expect("the record of lost launches");
        device.read_words(record, 4)
    }
}
