//! What launches cost, by pattern.

use anyhow::ensure;
use gridlet_runtime::{Arg, Buffer, Kernel, LaunchConfig};

use super::{Case, Input, Nested, Place, Size, Version, Work, equal};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "patterns",
    what: "launch costs by pattern",
    source: include_str!("../../nested/patterns/patterns.grid"),
    cuda: [
        include_str!("../../nested/patterns/nested.cu"),
        include_str!("../../nested/patterns/flat.cu"),
    ],
    headers: &[],
    pending_launches: 131_072,
    cases,
    load,
    check,
};

/// `SLOTS` and `STRIDE` of the program.
const SLOTS: usize = 1024;
const STRIDE: usize = 8;
/// Blocks of the roots with many threads: one for each SM of an H100 or H200.
const BLOCKS: u32 = 132;
/// The pattern that streams memory, and the one whose child has blocks that do nearly nothing.
const STREAM: u32 = 10;
const WIDE: u32 = 11;
/// The first of the patterns of large grids one after another, and the words that these write; the pattern of grids of `BLOCKS` blocks.
const STEPS: u32 = 12;
const STEP_WORDS: usize = 2048 * 128;
const FEW: u32 = 14;
/// A word that streaming reads: each byte is 1.
const WORD: u32 = 0x0101_0101;

/// The root kernel of each pattern and its configuration. `nested.cu` has the same numbers.
const ROOTS: [(&str, u32, u32); 15] = [
    ("one_thread_fire_and_forget", 1, 1),
    ("one_thread_default", 1, 1),
    ("one_thread_tail", 1, 1),
    ("every_thread", BLOCKS, 32),
    ("every_thread", BLOCKS, 128),
    ("every_thread_default", BLOCKS, 32),
    ("tree", 1, 1),
    ("chain_fire_and_forget", 1, 1),
    ("chain_default", 1, 1),
    ("chain_tail", 1, 1),
    ("stream_root", 1, 1),
    ("wide_root", 1, 1),
    ("steps_default", 1, 1),
    ("steps_tail", 1, 1),
    ("few_default", 1, 1),
];

/// Launches below the root; steps are counted by their large grids alone.
fn launches(pattern: u32, size: u32) -> u64 {
    let size = u64::from(size);
    match pattern {
        3..=5 => u64::from(BLOCKS) * if pattern == 4 { 128 } else { 32 } * size,
        6 => (1 << (size + 1)) - 2,
        STREAM | WIDE => size.min(1),
        _ => size,
    }
}

fn cases(size: Size) -> Vec<Case> {
    const NESTED: &[Version] = &[Version::Resident, Version::Cdp, Version::CudaNested];
    const ALL: &[Version] = &Version::ALL;
    let many = if size == Size::Small { 50 } else { 1_000 };
    let mut list = vec![
        ("one thread × 1,000, fire-and-forget", 0, many, ALL),
        ("one thread × 1,000, default stream", 1, many, NESTED),
        ("one thread × 1,000, tail stream", 2, many, NESTED),
        ("132 × 32 threads × 8", 3, 8, NESTED),
        ("132 × 128 threads × 4", 4, 4, NESTED),
        ("132 × 32 threads × 8, default stream", 5, 8, NESTED),
        ("chain of 1,000, fire-and-forget", 7, many, NESTED),
        ("chain of 1,000, default stream", 8, many, NESTED),
        ("chain of 1,000, tail stream", 9, many, NESTED),
        ("empty root", WIDE, 0, ALL),
        ("root with a child of 1 block", WIDE, 1, ALL),
        ("root with a child of 132 blocks", WIDE, 132, ALL),
        ("2,048 blocks × 100, default stream", STEPS, many / 10, ALL),
        ("2,048 blocks × 100, tail stream", STEPS + 1, many / 10, ALL),
        ("132 blocks × 100, default stream", FEW, many / 10, ALL),
        ("tree of depth 10", 6, 10, NESTED),
    ];
    if size == Size::Full {
        list.extend([
            ("root with a child of 10,000 blocks", WIDE, 10_000, ALL),
            ("root with a child of 10,000 blocks that streams", STREAM, 10_000, ALL),
            ("root with a child of 2,000,000 blocks that streams", STREAM, 2_000_000, ALL),
            // CUDA's device runtime hangs when a pool is full; it is last, because it takes the process with it.
            ("tree of depth 11", 6, 11, NESTED),
            ("tree of depth 16", 6, 16, NESTED),
            ("tree of depth 19", 6, 19, NESTED),
        ]);
    } else {
        list.push(("root with a child that streams", STREAM, 20, ALL));
    }
    list.into_iter()
        .map(|(name, pattern, size, versions)| Case {
            name: name.to_string(),
            input: Input { numbers: vec![u64::from(pattern), u64::from(size)], arrays: vec![] },
            launches: Some(launches(pattern, size)).filter(|_| !matches!(pattern, STREAM | WIDE)),
            versions,
        })
        .collect()
}

