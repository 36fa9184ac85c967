//! Grids with more blocks than 32 bits count, with both launch strategies.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::time::Duration;

use gridlet::artifact;
use gridlet::compile::{self, BuildOptions, Session};
use gridlet::launch::LaunchStrategy;
use gridlet::source::SourceMap;
use gridlet_runtime::{Arg, Buffer, LaunchConfig, Program};

use crate::gpu::{gpu_or_skip, under_memcheck};

/// Blocks whose number is a multiple of 4,096 count by column, and each block of the last column for its row. With a loop, and where no
/// grid waits for another, a thread computes the index of each block anew.
const SOURCE: &str = "
kernel child(counts: *mut u32) {
    let number = block_idx.y as u64 * grid_dim.x as u64 + block_idx.x as u64;
    for _i in 0..grid_dim.z {
        if number % 4096 == 0 { atomic_add(&counts[block_idx.x % 8192 / 4096], 1); }
    }
    if block_idx.x == grid_dim.x - 1 { atomic_add(&counts[2 + block_idx.y], 1); }
}
kernel root(counts: *mut u32) {
    launch child<<<dim3(2147483647, 3, 1), 1, stream = fire_and_forget>>>(counts);
}";

#[test]
fn blocks_beyond_32_bits_have_their_indices() {
    let test = "blocks_beyond_32_bits_have_their_indices";
    let Some((device, arch)) = gpu_or_skip(test) else { return };
    if under_memcheck(test, "6 thousand million blocks take too long") {
        return;
    }
    let checked = compile::check(SourceMap::single("blocks.grid", SOURCE)).unwrap();
    let mut expected = vec![0u32; 5];
    for number in (0..2_147_483_647_u64 * 3).step_by(4096) {
        expected[(number % 2_147_483_647 % 8192 / 4096) as usize] += 1;
    }
    expected[2..].fill(1);
    for strategy in [LaunchStrategy::Resident, LaunchStrategy::Cdp] {
        let options = BuildOptions::for_arch(arch).with_launch(strategy.into());
        let artifact = artifact::build(&Session::new(), &checked, &[arch], &options).unwrap();
        let program = Program::load(&device, &artifact).unwrap();
        let stream = device.stream().unwrap();
        let mut counts = Buffer::from_slice(&device, &[0u32; 5]).unwrap();
        let kernel = program.kernel("root").unwrap();
        stream.launch(&kernel, &LaunchConfig::new(1, 1), &[Arg::from(&mut counts)]).unwrap();
        stream.synchronize(Duration::from_secs(60)).unwrap();
        assert_eq!(counts.to_vec().unwrap(), expected, "{strategy}");
    }
}
