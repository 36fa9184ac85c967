//! Unbalanced tree search (UTS): Olivier, Huan, Liu, Prins, Dinan, Sadayappan and Tseng, "UTS: An Unbalanced Tree Search
//! Benchmark", LCPC 2006. The trees and their sizes are those of the benchmark's own list.

use anyhow::ensure;
use gridlet_runtime::{Arg, Buffer, Kernel, LaunchConfig};

use super::{Case, Input, Nested, Place, Size, Version, Work};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "uts",
    what: "unbalanced tree search, a SHA-1 digest for each node",
    source: include_str!("../../nested/uts/uts.grid"),
    cuda: [include_str!("../../nested/uts/nested.cu"), include_str!("../../nested/uts/flat.cu")],
    headers: &[("tree.h", include_str!("../../nested/uts/tree.h"))],
    pending_launches: 524_288,
    cases,
    load,
    check,
};

/// `SLOTS` and `STRIDE` of the program.
const SLOTS: usize = 1024;
const STRIDE: usize = 8;
/// The most children of a node of a geometric tree.
const MOST: usize = 100;

/// A tree of the benchmark.
struct Tree {
    name: &'static str,
    kind: Kind,
    seed: u32,
    totals: Totals,
}

enum Kind {
    /// The number of children has a geometric distribution with this mean, above this depth.
    Geometric { mean: f64, depth: u32 },
    /// The root has that many children, another node `children` with this probability, else none.
    Binomial { root: u32, probability: f64, children: u32 },
}

/// What a search counts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Totals {
    nodes: u64,
    leaves: u64,
    depth: u32,
}

const SMALL: [Tree; 2] = [
    Tree {
        name: "T1 to depth 5",
        kind: Kind::Geometric { mean: 4.0, depth: 5 },
        seed: 19,
        totals: Totals { nodes: 3_987, leaves: 3_232, depth: 5 },
    },
    Tree {
        name: "a small binomial tree",
        kind: Kind::Binomial { root: 100, probability: 0.1, children: 8 },
        seed: 42,
        totals: Totals { nodes: 525, leaves: 471, depth: 14 },
    },
];
const FULL: [Tree; 3] = [
    Tree {
        name: "T1",
        kind: Kind::Geometric { mean: 4.0, depth: 10 },
        seed: 19,
        totals: Totals { nodes: 4_130_071, leaves: 3_305_118, depth: 10 },
    },
    Tree {
        name: "T1L",
        kind: Kind::Geometric { mean: 4.0, depth: 13 },
        seed: 29,
        totals: Totals { nodes: 102_181_082, leaves: 81_746_377, depth: 13 },
    },
    Tree {
        name: "T3L",
        kind: Kind::Binomial { root: 2_000, probability: 0.200_014, children: 5 },
        seed: 7,
        totals: Totals { nodes: 111_345_631, leaves: 89_076_904, depth: 17_844 },
    },
];

impl Tree {
    /// The numbers are `Tree`'s fields in the program, the root's digest, its children, and the totals to expect.
    fn case(&self) -> Case {
        let root = root_digest(self.seed);
        let (thresholds, depth_limit, fixed, children) = match self.kind {
            Kind::Geometric { mean, depth } => {
                let thresholds = geometric_thresholds(mean);
                let random = root[4] & 0x7fff_ffff;
                let children = thresholds.iter().filter(|at| random >= **at).count() as u32;
                (thresholds, depth, 0, children)
            }
            Kind::Binomial { root, probability, children } => {
                (vec![first(|x| unit(x) >= probability)], u32::MAX, children, root)
            }
        };
        let mut numbers = vec![thresholds.len() as u64, u64::from(depth_limit), u64::from(fixed)];
        numbers.extend(root.map(u64::from));
        numbers.push(u64::from(children));
        let Totals { nodes, leaves, depth } = self.totals;
        numbers.extend([nodes, leaves, u64::from(depth)]);
        Case {
            name: self.name.to_string(),
            input: Input { numbers, arrays: vec![thresholds] },
            launches: None,
            versions: &Version::ALL,
        }
    }
}

fn cases(size: Size) -> Vec<Case> {
    match size {
        Size::Small => SMALL.iter().map(Tree::case).collect(),
        Size::Full => FULL.iter().map(Tree::case).collect(),
    }
}

/// The benchmark's random numbers have 31 bits; as a fraction.
fn unit(random: u32) -> f64 {
    f64::from(random) / 2_147_483_648.0
}

/// The least random number for which `holds`, which holds from some number on.
fn first(holds: impl Fn(u32) -> bool) -> u32 {
    let (mut low, mut high) = (0, 1 << 31);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle) { high = middle } else { low = middle + 1 }
    }
    low
}

/// From which random number on a node has more than `k` children: `floor(log(1 - u) / log(1 - p))` of them, where `u` is the
/// number as a fraction and `p` is `1 / (1 + mean)`.
fn geometric_thresholds(mean: f64) -> Vec<u32> {
    let log = (1.0 - 1.0 / (1.0 + mean)).ln();
    let children = |random| ((1.0 - unit(random)).ln() / log).floor();
    let all = (0..MOST).map(|k| first(|random| children(random) > k as f64));
    all.take_while(|at| *at < 1 << 31).collect()
}

/// The digest of 16 zeros and the seed.
fn root_digest(seed: u32) -> [u32; 5] {
    let mut block = [0; 16];
    block[4] = seed;
    block[5] = 0x8000_0000;
    block[15] = 20 * 8;
    sha1(block)
}

