//! Pseudorandom orders.

/// SplitMix64, a small generator; thread order needs no better one.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// The sequence for a seed and a stream; nearby values give unrelated sequences.
    pub(crate) fn new(seed: u64, stream: u64) -> Random {
        let mut random = Random(seed ^ stream.wrapping_mul(0xd6e8_feb8_6659_fd93));
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `bound`, which must not be 0.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound.max(1)
    }
}

/// A permutation of the numbers below `count`: `x → factor · x + offset` modulo `count`, where `factor` and `count`
/// are coprime.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Permutation {
    count: u64,
    factor: u64,
    offset: u64,
}

impl Permutation {
    /// Maps every number to itself.
    pub(crate) const IDENTITY: Permutation = Permutation { count: u64::MAX, factor: 1, offset: 0 };

    pub(crate) fn new(count: u64, random: &mut Random) -> Permutation {
        let count = count.max(1);
        let mut factor = random.below(count).max(1);
        while common_divisor(factor, count) != 1 {
            factor = if factor >= count { 1 } else { factor + 1 };
        }
        Permutation { count, factor, offset: random.below(count) }
    }

    /// The image of a number.
    pub(crate) fn at(self, index: u64) -> u64 {
        if self.factor == 1 && self.offset == 0 {
            return index;
        }
        let scaled = u128::from(self.factor) * u128::from(index) + u128::from(self.offset);
        // The result is below `count`, so it fits.
        (scaled % u128::from(self.count)) as u64
    }
}

fn common_divisor(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permutations_hit_every_number_once() {
        let mut random = Random::new(7, 0);
        let mut moved = false;
        for count in [1, 2, 3, 12, 97, 1024] {
            let permutation = Permutation::new(count, &mut random);
            let mut hit: Vec<u64> = (0..count).map(|i| permutation.at(i)).collect();
            moved |= hit.iter().enumerate().any(|(i, p)| i as u64 != *p);
            hit.sort_unstable();
            assert_eq!(hit, (0..count).collect::<Vec<_>>());
        }
        assert!(moved);
    }

    #[test]
    fn the_identity_moves_nothing() {
        assert_eq!(Permutation::IDENTITY.at(u64::MAX - 1), u64::MAX - 1);
    }
}
