//! Primary contexts, the current context, and context limits.

use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::sys::{CUcontext, CUdevice, CUlimit};
use super::{Failed, calls};

/// A context that is current on this thread until the value is dropped. What was current before comes back, so
/// a host program that uses other CUDA libraries on the same thread sees no difference.
#[derive(Debug)]
pub(crate) struct Current {
    /// Whether it was not current before, and so is popped.
    is_pushed: bool,
    /// `cuCtxPushCurrent` acts on the calling thread, so the value must be dropped there.
    _not_send: std::marker::PhantomData<*mut ()>,
}

impl Current {
    /// `cuCtxPushCurrent` (driver API, Context Management), unless the context is current already: to ask costs a
    /// fraction of pushing and popping, which every launch would pay.
    ///
    /// # Safety
    /// The contract of [`super`]; the context outlives the value.
    pub(crate) unsafe fn push(context: CUcontext) -> Result<Current, Failed> {
        // SAFETY: passed on to the caller.
        unsafe { Current::already(context) }.map_or_else(
            || {
                // SAFETY: as above.
                unsafe { calls::cuCtxPushCurrent_v2(context) }?;
                Ok(Current { is_pushed: true, _not_send: std::marker::PhantomData })
            },
            Ok,
        )
    }

    /// The context, if it is current on this thread (`cuCtxGetCurrent`).
    ///
    /// # Safety
    /// As [`Current::push`].
    pub(crate) unsafe fn already(context: CUcontext) -> Option<Current> {
        let mut current = ptr::null_mut();
        // SAFETY: passed on to the caller; the pointer is to a live pointer.
        let asked = unsafe { calls::cuCtxGetCurrent(&mut current) };
        (asked.is_ok() && current == context && !context.is_null())
            .then_some(Current { is_pushed: false, _not_send: std::marker::PhantomData })
    }
}

impl Drop for Current {
    fn drop(&mut self) {
        if !self.is_pushed {
            return;
        }
        let mut popped = ptr::null_mut();
        // SAFETY: pops what `push` pushed on this thread. It fails only if the context is gone, and then
        // there is nothing left to restore.
        let _ = unsafe { calls::cuCtxPopCurrent_v2(&mut popped) };
    }
}

thread_local! {
    /// What [`Held`] values of this thread pushed, the last on top.
    static HELD: RefCell<Vec<(u64, CUcontext)>> = const { RefCell::new(Vec::new()) };
}

/// A context that the host program made current for longer than one call. Values may be dropped in any order, though
/// the driver has a stack: each takes away what it pushed itself.
#[derive(Debug)]
pub(crate) struct Held {
    number: u64,
    /// As [`Current`].
    _not_send: std::marker::PhantomData<*mut ()>,
}

impl Held {
    /// `cuCtxPushCurrent`, also where the context is current already: the value that pushed it may go first.
    ///
    /// # Safety
    /// As [`Current::push`].
    pub(crate) unsafe fn push(context: CUcontext) -> Result<Held, Failed> {
        /// The next value's number.
        static NEXT: AtomicU64 = AtomicU64::new(0);

        // SAFETY: passed on to the caller.
        unsafe { calls::cuCtxPushCurrent_v2(context) }?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A thread that ends has no list any more; then the last to come is the first to go.
        let _ = HELD.try_with(|held| held.borrow_mut().push((number, context)));
        Ok(Held { number, _not_send: std::marker::PhantomData })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let above = HELD.try_with(|held| {
            let mut held = held.borrow_mut();
            let at = held.iter().position(|(number, _)| *number == self.number)?;
            Some(held.split_off(at))
        });
        let above = above.ok().flatten().unwrap_or_else(|| vec![(self.number, ptr::null_mut())]);
        for _ in &above {
            let mut popped = ptr::null_mut();
            // SAFETY: pops what `push` pushed on this thread. It fails only if the context is gone.
            let _ = unsafe { calls::cuCtxPopCurrent_v2(&mut popped) };
        }
        for (number, context) in above.into_iter().skip(1) {
            // SAFETY: the value that pushed it still lives, and the context with it.
            if unsafe { calls::cuCtxPushCurrent_v2(context) }.is_ok() {
                let _ = HELD.try_with(|held| held.borrow_mut().push((number, context)));
            }
        }
    }
}

/// `cuDevicePrimaryCtxRetain`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn retain_primary(device: CUdevice) -> Result<CUcontext, Failed> {
    let mut context = ptr::null_mut();
    // SAFETY: passed on to the caller; the pointer is to a live pointer.
    unsafe { calls::cuDevicePrimaryCtxRetain(&mut context, device) }?;
    Ok(context)
}

/// `cuDevicePrimaryCtxRelease`.
///
/// # Safety
/// The contract of [`super`]; pairs with one [`retain_primary`].
pub(crate) unsafe fn release_primary(device: CUdevice) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuDevicePrimaryCtxRelease_v2(device) }
}

/// `cuDevicePrimaryCtxReset`: destroys everything in the primary context, also after a fault, and leaves a fresh one to
/// whoever retained it.
///
/// # Safety
/// The contract of [`super`]; no handle that was made in the context is used again.
pub(crate) unsafe fn reset_primary(device: CUdevice) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuDevicePrimaryCtxReset_v2(device) }
}

/// `cuCtxGetLimit` of the current context.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn limit(limit: CUlimit) -> Result<usize, Failed> {
    let mut value = 0;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe { calls::cuCtxGetLimit(&mut value, limit) }?;
    Ok(value)
}

/// `cuCtxSetLimit` of the current context.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn set_limit(limit: CUlimit, value: usize) -> Result<(), Failed> {
    // SAFETY: passed on to the caller.
    unsafe { calls::cuCtxSetLimit(limit, value) }
}