/// SHA-1 (FIPS 180-4) of one block that holds the whole padded message.
fn sha1(block: [u32; 16]) -> [u32; 5] {
    const START: [u32; 5] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476, 0xc3d2_e1f0];
    let mut w = [0u32; 80];
    w[..16].copy_from_slice(&block);
    for i in 16..80 {
        w[i] = (w[i - 3] ^ w[i - 8] ^ w[i - 14] ^ w[i - 16]).rotate_left(1);
    }
    let [mut a, mut b, mut c, mut d, mut e] = START;
    for (i, word) in w.into_iter().enumerate() {
        let (f, k) = match i / 20 {
            0 => ((b & c) | (!b & d), 0x5a82_7999),
            1 => (b ^ c ^ d, 0x6ed9_eba1),
            2 => ((b & c) | (b & d) | (c & d), 0x8f1b_bcdc),
            _ => (b ^ c ^ d, 0xca62_c1d6u32),
        };
        let next = a.rotate_left(5).wrapping_add(f).wrapping_add(e).wrapping_add(k);
        (e, d, c, b, a) = (d, c, b.rotate_left(30), a, next.wrapping_add(word));
    }
    let sums = START.into_iter().zip([a, b, c, d, e]);
    let mut digest = [0; 5];
    digest.iter_mut().zip(sums).for_each(|(to, (x, y))| *to = x.wrapping_add(y));
    digest
}

struct Uts {
    place: Place,
    kernel: Kernel,
    /// `Tree`'s fields after the pointer, then the first run.
    fields: Vec<u32>,
    thresholds: Buffer<u32>,
    totals: Buffer<u32>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    Ok(Box::new(Uts {
        place: place.clone(),
        kernel: place.kernel("search")?,
        fields: (0..9).map(|at| input.number(at)).collect::<anyhow::Result<_>>()?,
        thresholds: Buffer::from_slice(&place.device, input.array(0)?)?,
        totals: Buffer::alloc(&place.device, SLOTS * STRIDE)?,
    }))
}

impl Work for Uts {
    fn reset(&mut self) -> anyhow::Result<()> {
        Ok(self.totals.fill(0)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let words = |words: &[u32]| words.iter().copied().map(Arg::from).collect::<Vec<_>>();
        let mut tree = vec![Arg::from(&self.thresholds)];
        tree.extend(words(&self.fields[..3]));
        let digest = Arg::Fields(words(&self.fields[3..8]));
        let run = [digest].into_iter().chain(words(&[0, self.fields[8], 1])).collect();
        let (totals, budget) = (Arg::from(&mut self.totals), Arg::from(1u32));
        let arguments = [Arg::Fields(tree), totals, Arg::Fields(run), budget];
        self.place.run(&self.kernel, &LaunchConfig::new(1, 1), &arguments)
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        Ok(self.totals.to_vec()?)
    }
}

fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    // The root, which no kernel searches.
    let mut found = Totals { nodes: 1, leaves: 0, depth: 0 };
    for slot in result.chunks_exact(STRIDE) {
        found.nodes += u64::from(slot[0]);
        found.leaves += u64::from(slot[1]);
        found.depth = found.depth.max(slot[2]);
    }
    let [nodes, leaves] = [9, 10].map(|at| input.numbers.get(at).copied().unwrap_or(0));
    let expected = Totals { nodes, leaves, depth: input.number(11)? };
    ensure!(found == expected, "{found:?} instead of {expected:?}");
    Ok(format!("{nodes} nodes, {leaves} leaves, depth {}", expected.depth))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of a digest and a child's number.
    fn spawn(parent: [u32; 5], child: u32) -> [u32; 5] {
        let mut block = [0; 16];
        block[..5].copy_from_slice(&parent);
        block[5] = child;
        block[6] = 0x8000_0000;
        block[15] = 24 * 8;
        sha1(block)
    }

    /// A search by recursion.
    fn search(input: &Input, parent: [u32; 5], children: u32, depth: u32, totals: &mut Totals) {
        let (limit, fixed) = (input.numbers[1] as u32, input.numbers[2] as u32);
        let thresholds = &input.arrays[0];
        for child in 0..children {
            let digest = spawn(parent, child);
            let random = digest[4] & 0x7fff_ffff;
            let n = if depth >= limit {
                0
            } else if fixed > 0 {
                if random < thresholds[0] { fixed } else { 0 }
            } else {
                thresholds.iter().filter(|at| random >= **at).count() as u32
            };
            totals.nodes += 1;
            totals.leaves += u64::from(n == 0);
            totals.depth = totals.depth.max(depth);
            search(input, digest, n, depth + 1, totals);
        }
    }

    #[test]
    fn sha1_knows_the_standards_example() {
        let mut block = [0; 16];
        block[0] = u32::from_be_bytes(*b"abc\x80");
        block[15] = 24;
        let expected = [0xa999_3e36, 0x4706_816a, 0xba3e_2571, 0x7850_c26c, 0x9cd0_d89d];
        assert_eq!(sha1(block), expected);
    }

    #[test]
    fn the_small_trees_have_their_sizes() {
        for tree in &SMALL {
            let input = tree.case().input;
            let digest = root_digest(tree.seed);
            let mut totals = Totals { nodes: 1, ..Totals::default() };
            search(&input, digest, input.numbers[8] as u32, 1, &mut totals);
            assert_eq!(totals, tree.totals, "{}", tree.name);
        }
    }
}
