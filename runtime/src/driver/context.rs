//! Primary contexts, the current context, and context limits.

use std::ptr;

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
