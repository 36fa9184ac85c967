//! Barriers and operations of warps: threads that wait for each other.

use gridlet_lang::builtins::{BlockReduceOp, ShuffleMode, VoteMode};

use super::Machine;
use super::run::Fault;
use super::thread::{State, WARP, Wait, WarpOp};
use crate::number;

/// A barrier of a block.
#[derive(Clone, Debug, Default)]
pub(super) struct Barrier {
    arrived: Vec<usize>,
    /// The number of threads that the first one asked for; `None` for all that have not ended.
    threads: Option<u32>,
}

impl Machine<'_> {
    /// Lets a thread start to wait, and ends the wait if it was the last to come.
    pub(super) fn arrive(&mut self, thread: usize, wait: Wait) -> Result<(), Fault> {
        match wait {
            Wait::Active => Ok(()),
            Wait::Warp { mask, .. } => {
                let lane = self.threads[thread].lane();
                if mask & (1 << lane) == 0 {
                    return Err(wrong(format!("lane {lane} is not in its own mask {mask:#x}")));
                }
                self.complete_warp(thread, wait)
            }
            Wait::Barrier { id, threads, .. } => {
                let slot = self.threads[thread].block;
                let block_threads = self.block_threads as u32;
                if let Some(count) = threads
                    && (count == 0
                        || !count.is_multiple_of(WARP)
                        || count > block_threads.next_multiple_of(WARP))
                {
                    return Err(wrong(format!("barrier {id} waits for {count} threads")));
                }
                let barriers = &mut self.blocks[slot].barriers;
                let Some(barrier) = barriers.get_mut(id as usize) else {
                    return Err(wrong(format!("there is no barrier {id}")));
                };
                if barrier.arrived.is_empty() {
                    barrier.threads = threads;
                } else if barrier.threads != threads {
                    return Err(wrong(format!(
                        "barrier {id} waits for {threads:?} threads here and for {:?} elsewhere",
                        barrier.threads
                    )));
                }
                barrier.arrived.push(thread);
                self.complete_barrier(slot, id as usize);
                Ok(())
            }
        }
    }

    /// Ends a barrier if all its threads have come.
    fn complete_barrier(&mut self, slot: usize, id: usize) {
        let block = &mut self.blocks[slot];
        let barrier = &mut block.barriers[id];
        let wanted = barrier.threads.unwrap_or(block.live);
        if barrier.arrived.is_empty() || (barrier.arrived.len() as u32) < wanted {
            return;
        }
        let arrived = std::mem::take(&mut barrier.arrived);
        let predicates = arrived.iter().map(|thread| match self.threads[*thread].state {
            State::Waiting(Wait::Barrier { reduce: Some((_, predicate)), .. }) => predicate,
            _ => false,
        });
        let count = predicates.filter(|predicate| *predicate).count();
        if let Some(races) = &mut self.races {
            races.meet(&arrived);
        }
        for thread in &arrived {
            if let State::Waiting(Wait::Barrier { reduce: Some((op, _)), .. }) =
                self.threads[*thread].state
            {
                let value = match op {
                    BlockReduceOp::Count => count as u64,
                    BlockReduceOp::And => u64::from(count == arrived.len()),
                    BlockReduceOp::Or => u64::from(count > 0),
                };
                self.resume(*thread, Some(value));
            } else {
                self.resume(*thread, None);
            }
        }
    }

    fn resume(&mut self, thread: usize, value: Option<u64>) {
        let item = &mut self.threads[thread];
        if let Some(value) = value {
            item.set(item.to, value);
        }
        item.state = State::Ready;
        self.set_ready(thread, true);
    }

    /// The first thread of a thread's warp, and the number of threads that the warp has.
    fn warp(&self, thread: usize) -> (usize, usize) {
        let index = self.threads[thread].index as usize;
        let lane = index % WARP as usize;
        (thread - lane, (self.block_threads - (index - lane)).min(WARP as usize))
    }

    /// The lanes of a mask that have not ended, with their threads.
    fn lanes(&self, thread: usize, mask: u32) -> Vec<(u32, usize)> {
        let (first, count) = self.warp(thread);
        let lanes = (0..count).filter(|lane| mask & (1 << lane) != 0);
        let threads = lanes.map(|lane| (lane as u32, first + lane));
        threads.filter(|(_, thread)| self.threads[*thread].state != State::Ended).collect()
    }

    /// Ends a warp operation if all its lanes have come.
    fn complete_warp(&mut self, thread: usize, wait: Wait) -> Result<(), Fault> {
        let Wait::Warp { op, mask, .. } = wait else { return Ok(()) };
        let lanes = self.lanes(thread, mask);
        let mut values = [None; WARP as usize];
        for (lane, other) in &lanes {
            match self.threads[*other].state {
                State::Waiting(Wait::Warp {
                    op: its_op,
                    mask: its_mask,
                    value,
                    lane: its_lane,
                }) if its_op == op && its_mask == mask => {
                    values[*lane as usize] = Some((value, its_lane));
                }
                _ => return Ok(()),
            }
        }
        if let Some(races) = &mut self.races {
            races.meet(&lanes.iter().map(|(_, other)| *other).collect::<Vec<_>>());
        }
        for (lane, other) in &lanes {
            let value = result(op, *lane, &values)?;
            self.resume(*other, value);
        }
        Ok(())
    }

    /// Gives the threads that stand at one `active_mask()` their mask, or lets them wait for more lanes.
    pub(super) fn active_mask(&mut self, thread: usize) {
        let stands = |machine: &Self, other: usize| {
            let (a, b) = (&machine.threads[thread], &machine.threads[other]);
            b.state == State::Waiting(Wait::Active)
                && (a.now.function, a.now.next, a.callers.len())
                    == (b.now.function, b.now.next, b.callers.len())
        };
        let others_run = self.ready.iter().any(|at| self.threads[*at].state == State::Ready);
        if others_run && !self.random.one_in(4) {
            return;
        }
        let mut lanes = self.lanes(thread, u32::MAX);
        lanes.retain(|(_, other)| stands(self, *other));
        if self.random.one_in(4) {
            let keep = self.random.next() as u32;
            lanes.retain(|(lane, other)| *other == thread || keep & (1 << lane) != 0);
        }
        let mask = lanes.iter().fold(0, |mask, (lane, _)| mask | 1_u64 << lane);
        for (_, other) in lanes {
            self.resume(other, Some(mask));
        }
    }

    /// After a thread ended: the waits that it alone held up end.
    pub(super) fn after_end(&mut self, thread: usize) -> Result<(), Fault> {
        let slot = self.threads[thread].block;
        for id in 0..self.blocks[slot].barriers.len() {
            if self.blocks[slot].barriers[id].threads.is_none() {
                self.complete_barrier(slot, id);
            }
        }
        for (_, other) in self.lanes(thread, u32::MAX) {
            if let State::Waiting(wait @ Wait::Warp { .. }) = self.threads[other].state {
                self.complete_warp(other, wait)?;
            }
        }
        Ok(())
    }
}

