//! Kernels that each use a feature of the language that the others lack.

use super::memory::length;
use super::{Array, Case, Plain, Size, plain, reals, words};

pub(super) const KERNELS: &[Plain] = &[
    plain!("jacobi", "Jacobi's method, signed indices", jacobi, relaxed),
    plain!("stride64", "differences of neighbours, 64-bit indices", stride64, differences),
    plain!("reverse", "dynamic shared memory", reverse, reversed),
    plain!("lookup", "a table in a static variable", lookup, interpolated),
    plain!("float_bins", "sums of floats by atomics", float_bins, float_sums),
    plain!("aggregate", "counts, an addition for equal keys of a warp", aggregate, key_counts),
    plain!("warp_sums", "reductions of a warp", warp_sums, warp_results),
    plain!("mixer", "16-bit sound", mixer, mixed),
    plain!("median", "medians of 3 × 3 pixels by minima and maxima", median, medians),
    plain!("gelu", "an activation with a hyperbolic tangent", gelu, activations),
    plain!("queens", "queens, with a stack in local memory", queens, solutions),
    plain!("ackermann", "a function that calls itself", ackermann, values),
];

fn jacobi(size: Size) -> Case {
    let (width, height) = (length(size, 70, 8_192), length(size, 30, 4_096));
    let cells = (width * height) as usize;
    Case::new((width.div_ceil(32), height.div_ceil(8)), (32, 8))
        .i32(width as i32)
        .i32(height as i32)
        .input(reals(cells, 1, -1.0, 1.0))
        .input(reals(cells, 2, -1.0, 1.0))
        .output(vec![0f32; cells])
        .within(1e-5)
}

fn relaxed(case: &Case) -> Vec<Array> {
    let (width, height) = (case.number(0), case.number(1));
    let (from, right) = (case.f32s(2), case.f32s(3));
    let mut to = case.f32s(4).to_vec();
    for y in 1..height - 1 {
        for x in 1..width - 1 {
            let at = y * width + x;
            let around = from[at - 1] + from[at + 1] + from[at - width] + from[at + width];
            to[at] = 0.25 * (around - right[at]);
        }
    }
    vec![to.into()]
}

fn stride64(size: Size) -> Case {
    let (n, blocks) = (length(size, 1_500, 1 << 25), length(size, 2, 2_112));
    Case::new(blocks, 256)
        .u64(u64::from(n))
        .input(reals(n as usize, 1, -1.0, 1.0))
        .output(vec![0f32; n as usize])
}

fn differences(case: &Case) -> Vec<Array> {
    let differences = case.f32s(1).windows(2).map(|pair| pair[1] - pair[0]);
    // The last element has no right neighbour.
    vec![differences.chain([0.0]).collect::<Vec<f32>>().into()]
}

fn reverse(size: Size) -> Case {
    let blocks = length(size, 3, 1 << 16);
    let n = blocks as usize * 512;
    let mut case = Case::new(blocks, 512).input(words(n, 1)).output(vec![0u32; n]);
    case.config.shared_bytes = 512 * 4;
    case
}

fn reversed(case: &Case) -> Vec<Array> {
    let mut numbers = case.u32s(0).to_vec();
    numbers.chunks_mut(512).for_each(<[u32]>::reverse);
    vec![numbers.into()]
}

fn lookup(size: Size) -> Case {
    let n = length(size, 1_000, 1 << 24);
    Case::threads(n, 256)
        .u32(n)
        .input(reals(n as usize, 1, 0.0, 62.0))
        .output(vec![0f32; n as usize])
        .within(2e-4)
}

/// The table has `i / 64`, rounded to four digits.
fn interpolated(case: &Case) -> Vec<Array> {
    vec![case.f32s(1).iter().map(|x| x / 64.0).collect::<Vec<f32>>().into()]
}

/// Whole numbers, so that the order of the additions does not matter.
fn float_bins(size: Size) -> Case {
    let (n, blocks) = (length(size, 2_000, 1 << 23), length(size, 3, 1_056));
    let places: Vec<u8> = words(n as usize, 1).iter().map(|word| *word as u8).collect();
    let values: Vec<f32> = words(n as usize, 2).iter().map(|word| (word % 8) as f32).collect();
    Case::new(blocks, 256).u32(n).input(places).input(values).output(vec![0f32; 256])
}

fn float_sums(case: &Case) -> Vec<Array> {
    let mut sums = vec![0f32; 256];
    for (place, value) in case.u8s(1).iter().zip(case.f32s(2)) {
        sums[usize::from(*place)] += value;
    }
    vec![sums.into()]
}

fn aggregate(size: Size) -> Case {
    let n = length(size, 1_000, 1 << 24);
    let keys: Vec<u32> = words(n as usize, 1).iter().map(|word| word % 16).collect();
    Case::threads(n, 256).u32(n).input(keys).output(vec![0u32; 16])
}

fn key_counts(case: &Case) -> Vec<Array> {
    let mut counts = vec![0u32; 16];
    case.u32s(1).iter().for_each(|key| counts[*key as usize] += 1);
    vec![counts.into()]
}

fn warp_sums(size: Size) -> Case {
    let n = length(size, 512, 1 << 25);
    let numbers: Vec<i32> = words(n as usize, 1).iter().map(|word| *word as i32 >> 8).collect();
    Case::threads(n, 256).u32(n).input(numbers).output(vec![0i32; n as usize / 32 * 3])
}

