//! The suite of plain kernels, which launch nothing: each in Gridlet and, with the same algorithm, in CUDA C++.
//! `bench --only kernels` measures them; `kernels/` beside `src/` has the device code.
//!
//! Both versions of a kernel have its name, the same parameters and the same launch, so that one host side runs both.

mod blocks;
mod case;
mod dense;
mod features;
mod integers;
mod loops;
mod memory;
mod narrow;
mod numeric;
mod searching;
mod stencils;
mod walks;
mod wide;

use anyhow::Context as _;
use gridlet_runtime::Device;

pub use crate::nested::Size;
pub use case::{Argument, Array, Case, Loaded};

use crate::TIME_OUT;

/// A kernel of the suite.
#[derive(Clone, Copy)]
pub struct Plain {
    /// Its name in both languages, and its files'.
    pub name: &'static str,
    /// A description in one line.
    pub what: &'static str,
    /// Its source in Gridlet.
    pub source: &'static str,
    /// Its source in CUDA C++.
    pub cuda: &'static str,
    /// Its launch.
    pub case: fn(Size) -> Case,
    /// The contents that plain Rust computes for the arrays that the kernel writes, in the order of the parameters.
    pub expected: fn(&Case) -> Vec<Array>,
}

/// A kernel whose sources are `kernels/NAME.grid` and `kernels/NAME.cu`.
macro_rules! plain {
    ($name:literal, $what:literal, $case:expr, $expected:expr) => {
        $crate::kernels::Plain {
            name: $name,
            what: $what,
            source: include_str!(concat!("../../kernels/", $name, ".grid")),
            cuda: include_str!(concat!("../../kernels/", $name, ".cu")),
            case: $case,
            expected: $expected,
        }
    };
}
use plain;

/// Every kernel of the suite.
pub fn kernels() -> Vec<Plain> {
    [
        memory::KERNELS,
        searching::KERNELS,
        dense::KERNELS,
        numeric::KERNELS,
        stencils::KERNELS,
        integers::KERNELS,
        loops::KERNELS,
        features::KERNELS,
        narrow::KERNELS,
        wide::KERNELS,
        walks::KERNELS,
        blocks::KERNELS,
    ]
    .concat()
}

/// Runs a kernel once on its small case and compares its results with plain Rust.
///
/// # Errors
/// The errors of the runtime, or a wrong result.
pub fn run_small(
    plain: &Plain,
    device: &Device,
    program: &gridlet_runtime::Program,
) -> anyhow::Result<()> {
    let case = (plain.case)(Size::Small);
    let loaded = Loaded::new(device, &case)?;
    let stream = device.stream()?;
    stream.launch(&program.kernel(plain.name)?, &case.config, &loaded.arguments())?;
    stream.synchronize(TIME_OUT)?;
    let found = loaded.results()?;
    let expected = (plain.expected)(&case);
    case.compare(&found, &expected).with_context(|| plain.name)
}

/// A number that depends on all bits of another (Wellons, "lowbias32").
fn mix(mut x: u32) -> u32 {
    x ^= x >> 16;
    x = x.wrapping_mul(0x7feb_352d);
    x ^= x >> 15;
    x = x.wrapping_mul(0x846c_a68b);
    x ^ x >> 16
}

/// `n` numbers that look random.
fn words(n: usize, seed: u32) -> Vec<u32> {
    (0..n as u32).map(|i| mix(i ^ mix(seed))).collect()
}

/// `n` numbers from `low` to `high`.
fn reals(n: usize, seed: u32, low: f32, high: f32) -> Vec<f32> {
    let unit = |i: u32| (mix(i ^ mix(seed)) >> 8) as f32 / (1 << 24) as f32;
    (0..n as u32).map(|i| low + (high - low) * unit(i)).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_kernel_has_a_name_of_its_own() {
        let names: BTreeSet<_> = kernels().iter().map(|plain| plain.name).collect();
        assert_eq!(names.len(), kernels().len());
    }
}
