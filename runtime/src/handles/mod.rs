//! The handles: devices, streams, events, green contexts, programs and resources.
//!
//! Handles refer to each other: a stream keeps its device alive, a device waits for its streams, a green context
//! knows which programs its kernels come from. So these files import each other, unlike all other files and
//! folders of this crate; handles without such a cycle belong elsewhere.

mod device;
#[cfg(feature = "async")]
mod done;
mod event;
mod occupancy;
mod partition;
mod program;
mod resident;
pub mod resources;
mod stream;

pub use device::{CurrentDevice, DEFAULT_TIMEOUT, Device};
pub(crate) use device::{DeviceInner, HostVisible, number_of};
#[cfg(feature = "async")]
pub use done::{EventDone, StreamDone};
pub use event::Event;
pub use partition::{Confinement, CurrentGreenContext, GreenContext};
pub use program::{Kernel, Program};
pub(crate) use program::{c_string, foreign};
pub use stream::Stream;
