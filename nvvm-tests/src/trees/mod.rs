//! Random launch trees: which grids run, in which order, and what they see of each other's writes.
//!
//! One program, `tree.grid`, runs any tree: a [`Tree`] becomes tables in device memory, and the kernels interpret them.
//! So a tree costs a launch and two copies, not a compilation. Every thread takes a number from a counter at its start
//! and at its end, checks what earlier grids wrote, and leaves marks of its own; [`check`] compares the records with what
//! the language promises.
//!
//! The program exists in [`VARIANTS`]: with blocks of different sizes, and with and without tail launches, because both
//! change how launches are compiled.

pub mod check;
pub mod reduce;
pub mod run;
pub mod tables;

mod random;

use std::fmt;

pub use random::tree;

/// The variants of the program.
pub const VARIANTS: [Variant; 4] = [
    Variant { max_threads: 1024, tails: true, shared_bytes: None },
    Variant { max_threads: 128, tails: true, shared_bytes: None },
    Variant { max_threads: 32, tails: true, shared_bytes: Some(256) },
    Variant { max_threads: 256, tails: false, shared_bytes: Some(4096) },
];

/// What is fixed when the program is compiled.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Variant {
    /// The largest block of the tree, which decides how large the blocks of a resident kernel are.
    pub max_threads: u32,
    /// Whether there are tail launches. Kernels with them launch in turns.
    pub tails: bool,
    /// The dynamic shared memory of all launches that have some. Without a constant, each worker reserves 32 KiB, and an SM
    /// runs few.
    pub shared_bytes: Option<u32>,
}

impl Variant {
    /// The program.
    pub fn source(self) -> String {
        let Variant { max_threads, tails, shared_bytes } = self;
        let shared = shared_bytes.map_or("node.shared_bytes".into(), |bytes| bytes.to_string());
        include_str!("tree.grid")
            .replace("shared = node.shared_bytes", &format!("shared = {shared}"))
            .replace("MAX_THREADS: u32 = 1024;", &format!("MAX_THREADS: u32 = {max_threads};"))
            .replace("TAILS: bool = true;", &format!("TAILS: bool = {tails};"))
    }
}

/// A launch tree.
#[derive(Clone, Debug)]
pub struct Tree {
    /// What made it.
    pub seed: u64,
    /// The program that runs it.
    pub variant: Variant,
    /// The grid that the host launches. Its kernel is [`Kernel::Phases`].
    pub root: Grid,
}

/// A grid, or as many as the step that launches it says.
#[derive(Clone, Debug)]
pub struct Grid {
    /// What it runs.
    pub kernel: Kernel,
    /// Blocks.
    pub grid: [u32; 3],
    /// Threads of a block.
    pub block: [u32; 3],
    /// Dynamic shared memory; only for [`Kernel::Meeting`].
    pub shared_bytes: u32,
    /// Whether every fourth thread returns before a warp operation; only for [`Kernel::Meeting`].
    pub returns: bool,
    /// What its threads launch, in this order.
    pub steps: Vec<Step>,
    /// The last thread of all grids of the steps with [`Step::member`] launches it.
    pub join: Option<Box<Grid>>,
}

impl Grid {
    /// Threads of a block.
    pub fn threads(&self) -> u32 {
        self.block.iter().product()
    }

    /// Blocks.
    pub fn blocks(&self) -> u32 {
        self.grid.iter().product()
    }

    /// Threads of the grid.
    pub fn total(&self) -> u32 {
        self.blocks() * self.threads()
    }
}

/// The kernels of the program, with their codes there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// Launches nothing.
    Leaf = 0,
    /// Launches nothing, meets at barriers and in warps, and uses dynamic shared memory.
    Meeting = 1,
    /// Launches into `fire_and_forget` only.
    Spawn = 2,
    /// Launches into all streams; each thread has a created stream of its own.
    Branch = 3,
    /// Launches in two phases with barriers between them; the threads of a block share two created streams.
    Phases = 4,
}

/// What some threads of a grid do.
#[derive(Clone, Debug)]
pub struct Step {
    /// The block whose threads do it; `None` for all blocks.
    pub block: Option<u32>,
    /// Which threads of the block.
    pub who: Who,
    /// Into which stream.
    pub stream: Stream,
    /// Which of the block's two created streams, for [`Kernel::Phases`].
    pub slot: u32,
    /// Whether it is a `try launch`. Launches into `fire_and_forget` and created streams always are.
    pub attempt: bool,
    /// Before or after the barrier, for [`Kernel::Phases`].
    pub phase: u32,
    /// How often each thread does it.
    pub times: u32,
    /// Whether the grids are members of the join.
    pub member: bool,
    /// What they do.
    pub work: Work,
}

