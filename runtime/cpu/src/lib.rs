//! The CPU device: runs a program's CPU images on threads of this process.
//!
//! # How grids run
//! Worker threads claim blocks of ready grids, several at a time if there are many. If no block can wait for another,
//! each worker first takes blocks from its own share of the grid. A block runs to its end on one worker; its threads
//! run one after another and switch only where they wait for each other
//! ([`sync_threads`](abi::Callbacks::sync_threads), warp operations, and the heads of loops that may wait for a write).
//! While all threads of a block only poll memory, the worker also runs other grids (a child, say), but no other blocks
//! of the same grid: a block that waits for a block that has not started may wait forever, until the host's wait times
//! out.
//!
//! With a checker, no block starts on any worker while a block runs whose kernel has a loop that may wait for another
//! thread's write. Such a block finds every other block either ended, running since before, or not started, as it may on
//! a GPU; a wait for one that has not started is an error with any number of workers.
//!
//! # Order and completion
//! - A grid has ended when its blocks, all their descendants and its tail launches have ended.
//! - A stream runs its grids one after another, each to its end in this sense. This applies to host streams and to the
//!   default stream of a block, which its threads share.
//! - Fire-and-forget launches are ready immediately.
//! - Tail launches run one after another once the grid's blocks and their descendants have ended. If a tail launch
//!   makes tail launches of its own, those run before the next one.
//! - Ready grids have no defined order. In practice the youngest runs first, so that few grids wait; with a seed, the
//!   choice is random, and so is the order of blocks and threads. One worker with the same seed repeats the same order.
//!
//! # The pool of pending launches
//! A launch from a kernel is pending from the request for its parameter buffer until its first block starts. The number
//! of pending launches is limited ([`CpuConfig::pending_limit`]); above the limit, the request returns no buffer, which
//! the program sees as error 69. The pool stays bounded even without a limit: a thread that launches faster than the
//! workers run is suspended while its own worker runs waiting grids.
//!
//! # The device runtime
//! A stream created by a kernel belongs to its grid: no other grid can use it. It closes when it is destroyed or the
//! grid's blocks have ended; its pending work still runs. Copies and fills are grids of one thread.
//!
//! # The heap
//! `malloc` allocates at most [`HEAP_BYTES`] in total and returns null beyond that. Memory that no kernel frees lives as
//! long as the device.
//!
//! # Failures
//! A trap, or a signal such as SIGSEGV in a kernel, ends the whole launch tree: grids that have not started never
//! start, and running ones stop at their next callback. The next wait for the stream reports the fault ([`CpuFault`]),
//! and the device remains usable. Memory that a kernel corrupted stays corrupted: only `--check` checks every access.
//!
//! # Files
//! `device` holds the device and its partitions. `image` loads images; `level` selects the entries of an image to run.
//! `executor` runs grids: `scheduler` decides which are ready, `pool` holds the workers, `stream` the host streams,
//! `block` and `warp` run threads, `combine` computes reductions over a warp, `callbacks`, `launch`, `operations` and
//! `heap` implement the functions that kernels call, and `signals` handles their faults. `hooks` defines the
//! events for a checker, and `check` is that checker.
//!
//! This crate uses no GPU and no driver. `gridlet-runtime` builds on it and re-exports it as `gridlet_runtime::cpu`.

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
