//! The names and signatures of what lies outside of a program: CUDA's device runtime, and the record of
//! lost launches that the host reads. No other file spells them.
//!
//! The functions are declared in CUDA's header `cuda_device_runtime_api.h`, and described in "Device-Side
//! Launch from PTX" of the dynamic parallelism chapter of the CUDA Programming Guide.

use crate::arch::CudaArch;
use crate::ir::Extern;
use crate::types::{Scalar, Type};

/// A function of CUDA's device runtime.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RuntimeFunction {
    /// Gives a buffer for the parameters of a launch, or NULL: the kernel's address, the grid, the block,
    /// the dynamic shared memory in bytes.
    GetParameterBuffer,
    /// Launches into a stream the kernel that a filled parameter buffer is for, and gives a `cudaError`.
    LaunchDevice,
    /// Makes a stream: where to write its handle, [`STREAM_NON_BLOCKING`].
    StreamCreate,
    /// Gives a stream back, which its work outlives.
    StreamDestroy,
    /// Copies: to, from, bytes, [`MEMCPY_DEVICE_TO_DEVICE`], the stream.
    MemcpyAsync,
    /// Fills: where, the byte, how many, the stream. Only for the CPU device: see [`FILL_KERNEL`].
    MemsetAsync,
    /// Gives the last `cudaError` of the thread and forgets it.
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
}

/// Under which names the device runtime offers its second interface (CDP2).
///
/// The two interfaces must not meet in one program. CDP2 is the only one that has named streams. From
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

/// Stream handles that mean a stream of a known kind instead of pointing to one. The values are those of
/// the macros `cudaStream…` of the header; the kinds are described in "Streams" of the Guide's chapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NamedStream {
    /// The NULL stream: one for each block.
    Default,
    /// `cudaStreamPerThread`.
    PerThread,
    /// `cudaStreamTailLaunch`: starts after the grid and all that it launched.
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

/// The parameters of the device runtime's functions that typed-pointer LLVM declares as pointers to a named
/// struct: symbol, parameter from 0, name of the struct. All other pointers are to bytes.
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

/// `cudaErrorLaunchPendingCountExceeded`: what a launch that got no parameter buffer counts as. The pool of
/// pending launches is full; the host sizes it (`CU_LIMIT_DEV_RUNTIME_PENDING_LAUNCH_COUNT`).
pub const ERROR_LAUNCH_PENDING_COUNT_EXCEEDED: i32 = 69;

/// The device global of four 32-bit words that plain launches that fail are counted in: see
/// `gridlet_artifact::manifest::LostLaunchRecord`. It is there in every image of a program that launches
/// or fills anything.
pub const LOST_LAUNCH_RECORD: &str = "__gridlet_lost_launches";

/// The device global, a `u64`, that counts the launches that succeeded. It is there only where launches are
/// counted: see [`super::LaunchOptions::count_launches`].
pub const LAUNCHES_MADE: &str = "__gridlet_launches_made";

/// The device global, an array of `u32`, in which blocks note how deep launches nest and which SMs run them. It is there
/// only in instrumented builds: see [`super::instrument`].
pub const STATISTICS: &str = "__gridlet_statistics";

/// The function that writes to [`STATISTICS`]. No name of the language has a dot in it.
pub const NOTE_BLOCK: &str = "gridlet.note_block";

/// The function that writes to [`LOST_LAUNCH_RECORD`]. No name of the language has a dot in it.
pub const RECORD_LOST_LAUNCH: &str = "gridlet.record_lost_launch";

/// The variable that says whether a thread of the block launches. No name of the language has a dot in it, nor have the
/// next three.
pub const TURN: &str = "gridlet.turn";

/// The function that clears [`TURN`].
pub const OPEN_TURNS: &str = "gridlet.open_turns";

/// The function that waits for [`TURN`] and takes it.
pub const AWAIT_TURN: &str = "gridlet.await_turn";

/// The function that gives [`TURN`] back.
pub const END_TURN: &str = "gridlet.end_turn";

/// The kernel that `memset_async` launches on GPUs. It is there only in images of programs that fill.
pub const FILL_KERNEL: &str = "__gridlet_fill";

/// The function that launches [`FILL_KERNEL`]. No name of the language has a dot in it.
pub const FILL_ASYNC: &str = "gridlet.fill_async";

/// Whether one of `symbols` is a function of the device runtime, under any of its names:
/// whether a module that declares them must be linked with `libcudadevrt.a`.
pub fn declares_any<S: AsRef<str>>(symbols: impl IntoIterator<Item = S>) -> bool {
    let known = [DeviceRuntimeAbi::Public, DeviceRuntimeAbi::Cdp2]
        .map(|abi| RuntimeFunction::ALL.map(|function| abi.symbol(function)));
    symbols
        .into_iter()
        .any(|symbol| known.as_flattened().iter().any(|known| known == symbol.as_ref()))
}