fn wrong(message: String) -> Fault {
    Fault::Wrong(message)
}

/// The result of a warp operation in one lane. `values` has the value and the lane operand of each lane that takes part.
fn result(
    op: WarpOp,
    lane: u32,
    values: &[Option<(u64, u32)>; WARP as usize],
) -> Result<Option<u64>, Fault> {
    let own = values[lane as usize].unwrap_or_default();
    let present =
        || values.iter().zip(0_u32..).filter_map(|(value, lane)| Some((lane, value.as_ref()?.0)));
    let ballot = |is: &dyn Fn(u64) -> bool| {
        present().filter(|(_, value)| is(*value)).fold(0, |mask, (lane, _)| mask | 1_u64 << lane)
    };
    Ok(Some(match op {
        WarpOp::Sync => return Ok(None),
        WarpOp::Shuffle(mode) => {
            // PTX ISA, `shfl.sync`: a source outside the warp is the lane itself, and an index is taken modulo 32.
            let source = match mode {
                ShuffleMode::Index => own.1 % WARP,
                ShuffleMode::Up => lane.checked_sub(own.1 % WARP).unwrap_or(lane),
                ShuffleMode::Down => match lane + own.1 % WARP {
                    source if source < WARP => source,
                    _ => lane,
                },
                ShuffleMode::Xor => lane ^ (own.1 % WARP),
            };
            match values[source as usize] {
                Some((value, _)) => value,
                // The hardware gives an undefined value.
                None => 0xdead_dead_dead_dead,
            }
        }
        WarpOp::Vote(VoteMode::Ballot) => ballot(&|value| value != 0),
        WarpOp::Vote(VoteMode::Any) => u64::from(ballot(&|value| value != 0) != 0),
        WarpOp::Vote(VoteMode::All) => u64::from(ballot(&|value| value == 0) == 0),
        WarpOp::MatchAny => ballot(&|value| value == own.0),
        WarpOp::Reduce(op, scalar) => {
            let mut present = present();
            let first = present.next().map_or(0, |(_, value)| value);
            let sum =
                present.try_fold(first, |sum, (_, value)| number::reduce(op, scalar, sum, value));
            sum.ok_or_else(|| wrong(format!("{op:?} of {}", scalar.name())))?
        }
    }))
}
