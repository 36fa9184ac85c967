//! The handles of a device, its streams, events, green contexts, programs and their resources.
//!
//! They hold each other: a stream keeps its device alive, a device waits for its streams, a green context knows which
//! programs its kernels are from. So their files import each other, unlike all other files and folders beside this
//! folder, and every handle that can do without stays outside.

mod device;
mod event;
mod occupancy;
mod partition;
mod program;
pub mod resources;
mod stream;

pub use device::{CurrentDevice, DEFAULT_TIMEOUT, Device};
pub(crate) use device::{DeviceInner, HostVisible, number_of};
pub use event::Event;
pub use partition::{Confinement, CurrentGreenContext, GreenContext};
pub use program::{Kernel, Program};
pub(crate) use program::{c_string, foreign};
pub use stream::Stream;
