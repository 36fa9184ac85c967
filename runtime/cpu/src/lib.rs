//! The CPU device: runs a program's images for the CPU on threads of this process.
//!
//! # How grids run
//! Worker threads take blocks of ready grids, several at a time where there are many, and each from its own part of
//! the grid first if no block can wait for another. A block runs on one worker to
//! its end; its threads run one after another, and change places only where they wait for each other
//! ([`sync_threads`](abi::Callbacks::sync_threads), warp operations, and the head of loops that may wait for a write).
//! A block whose threads all only look at memory lets its worker run other grids (a child, say) in between, but
//! not other blocks of its own grid: one that waits for a block that has not started may wait for ever, until the
//! host's wait times out.
//!
//! # Order and completion
//! - A grid has ended when its blocks have, everything that they launched has ended, and its tail launches have.
//! - A stream runs its grids one after another, each to its end in that sense. A stream of the host is one such
//!   stream; the default stream of a block is another, which its threads share.
//! - Fire-and-forget launches are ready at once.
//! - Tail launches run one after another once the grid's blocks and all they launched have ended. What a tail launch
//!   launches as its own tail runs before the next one.
//! - Ready grids have no order. Youngest first is what happens, because few then wait; with a seed any of them is
//!   next, and blocks and threads come in any order, too. One worker and the same seed give the same order.
//!
//! # The pool of pending launches
//! A launch from a kernel is pending from the parameter buffer to the start of its first block, and at most so many
//! are ([`CpuConfig::pending_limit`]). Beyond that there is no buffer, which the program sees as error 69. With no
//! limit the pool still does not grow without bound: a thread that launches faster than the workers run waits while
//! its own worker runs what is waiting.
//!
//! # The device runtime
//! A stream that a kernel creates belongs to its grid: no other grid can use it, and it closes, with its work still
//! to run, when the grid's blocks have ended or it is destroyed. Copies and fills are grids of one thread.
//!
//! # The heap
//! `malloc` gives at most [`HEAP_BYTES`] at a time, and null beyond. Memory that no kernel frees lives as long as
//! the device.
//!
//! # Failing
//! A trap, or a signal such as SIGSEGV within a kernel, ends the host's launch that the grid belongs to: what has not
//! started does not start, what runs stops at its next callback. The next wait for the stream reports it
//! ([`CpuFault`]), and the device goes on. Memory that a kernel spoiled stays spoiled: only `--check` looks at each
//! access.
//!
//! # Files
//! `device` is the device and its partitions. `image` loads images; `level` chooses which entries of an image run.
//! `executor` runs grids: `scheduler` decides what is ready, `pool` has the workers, `stream` the streams of the host,
//! `block` and `warp` run threads, `callbacks`, `launch`, `operations` and `heap` are the functions that kernels call,
//! `signals` catches their faults. `hooks` are the events that a checker sees, `check` is that checker.
//!
//! This crate knows no GPU and no driver. `gridlet-runtime` is built on it, and shows it as `gridlet_runtime::cpu`.

pub mod check;
mod device;
mod error;
mod executor;
mod fault;
pub mod hooks;
mod image;
mod level;
mod memory;
mod printf;
mod seed;
mod stack;
#[doc(hidden)]
pub mod sync;

pub use device::{
    CpuConfig, CpuDevice, CpuPartition, DEFAULT_PENDING_LIMIT, LIMITS, THREADS_VARIABLE,
    default_threads,
};
pub use error::{Error, Result};
pub use executor::{CpuMark, CpuStream, HEAP_BYTES};
pub use fault::{CpuFault, FaultKind, SourceLine};
pub use gridlet_artifact::cpu::abi;
pub use image::{CpuImage, CpuKernel};
pub use level::LEVEL_VARIABLE;
