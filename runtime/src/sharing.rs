//! The owners of handles that other libraries made, and streams that were lent to cudarc.

use std::any::Any;
use std::sync::{Arc, OnceLock};

use cudarc::driver::CudaStream;

use crate::observe;

/// What keeps a handle of another library alive.
pub(crate) type Keep = Box<dyn Any + Send + Sync>;

/// With whom a stream is shared.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    /// Whose it is, if it is another library's: then it is not destroyed here.
    owner: Option<Keep>,
    /// The same stream as cudarc has it, once it was given there.
    pub(crate) lent: OnceLock<Arc<CudaStream>>,
}

impl Sharing {
    pub(crate) fn owned_by(owner: Keep) -> Sharing {
        Sharing { owner: Some(owner), lent: OnceLock::new() }
    }

    /// Whether nobody else has the stream.
    pub(crate) fn may_destroy(&self) -> bool {
        self.owner.is_none() && !self.is_lent()
    }

    fn is_lent(&self) -> bool {
        self.lent.get().is_some_and(|lent| Arc::strong_count(lent) > 1)
    }

    /// Lets go of the others' handles, or of none of them if to destroy one could wait for ever.
    pub(crate) fn end(&mut self, hangs: bool) {
        if self.is_lent() {
            observe::leaked("cudarc still has a stream that is gone here");
        }
        // What cudarc has of the stream keeps neither it nor its owner alive, so they stay for good.
        if hangs || self.is_lent() {
            std::mem::forget(std::mem::take(self));
        } else {
            *self = Sharing::default();
        }
    }
}