struct Patterns {
    place: Place,
    kernel: Kernel,
    config: LaunchConfig,
    pattern: u32,
    size: u32,
    done: Buffer<u32>,
    from: Buffer<u32>,
    to: Buffer<u32>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    let (pattern, size) = (input.number(0)?, input.number(1)?);
    let (name, grid, block) = ROOTS[pattern as usize % ROOTS.len()];
    let words = match pattern {
        STREAM => size as usize * 128,
        STEPS.. => STEP_WORDS,
        _ => 1,
    };
    let mut from = Buffer::alloc(&place.device, words)?;
    from.fill(WORD)?;
    Ok(Box::new(Patterns {
        place: place.clone(),
        kernel: place.kernel(name)?,
        config: LaunchConfig::new(grid, block),
        pattern,
        size,
        done: Buffer::alloc(&place.device, SLOTS * STRIDE)?,
        from,
        to: Buffer::alloc(&place.device, words)?,
    }))
}

impl Work for Patterns {
    fn reset(&mut self) -> anyhow::Result<()> {
        self.done.fill(0)?;
        Ok(self.to.fill(0)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let size = Arg::from(self.size);
        let arguments = match self.pattern {
            // The tree's nodes count from 1, the links of a chain from 0.
            6 => vec![size, Arg::from(&mut self.done), Arg::from(1u32)],
            7..STREAM => vec![size, Arg::from(&mut self.done), Arg::from(0u32)],
            STREAM => vec![size, Arg::from(&self.from), Arg::from(&mut self.to)],
            STEPS.. => vec![size, Arg::from(&mut self.to)],
            _ => vec![size, Arg::from(&mut self.done)],
        };
        self.place.run(&self.kernel, &self.config, &arguments)
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        let is_word = matches!(self.pattern, STREAM | STEPS..);
        Ok(if is_word { self.to.to_vec()? } else { self.done.to_vec()? })
    }
}

fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    let (pattern, size) = (input.number(0)?, input.number(1)?);
    if pattern == STREAM {
        equal(result, &vec![WORD + 1; size as usize * 128])?;
        return Ok(format!("{} words", result.len()));
    }
    if pattern >= STEPS {
        let mut expected = vec![0; STEP_WORDS];
        let stepped = if pattern == FEW { BLOCKS as usize * 128 } else { STEP_WORDS };
        expected[..stepped].fill(size);
        equal(result, &expected)?;
        return Ok(format!("{size} steps"));
    }
    let ran: u64 = result.iter().map(|count| u64::from(*count)).sum();
    // Each block of a wide child counts.
    let expected = if pattern == WIDE { u64::from(size) } else { launches(pattern, size) };
    ensure!(ran == expected, "{ran} children ran instead of {expected}");
    Ok(format!("{ran} children ran"))
}
