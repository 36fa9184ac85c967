//! Device memory as weak as a GPU's: each block may see old values until it acquires, and others may miss its stores until it
//! releases.
//!
//! A block has a cache of sectors, like an SM's L1, which plain loads read and only a fence or an acquire empties. Its plain
//! stores wait in no particular order, except that stores to one place stay in order, until a fence or a release; its own
//! threads see them at once. Atomic operations act on memory itself. Both are emptied at random times too.

use std::collections::BTreeMap;

use super::{Allocation, Parts};
use crate::random::Random;

/// The bytes that are cached together.
const SECTOR: usize = 32;

#[derive(Clone, Debug)]
pub(super) struct Weak {
    blocks: Vec<Cache>,
    random: Random,
}

#[derive(Clone, Debug, Default)]
struct Cache {
    /// By allocation and number of the sector.
    sectors: BTreeMap<(usize, usize), [u8; SECTOR]>,
    /// Stores that other blocks do not see yet, oldest first.
    stores: Vec<Store>,
}

#[derive(Clone, Debug)]
struct Store {
    index: usize,
    offset: usize,
    value: Vec<u8>,
}

impl Store {
    fn overlaps(&self, index: usize, offset: usize, count: usize) -> bool {
        self.index == index
            && self.offset < offset + count
            && offset < self.offset + self.value.len()
    }

    /// Writes its bytes over those of `to`, which starts at `offset`.
    fn apply(&self, to: &mut [u8], offset: usize) {
        for (at, byte) in (self.offset..).zip(&self.value) {
            if let Some(to) = at.checked_sub(offset).and_then(|at| to.get_mut(at)) {
                *to = *byte;
            }
        }
    }
}

impl Weak {
    pub(super) fn new(blocks: usize, random: Random) -> Self {
        Weak { blocks: vec![Cache::default(); blocks], random }
    }

    /// Drops a block's copies.
    pub(super) fn forget(&mut self, block: usize) {
        self.blocks[block].sectors.clear();
    }

    /// Drops everything of an allocation that is freed: its number may be used again.
    pub(super) fn free(&mut self, index: usize) {
        for cache in &mut self.blocks {
            cache.sectors.retain(|(of, _), _| *of != index);
            cache.stores.retain(|store| store.index != index);
        }
    }

    /// Makes all of a block's stores seen.
    pub(super) fn drain(&mut self, device: &mut [Allocation], block: usize) {
        for store in self.blocks[block].stores.drain(..) {
            if let Some(allocation) = device.get_mut(store.index) {
                store.apply(&mut allocation.bytes, 0);
            }
        }
    }

    /// Makes those of a block's stores seen that overlap a place, and drops its copy of the place.
    pub(super) fn settle(
        &mut self,
        device: &mut [Allocation],
        block: usize,
        at: Parts,
        count: usize,
    ) {
        let cache = &mut self.blocks[block];
        // Those that overlap the place, and older ones that overlap any of these.
        let mut chosen = vec![false; cache.stores.len()];
        for at_store in (0..chosen.len()).rev() {
            let store = &cache.stores[at_store];
            chosen[at_store] = store.overlaps(at.index, at.offset, count)
                || (at_store + 1..chosen.len()).any(|newer| {
                    let newer_store = &cache.stores[newer];
                    chosen[newer]
                        && store.overlaps(
                            newer_store.index,
                            newer_store.offset,
                            newer_store.value.len(),
                        )
                });
        }
        let mut chosen = chosen.into_iter();
        cache.stores.retain(|store| {
            let applies = chosen.next().unwrap_or(false);
            if applies && let Some(allocation) = device.get_mut(store.index) {
                store.apply(&mut allocation.bytes, 0);
            }
            !applies
        });
        for sector in at.offset / SECTOR..=(at.offset + count - 1) / SECTOR {
            cache.sectors.remove(&(at.index, sector));
        }
    }

    /// Replaces loaded bytes by those that the block sees.
    pub(super) fn load(
        &mut self,
        allocation: &Allocation,
        block: usize,
        from: Parts,
        to: &mut [u8],
    ) {
        let cache = &mut self.blocks[block];
        let end = from.offset + to.len();
        // A copy has the block's own stores.
        for sector in from.offset / SECTOR..=(end - 1) / SECTOR {
            if self.random.one_in(16) {
                cache.sectors.remove(&(from.index, sector));
            }
            let start = sector * SECTOR;
            let copy = cache.sectors.entry((from.index, sector)).or_insert_with(|| {
                let mut copy = [0; SECTOR];
                let bytes = &allocation.bytes[start..];
                let count = bytes.len().min(SECTOR);
                copy[..count].copy_from_slice(&bytes[..count]);
                for store in &cache.stores {
                    if store.index == from.index {
                        store.apply(&mut copy, start);
                    }
                }
                copy
            });
            for (at, byte) in (start..).zip(copy) {
                if let Some(to) = at.checked_sub(from.offset).and_then(|at| to.get_mut(at)) {
                    *to = *byte;
                }
            }
        }
    }

    pub(super) fn store(
        &mut self,
        device: &mut [Allocation],
        block: usize,
        to: Parts,
        value: &[u8],
    ) {
        let cache = &mut self.blocks[block];
        let store = Store { index: to.index, offset: to.offset, value: value.to_vec() };
        for sector in to.offset / SECTOR..=(to.offset + value.len() - 1) / SECTOR {
            if let Some(copy) = cache.sectors.get_mut(&(to.index, sector)) {
                store.apply(copy, sector * SECTOR);
            }
        }
        cache.stores.push(store);
        if self.random.one_in(4) {
            let first = self.random.below(cache.stores.len());
            let Store { index, offset, ref value } = cache.stores[first];
            let at = Parts { space: None, index, offset };
            let count = value.len();
            self.settle(device, block, at, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::memory::{Access, Memory, parts};
    use crate::random::Random;

    /// A block's own accesses, and those of others after both used fences, see memory as if it were not weak.
    #[test]
    fn a_block_sees_its_own_stores_in_order() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let mut memory = Memory::default();
            let base = memory.allocate(vec![0; 64], true).expect("room");
            memory.weaken(2, Random::new(seed ^ 99));
            let mut expected = [0; 64];
            let mut block = 0;
            for step in 0..300_u64 {
                let count = 1 << random.below(5);
                let offset = random.below(64 / count) * count;
                let at = parts(base + offset as u64);
                let value: Vec<u8> = (0..count as u64).map(|byte| (step + byte) as u8).collect();
                let word =
                    value.iter().rev().take(8).fold(0, |word, byte| word << 8 | u64::from(*byte));
                match random.below(5) {
                    0 => {
                        memory.store(block, at, &value).expect("inside");
                        expected[offset..offset + count].copy_from_slice(&value);
                    }
                    1 if count <= 8 => {
                        let access = Access::Atomic;
                        memory.store_word(block, at, count, word, access).expect("inside");
                        expected[offset..offset + count]
                            .copy_from_slice(&word.to_le_bytes()[..count]);
                    }
                    2 if random.one_in(10) => {
                        memory.release(block);
                        block = 1 - block;
                        memory.acquire(block);
                    }
                    _ => {
                        let mut loaded = vec![0; count];
                        memory.load(block, at, &mut loaded).expect("inside");
                        assert_eq!(
                            loaded,
                            expected[offset..offset + count],
                            "seed {seed}, step {step}"
                        );
                    }
                }
            }
        }
    }
}
