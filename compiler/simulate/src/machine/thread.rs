//! A thread of the model: its stack, and what it waits for.

use gridlet_lang::builtins::{BlockReduceOp, ReduceOp, ShuffleMode, VoteMode};
use gridlet_lang::types::Scalar;

/// One call.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Frame {
    pub(super) function: u32,
    /// The next operation.
    pub(super) next: u32,
    /// Where its frame starts in the stack.
    pub(super) base: usize,
    /// Where its result goes in the caller's frame.
    pub(super) to: u32,
}

/// An operation of a warp.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WarpOp {
    Sync,
    Shuffle(ShuffleMode),
    Vote(VoteMode),
    MatchAny,
    Reduce(ReduceOp, Scalar),
}

/// What a thread waits for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Wait {
    /// A barrier of the block.
    Barrier {
        id: u32,
        /// The number of threads that it waits for; `None` for all that have not ended.
        threads: Option<u32>,
        /// A reduction with this thread's predicate.
        reduce: Option<(BlockReduceOp, bool)>,
    },
    /// The other lanes of a warp operation.
    Warp { op: WarpOp, mask: u32, value: u64, lane: u32 },
    /// Other lanes that may come to the same `active_mask()`.
    Active,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum State {
    /// It runs when the scheduler picks it.
    Ready,
    Waiting(Wait),
    /// It has returned from the kernel, or does not exist.
    Ended,
}

#[derive(Clone, Debug)]
pub(super) struct Thread {
    /// The place of its block among the running blocks.
    pub(super) block: usize,
    /// Its number in its block.
    pub(super) index: u32,
    pub(super) stack: Vec<u8>,
    pub(super) callers: Vec<Frame>,
    pub(super) now: Frame,
    pub(super) state: State,
    /// Where the result of what it waits for goes in its frame.
    pub(super) to: u32,
}

/// The number of threads of a warp.
pub(super) const WARP: u32 = 32;

impl Thread {
    pub(super) fn lane(&self) -> u32 {
        self.index % WARP
    }

    /// Sets a result in the current frame.
    pub(super) fn set(&mut self, to: u32, value: u64) {
        let at = self.now.base + to as usize;
        self.stack[at..at + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Makes room for a frame. What is in it is whatever earlier calls left there.
    pub(super) fn reserve(&mut self, end: usize) {
        if self.stack.len() < end {
            self.stack.resize(end, 0xa5);
        }
    }
}
