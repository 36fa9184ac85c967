//! The names and signatures of CUDA's device runtime, and the names of the functions and kernels that this strategy adds.
//! No other file spells them.
//!
//! The functions are declared in CUDA's header `cuda_device_runtime_api.h`, and described in "Device-Side
//! Launch from PTX" of the dynamic parallelism chapter of the CUDA Programming Guide.

use gridlet_artifact::cpu::abi::Callback;

use crate::arch::CudaArch;
use crate::ir::Extern;
use crate::ir::symbol::OWN;
use crate::launch::device::{CpuArgument, CpuCall, DeviceFunction};
use crate::types::{Scalar, Type};

/// A function of CUDA's device runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum RuntimeFunction {
    /// Returns a buffer for the parameters of a launch, or NULL. Takes the kernel's address, the grid, the block and the
    /// dynamic shared memory in bytes.
    GetParameterBuffer,
    /// Launches the kernel of a filled parameter buffer into a stream, and returns a `cudaError`.
    LaunchDevice,
    /// Creates a stream. Takes the address to write its handle to and [`STREAM_NON_BLOCKING`].
    StreamCreate,
    /// Destroys a stream; its work still completes.
    StreamDestroy,
    /// Copies. Takes the destination, the source, the bytes, [`MEMCPY_DEVICE_TO_DEVICE`] and the stream.
    MemcpyAsync,
    /// Fills. Takes the address, the byte, the number of bytes and the stream. Only for the CPU device: see
    /// [`crate::launch::fill::FILL_KERNEL`].
    MemsetAsync,
    /// Returns the thread's last `cudaError` and resets it.
    GetLastError,
}

impl RuntimeFunction {
    /// All of them.
    pub const ALL: [RuntimeFunction; 7] = [
        RuntimeFunction::GetParameterBuffer,
        RuntimeFunction::LaunchDevice,
        RuntimeFunction::StreamCreate,
        RuntimeFunction::StreamDestroy,
        RuntimeFunction::MemcpyAsync,
        RuntimeFunction::MemsetAsync,
        RuntimeFunction::GetLastError,
    ];

    /// The name after `cuda` or `__cudaCDP2`.
    fn stem(self) -> &'static str {
        match self {
            RuntimeFunction::GetParameterBuffer => "GetParameterBufferV2",
            RuntimeFunction::LaunchDevice => "LaunchDeviceV2",
            RuntimeFunction::StreamCreate => "StreamCreateWithFlags",
            RuntimeFunction::StreamDestroy => "StreamDestroy",
            RuntimeFunction::MemcpyAsync => "MemcpyAsync",
            RuntimeFunction::MemsetAsync => "MemsetAsync",
            RuntimeFunction::GetLastError => "GetLastError",
        }
    }

    /// Its description for codegen.
    pub(super) fn device_function(self) -> DeviceFunction {
        use CpuArgument::{Copy, Number, Omitted, Value};
        let cpu =
            |callback, arguments, tells_position| CpuCall { callback, arguments, tells_position };
        let (result_name, is_per_thread, cpu) = match self {
            RuntimeFunction::GetParameterBuffer => (
                "param_buffer",
                false,
                cpu(
                    Callback::GetParameterBuffer,
                    &[Value, Copy("grid"), Copy("block"), Value],
                    false,
                ),
            ),
            RuntimeFunction::LaunchDevice => {
                ("launch_status", false, cpu(Callback::LaunchDevice, &[Value, Number], true))
            }
            RuntimeFunction::StreamCreate => {
                ("status", false, cpu(Callback::StreamCreate, &[Value, Omitted], false))
            }
            RuntimeFunction::StreamDestroy => {
                ("status", false, cpu(Callback::StreamDestroy, &[Number], false))
            }
            RuntimeFunction::MemcpyAsync => (
                "status",
                false,
                cpu(Callback::MemcpyAsync, &[Value, Value, Value, Omitted, Number], true),
            ),
            RuntimeFunction::MemsetAsync => {
                ("status", false, cpu(Callback::MemsetAsync, &[Value, Value, Value, Number], true))
            }
            RuntimeFunction::GetLastError => ("status", true, cpu(Callback::LastError, &[], false)),
        };
        DeviceFunction { result_name, is_per_thread, cpu }
    }
}

