//! The random choices.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

pub(super) struct Random(ChaCha8Rng, u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        let mut stream = ChaCha8Rng::seed_from_u64(seed);
        let argument = stream.next_u64();
        Random(stream, argument)
    }

    /// The value of the entry kernel's parameter `seed`.
    pub(super) fn seed_argument(&self) -> u64 {
        self.1
    }

    pub(super) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`, which is not 0.
    pub(super) fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit as u64) as usize
    }

    pub(super) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of the items, of which there must be at least one.
    pub(super) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
