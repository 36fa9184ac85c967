//! Sharing a GPU with other code, through raw handles and cudarc's safe types.
//!
//! Both sides work in the device's primary context, so either can use the other's memory, streams and events:
//!
//! | From | To | How | Who destroys it |
//! |---|---|---|---|
//! | cudarc's `CudaContext` | [`Device`] | [`Device::from_cudarc`] | each side its own reference to the primary context |
//! | [`Device`] | `CudaContext` | [`Device::to_cudarc`] | the same |
//! | `CudaStream` | [`Stream`] | [`Stream::from_cudarc`] | cudarc, after the last clone of the `Stream` |
//! | [`Stream`] | `CudaStream` | [`Stream::to_cudarc`] | this crate; nobody if cudarc still holds it |
//! | `CudaSlice` | [`Arg`] | [`Arg::cudarc`], [`Arg::cudarc_mut`] | cudarc |
//! | `CudaSlice` | [`Buffer`] | [`Buffer::from_cudarc`] | cudarc, after the launches that may use it |
//! | [`Buffer`] | `CudaView` | [`Buffer::with_cudarc`], [`Buffer::with_cudarc_mut`] | this crate |
//! | a raw handle | the owning type | `borrow_raw`, [`DeviceMemory::from_raw`] | see the function |
//! | an owning type | its raw handle | `raw`, [`DeviceMemory::into_raw`] | this crate |
//!
//! Never pass the context of a green context to `CudaContext::from_raw_context`: cudarc would destroy it with
//! `cuCtxDestroy`, but only `cuGreenCtxDestroy` is allowed.
//!
//! cudarc makes its context current on the calling thread and leaves it current. It panics if the driver lacks a
//! call that it needs; every driver that a [`Device`] opens with has the calls that this module uses.
//!
//! The CPU device shares only memory, by [`DeviceMemory::borrow_raw`]: every other function here returns
//! [`Error::NotOnCpu`].
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

#[cfg(doc)]
use crate::{Arg, Buffer, Device, DeviceMemory, Error, Stream};
