//! The random choices.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng as _, SeedableRng as _};

pub(crate) struct Random(ChaCha8Rng, u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Random {
        let mut stream = ChaCha8Rng::seed_from_u64(seed);
        let argument = stream.next_u64();
        Random(stream, argument)
    }

    /// The value of the entry kernel's parameter `seed`.
    pub(crate) fn seed_argument(&self) -> u64 {
        self.1
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// A number below `limit`, which is not 0.
    pub(crate) fn below(&mut self, limit: usize) -> usize {
        (self.0.next_u64() % limit as u64) as usize
    }

    pub(crate) fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    /// One of the items, of which there must be at least one.
    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}
