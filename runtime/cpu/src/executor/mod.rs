//! Executes grids, from the launch by the host or a kernel to the end of the last block.

mod block;
mod callbacks;
mod combine;
mod grid;
mod heap;
mod launch;
mod operations;
mod pool;
mod scheduler;
mod signals;
mod stream;
mod warp;

pub(crate) use block::MAX_THREADS;
pub(crate) use callbacks::CALLBACKS;
pub use heap::HEAP_BYTES;
pub(crate) use operations::is_operation_name;
pub(crate) use pool::Shared;
pub(crate) use scheduler::{Pending, Scheduler, WorkerLimit};
pub use stream::{CpuMark, CpuStream};
