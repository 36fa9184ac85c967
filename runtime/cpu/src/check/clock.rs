//! What a thread knows about other threads through atomics and fences; empty in most programs.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::order::{Order, Point, Stamp};

/// Maximum points in a clock. A larger clock counts as knowing everything, which can miss races but never invents one.
const POINT_LIMIT: usize = 1024;

/// Maximum number of atomic variables with a clock. Further ones are treated as ordering everything.
const VARIABLE_LIMIT: usize = 1 << 16;

/// A set of points; everything before any of them is known.
#[derive(Clone, Debug, Default)]
pub(super) struct Clock {
    /// Times and barriers by block and thread.
    points: BTreeMap<(u32, u16), (u32, u32)>,
    everything: bool,
}

impl Clock {
    pub(super) fn add(&mut self, point: &Point) {
        if self.everything {
            return;
        }
        let entry = self.points.entry((point.block, point.thread)).or_default();
        entry.0 = entry.0.max(point.time);
        entry.1 = entry.1.max(point.barrier);
        if self.points.len() > POINT_LIMIT {
            self.points = BTreeMap::new();
            self.everything = true;
        }
    }

    pub(super) fn knows(&self, stamp: Stamp, order: &Order) -> bool {
        if self.everything {
            return true;
        }
        if let Some((time, _)) = self.points.get(&(stamp.block, stamp.thread))
            && stamp.time < *time
        {
            return true;
        }
        self.points.iter().any(|(&(block, thread), &(time, barrier))| {
            order.before(stamp, &Point { block, thread, time, barrier })
        })
    }

    fn absorb(&mut self, other: &Clock) {
        if other.everything {
            self.points = BTreeMap::new();
            self.everything = true;
        }
        for (&(block, thread), &(time, barrier)) in &other.points {
            self.add(&Point { block, thread, time, barrier });
        }
    }
}

/// A shared clock; `None` is empty.
pub(super) type SharedClock = Option<Arc<Clock>>;

/// Merges `from`'s knowledge into `into`.
pub(super) fn join(into: &mut SharedClock, from: &SharedClock) {
    let Some(from) = from else { return };
    match into {
        None => *into = Some(Arc::clone(from)),
        Some(clock) if Arc::ptr_eq(clock, from) || clock.everything => {}
        Some(clock) => Arc::make_mut(clock).absorb(from),
    }
}

/// The clocks of atomic variables, by address.
#[derive(Debug, Default)]
pub(super) struct Variables {
    clocks: HashMap<usize, SharedClock>,
}

impl Variables {
    pub(super) fn publish(&mut self, address: usize, clock: &SharedClock) {
        if self.clocks.len() < VARIABLE_LIMIT || self.clocks.contains_key(&address) {
            join(self.clocks.entry(address).or_default(), clock);
        }
    }

    pub(super) fn read(&self, address: usize) -> SharedClock {
        match self.clocks.get(&address) {
            Some(clock) => clock.clone(),
            None if self.clocks.len() < VARIABLE_LIMIT => None,
            None => Some(Arc::new(Clock { points: BTreeMap::new(), everything: true })),
        }
    }

    pub(super) fn clear(&mut self) {
        self.clocks.clear();
    }
}
