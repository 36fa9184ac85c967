//! Host streams.

use std::sync::Arc;
use std::time::{Duration, Instant};

use gridlet_artifact::{Dim3, KernelLimits, LaunchConfig};

use super::grid::{Tree, geometry_error};
use super::pool::Shared;
use super::scheduler::{MarkIn, StreamId, WorkerLimit};
use crate::error::{Error, Result};
use crate::fault::{CpuFault, FaultKind};
use crate::image::CpuKernel;

/// How long a timed-out wait waits for the kernels that it stopped.
const STOPPING: Duration = Duration::from_secs(2);

/// A stream: its launches run in order. Cheap to clone.
#[derive(Clone)]
pub struct CpuStream {
    inner: Arc<Inner>,
}

struct Inner {
    shared: Arc<Shared>,
    id: StreamId,
    limit: Option<Arc<WorkerLimit>>,
}

impl std::fmt::Debug for CpuStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CpuStream").field(&self.inner.id).finish()
    }
}

impl CpuStream {
    pub(crate) fn new(shared: &Arc<Shared>, limit: Option<Arc<WorkerLimit>>) -> CpuStream {
        let id = shared.lock().open_host_stream();
        CpuStream { inner: Arc::new(Inner { shared: Arc::clone(shared), id, limit }) }
    }

    /// Launches a kernel without waiting for it. `parameters` is the packed parameter buffer, laid out as in the
    /// manifest; it is copied.
    ///
    /// # Errors
    /// [`Error::Launch`]: the grid, block or shared memory exceeds a limit. [`Error::ParameterBytes`]: the buffer
    /// does not have the kernel's size.
    pub fn launch(
        &self,
        kernel: &CpuKernel,
        grid_dim: [u32; 3],
        block_dim: [u32; 3],
        shared_bytes: u32,
        parameters: &[u8],
    ) -> Result<()> {
        let shared = &self.inner.shared;
        let static_bytes = kernel.static_shared_bytes();
        if parameters.len() != kernel.parameter_bytes() as usize {
            return Err(Error::ParameterBytes {
                kernel: kernel.name().into(),
                expected: kernel.parameter_bytes(),
                given: parameters.len(),
            });
        }
        let all_bytes = u64::from(shared_bytes) + u64::from(static_bytes);
        if geometry_error(kernel.descriptor(), grid_dim, block_dim, all_bytes, &shared.limits)
            .is_some()
        {
            let dim = |d: [u32; 3]| Dim3::new(d[0], d[1], d[2]);
            let limits = KernelLimits {
                launch_bounds: kernel.launch_bounds(),
                max_threads_per_block: shared.limits.max_threads_per_block,
                static_shared_bytes: static_bytes,
            };
            LaunchConfig::new(dim(grid_dim), dim(block_dim))
                .with_shared(shared_bytes)
                .check(&shared.limits, &limits)
                .map_err(|problem| Error::Launch { kernel: kernel.name().into(), problem })?;
        }
        let mut grid = shared.lock().spare_grid();
        if !grid.reserve_parameters(kernel.parameter_bytes()) {
            return Err(Error::Memory { bytes: u64::from(kernel.parameter_bytes()) });
        }
        // SAFETY: the buffer has room for the kernel's parameters, and nothing else uses it.
        unsafe {
            grid.parameters.first().copy_from_nonoverlapping(parameters.as_ptr(), parameters.len());
        }
        grid.descriptor = kernel.descriptor;
        grid.grid_dim = grid_dim;
        grid.block_dim = block_dim;
        grid.shared_bytes = shared_bytes;
        grid.blocks = grid_dim.iter().map(|extent| u64::from(*extent)).product();
        grid.location = 0;
        let tree = Arc::new(Tree::new(Arc::clone(&kernel.image)));
        shared.lock().launch_host(self.inner.id, grid, tree, self.inner.limit.clone());
        Ok(())
    }

    /// A mark after everything launched so far.
    pub fn mark(&self) -> CpuMark {
        let at = self.inner.shared.lock().mark(self.inner.id);
        CpuMark { shared: Arc::clone(&self.inner.shared), at }
    }