/// Threads of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Who {
    /// This thread.
    One(u32),
    /// This lane of each warp.
    Lane(u32),
    /// All of them.
    All,
}

/// The stream of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stream {
    /// `fire_and_forget`.
    Forget = 0,
    /// `default`.
    Default = 1,
    /// A created stream.
    Created = 2,
    /// `tail`.
    Tail = 3,
}

/// What a step does.
#[derive(Clone, Debug)]
pub enum Work {
    /// Launches a grid.
    Launch(Box<Grid>),
    /// `memset_async` of so many words to a byte. One thread of a grid that exists once, and once.
    Fill(u32, u8),
    /// `memcpy_async` of so many words; as above.
    Copy(u32),
}

impl Step {
    /// The index in its grid of each thread that takes the step.
    pub fn threads(&self, of: &Grid) -> Vec<u32> {
        let threads = of.threads();
        let blocks = match self.block {
            Some(block) => block..block + 1,
            None => 0..of.blocks(),
        };
        let chosen = |thread: &u32| match self.who {
            Who::One(one) => *thread == one,
            Who::Lane(lane) => thread % 32 == lane,
            Who::All => true,
        };
        blocks
            .flat_map(|block| {
                (0..threads).filter(chosen).map(move |thread| block * threads + thread)
            })
            .collect()
    }

    /// Whether one thread of its grid takes it.
    pub fn is_by_one(&self) -> bool {
        self.block.is_some() && matches!(self.who, Who::One(_))
    }
}

impl fmt::Display for Tree {
    /// One line for each grid and transfer, with its node's number.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Tree { seed, variant, root } = self;
        let tails = if variant.tails { "" } else { ", no tail launches" };
        writeln!(f, "tree of seed {seed}, blocks of up to {} threads{tails}", variant.max_threads)?;
        let mut tables = tables::Tables::new(self, false);
        tables.nodes.sort_by_key(|node| node.first_mark);
        for (place, node) in tables.nodes.iter().enumerate() {
            write!(f, "{:indent$}node {}", "", node.number, indent = 2 * (1 + node.depth))?;
            if let Some(grid) = node.grid {
                let Grid { kernel, grid: [gx, gy, gz], block: [bx, by, bz], .. } = grid;
                write!(f, ": {kernel:?}<<<({gx}, {gy}, {gz}), ({bx}, {by}, {bz})")?;
                if grid.shared_bytes > 0 {
                    write!(f, ", shared = {}", grid.shared_bytes)?;
                }
                write!(f, ">>>{}", if grid.returns { " with early returns" } else { "" })?;
            }
            if node.records > 1 {
                write!(f, ", {} times", node.records)?;
            }
            match node.step {
                Some(step) => writeln!(f, ", by {step}")?,
                None if place == 0 => writeln!(f)?,
                None => writeln!(f, ", the join of node {}", node.parent)?,
            }
        }
        debug_assert!(root.kernel == Kernel::Phases);
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.who {
            Who::One(thread) => write!(f, "thread {thread}")?,
            Who::Lane(lane) => write!(f, "lane {lane} of each warp")?,
            Who::All => write!(f, "all threads")?,
        }
        match self.block {
            Some(block) => write!(f, " of block {block}")?,
            None => write!(f, " of each block")?,
        }
        if self.times > 1 {
            write!(f, ", {} times", self.times)?;
        }
        match self.stream {
            Stream::Forget => {}
            Stream::Default => write!(f, ", default stream")?,
            Stream::Created => write!(f, ", created stream {}", self.slot)?,
            Stream::Tail => write!(f, ", tail")?,
        }
        write!(f, ", phase {}", self.phase)?;
        match &self.work {
            Work::Launch(_) if self.attempt => write!(f, ", try")?,
            Work::Launch(_) => {}
            Work::Fill(words, value) => write!(f, ", fills {words} words with {value:#x}")?,
            Work::Copy(words) => write!(f, ", copies {words} words")?,
        }
        write!(f, "{}", if self.member { ", member of the join" } else { "" })
    }
}
