//! Functions that lowered code calls and the device provides: on GPUs in a library that images are linked with, on the
//! CPU in the CPU device itself. Codegen takes everything it needs to know about them from here, so that it knows no
//! launch strategy.

use gridlet_artifact::cpu::abi::Callback;

/// A function that the device provides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceFunction {
    /// The name of its result in LLVM's text.
    pub result_name: &'static str,
    /// Whether its result depends on which thread of the block calls it.
    pub is_per_thread: bool,
    /// The call of the CPU device that replaces it.
    pub cpu: CpuCall,
}

/// A call of the CPU device in place of a device function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CpuCall {
    /// The function of the CPU device.
    pub callback: Callback,
    /// How each argument is passed, in order.
    pub arguments: &'static [CpuArgument],
    /// Whether the position in the source follows the arguments.
    pub tells_position: bool,
}

/// How an argument of a device function is passed to the CPU device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CpuArgument {
    /// As it is.
    Value,
    /// As the address of a copy, which has that name in LLVM's text.
    Copy(&'static str),
    /// As a 64-bit integer: it is a pointer.
    Number,
    /// Not at all.
    Omitted,
}
