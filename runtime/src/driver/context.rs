//! Primary contexts, the current context, and context limits.

use std::cell::RefCell;
use std::ptr;
use std::sync::atomic::{AtomicU64, Ordering};

use super::sys::{CUcontext, CUdevice, CUlimit};
use super::{Failed, calls};

/// A context that is current on this thread until the value is dropped. Dropping it restores the previous context,
/// so a host program that uses other CUDA libraries on the same thread sees no difference.
#[derive(Debug)]
pub(crate) struct Current {
    /// Whether the context was pushed, because it was not already current, and so must be popped.
    is_pushed: bool,
    /// `cuCtxPushCurrent` acts on the calling thread, so the value must be dropped there.
    _not_send: std::marker::PhantomData<*mut ()>,
}

impl Current {
    /// `cuCtxPushCurrent` (driver API, Context Management), unless the context is already current: the check costs
    /// a fraction of the push and pop that every launch would otherwise pay for.
    ///
    /// # Safety
    /// The contract of [`super`]; the context must outlive the value.
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

    /// A no-op guard if the context is already current on this thread (`cuCtxGetCurrent`), else `None`.
    ///
    /// # Safety
    /// Same as [`Current::push`].
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
        // SAFETY: pops the context that `push` pushed on this thread. It fails only if the context is gone, and
        // then there is nothing to restore.
        let _ = unsafe { calls::cuCtxPopCurrent_v2(&mut popped) };
    }
}

thread_local! {
    /// The contexts that this thread's [`Held`] values pushed, the latest on top.
    static HELD: RefCell<Vec<(u64, CUcontext)>> = const { RefCell::new(Vec::new()) };
}

/// A context that the host program made current for longer than one call. Although the driver has a stack, values
/// may be dropped in any order: each removes the context that it pushed.
#[derive(Debug)]
pub(crate) struct Held {
    number: u64,
    /// As in [`Current`].
    _not_send: std::marker::PhantomData<*mut ()>,
}

impl Held {
    /// `cuCtxPushCurrent`, even if the context is already current: the value that pushed it may be dropped first.
    ///
    /// # Safety
    /// Same as [`Current::push`].
    pub(crate) unsafe fn push(context: CUcontext) -> Result<Held, Failed> {
        /// The number of the next value.
        static NEXT: AtomicU64 = AtomicU64::new(0);

        // SAFETY: passed on to the caller.
        unsafe { calls::cuCtxPushCurrent_v2(context) }?;
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        // A thread that is ending has no list any more; then each drop pops the top context.
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
            // SAFETY: pops the context that `push` pushed on this thread. It fails only if the context is gone.
            let _ = unsafe { calls::cuCtxPopCurrent_v2(&mut popped) };
        }
        for (number, context) in above.into_iter().skip(1) {
            // SAFETY: the value that pushed it still lives, and so does the context.
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

/// `cuDevicePrimaryCtxReset`: destroys everything in the primary context, even after a fault, and leaves a fresh
/// context to those that retained it.
///
/// # Safety
/// The contract of [`super`]; no handle created in the context may be used again.
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
