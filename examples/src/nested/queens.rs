//! The N queens problem.

use anyhow::ensure;
use gridlet_runtime::{Arg, Buffer, Kernel, LaunchConfig};

use super::{Case, Input, Nested, Place, Size, Version, Work};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "queens",
    what: "the N queens problem, a grid for each board with up to five queens",
    source: include_str!("../../nested/queens/queens.grid"),
    cuda: [
        include_str!("../../nested/queens/nested.cu"),
        include_str!("../../nested/queens/flat.cu"),
    ],
    headers: &[("board.h", include_str!("../../nested/queens/board.h"))],
    pending_launches: 262_144,
    cases,
    load,
    check,
};

/// `SLOTS` and `STRIDE` of the program.
const SLOTS: usize = 1024;
const STRIDE: usize = 8;

/// The numbers of an input are the size of the board, which is even, and the solutions there are (OEIS A000170).
fn cases(size: Size) -> Vec<Case> {
    let list: &[(u64, u64)] = match size {
        Size::Small => &[(8, 92), (10, 724)],
        Size::Full => &[(14, 365_596), (16, 14_772_512)],
    };
    let case = |&(size, solutions): &(u64, u64)| Case {
        name: format!("{size} queens"),
        input: Input { numbers: vec![size, solutions], arrays: vec![] },
        launches: None,
        versions: &Version::ALL,
    };
    list.iter().map(case).collect()
}

struct Queens {
    place: Place,
    kernel: Kernel,
    size: u32,
    counts: Buffer<u32>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    Ok(Box::new(Queens {
        place: place.clone(),
        kernel: place.kernel("place")?,
        size: input.number(0)?,
        counts: Buffer::alloc(&place.device, SLOTS * STRIDE)?,
    }))
}

impl Work for Queens {
    fn reset(&mut self) -> anyhow::Result<()> {
        Ok(self.counts.fill(0)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let [half, all] = [self.size / 2, self.size].map(|n| Arg::from((1u32 << n) - 1));
        let board = Arg::Fields(vec![Arg::from(0u32); 3]);
        let arguments = [board, half, all, Arg::from(&mut self.counts)];
        self.place.run(&self.kernel, &LaunchConfig::new(1, 1), &arguments)
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        Ok(self.counts.to_vec()?)
    }
}

fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    let found = 2 * result.iter().map(|count| u64::from(*count)).sum::<u64>();
    let expected = u64::from(input.number(1)?);
    ensure!(found == expected, "{found} solutions instead of {expected}");
    Ok(format!("{found} solutions"))
}
