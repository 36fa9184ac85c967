//! Warp operations: the lanes in the mask meet, then each gets its result.

use std::cell::{Cell, RefCell};

use super::block::Runner;
use super::combine;
use crate::abi::{
    Location, SHUFFLE_DOWN, SHUFFLE_INDEX, SHUFFLE_UP, SHUFFLE_XOR, VOTE_ALL, VOTE_ANY,
};
use crate::hooks::{Verdict, WarpMistake};

/// `warp_size`.
pub(crate) const WARP_THREADS: u32 = 32;

/// The operation that lanes meet for. Only lanes with the same operation and mask meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum WarpOperation {
    Sync,
    Shuffle(u32),
    Vote(u32),
    Combine(u32),
}

#[derive(Clone, Copy, Debug)]
struct Meeting {
    operation: WarpOperation,
    mask: u32,
    arrived: u32,
}

/// The lanes of a warp of the running block, one bit each.
#[derive(Debug)]
pub(crate) struct Warp {
    /// Lanes that can run.
    pub(crate) ready: Cell<u32>,
    /// Lanes that have not ended.
    pub(crate) alive: Cell<u32>,
    /// Lanes waiting at `sync_threads()`.
    pub(crate) at_barrier: Cell<u32>,
    /// Lanes that let others run first.
    pub(crate) yielded: Cell<u32>,
    /// Lanes that are returning from their kernel before its end; only checked images tell.
    returning: Cell<u32>,
    /// Lanes that ran to the end of their kernel.
    finished: Cell<u32>,
    meetings: RefCell<Vec<Meeting>>,
}

impl Warp {
    pub(crate) const fn new() -> Warp {
        Warp {
            ready: Cell::new(0),
            alive: Cell::new(0),
            at_barrier: Cell::new(0),
            yielded: Cell::new(0),
            returning: Cell::new(0),
            finished: Cell::new(0),
            meetings: RefCell::new(Vec::new()),
        }
    }

    /// Resets the warp for a new block.
    pub(crate) fn start(&self, lanes: u32) {
        self.ready.set(0);
        self.alive.set(lanes);
        self.at_barrier.set(0);
        self.yielded.set(0);
        self.returning.set(0);
        self.finished.set(0);
        self.meetings.borrow_mut().clear();
    }

    /// The meeting of other lanes that wait for this lane while it would wait for them.
    fn opponents(&self, operation: WarpOperation, mask: u32, lane: u32) -> Option<Meeting> {
        let meetings = self.meetings.borrow();
        let differs = |meeting: &&Meeting| {
            (meeting.operation, meeting.mask) != (operation, mask)
                && meeting.mask & 1 << lane != 0
                && meeting.arrived & mask != 0
        };
        meetings.iter().find(differs).copied()
    }

    /// A meeting that waits for this lane.
    fn waiting_for(&self, lane: u32) -> Option<Meeting> {
        let meetings = self.meetings.borrow();
        meetings.iter().find(|meeting| meeting.mask & !meeting.arrived & 1 << lane != 0).copied()
    }

    /// Adds a lane to its meeting; returns the meeting if it is now complete.
    fn arrive(&self, operation: WarpOperation, mask: u32, lane: u32) -> Option<Meeting> {
        let mut meetings = self.meetings.borrow_mut();
        let position = meetings.iter().position(|m| m.operation == operation && m.mask == mask);
        let position = position.unwrap_or_else(|| {
            meetings.push(Meeting { operation, mask, arrived: 0 });
            meetings.len() - 1
        });
        meetings[position].arrived |= 1 << lane;
        self.is_complete(&meetings[position]).then(|| meetings.swap_remove(position))
    }

    /// Removes a meeting that waits only for lanes that have ended.
    fn next_complete(&self) -> Option<Meeting> {
        let mut meetings = self.meetings.borrow_mut();
        let position = meetings.iter().position(|meeting| self.is_complete(meeting))?;
        Some(meetings.swap_remove(position))
    }

    fn is_complete(&self, meeting: &Meeting) -> bool {
        meeting.arrived == meeting.mask & self.alive.get()
    }
}

impl Runner {
    /// Executes a warp operation for the running thread. The thread's slot holds its operand before and its result after
    /// the call. (If the mask lacks the own lane, which is undefined behaviour, the lane takes part anyway.)
    pub(crate) fn warp_operation(&self, operation: WarpOperation, mask: u32, location: Location) {
        if !self.has_threads() {
            return;
        }
        self.note_location(location);
        let thread = self.current.get();
        let (warp, lane) = (thread / WARP_THREADS, thread % WARP_THREADS);
        if self.has_check() && self.is_mistaken(operation, mask, location) {
            return;
        }
        match self.warps[warp as usize].arrive(operation, mask | 1 << lane, lane) {
            Some(meeting) => {
                self.finish_meeting(warp, &meeting);
                // The current lane is already running.
                self.make_ready(warp, meeting.arrived & !(1 << lane));
            }
            None => self.wait(location, false),
        }
    }

    /// Reports an operation that can never have a result, and ends the block.
    fn is_mistaken(&self, operation: WarpOperation, mask: u32, location: Location) -> bool {
        let thread = self.current.get();
        let (first, lane) = (thread - thread % WARP_THREADS, thread % WARP_THREADS);
        let warp = &self.warps[(thread / WARP_THREADS) as usize];
        let finished = mask & warp.finished.get();
        if mask & 1 << lane == 0 {
            self.mistake(thread, WarpMistake::OwnLane { mask }, location);
        } else if finished != 0 {
            let lane = finished.trailing_zeros();
            self.mistake(thread, WarpMistake::Ended { lane }, location);
        } else if let Some(theirs) = warp.opponents(operation, mask, lane) {
            let other = first + (theirs.arrived & mask).trailing_zeros();
            // The lower lane comes first, whoever arrives first.
            let own = (thread, location, mask);
            let their = (other, self.slot(other).location(), theirs.mask);
            let (one, two) = if own.0 < their.0 { (own, their) } else { (their, own) };
            let mistake = WarpMistake::Different {
                mask: one.2,
                other: two.0,
                other_location: two.1,
                other_mask: two.2,
            };
            self.mistake(one.0, mistake, one.1);
        } else {
            return false;
        }
        true
    }

