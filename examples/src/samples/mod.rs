//! CUDA's samples of nested launches as Gridlet programs, each equivalent to NVIDIA's sample of that name.
//! Tests run and check them on every device; `demo --samples` does so too.

pub mod advanced_quicksort;
pub mod bezier;
pub mod quadtree;
pub mod recursive_print;
pub mod simple_quicksort;

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::Rng as _;

use crate::example::Example;

/// Every sample, the simplest first.
pub const SAMPLES: [Example; 5] = [
    recursive_print::EXAMPLE,
    simple_quicksort::EXAMPLE,
    advanced_quicksort::EXAMPLE,
    bezier::EXAMPLE,
    quadtree::EXAMPLE,
];

/// A number from 0 up to, but not including, 1.
fn unit(random: &mut ChaCha8Rng) -> f32 {
    (random.next_u32() >> 8) as f32 / (1 << 24) as f32
}