/// The names under which the device runtime offers its second interface (CDP2).
///
/// A program must not use both interfaces. Only CDP2 has named streams. From
/// compute capability 9.0 on, the public names mean it; below, the public names mean the first interface,
/// and CDP2 has private names, which nvcc uses everywhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DeviceRuntimeAbi {
    /// `cudaGetParameterBufferV2`, `cudaLaunchDeviceV2` and so on.
    Public,
    /// `__cudaCDP2GetParameterBufferV2`, `__cudaCDP2LaunchDeviceV2` and so on.
    Cdp2,
}

impl DeviceRuntimeAbi {
    /// The names that mean CDP2 on `arch`.
    pub fn for_arch(arch: CudaArch) -> Self {
        if arch.public_names_are_cdp2() { DeviceRuntimeAbi::Public } else { DeviceRuntimeAbi::Cdp2 }
    }

    /// The symbol of a function.
    pub fn symbol(self, function: RuntimeFunction) -> String {
        match self {
            DeviceRuntimeAbi::Public => format!("cuda{}", function.stem()),
            DeviceRuntimeAbi::Cdp2 => format!("__cudaCDP2{}", function.stem()),
        }
    }

    /// The declaration of a function. The two `dim3` are passed by value.
    pub fn declaration(self, function: RuntimeFunction) -> Extern {
        let byte = Type::Scalar(Scalar::U8);
        let (parameters, result) = match function {
            RuntimeFunction::GetParameterBuffer => (
                vec![Type::pointer_const(byte.clone()), Type::DIM3, Type::DIM3, Type::U32],
                Type::pointer_mut(byte),
            ),
            RuntimeFunction::LaunchDevice => {
                (vec![Type::pointer_mut(byte), Type::Stream], Type::I32)
            }
            RuntimeFunction::StreamCreate => {
                (vec![Type::pointer_mut(Type::Stream), Type::U32], Type::I32)
            }
            RuntimeFunction::StreamDestroy => (vec![Type::Stream], Type::I32),
            RuntimeFunction::MemcpyAsync => {
                let pointers = [Type::pointer_mut(byte.clone()), Type::pointer_const(byte)];
                let rest = [Type::U64, Type::I32, Type::Stream];
                (pointers.into_iter().chain(rest).collect(), Type::I32)
            }
            RuntimeFunction::MemsetAsync => {
                (vec![Type::pointer_mut(byte), Type::I32, Type::U64, Type::Stream], Type::I32)
            }
            RuntimeFunction::GetLastError => (vec![], Type::I32),
        };
        Extern { name: self.symbol(function), parameters, result, span: None }
    }
}

/// `cudaStreamNonBlocking`: the only kind of stream that the device makes.
pub const STREAM_NON_BLOCKING: u32 = 1;

/// `cudaMemcpyDeviceToDevice`: the only kind of copy that the device makes.
pub const MEMCPY_DEVICE_TO_DEVICE: i32 = 3;

/// Stream handles that name a kind of stream instead of pointing to one. The values are those of the macros
/// `cudaStream…` of the header; "Streams" in the Guide's chapter describes the kinds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum NamedStream {
    /// The NULL stream: one for each block.
    Default,
    /// `cudaStreamPerThread`.
    PerThread,
    /// `cudaStreamTailLaunch`: starts after the grid and everything that it launched.
    TailLaunch,
    /// `cudaStreamFireAndForget`: starts at once, ordered after nothing.
    FireAndForget,
}

