//! A block whose threads never wait: all of them in one coroutine.

use super::super::abi::{Geometry, KernelDescriptor};
use super::super::grid::Grid;
use super::super::seed::Permutation;
use super::{Mode, Runner};

impl Runner {
    pub(super) fn run_as_one(
        &self,
        grid: &Grid,
        kernel: &KernelDescriptor,
        dynamic_shared: *mut u8,
        mode: Mode,
    ) {
        let slot = self.slot(0);
        let geometry = slot.geometry.get();
        // SAFETY: nothing runs in the slot.
        unsafe {
            geometry.write(Geometry {
                thread_idx: [0; 3],
                block_idx: self.block.get(),
                block_dim: grid.block_dim,
                grid_dim: grid.grid_dim,
                dynamic_shared,
            });
        }
        let parameters = grid.parameters.first().cast_const();
        let (serial, thread) = (kernel.serial, kernel.thread);
        let order = match (mode, self.random.get()) {
            (Mode::Loop, Some(mut random)) => {
                let order = Permutation::new(u64::from(grid.threads()), &mut random);
                self.random.set(Some(random));
                order
            }
            _ => Permutation::IDENTITY,
        };
        let this: *const Runner = self;
        self.start(slot, self.stacks.borrow().get(0), move || {
            // SAFETY: the runner and the grid outlive the block; the entries are the image's, called as the ABI
            // says.
            unsafe {
                match serial {
                    Some(serial) if mode == Mode::Serial => serial(geometry, parameters),
                    _ => {
                        let runner = &*this;
                        for number in 0..runner.threads.get() {
                            let number = order.at(u64::from(number)) as u32;
                            runner.current.set(number);
                            (*geometry).thread_idx = runner.grid().thread_index(number);
                            thread(geometry, parameters);
                        }
                    }
                }
            }
        });
        while !self.resume(slot) && self.stop.get().is_none() {}
        self.abandon(slot);
    }
}