    /// Makes later launches wait until other streams of the device have reached marks; does not block.
    /// [`CpuStream::cancel`] also ends these waits.
    pub fn wait_for(&self, marks: &[CpuMark]) {
        let shared = &self.inner.shared;
        let own = marks.iter().filter(|mark| Arc::ptr_eq(&mark.shared, shared));
        shared.lock().wait_for(self.inner.id, own.map(|mark| &mark.at));
    }

    /// Whether everything launched so far has ended, with all descendants. Reports no failure.
    pub fn is_done(&self) -> bool {
        let scheduler = self.inner.shared.lock();
        scheduler.finished(self.inner.id) == scheduler.submitted(self.inner.id)
    }

    /// Number of submitted entries (launches from the host and waits for other streams), and of those that have ended.
    pub fn progress(&self) -> (u64, u64) {
        let scheduler = self.inner.shared.lock();
        (scheduler.submitted(self.inner.id), scheduler.finished(self.inner.id))
    }

    /// Waits until everything launched so far has ended, with all descendants.
    ///
    /// # Errors
    /// [`Error::Fault`]: a grid failed; the launches behind it in the stream did not run. Each failure is reported once,
    /// and the stream remains usable. [`Error::TimedOut`]: the remaining work was stopped. If it did not end even then,
    /// [`CpuStream::is_done`] stays false.
    pub fn wait(&self, timeout: Duration) -> Result<()> {
        let (shared, id) = (&self.inner.shared, self.inner.id);
        let submitted = shared.lock().submitted(id);
        let deadline = Instant::now().checked_add(timeout);
        if !shared.wait_until(deadline, |scheduler| scheduler.awaits(id, submitted)) {
            let stopped = self.stop().flatten();
            return Err(Error::TimedOut { seconds: timeout.as_secs_f64(), stopped });
        }
        self.waited();
        let failure = shared.lock().take_failure(id);
        failure.map_or(Ok(()), |fault| Err(Error::Fault(fault)))
    }

    /// Tells the checker that everything launched has ended.
    fn waited(&self) {
        if let Some(hooks) = &self.inner.shared.hooks {
            hooks.on_host_wait(self.inner.id);
        }
    }

    /// Stops all launches that have not ended. Returns whether all have ended now.
    pub fn cancel(&self) -> bool {
        self.stop().is_some()
    }

    /// As [`CpuStream::cancel`]. Gives the first block that was stopped, if one was running; `None` if not all have ended.
    fn stop(&self) -> Option<Option<Box<CpuFault>>> {
        let (shared, id) = (&self.inner.shared, self.inner.id);
        let (trees, submitted) = {
            let scheduler = shared.lock();
            (scheduler.trees(id), scheduler.submitted(id))
        };
        for tree in trees {
            tree.stop();
        }
        shared.lock().open_gates(id);
        let last = Instant::now() + STOPPING;
        loop {
            shared.interrupt();
            let soon = Instant::now() + Duration::from_millis(1);
            if shared.wait_until(Some(soon), |scheduler| scheduler.awaits(id, submitted)) {
                // The failure is intended.
                let stopped = shared.lock().take_failure(id);
                self.waited();
                return Some(stopped.filter(|fault| fault.kind == FaultKind::Cancelled));
            }
            if Instant::now() > last {
                return None;
            }
        }
    }
}

/// A point in a stream. Cheap to clone.
#[derive(Clone)]
pub struct CpuMark {
    shared: Arc<Shared>,
    at: MarkIn,
}

impl std::fmt::Debug for CpuMark {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("CpuMark").field(&self.at.mark.get()).finish()
    }
}

impl CpuMark {
    /// Waits for the stream to reach the mark and returns when it did; `None` after the timeout. Reports no failure.
    pub fn wait(&self, timeout: Duration) -> Option<Instant> {
        if let Some(reached) = self.at.mark.get() {
            return Some(*reached);
        }
        let deadline = Instant::now().checked_add(timeout);
        self.shared.wait_until(deadline, |_| self.at.mark.get().is_some());
        self.at.mark.get().copied()
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.shared.lock().close_host_stream(self.id);
    }
}
