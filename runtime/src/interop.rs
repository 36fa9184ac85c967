//! Sharing a GPU with other code: raw handles, and cudarc's safe types.
//!
//! Both work in the device's primary context, so memory, streams and events of one are the other's, too:
//!
//! | From | To | How | Who destroys it |
//! |---|---|---|---|
//! | cudarc's `CudaContext` | [`Device`] | [`Device::from_cudarc`] | each its own reference to the primary context |
//! | [`Device`] | `CudaContext` | [`Device::to_cudarc`] | the same |
//! | `CudaStream` | [`Stream`] | [`Stream::from_cudarc`] | cudarc, after our last clone |
//! | [`Stream`] | `CudaStream` | [`Stream::to_cudarc`] | this crate, unless cudarc still has it: then nobody |
//! | `CudaSlice` | [`Arg`] | [`Arg::cudarc`], [`Arg::cudarc_mut`] | cudarc |
//! | `CudaSlice` | [`Buffer`] | [`Buffer::from_cudarc`] | cudarc, after the launches that may use it |
//! | [`Buffer`] | `CudaView` | [`Buffer::with_cudarc`], [`Buffer::with_cudarc_mut`] | this crate |
//! | any handle | the value of it | `borrow_raw`, [`DeviceMemory::from_raw`] | said there |
//! | a value | its handle | `raw`, [`DeviceMemory::into_raw`] | this crate |
//!
//! Never give the context of a green context to `CudaContext::from_raw_context`: it would destroy with `cuCtxDestroy`
//! what only `cuGreenCtxDestroy` may.
//!
//! cudarc makes its context current on the calling thread and leaves it so. It panics where the driver lacks a call
//! that it needs; what this module calls is in every driver that a [`Device`] opens with.
//!
//! The CPU device shares nothing: all of this is [`Error::NotOnCpu`] there.
//!
//! ```no_run
//! use cudarc::driver::CudaContext;
//! use gridlet_runtime::{Arg, Artifact, Device, LaunchConfig, Program, Stream};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let context = CudaContext::new(0)?;
//! let theirs = context.new_stream()?;
//! let mut numbers = theirs.clone_htod(&[3u32, 1, 2])?;
//!
//! let stream = Stream::from_cudarc(&theirs)?;
//! let program = Program::load(&stream.device(), &Artifact::open("sort.gridlet")?)?;
//! let count = numbers.len() as u32;
//! {
//!     let (numbers, _until_launched) = Arg::cudarc_mut(&mut numbers, &theirs);
//!     stream.launch(&program.kernel("sort")?, &LaunchConfig::new(1, 32), &[numbers, Arg::from(count)])?;
//! }
//! stream.synchronize_default()?; // reports faults and lost launches, which cudarc would not
//! println!("{:?}", theirs.clone_dtoh(&numbers)?);
//! # Ok(())
//! # }
//! ```

mod cudarc;
mod raw;

use std::any::Any;
use std::sync::{Arc, OnceLock};

use ::cudarc::driver::CudaStream;

use crate::observe;
#[cfg(doc)]
use crate::{Arg, Buffer, Device, DeviceMemory, Error, Stream};

/// What keeps a handle of another library alive.
pub(crate) type Keep = Box<dyn Any + Send + Sync>;

/// With whom a stream is shared.
#[derive(Debug, Default)]
pub(crate) struct Sharing {
    /// Whose it is, if it is another library's: then it is not destroyed here.
    owner: Option<Keep>,
    /// The same stream as cudarc has it, once it was given there.
    lent: OnceLock<Arc<CudaStream>>,
}

impl Sharing {
    fn owned_by(owner: Keep) -> Sharing {
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
