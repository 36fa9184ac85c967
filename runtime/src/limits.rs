//! Device limits that a program may need to change.

/// A device limit (`CUlimit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// Device-side launches that may be pending, that is, not yet running: the device runtime's pool, 2,048 by
    /// default (`CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT`). The only limit that the CPU device has.
    PendingLaunches,
    /// Stack bytes per thread (`CU_LIMIT_STACK_SIZE`).
    StackBytes,
    /// Bytes of the heap for `malloc` in kernels (`CU_LIMIT_MALLOC_HEAP_SIZE`).
    HeapBytes,
    /// Bytes of the buffer for `printf` in kernels; when it overflows, new output overwrites the oldest
    /// (`CU_LIMIT_PRINTF_FIFO_SIZE`).
    PrintfBytes,
}

impl Limit {
    /// Its name in messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Limit::PendingLaunches => "limit of pending device-side launches",
            Limit::StackBytes => "limit of a thread's stack",
            Limit::HeapBytes => "limit of the kernels' heap",
            Limit::PrintfBytes => "limit of the printf buffer",
        }
    }

    /// Whether the limit must be set before the first kernel: later the driver refuses or ignores it
    /// (`cuCtxSetLimit`).
    pub(crate) fn is_early(self) -> bool {
        !matches!(self, Limit::StackBytes)
    }
}
