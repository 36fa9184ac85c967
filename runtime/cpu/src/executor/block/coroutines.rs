//! Starting, suspending, resuming and abandoning kernel coroutines.

use std::sync::Arc;

use corosensei::trap::CoroutineTrapHandler;
use corosensei::{Coroutine, CoroutineResult, Yielder};

use super::{Active, Runner, Slot, Stop};
use crate::abi::Location;
use crate::fault::FaultKind;
use crate::stack::KernelStack;

impl Runner {
    /// Suspends the running thread until an event makes it ready.
    #[inline(always)]
    pub(in crate::executor) fn wait(&self, location: Location, at_barrier: bool) {
        let slot = self.slot(self.current.get());
        slot.location.set(location);
        slot.at_barrier.set(at_barrier);
        self.suspend();
    }

    /// Suspends the running coroutine.
    #[inline(always)]
    pub(in crate::executor) fn suspend(&self) {
        let slot = if self.has_threads() { self.slot(self.current.get()) } else { self.slot(0) };
        // SAFETY: the coroutine that runs set it when it started, and it lives as long as the coroutine does.
        unsafe { (*slot.yielder.get()).suspend(()) };
    }

    pub(super) fn set_stop(&self, kind: FaultKind, location: Location) {
        if self.stop.get().is_none() {
            self.stop.set(Some(Stop::new(kind, location)));
        }
    }

    pub(in crate::executor) fn obey(&self, verdict: crate::hooks::Verdict, location: Location) {
        if verdict == crate::hooks::Verdict::Stop {
            self.set_stop(FaultKind::Checked, location);
        }
    }

    /// Leaves the kernel for good if the block has to stop; ignores the state of its launch.
    #[inline(always)]
    pub(in crate::executor) fn leave_if_block_stopped(&self) {
        if self.stop.get().is_some() {
            self.leave();
        }
    }

    /// Leaves the kernel for good if the block or its launch has to stop.
    pub(in crate::executor) fn leave_if_stopped(&self) {
        if self.stop.get().is_some() {
            self.leave();
        }
        if self.is_stopped() {
            self.end(FaultKind::Cancelled, self.last_location());
        }
    }

    /// Ends the block from kernel code.
    pub(in crate::executor) fn end(&self, kind: FaultKind, location: Location) -> ! {
        self.set_stop(kind, location);
        self.leave()
    }

    #[cold]
    #[inline(never)]
    fn leave(&self) -> ! {
        loop {
            // `run_threads` sees `stop` and abandons the coroutine.
            self.suspend();
        }
    }

    // ---- starting and resuming

    /// Creates a coroutine in a slot.
    pub(super) fn start(&self, slot: &Slot, stack: KernelStack, body: impl FnOnce()) {
        slot.stack_start.set(stack.usable().0);
        slot.last_error.set(0);
        slot.location.set(0);
        let slot_pointer: *const Slot = slot;
        // SAFETY: the runner keeps the stack and everything that `body` refers to until the coroutine has ended or was
        // abandoned.
        let coroutine = unsafe {
            Coroutine::with_stack_unchecked(stack, move |yielder: &Yielder<(), ()>, ()| {
                (*slot_pointer).yielder.set(yielder);
                body();
            })
        };
        slot.trap.set(Some(coroutine.trap_handler()));
        // SAFETY: no reference to the slot's coroutine is alive.
        unsafe { *slot.coroutine.get() = Some(coroutine) };
    }

    /// Runs a slot's coroutine until it suspends (false) or ends (true).
    #[inline(always)]
    pub(super) fn resume(&self, slot: &Slot) -> bool {
        self.running.set(true);
        // SAFETY: only this function refers to the coroutine, and a coroutine does not resume itself.
        let result = match unsafe { &mut *slot.coroutine.get() } {
            Some(coroutine) => coroutine.resume(()),
            None => CoroutineResult::Return(()),
        };
        self.running.set(false);
        match result {
            CoroutineResult::Return(()) => {
                // SAFETY: the coroutine has ended, and the reference from the match above is dead.
                unsafe { *slot.coroutine.get() = None };
                true
            }
            CoroutineResult::Yield(()) => {
                if self.wants_help.get() {
                    self.help_out();
                }
                false
            }
        }
    }

    /// Discards a suspended coroutine.
    pub(super) fn abandon(&self, slot: &Slot) {
        // SAFETY: the coroutine is not running. Its stack holds frames of the image, which have no destructors, and of
        // callbacks, which hold nothing with a destructor while suspended.
        unsafe {
            if let Some(coroutine) = &mut *slot.coroutine.get() {
                coroutine.force_reset();
            }
            *slot.coroutine.get() = None;
        }
    }

    /// Runs waiting grids while this block is suspended, because too many are pending.
    #[cold]
    #[inline(never)]
    fn help_out(&self) {
        let inner = self.inner();
        let _active = Active::new(inner);
        self.shared.help(inner);
    }

    /// Runs blocks of another grid while all threads of this block only poll memory.
    #[cold]
    #[inline(never)]
    pub(super) fn help_other(&self) {
        let inner = self.inner();
        let _active = Active::new(inner);
        self.shared.help_other(inner, self.node.get());
    }

    /// The runner for blocks that run while this runner's block is suspended.
    fn inner(&self) -> &Runner {
        self.inner.get_or_init(|| {
            Box::new(Runner::new(Arc::clone(&self.shared), self.worker, self.depth + 1))
        })
    }

    // ---- signals

    /// If the stack pointer is in the running coroutine's stack, the trap handler with which a signal handler can leave
    /// the kernel.
    pub(in crate::executor) fn trap_at(
        &self,
        stack_pointer: usize,
    ) -> Option<CoroutineTrapHandler<()>> {
        if !self.running.get() {
            return None;
        }
        let slots = self.slots.get()?;
        let slot = &slots[if self.has_threads() { self.current.get() as usize } else { 0 }];
        slot.trap.get().filter(|trap| trap.stack_ptr_in_bounds(stack_pointer))
    }

    /// Whether the address is in the guard of the running coroutine's stack.
    pub(in crate::executor) fn is_guard(&self, address: usize) -> bool {
        let index = if self.has_threads() { self.current.get() as usize } else { 0 };
        // Nothing changes the pool while a coroutine runs.
        self.stacks.try_borrow().is_ok_and(|stacks| stacks.get(index).guards(address))
    }

    /// The lowest address of the running coroutine's stack.
    pub(in crate::executor) fn stack_start(&self) -> usize {
        self.slot(if self.has_threads() { self.current.get() } else { 0 }).stack_start.get()
    }

    /// Records the running thread's location, for faults that carry none.
    pub(in crate::executor) fn note_location(&self, location: Location) {
        self.slot(self.current.get()).location.set(location);
    }

    /// Ends the block, from a signal handler.
    pub(in crate::executor) fn note_signal(&self, stop: Stop) {
        if self.stop.get().is_none() {
            self.stop.set(Some(Stop { location: self.last_location(), ..stop }));
        }
    }

    /// The last recorded location of the running thread; 0 if unknown.
    fn last_location(&self) -> Location {
        let is_checked = self.has_threads() && self.shared.hooks.is_some();
        let slots = self.slots.get().filter(|_| is_checked);
        slots.map_or(0, |slots| slots[self.current.get() as usize].location.get())
    }
}
