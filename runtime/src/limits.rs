//! Limits of a device that a program may need changed.

/// A limit of a device (`CUlimit`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Limit {
    /// Device-side launches that may be pending, that is not yet running: the pool of the device runtime, 2,048 unless
    /// set (`CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT`). The only one that the CPU device has.
    PendingLaunches,
    /// Bytes of each thread's stack (`CU_LIMIT_STACK_SIZE`).
    StackBytes,
    /// Bytes of the heap that `malloc` in kernels takes from (`CU_LIMIT_MALLOC_HEAP_SIZE`).
    HeapBytes,
    /// Bytes of the buffer that `printf` in kernels writes to; what does not fit overwrites what came first
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

    /// Whether it must be set before the first kernel: the driver refuses it later or ignores it (`cuCtxSetLimit`).
    pub(crate) fn is_early(self) -> bool {
        !matches!(self, Limit::StackBytes)
    }
}