impl NamedStream {
    /// The value of the handle.
    pub fn handle(self) -> u64 {
        match self {
            NamedStream::Default => 0,
            NamedStream::PerThread => 2,
            NamedStream::TailLaunch => 3,
            NamedStream::FireAndForget => 4,
        }
    }
}

/// The name of the LLVM struct of `dim3`, as CUDA's headers give it to C++ compilers.
pub const DIM3_STRUCT: &str = "struct.dim3";

/// The name of the opaque LLVM struct that a stream handle points to where pointers are typed.
pub const STREAM_STRUCT: &str = "struct.CUstream_st";

/// See [`crate::launch::struct_pointers`].
pub fn struct_pointers() -> Vec<(String, u32, &'static str)> {
    let mut pointers = vec![];
    for abi in [DeviceRuntimeAbi::Public, DeviceRuntimeAbi::Cdp2] {
        for declared in RuntimeFunction::ALL.map(|function| abi.declaration(function)) {
            let is_stream = |ty: &Type| *ty == Type::Stream;
            let streams = (0..).zip(&declared.parameters).filter(|(_, ty)| is_stream(ty));
            pointers.extend(streams.map(|(at, _)| (declared.name.clone(), at, STREAM_STRUCT)));
        }
    }
    pointers
}

/// `cudaErrorLaunchPendingCountExceeded`: the status of a launch that got no parameter buffer. The pool of pending launches
/// is full; the host sizes it (`CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT`).
pub const ERROR_LAUNCH_PENDING_COUNT_EXCEEDED: i32 = 69;

/// The variable that holds, for each warp of the block, the lanes that are in the device runtime, and those that need no turns. Names in the
/// language never contain a dot, here and in the next six.
pub const TURNS: &str = "gridlet.turns";

/// The function that clears a warp's word of [`TURNS`], or notes there that a block of one thread has no turns.
pub const OPEN_TURNS: &str = "gridlet.open_turns";

/// The function that does so in its place where one thread of a block launches, if the block has one row.
pub const OPEN_ROW: &str = "gridlet.open_row";

/// The function that waits until no lane of the warp is in the device runtime.
pub const AWAIT_TURN: &str = "gridlet.await_turn";

/// The function that a lane calls when it comes back.
pub const END_TURN: &str = "gridlet.end_turn";

/// The function that gives the address of a warp's word.
pub const INSIDE: &str = "gridlet.inside";

/// How the names of the functions begin that call a function of the device runtime in turn; its name follows.
pub const IN_TURN: &str = "gridlet.turn.";

/// The functions of the device runtime, each under both of its names.
fn named() -> impl Iterator<Item = (String, RuntimeFunction)> {
    [DeviceRuntimeAbi::Public, DeviceRuntimeAbi::Cdp2]
        .into_iter()
        .flat_map(|abi| RuntimeFunction::ALL.map(|function| (abi.symbol(function), function)))
}

/// The name of the function of the device runtime that a function of a lowered module, by its symbol, calls in turn.
pub fn called_in_turn(symbol: &str) -> Option<&str> {
    symbol.strip_prefix(OWN)?.strip_prefix(IN_TURN)
}

/// The device-runtime function with that symbol, under either of its names, or that a function with that symbol calls in turn.
pub fn runtime_function(symbol: &str) -> Option<RuntimeFunction> {
    let called = called_in_turn(symbol).unwrap_or(symbol);
    named().find(|(name, _)| name == called).map(|(_, function)| function)
}

/// As [`runtime_function`], as codegen needs it.
pub(in crate::launch) fn device_function(symbol: &str) -> Option<DeviceFunction> {
    runtime_function(symbol).map(RuntimeFunction::device_function)
}

/// Whether one of `symbols` is a function of the device runtime, under either of its names. A module that declares one
/// must be linked with `libcudadevrt.a`.
pub fn declares_any<S: AsRef<str>>(symbols: impl IntoIterator<Item = S>) -> bool {
    symbols.into_iter().any(|symbol| device_function(symbol.as_ref()).is_some())
}
