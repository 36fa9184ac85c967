//! Makes a tree from a seed.

use super::{Grid, Kernel, Step, Stream, Tree, VARIANTS, Who, Work};
use crate::generate::random::Random;

/// Grids and threads of most trees.
const SMALL: (u32, u32) = (300, 6_000);
/// Those of every sixteenth tree.
const LARGE: (u32, u32) = (4_000, 40_000);
/// The deepest tree: the device runtime's limit is 24.
const MAX_DEPTH: u32 = 20;
/// The most grids that may each create streams, times their threads that do.
const MAX_STREAMS: u32 = 16;
/// The most dynamic shared memory, in words.
const MAX_SHARED: usize = 2_000;

/// The tree of a seed.
pub fn tree(seed: u64) -> Tree {
    let mut random = Random::new(seed);
    let variant = VARIANTS[(seed % VARIANTS.len() as u64) as usize];
    let (grids, threads) = if random.below(16) == 0 { LARGE } else { SMALL };
    let mut maker = Maker {
        random,
        max_threads: variant.max_threads,
        tails: variant.tails,
        shared_bytes: variant.shared_bytes,
        grids,
        threads,
        deep: false,
    };
    maker.deep = maker.random.percent(12);
    let depth = if maker.deep { MAX_DEPTH } else { maker.random.pick(&[1, 2, 2, 3, 3, 4, 6]) };
    let root = maker.grid(depth, 1, Some(Kernel::Phases));
    Tree { seed, variant, root }
}

struct Maker {
    random: Random,
    max_threads: u32,
    tails: bool,
    shared_bytes: Option<u32>,
    /// How many more grids and threads the tree may have.
    grids: u32,
    threads: u32,
    /// Whether it is a chain rather than a bush.
    deep: bool,
}

impl Maker {
    fn up_to(&mut self, most: u32) -> u32 {
        1 + self.random.below(most as usize) as u32
    }

    /// A grid that exists so many times, with all that it launches.
    fn grid(&mut self, depth: u32, records: u32, kernel: Option<Kernel>) -> Grid {
        let launching = [Kernel::Spawn, Kernel::Branch, Kernel::Branch, Kernel::Phases];
        let kernel = match kernel {
            Some(kernel) => kernel,
            None if depth == 0 || (!self.deep && self.random.percent(15)) => {
                self.random.pick(&[Kernel::Leaf, Kernel::Meeting])
            }
            None => self.random.pick(&launching),
        };
        let (grid, block) = self.shape(records);
        let meeting = kernel == Kernel::Meeting;
        let chosen = self.random.below(MAX_SHARED) as u32 * 4;
        let shared_bytes = if meeting { self.shared_bytes.unwrap_or(chosen) } else { 0 };
        let returns = meeting && self.random.percent(40);
        let mut made =
            Grid { kernel, grid, block, shared_bytes, returns, steps: vec![], join: None };
        self.grids = self.grids.saturating_sub(records);
        self.threads = self.threads.saturating_sub(records * made.total());
        if depth > 0 && !matches!(kernel, Kernel::Leaf | Kernel::Meeting) {
            self.steps(&mut made, depth, records);
        }
        made
    }

    /// A shape for so many grids.
    fn shape(&mut self, records: u32) -> ([u32; 3], [u32; 3]) {
        let most = (self.threads / records / 4).clamp(1, 4 * self.max_threads);
        let block = match self.random.below(6) {
            0 | 1 => [1, 1, 1],
            2 => [32 * self.up_to(self.max_threads / 32), 1, 1],
            3 => [self.up_to(self.max_threads), 1, 1],
            _ => {
                let x = self.up_to(self.max_threads.min(24));
                let y = self.up_to((self.max_threads / x).min(16));
                let z = self.up_to((self.max_threads / x / y).min(64));
                [x, y, z]
            }
        };
        let block = if block.iter().product::<u32>() > most {
            [most.min(self.max_threads), 1, 1]
        } else {
            block
        };
        let blocks = most / block.iter().product::<u32>();
        let grid = match self.random.below(8) {
            _ if blocks < 2 => [1, 1, 1],
            0..=3 => [1, 1, 1],
            4 | 5 => [self.up_to(blocks.min(8)), 1, 1],
            6 => {
                let x = self.up_to(blocks.min(4));
                let y = self.up_to((blocks / x).min(3));
                [x, y, self.up_to((blocks / x / y).min(3))]
            }
            _ => [self.up_to(blocks.min(200)), 1, 1],
        };
        (grid, block)
    }

