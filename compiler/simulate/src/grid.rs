//! What is run, and how.

/// How the next thread is chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Policy {
    /// One of the others, by the seed.
    Any,
    /// A random thread for each access to memory.
    Uniform,
    /// A random thread for a random number of accesses, up to thousands.
    Bursts,
    /// Each thread in turn.
    RoundRobin,
    /// The lanes of a random warp, one access each.
    Warps,
    /// At any time one warp hardly runs.
    Starve,
    /// The ready thread of the highest priority; priorities change now and then.
    Priorities,
}

impl Policy {
    /// All but [`Policy::Any`].
    pub const ALL: [Policy; 6] = [
        Policy::Uniform,
        Policy::Bursts,
        Policy::RoundRobin,
        Policy::Warps,
        Policy::Starve,
        Policy::Priorities,
    ];
}

/// How a grid runs.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Decides the order of everything.
    pub seed: u64,
    /// How the next thread is chosen.
    pub policy: Policy,
    /// The number of operations, over all threads, after which a grid counts as endless.
    pub max_steps: u64,
    /// Operations, over all threads, in a tick of `clock64` and `global_timer`. With `u64::MAX` they stand still.
    pub tick: u64,
    /// The number of blocks that run at a time: the others start when these end. 0 for all.
    pub running_blocks: u32,
    /// Whether the lanes of a warp run together, one access each, like a warp that has not diverged.
    pub lockstep: bool,
    /// Whether to look for accesses that nothing orders. Slow; all blocks must run at a time.
    pub races: bool,
    /// Whether a block may miss what others store until both have used fences. Otherwise memory is sequentially consistent.
    pub weak: bool,
}

impl Options {
    /// The usual options with a seed.
    pub fn seed(seed: u64) -> Self {
        Options {
            seed,
            policy: Policy::Any,
            max_steps: 50_000_000,
            tick: 1,
            running_blocks: 0,
            lockstep: false,
            races: false,
            weak: false,
        }
    }
}

/// The shape of a launch.
#[derive(Clone, Copy, Debug)]
pub struct Grid {
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory, in bytes.
    pub shared: u32,
}

impl Grid {
    /// A grid of one dimension.
    pub fn new(blocks: u32, threads: u32) -> Self {
        Grid { grid: [blocks, 1, 1], block: [threads, 1, 1], shared: 0 }
    }

    pub(crate) fn blocks(&self) -> u64 {
        self.grid.into_iter().map(u64::from).product()
    }

    pub(crate) fn block_threads(&self) -> usize {
        self.block.into_iter().map(|count| count as usize).product()
    }
}

/// The result of a grid that ran to its end.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The output of `printf`.
    pub printed: String,
    /// The number of operations, over all threads.
    pub steps: u64,
    /// The pairs of accesses that nothing orders, if they were looked for.
    pub races: Vec<String>,
}
