//! The owners of handles that other libraries created, and streams lent to cudarc.

use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use cudarc::driver::CudaStream;

use crate::observe;

/// Keeps a handle of another library alive.
pub(crate) type Keep = Box<dyn Any + Send + Sync>;

/// The other users of a stream.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    /// The library that owns the stream, if it is not this crate: then the stream is not destroyed here.
    owner: Option<Keep>,
    /// cudarc's handle to the same stream, once it was lent.
    pub(crate) lent: OnceLock<Arc<CudaStream>>,
    /// Whether other code was given the raw handle.
    pub(crate) told: AtomicBool,
}

impl Sharing {
    pub(crate) fn owned_by(owner: Keep) -> Sharing {
        Sharing { owner: Some(owner), ..Sharing::default() }
    }

    /// Whether this crate owns the stream and nobody else uses it.
    pub(crate) fn may_destroy(&self) -> bool {
        self.owner.is_none() && !self.is_lent()
    }

    /// Whether other code may know the stream.
    pub(crate) fn is_known(&self) -> bool {
        self.owner.is_some() || self.told.load(Ordering::Acquire)
    }

    fn is_lent(&self) -> bool {
        self.lent.get().is_some_and(|lent| Arc::strong_count(lent) > 1)
    }

    /// Drops the other libraries' handles, or leaks them if destroying one could wait forever.
    pub(crate) fn end(&mut self, hangs: bool) {
        if self.is_lent() {
            observe::leaked("cudarc still holds a stream that was dropped here");
        }
        // cudarc's handle keeps neither the stream nor its owner alive, so both leak.
        if hangs || self.is_lent() {
            std::mem::forget(std::mem::take(self));
        } else {
            *self = Sharing::default();
        }
    }
}
