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
        cache.stores.retain(|store| {
            let overlaps = store.overlaps(at.index, at.offset, count);
            if overlaps && let Some(allocation) = device.get_mut(store.index) {
                store.apply(&mut allocation.bytes, 0);
            }
            !overlaps
        });
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
