//! Runs blocks whose threads never wait, in one coroutine.

use std::ptr;

use super::super::grid::Grid;
use super::super::scheduler::Work;
use super::{Runner, Stop};
use crate::abi::{BLOCK_BY_BLOCK, BlocksEntry, Geometry, KernelDescriptor};
use crate::fault::FaultKind;
use crate::seed::Permutation;

/// Number of blocks between two checks for whether the launch was stopped.
const BLOCKS_IN_A_ROW: u64 = 64;

impl Runner {
    /// Runs blocks with the image's `blocks` entry.
    pub(super) fn run_serially(&self, grid: &Grid, entry: BlocksEntry, work: &Work) {
        let kernel = grid.kernel();
        self.begin(grid, work.first);
        let Some((_, dynamic_shared)) = self.reserve(kernel, grid.shared_bytes, 1) else {
            self.fail(Stop::new(FaultKind::NoMemory, 0));
            return;
        };
        let slot = self.slot(0);
        let geometry = slot.geometry.get();
        self.set_geometry(geometry, grid, dynamic_shared);
        let parameters = grid.parameters.first().cast_const();
        let most = if kernel.flags & BLOCK_BY_BLOCK != 0 { 1 } else { BLOCKS_IN_A_ROW };
        let (mut first, end) = (work.first, work.first + work.count);
        let this: *const Runner = self;
        self.start(slot, self.stacks.borrow().get(0), move || {
            // SAFETY: the runner and the grid outlive the blocks; the entry belongs to the image and is called as the
            // ABI specifies; nothing else uses the geometry until the coroutine has ended.
            unsafe {
                let runner = &*this;
                while first < end && !runner.is_stopped() {
                    let count = most.min(end - first);
                    (*geometry).block_idx = runner.grid().block_index(first);
                    entry(geometry, parameters, count);
                    runner.release_block_resources();
                    first += count;
                }
            }
        });
        while !self.resume(slot) && self.stop.get().is_none() {}
        self.abandon(slot);
        if let Some(stop) = self.stop.get() {
            // SAFETY: the coroutine is gone. The volatile read keeps the compiler from reusing an earlier value.
            self.block.set(unsafe { ptr::read_volatile(&raw const (*geometry).block_idx) });
            self.fail(stop);
        }
        self.release_block_resources();
    }

    /// Runs the threads of a block one by one, in the seed's order.
    pub(super) fn run_one_by_one(
        &self,
        grid: &Grid,
        kernel: &KernelDescriptor,
        dynamic_shared: *mut u8,
    ) {
        let slot = self.slot(0);
        let geometry = slot.geometry.get();
        self.set_geometry(geometry, grid, dynamic_shared);
        let parameters = grid.parameters.first().cast_const();
        let thread = kernel.thread;
        let order = match self.random.get() {
            Some(mut random) => {
                let order = Permutation::new(u64::from(grid.threads()), &mut random);
                self.random.set(Some(random));
                order
            }
            None => Permutation::IDENTITY,
        };
        let this: *const Runner = self;
        self.start(slot, self.stacks.borrow().get(0), move || {
            // SAFETY: as in `run_serially`.
            unsafe {
                let runner = &*this;
                for number in 0..runner.threads.get() {
                    let number = order.at(u64::from(number)) as u32;
                    runner.current.set(number);
                    (*geometry).thread_idx = runner.grid().thread_index(number);
                    thread(geometry, parameters);
                }
            }
        });
        while !self.resume(slot) && self.stop.get().is_none() {}
        self.abandon(slot);
    }

    /// Sets the geometry of the block's first thread. No coroutine may be running.
    fn set_geometry(&self, geometry: *mut Geometry, grid: &Grid, dynamic_shared: *mut u8) {
        // SAFETY: the geometry belongs to a slot that no coroutine uses now.
        unsafe {
            geometry.write(Geometry {
                thread_idx: [0; 3],
                block_idx: self.block.get(),
                block_dim: grid.block_dim,
                grid_dim: grid.grid_dim,
                dynamic_shared,
            });
        }
    }
}