fn warp_results(case: &Case) -> Vec<Array> {
    let results = |warp: &[i32]| {
        let (least, greatest) = (warp.iter().min(), warp.iter().max());
        [warp.iter().sum(), least.copied().unwrap_or(0), greatest.copied().unwrap_or(0)]
    };
    vec![case.i32s(1).chunks(32).flat_map(results).collect::<Vec<i32>>().into()]
}

fn mixer(size: Size) -> Case {
    let n = length(size, 1_000, 1 << 26);
    let track =
        |seed| words(n as usize, seed).iter().map(|word| *word as i16).collect::<Vec<i16>>();
    Case::threads(n, 256)
        .u32(n)
        .i32(200)
        .input(track(1))
        .input(track(2))
        .output(vec![0i16; n as usize])
}

fn mixed(case: &Case) -> Vec<Array> {
    let sample = |(a, b): (&i16, &i16)| a.saturating_add(((i32::from(*b) * 200) >> 8) as i16);
    vec![case.i16s(2).iter().zip(case.i16s(3)).map(sample).collect::<Vec<i16>>().into()]
}

fn median(size: Size) -> Case {
    let (width, height) = (length(size, 70, 4_096), length(size, 30, 4_096));
    let cells = (width * height) as usize;
    Case::new((width.div_ceil(32), height.div_ceil(8)), (32, 8))
        .u32(width)
        .u32(height)
        .input(reals(cells, 1, -1.0, 1.0))
        .output(vec![0f32; cells])
}

fn medians(case: &Case) -> Vec<Array> {
    let (width, height, from) = (case.number(0), case.number(1), case.f32s(2));
    let mut to = case.f32s(3).to_vec();
    for y in 0..height - 2 {
        for x in 0..width - 2 {
            let pixel = |k: usize| from[(y + k / 3) * width + x + k % 3];
            let mut pixels: Vec<f32> = (0..9).map(pixel).collect();
            pixels.sort_by(f32::total_cmp);
            to[y * width + x] = pixels[4];
        }
    }
    vec![to.into()]
}

fn gelu(size: Size) -> Case {
    let n = length(size, 500, 1 << 23);
    Case::threads(n, 256)
        .u32(n)
        .input(reals(n as usize * 4, 1, -4.0, 4.0))
        .output(vec![0f32; n as usize * 4])
        .within(1e-5)
}

fn activations(case: &Case) -> Vec<Array> {
    let activated = |x: &f32| {
        let x = f64::from(*x);
        (0.5 * x * (1.0 + (0.7978846 * (x + 0.044715 * x * x * x)).tanh())) as f32
    };
    vec![case.f32s(1).iter().map(activated).collect::<Vec<f32>>().into()]
}

/// The ways to place queens in the first rows, each as the columns and the diagonals that they attack.
fn starts(side: u32, rows: u32) -> Vec<[u32; 3]> {
    let all = (1u32 << side) - 1;
    (0..rows).fold(vec![[0; 3]], |starts, _| {
        let next = |[columns, lefts, rights]: [u32; 3]| {
            let free = all & !(columns | lefts | rights);
            let queens = (0..side).map(|column| 1 << column).filter(move |queen| free & queen != 0);
            let place = move |queen: u32| {
                [columns | queen, (lefts | queen) << 1 & all, (rights | queen) >> 1]
            };
            queens.map(place)
        };
        starts.into_iter().flat_map(next).collect()
    })
}

fn queens(size: Size) -> Case {
    let (side, rows) = (length(size, 8, 15), length(size, 2, 5));
    let starts: Vec<u32> = starts(side, rows).into_iter().flatten().collect();
    let n = starts.len() / 3;
    Case::threads(n as u32, 64)
        .u32(n as u32)
        .u32(side)
        .u32(rows)
        .input(starts)
        .output(vec![0u32; n])
}

fn solutions(case: &Case) -> Vec<Array> {
    fn count(all: u32, [columns, lefts, rights]: [u32; 3]) -> u32 {
        let free = all & !(columns | lefts | rights);
        let place =
            |queen: u32| [columns | queen, (lefts | queen) << 1 & all, (rights | queen) >> 1];
        let queens = (0..32).map(|column| 1 << column).filter(|queen| free & queen != 0);
        u32::from(columns == all) + queens.map(|queen| count(all, place(queen))).sum::<u32>()
    }
    let all = (1u32 << case.number(1)) - 1;
    let starts = case.u32s(3).chunks(3).map(|start| [start[0], start[1], start[2]]);
    vec![starts.map(|start| count(all, start)).collect::<Vec<u32>>().into()]
}

fn ackermann(size: Size) -> Case {
    let n = length(size, 300, 1 << 18);
    let below = |limit: u32, seed| {
        words(n as usize, seed).iter().map(|word| word % limit).collect::<Vec<u32>>()
    };
    Case::threads(n, 128)
        .u32(n)
        .input(below(3, 1))
        .input(below(6, 2))
        .output(vec![0u32; n as usize])
}

/// A(0, n) = n + 1, A(1, n) = n + 2, A(2, n) = 2 n + 3.
fn values(case: &Case) -> Vec<Array> {
    let value = |(m, n): (&u32, &u32)| [n + 1, n + 2, 2 * n + 3][*m as usize];
    vec![case.u32s(1).iter().zip(case.u32s(2)).map(value).collect::<Vec<u32>>().into()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_queens_have_92_solutions() {
        let found = solutions(&queens(Size::Small));
        let Some(Array::U32(counts)) = found.first() else { panic!("{found:?}") };
        assert_eq!(counts.iter().sum::<u32>(), 92);
    }
}