    fn steps(&mut self, grid: &mut Grid, depth: u32, records: u32) {
        let count = if self.deep { self.up_to(2) } else { self.up_to(5) };
        let joins = records == 1 && self.random.percent(25);
        for _ in 0..count {
            if let Some(step) = self.step(grid, depth, records, joins) {
                grid.steps.push(step);
            }
        }
        if grid.steps.iter().any(|step| step.member) && self.grids > 0 {
            let depth = if self.deep { 0 } else { depth - 1 };
            grid.join = Some(Box::new(self.grid(depth, 1, None)));
        }
    }

    fn step(&mut self, grid: &Grid, depth: u32, records: u32, joins: bool) -> Option<Step> {
        let streams: &[Stream] = match (grid.kernel, self.tails) {
            (Kernel::Spawn, _) => &[Stream::Forget],
            (_, true) => &[Stream::Forget, Stream::Default, Stream::Created, Stream::Tail],
            (_, false) => &[Stream::Forget, Stream::Default, Stream::Created],
        };
        let phased = grid.kernel == Kernel::Phases;
        let mut step = Step {
            block: None,
            who: Who::All,
            stream: self.random.pick(streams),
            slot: 0,
            attempt: self.random.percent(50),
            phase: if phased { self.random.below(2) as u32 } else { 0 },
            times: 1,
            member: false,
            // Replaced below.
            work: Work::Copy(1),
        };
        if phased && step.stream == Stream::Created {
            step.slot = self.random.below(2) as u32;
        }
        if self.random.percent(75) {
            // Mostly the same few blocks, so that launches share streams.
            let limit = if self.random.percent(70) { 1 } else { grid.blocks() };
            step.block = Some(self.random.below(limit as usize) as u32);
        }
        step.who = match self.random.below(10) {
            0..=4 => {
                let limit = if self.random.percent(70) { 1 } else { grid.threads() };
                Who::One(self.random.below(limit as usize) as u32)
            }
            5..=7 => Who::Lane(self.random.below(grid.threads().min(32) as usize) as u32),
            _ => Who::All,
        };
        if self.random.percent(20) {
            step.times = self.random.pick(&[2, 3, 5, 8, 40]);
        }
        let room = self.grids / 2 / records;
        let launches = |step: &Step| step.threads(grid).len() as u32 * step.times;
        let streams = |step: &Step| step.stream == Stream::Created && !phased;
        if launches(&step) > room || (streams(&step) && launches(&step) * records > MAX_STREAMS) {
            (step.block, step.who, step.times) = (Some(0), Who::One(0), 1);
        }
        if launches(&step) > room {
            return None;
        }
        if streams(&step) && records > MAX_STREAMS {
            step.stream = Stream::Default;
        }
        let transfers = matches!(step.stream, Stream::Default | Stream::Created)
            && records == 1
            && launches(&step) == 1;
        step.work = if transfers && self.random.percent(25) {
            let words = self.up_to(600);
            if self.random.percent(50) {
                Work::Fill(words, self.up_to(255) as u8)
            } else {
                Work::Copy(words)
            }
        } else {
            step.member = joins && step.stream != Stream::Tail;
            let launching = [Kernel::Spawn, Kernel::Branch, Kernel::Phases];
            let kernel = step.member.then(|| self.random.pick(&launching));
            let records = records * launches(&step);
            Work::Launch(Box::new(self.grid(depth - 1, records, kernel)))
        };
        Some(step)
    }
}
