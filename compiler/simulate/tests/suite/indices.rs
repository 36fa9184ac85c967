//! The indices of the blocks of a round, from the lower halves of their numbers.

use gridlet_simulate::{Device, Grid, Options};

use crate::compile;

const INDICES: &str = include_str!("../../../lang/src/launch/resident/scheduler/indices.grid");

/// What `indices.grid` needs of the scheduler, and a warp's loop over the blocks of a round, as the lowering makes it. Counts the
/// blocks, and notes each index, as it is computed for the block alone and from the one before.
const HARNESS: &str = "
const FIRST: u32 = 2;
fn state() -> *mut u32 {
    shared words: [u32; 4];
    return &words[0];
}
kernel test(out: *mut dim3, count: *mut u32, first: u64, blocks: u32, x: u32, y: u32, z: u32, step: u32) {
    let grid = dim3(x, y, z);
    *((state() + FIRST) as *mut u64) = first;
    let end = first as u32 + blocks;
    let mut number = first as u32;
    let mut next = block_index(number, grid);
    while is_before(number, end) {
        out[*count * 2] = block_index(number, grid);
        out[*count * 2 + 1] = next;
        *count += 1;
        next = next_index(next, grid, step);
        number += step;
    }
}
";

/// Checks a round of `blocks` blocks from `first` on.
fn check(grid: [u32; 3], first: u64, blocks: u32, step: u32) {
    let program = compile(&format!("{INDICES}\n{HARNESS}"));
    let mut device = Device::new(&program);
    let out = device.allocate(24 * blocks as usize);
    let count = device.allocate(4);
    let mut parameters = [out, count, first].map(u64::to_le_bytes).concat();
    let words = [blocks, grid[0], grid[1], grid[2], step];
    parameters.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    device.launch("test", Grid::new(1, 1), &parameters, &Options::seed(0)).unwrap();
    let index = |number: u64| {
        let [x, y] = [grid[0], grid[1]].map(u64::from);
        [number % x, number / x % y, number / x / y].map(|part| part as u32)
    };
    let numbers = (first..first + u64::from(blocks)).step_by(step as usize);
    let expected: Vec<u32> = numbers.flat_map(|number| [index(number); 2].concat()).collect();
    let found = device.read_words(count, 1)[0] as usize;
    assert_eq!(found * 6, expected.len(), "{grid:?} from {first}: {found} blocks");
    assert_eq!(device.read_words(out, expected.len()), expected, "{grid:?} from {first}");
}

#[test]
fn blocks_have_the_indices_of_their_numbers() {
    check([100, 1, 1], 3, 40, 7);
    check([5, 3, 4], 0, 60, 1);
    check([5, 3, 4], 2, 57, 4);
    check([1, 1, 60], 7, 50, 3);
    check([2, 1, 9], 1, 17, 1);
}

#[test]
fn rounds_begin_behind_and_span_multiples_of_32_bits() {
    const MOST: u32 = 0x7fff_ffff;
    check([MOST, 1, 1], u64::from(MOST) - 20, 20, 3);
    // The last round of fewer than 2³² blocks, and one in a grid of exactly as many.
    check([65_537, 65_535, 1], 65_537 * 65_535 - 30, 30, 1);
    check([65_536, 65_535, 1], 65_536 * 65_535 - 30, 30, 1);
    check([1 << 20, 1 << 12, 1], (1 << 32) - 30, 30, 4);
    // Across a multiple of 2³²; and behind one, where the lower half of a number is less than a row.
    check([MOST, 3, 1], (1 << 32) - 20, 40, 3);
    check([MOST, 3, 1], (1 << 32) + 5, 40, 1);
    check([MOST, 65_535, 65_535], (7 << 32) - 9, 40, 5);
    check([MOST, 65_535, 65_535], u64::from(MOST) * 65_535 * 65_535 - 40, 40, 1);
}
