//! Claiming blocks to run, and completing grids.

use std::sync::atomic::Ordering;

use super::{NodeId, Phase, Scheduler, Work};
use crate::abi::WAITS;

impl Scheduler {
    /// Claims blocks for a worker.
    pub(crate) fn claim(&mut self, worker: u32) -> Option<Work> {
        self.claim_except(worker, None)
    }

    /// Claims blocks for a worker from any grid except `except`.
    pub(crate) fn claim_except(&mut self, worker: u32, except: Option<NodeId>) -> Option<Work> {
        if self.exclusive > 0 { None } else { self.claim_anyway(worker, except) }
    }

    /// Like [`Scheduler::claim_except`], for a worker whose own block is suspended, even if that block lets no others
    /// start.
    pub(crate) fn claim_anyway(&mut self, worker: u32, except: Option<NodeId>) -> Option<Work> {
        loop {
            let position = self.choose(except)?;
            let id = self.ready[position];
            let node = &mut self.nodes[id];
            let starts = node.phase == Phase::Waiting;
            node.phase = Phase::Running;
            if starts {
                if node.parent.is_some() {
                    self.pending.release();
                }
                if let Some(hooks) = &self.hooks {
                    hooks.on_grid_start(node.id, node.after);
                }
            }
            let Some(grid) = node.grid else {
                self.ready.remove(position);
                continue;
            };
            if node.tree.is_stopped() {
                node.blocks_left -= node.blocks.clear();
                let executed = node.blocks_left == 0;
                self.ready.remove(position);
                if executed {
                    self.executed(id);
                }
                continue;
            }
            let taken = node.blocks.take(worker, self.workers);
            if let Some(limit) = &node.limit {
                limit.active.fetch_add(1, Ordering::Relaxed);
            }
            if node.blocks.left() == 0 {
                self.ready.remove(position);
            }
            // SAFETY: its blocks have not ended.
            let flags = unsafe { grid.get() }.kernel().flags;
            let exclusive = self.hooks.is_some() && flags & WAITS != 0;
            self.exclusive += u32::from(exclusive);
            return Some(Work {
                node: id,
                grid,
                first: taken.start,
                count: taken.end - taken.start,
                exclusive,
            });
        }
    }

    /// Whether [`Scheduler::claim`] would find blocks.
    pub(crate) fn can_claim(&self) -> bool {
        self.exclusive == 0 && self.ready.iter().any(|id| self.nodes[*id].may_run())
    }

    /// Position in the ready queue of a grid that may run.
    fn choose(&mut self, except: Option<NodeId>) -> Option<usize> {
        let count = self.ready.len();
        if count == 0 {
            return None;
        }
        let offset = match &mut self.random {
            Some(random) => random.below(count as u64) as usize,
            None => 0,
        };
        (0..count).map(|i| (2 * count - 1 - i - offset) % count).find(|position| {
            let id = self.ready[*position];
            Some(id) != except && self.nodes[id].may_run()
        })
    }

    /// Records that the blocks have ended.
    pub(crate) fn finish(&mut self, work: &Work) {
        self.exclusive -= u32::from(work.exclusive);
        let node = &mut self.nodes[work.node];
        if let Some(limit) = &node.limit {
            limit.active.fetch_sub(1, Ordering::Relaxed);
        }
        node.blocks_left -= work.count;
        if node.blocks_left == 0 {
            self.executed(work.node);
        }
    }

    /// Records that all blocks of a node have ended.
    fn executed(&mut self, id: NodeId) {
        self.close_created(id);
        let node = &mut self.nodes[id];
        node.phase = Phase::Joining;
        if let Some(hooks) = &self.hooks {
            hooks.on_grid_executed(node.id);
        }
        let grid = node.grid.take();
        node.pending -= 1;
        let ended = node.pending == 0;
        if let Some(grid) = grid {
            // SAFETY: all blocks have ended, so no worker uses the grid, and the node had the only copy.
            let grid = unsafe { grid.into_box() };
            self.recycle(grid);
        }
        if ended { self.complete(id) } else { self.forward(id) }
    }

    /// Continues a node that no longer waits: starts its next tail launch, or ends it and every ancestor it completes.
    fn complete(&mut self, mut id: NodeId) {
        loop {
            let node = &mut self.nodes[id];
            if let Some(grid) = node.tails.pop_front() {
                node.pending = 1;
                let (after, last, stream) = (node.id, node.tails.is_empty(), node.stream);
                self.waiting_tails -= 1;
                let tail = self.add_nested(grid, id);
                self.nodes[tail].after = Some(after);
                // The last tail launch takes the node's place in its stream, so that the node can be removed.
                if last
                    && self.hooks.is_none()
                    && self.nodes[id].may_forward()
                    && let Some(stream) = stream
                {
                    self.nodes[id].stream = None;
                    self.nodes[tail].stream = Some(stream);
                    self.streams[stream].running = Some(tail);
                }
                self.forward(id);
                self.ready.push_back(tail);
                return;
            }
            let (ended, stream) = (node.id, node.stream);
            if let Some(hooks) = &self.hooks {
                hooks.on_grid_end(ended);
            }
            let parent = self.nodes[id].parent.map(|parent| self.resolve(parent));
            if let Some(stream) = stream {
                self.advance(stream, ended);
            }
            self.release(id);
            let Some(parent) = parent else { return };
            let parent_node = &mut self.nodes[parent];
            parent_node.pending -= 1;
            if parent_node.pending > 0 {
                return;
            }
            id = parent;
        }
    }

    // ---- joins

    /// The node that counts for `id`: itself, or the node that it forwards to.
    fn resolve(&mut self, mut id: NodeId) -> NodeId {
        while self.nodes[id].phase == Phase::Forwarded
            && let Some(parent) = self.nodes[id].parent
        {
            id = parent;
        }
        id
    }

    /// Lets a node's parent adopt its children, if the node only joins them.
    pub(super) fn forward(&mut self, id: NodeId) {
        // A checker needs the end of each grid.
        if self.hooks.is_some() || !self.nodes[id].may_forward() {
            return;
        }
        if let Some(stream) = self.nodes[id].stream {
            let this = &self.streams[stream];
            if this.open || !this.queue.is_empty() {
                return;
            }
            self.streams.remove(stream);
            self.nodes[id].stream = None;
        }
        let Some(old_parent) = self.nodes[id].parent else { return };
        let parent = self.resolve(old_parent);
        self.nodes[parent].pending += self.nodes[id].pending - 1;
        self.nodes[id].phase = Phase::Forwarded;
        if parent != old_parent {
            self.nodes[id].parent = Some(parent);
            self.nodes[parent].references += 1;
            self.release_reference(old_parent);
        }
        if self.nodes[id].references == 0 {
            self.release(id);
        }
    }

    /// Removes a node that has no references, and forwarding nodes that only it referenced.
    fn release(&mut self, id: NodeId) {
        let parent = self.nodes[id].parent;
        self.nodes.remove(id);
        if let Some(parent) = parent {
            self.release_reference(parent);
        }
    }

    fn release_reference(&mut self, mut id: NodeId) {
        loop {
            let node = &mut self.nodes[id];
            node.references -= 1;
            if node.references > 0 || node.phase != Phase::Forwarded {
                return;
            }
            let parent = node.parent;
            self.nodes.remove(id);
            let Some(parent) = parent else { return };
            id = parent;
        }
    }
}
