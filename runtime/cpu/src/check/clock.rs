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

/// Clocks for the two scopes of fences and atomics.
#[derive(Clone, Debug, Default)]
pub(super) struct Scoped {
    /// For threads of any block.
    pub(super) device: SharedClock,
    /// For threads of the same block; knows at least as much.
    pub(super) block: SharedClock,
}

impl Scoped {
    pub(super) fn is_empty(&self) -> bool {
        self.block.is_none() && self.device.is_none()
    }

    pub(super) fn join(&mut self, from: &Scoped) {
        join(&mut self.device, &from.device);
        join(&mut self.block, &from.block);
    }
}

/// A thread: its block and its number in it.
pub(super) type Writer = (u32, u16);

/// The clocks of an atomic variable.
#[derive(Debug, Default)]
struct Variable {
    /// What its value tells threads of any block.
    device: SharedClock,
    /// What it tells threads of the same block as a writer, by block.
    blocks: Vec<(u32, SharedClock)>,
    /// The last thread that published.
    writer: Writer,
}

/// The clocks of atomic variables, by address.
#[derive(Debug, Default)]
pub(super) struct Variables {
    clocks: HashMap<usize, Variable>,
}

impl Variables {
    /// An atomic by `writer` publishes `clock`. `replaces`: whether it is a relaxed store, whose value tells nothing of
    /// what other threads have published before (PTX ISA, "Release and Acquire Patterns").
    pub(super) fn publish(
        &mut self,
        address: usize,
        writer: Writer,
        clock: &Scoped,
        replaces: bool,
    ) {
        if clock.is_empty() && !(replaces && self.clocks.contains_key(&address)) {
            return;
        }
        if self.clocks.len() >= VARIABLE_LIMIT && !self.clocks.contains_key(&address) {
            return;
        }
        let variable = self.clocks.entry(address).or_default();
        if replaces && variable.writer != writer {
            *variable = Variable::default();
        }
        variable.writer = writer;
        join(&mut variable.device, &clock.device);
        if clock.block.is_some() {
            let known = variable.blocks.iter_mut().find(|(block, _)| *block == writer.0);
            match known {
                Some((_, known)) => join(known, &clock.block),
                None => variable.blocks.push((writer.0, clock.block.clone())),
            }
        }
    }

    /// What the variable tells a thread of a block.
    pub(super) fn read(&self, address: usize, block: u32) -> Scoped {
        let everything = || Some(Arc::new(Clock { points: BTreeMap::new(), everything: true }));
        match self.clocks.get(&address) {
            Some(variable) => {
                let own = variable.blocks.iter().find(|(known, _)| *known == block);
                Scoped {
                    device: variable.device.clone(),
                    block: own.and_then(|(_, clock)| clock.clone()),
                }
            }
            None if self.clocks.len() < VARIABLE_LIMIT => Scoped::default(),
            None => Scoped { device: everything(), block: everything() },
        }
    }

    pub(super) fn clear(&mut self) {
        self.clocks.clear();
    }
}