    /// Reports a mistake and ends the block.
    fn mistake(&self, thread: u32, mistake: WarpMistake, location: Location) {
        self.tell(|check| check.on_warp_mistake(thread, mistake, location));
        self.obey(Verdict::Stop, location);
    }

    /// The running thread is about to return from its kernel before the end.
    pub(crate) fn return_early(&self) {
        let thread = self.current.get();
        let returning = &self.warps[(thread / WARP_THREADS) as usize].returning;
        returning.set(returning.get() | 1 << (thread % WARP_THREADS));
    }

    /// A lane has ended, so that no meeting waits for it any more.
    pub(crate) fn lane_ended(&self, warp: u32, lane: u32) {
        let this = &self.warps[warp as usize];
        let bit = 1 << lane;
        this.alive.set(this.alive.get() & !bit);
        if self.has_check() && this.returning.get() & bit == 0 {
            this.finished.set(this.finished.get() | bit);
            if let Some(meeting) = this.waiting_for(lane) {
                let first = warp * WARP_THREADS + meeting.arrived.trailing_zeros();
                let location = self.slot(first).location();
                self.mistake(first, WarpMistake::Ended { lane }, location);
                return;
            }
        }
        while let Some(meeting) = this.next_complete() {
            self.finish_meeting(warp, &meeting);
            self.make_ready(warp, meeting.arrived);
        }
    }

    fn finish_meeting(&self, warp: u32, meeting: &Meeting) {
        // The other operations "do not imply a memory barrier" (CUDA C++ Programming Guide, Warp Shuffle, Vote and
        // Match Functions).
        if meeting.operation == WarpOperation::Sync {
            self.tell(|check| check.on_warp_sync(warp, meeting.arrived));
        }
        let slot = |lane: u32| self.slot(warp * WARP_THREADS + lane);
        match meeting.operation {
            WarpOperation::Sync => {}
            WarpOperation::Shuffle(mode) => {
                let mut values = [0; WARP_THREADS as usize];
                for lane in bits(meeting.arrived) {
                    values[lane as usize] = slot(lane).value.get();
                }
                for lane in bits(meeting.arrived) {
                    let source = source_lane(mode, lane, slot(lane).operand.get());
                    // A lane outside the operation has no value: use the own one, as for a lane out of range.
                    let takes_part = meeting.arrived & 1 << source != 0;
                    let from = if takes_part { source } else { lane };
                    slot(lane).value.set(values[from as usize]);
                    if !takes_part {
                        let thread = warp * WARP_THREADS + lane;
                        let named = meeting.mask & 1 << source != 0;
                        let mistake = WarpMistake::Source { lane: source, named };
                        let location = slot(lane).location();
                        self.tell(|check| check.on_warp_mistake(thread, mistake, location));
                    }
                }
            }
            WarpOperation::Combine(mode) => {
                let mut values = [0; WARP_THREADS as usize];
                for lane in bits(meeting.arrived) {
                    values[lane as usize] = slot(lane).value.get();
                }
                combine::combine(mode, &mut values, meeting.arrived);
                for lane in bits(meeting.arrived) {
                    slot(lane).value.set(values[lane as usize]);
                }
            }
            WarpOperation::Vote(mode) => {
                let mut ballot = 0;
                for lane in bits(meeting.arrived) {
                    ballot |= u32::from(slot(lane).value.get() != 0) << lane;
                }
                let result = match mode {
                    VOTE_ANY => u32::from(ballot != 0),
                    VOTE_ALL => u32::from(ballot == meeting.arrived),
                    _ => ballot,
                };
                for lane in bits(meeting.arrived) {
                    slot(lane).value.set(u64::from(result));
                }
            }
        }
    }
}

/// The lane that a shuffle reads; the own lane if the source is out of range (PTX ISA, `shfl.sync`, whose operand `b`
/// is taken modulo 32).
fn source_lane(mode: u32, lane: u32, operand: u32) -> u32 {
    let operand = operand % WARP_THREADS;
    match mode {
        SHUFFLE_UP => lane.checked_sub(operand).unwrap_or(lane),
        SHUFFLE_DOWN => Some(lane + operand).filter(|from| *from < WARP_THREADS).unwrap_or(lane),
        SHUFFLE_XOR => lane ^ operand,
        SHUFFLE_INDEX => operand,
        _ => lane,
    }
}

pub(super) fn bits(mut set: u32) -> impl Iterator<Item = u32> {
    std::iter::from_fn(move || {
        (set != 0).then(|| {
            let lowest = set.trailing_zeros();
            set &= set - 1;
            lowest
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shuffles_read_the_lanes_that_ptx_says() {
        let cases = [
            (SHUFFLE_INDEX, 3, 7, 7),
            (SHUFFLE_INDEX, 3, 39, 7),
            (SHUFFLE_UP, 3, 2, 1),
            (SHUFFLE_UP, 1, 2, 1),
            (SHUFFLE_DOWN, 3, 2, 5),
            (SHUFFLE_DOWN, 31, 1, 31),
            (SHUFFLE_XOR, 5, 16, 21),
        ];
        for (mode, lane, operand, from) in cases {
            assert_eq!(source_lane(mode, lane, operand), from, "{mode} {lane} {operand}");
        }
    }
}
