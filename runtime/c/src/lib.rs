//! The runtime for C hosts: `runtime/include/gridlet.h` is generated from this file, and a test keeps it up to
//! date.
//!
//! No function unwinds: a panic returns [`gridlet_status::Panic`].

#![allow(non_camel_case_types, reason = "names of C")]

mod boundary;

use std::ffi::{c_char, c_void};
use std::time::Duration;

use boundary::{Status, close, give, guard, invalid, null, text, value};

use gridlet_runtime::{
    Arg, Device, DeviceMemory, Dim3, Error, Kernel, LaunchConfig, Program, Stream, manifest::Type,
};

/// The result of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum gridlet_status {
    /// Success.
    Ok = 0,
    /// An argument is NULL, not UTF-8, or invalid.
    InvalidArgument = 1,
    /// A driver, a device, a driver call or an image for the device is missing.
    Missing = 2,
    /// The bundle is damaged, invalid or too new, or has no such kernel.
    BadBundle = 3,
    /// A launch exceeds a limit of the kernel or the device; nothing was launched.
    Refused = 4,
    /// A kernel faulted, failed a check, or lost launches.
    KernelFailed = 5,
    /// The work did not finish in time.
    TimedOut = 6,
    /// Any other failure of the driver or the system.
    Failed = 7,
    /// A bug in Gridlet.
    Panic = 8,
}

/// A device.
pub struct gridlet_device(Device);

/// A program loaded on a device.
pub struct gridlet_program(Program);

/// A kernel of a program.
pub struct gridlet_kernel(Kernel);

/// A stream of a device.
pub struct gridlet_stream(Stream);

/// Memory of a device.
pub struct gridlet_memory(DeviceMemory);

/// The configuration of a launch. Zero it first: fields added later have no effect when zero.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct gridlet_launch_config {
    /// Blocks in x, y and z; 0 in y or z means 1.
    pub grid: [u32; 3],
    /// Threads per block in x, y and z; 0 in y or z means 1.
    pub block: [u32; 3],
    /// Dynamic shared memory per block, in bytes.
    pub shared_bytes: u32,
    /// Blocks per cluster in x, y and z; 0 in x means no clusters.
    pub cluster: [u32; 3],
    /// Nonzero for a cooperative launch: all blocks run at the same time.
    pub cooperative: u32,
    /// Reserved for later fields, so that programs need not be rebuilt; must be 0.
    pub reserved: [u32; 8],
}

impl Status for gridlet_status {
    const OK: Self = gridlet_status::Ok;
    const INVALID_ARGUMENT: Self = gridlet_status::InvalidArgument;
    const PANIC: Self = gridlet_status::Panic;
}

type Failure = boundary::Failure<gridlet_status>;

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        let status = match &error {
            error if error.is_missing() => gridlet_status::Missing,
            Error::DeviceName { .. } => gridlet_status::InvalidArgument,
            Error::Artifact(_) | Error::UnknownKernel { .. } | Error::ParameterMismatch { .. } => {
                gridlet_status::BadBundle
            }
            Error::Launch { .. }
            | Error::LaunchMemory { .. }
            | Error::Argument { .. }
            | Error::ArgumentCount { .. }
            | Error::Length { .. }
            | Error::OtherDevice { .. } => gridlet_status::Refused,
            Error::Fault(_) | Error::CpuFault(_) | Error::LostLaunches(_) | Error::Checked(_) => {
                gridlet_status::KernelFailed
            }
            Error::TimedOut { .. } => gridlet_status::TimedOut,
            _ => gridlet_status::Failed,
        };
        Failure { status, message: message(&error) }
    }
}

/// What Rust and C call the functions that messages name.
const NAMES: [(&str, &str); 3] = [
    ("Device::set_pending_launch_limit", "gridlet_device_set_pending_launches"),
    ("Device::set_launch_memory", "gridlet_device_set_launch_memory"),
    ("Device::open", "gridlet_device_open"),
];

/// An error's message and its hint, in C's words.
fn message(error: &Error) -> String {
    let hint = error.hint().map(|hint| format!("\n  = hint: {hint}")).unwrap_or_default();
    let text = format!("{error}{hint}");
    NAMES.iter().fold(text, |text, (rust, c)| text.replace(rust, c))
}

/// Refuses a copy whose length differs from the memory's, before anything is read or written.
fn check_length(memory: &DeviceMemory, given: usize) -> Result<(), Failure> {
    let (expected, given) = (memory.len(), given as u64);
    if expected == given { Ok(()) } else { Err(Error::Length { expected, given }.into()) }
}

/// The message of the last failure on this thread, with a hint on a second line where there is one; empty if there was
/// none. Valid until the next failing call on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn gridlet_last_error() -> *const c_char {
    boundary::last_error()
}

/// Opens a device by name: `cuda:0`, `cpu`, or `auto` (the first GPU, or else the CPU).
///
/// # Safety
/// `name` must be a string, and `device` must have room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_device_open(
    name: *const c_char,
    device: *mut *mut gridlet_device,
) -> gridlet_status {
    // SAFETY: passed on to the caller.
    unsafe {
        give(device, "device", || Ok(gridlet_device(Device::open_named(text(name, "name")?)?)))
    }
}

/// Sets how many launches by kernels may be pending at once; the default is 2,048. Further launches are lost, and
/// `gridlet_synchronize` reports them. On a GPU the limit must be set before the first kernel and takes device
/// memory, about 1.2 GB for 131,072 on an H200.
///
/// # Safety
/// `device` must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_device_set_pending_launches(
    device: *const gridlet_device,
    launches: u64,
) -> gridlet_status {
    guard(|| {
        // SAFETY: passed on to the caller.
        let device = unsafe { value(device, "device") }?;
        Ok(device.0.set_pending_launch_limit(launches)?)
    })
}

/// Sets the size in bytes of each stream's launch memory, from its next launch on; the default is 64 MiB. A program built
/// for resident launches keeps the grids that its kernels launched there until they end. Launches that find it full are
/// lost, and `gridlet_synchronize` reports them. Other programs, and the CPU device, need none.
///
/// # Safety
/// `device` must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_device_set_launch_memory(
    device: *const gridlet_device,
    bytes: u64,
) -> gridlet_status {
    guard(|| {
        // SAFETY: passed on to the caller.
        let device = unsafe { value(device, "device") }?;
        device.0.set_launch_memory(bytes);
        Ok(())
    })
}

/// Closes a device.
///
/// # Safety
/// `device` must be NULL, or open and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_device_close(device: *mut gridlet_device) {
    // SAFETY: passed on to the caller.
    unsafe { close::<_, gridlet_status>(device) }
}

/// Loads a bundle from a file.
///
/// # Safety
/// `device` must be open, `path` must be a string, and `program` must have room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_program_load(
    device: *const gridlet_device,
    path: *const c_char,
    program: *mut *mut gridlet_program,
) -> gridlet_status {
    // SAFETY: passed on to the caller.
    unsafe {
        give(program, "program", || {
            let device = value(device, "device")?;
            Ok(gridlet_program(Program::open(&device.0, text(path, "path")?)?))
        })
    }
}

/// Loads a bundle from memory.
///
/// # Safety
/// `device` must be open, `bundle` must have `bytes` bytes, and `program` must have room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_program_load_bytes(
    device: *const gridlet_device,
    bundle: *const c_void,
    bytes: usize,
    program: *mut *mut gridlet_program,
) -> gridlet_status {
    // SAFETY: passed on to the caller.
    unsafe {
        give(program, "program", || {
            let device = value(device, "device")?;
            let bundle = boundary::bytes(bundle, bytes, "bundle")?;
            Ok(gridlet_program(Program::from_bundle(&device.0, bundle)?))
        })
    }
}

/// Unloads a program, once its kernels are closed and have ended.
///
/// # Safety
/// `program` must be NULL, or loaded and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_program_unload(program: *mut gridlet_program) {
    // SAFETY: passed on to the caller.
    unsafe { close::<_, gridlet_status>(program) }
}

/// Looks up a kernel by name.
///
/// # Safety
/// `program` must be loaded, `name` must be a string, and `kernel` must have room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_kernel_open(
    program: *const gridlet_program,
    name: *const c_char,
    kernel: *mut *mut gridlet_kernel,
) -> gridlet_status {
    // SAFETY: passed on to the caller.
    unsafe {
        give(kernel, "kernel", || {
            let program = value(program, "program")?;
            Ok(gridlet_kernel(program.0.kernel(text(name, "name")?)?))
        })
    }
}

/// Closes a kernel.
///
/// # Safety
/// `kernel` must be NULL, or open and not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_kernel_close(kernel: *mut gridlet_kernel) {
    // SAFETY: passed on to the caller.
    unsafe { close::<_, gridlet_status>(kernel) }
}

/// Creates a stream: its work runs in launch order.
///
/// # Safety
/// `device` must be open, and `stream` must have room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_stream_create(
    device: *const gridlet_device,
    stream: *mut *mut gridlet_stream,
) -> gridlet_status {
    // SAFETY: passed on to the caller.
    unsafe { give(stream, "stream", || Ok(gridlet_stream(value(device, "device")?.0.stream()?))) }
}

/// Waits for a stream and destroys it.
///
/// # Safety
/// `stream` must be NULL, or a stream that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_stream_destroy(stream: *mut gridlet_stream) {
    // SAFETY: passed on to the caller.
    unsafe { close::<_, gridlet_status>(stream) }
}

/// Allocates zeroed device memory.
///
/// # Safety
/// `device` must be open, and `memory` must have room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_memory_alloc(
    device: *const gridlet_device,
    bytes: u64,
    memory: *mut *mut gridlet_memory,
) -> gridlet_status {
    // SAFETY: passed on to the caller.
    unsafe {
        give(memory, "memory", || {
            let device = value(device, "device")?;
            Ok(gridlet_memory(DeviceMemory::alloc_zeroed(&device.0, bytes)?))
        })
    }
}

/// Waits for the launches that may use the memory, and frees it.
///
/// # Safety
/// `memory` must be NULL, or memory that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_memory_free(memory: *mut gridlet_memory) {
    // SAFETY: passed on to the caller.
    unsafe { close::<_, gridlet_status>(memory) }
}

/// The device address, for pointer parameters; 0 for NULL.
///
/// # Safety
/// `memory` must be NULL or allocated.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_memory_address(memory: *const gridlet_memory) -> u64 {
    // SAFETY: passed on to the caller.
    unsafe { memory.as_ref() }.map_or(0, |memory| memory.0.address())
}

/// Waits for earlier launches and overwrites all of the memory; `bytes` must be its length.
///
/// # Safety
/// `memory` must be allocated and not used elsewhere during the call, and `from` must have `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_memory_write(
    memory: *mut gridlet_memory,
    from: *const c_void,
    bytes: usize,
) -> gridlet_status {
    guard(|| {
        // SAFETY: passed on to the caller.
        unsafe {
            let memory = memory.as_mut().ok_or_else(|| null("memory"))?;
            check_length(&memory.0, bytes)?;
            Ok(memory.0.copy_from_host(boundary::bytes(from, bytes, "from")?)?)
        }
    })
}

/// Waits for earlier launches and reads all of the memory; `bytes` must be its length.
///
/// # Safety
/// `memory` must be allocated, and `to` must have room for `bytes` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_memory_read(
    memory: *const gridlet_memory,
    to: *mut c_void,
    bytes: usize,
) -> gridlet_status {
    guard(|| {
        // SAFETY: passed on to the caller.
        unsafe {
            let memory = value(memory, "memory")?;
            check_length(&memory.0, bytes)?;
            if bytes == 0 {
                return Ok(());
            }
            if to.is_null() {
                return Err(null("to"));
            }
            // The buffer may be uninitialized in C.
            to.cast::<u8>().write_bytes(0, bytes);
            Ok(memory.0.copy_to_host(std::slice::from_raw_parts_mut(to.cast(), bytes))?)
        }
    })
}

/// Launches a kernel without waiting for it. `arguments` has one pointer for each of the kernel's parameters, to a
/// value in the device's layout; for a pointer parameter, to a 64-bit device address.
///
/// # Safety
/// All handles must be open; `arguments` must have `count` pointers, each to as many bytes as the parameter has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_launch(
    stream: *const gridlet_stream,
    kernel: *const gridlet_kernel,
    config: *const gridlet_launch_config,
    arguments: *const *const c_void,
    count: usize,
) -> gridlet_status {
    guard(|| {
        // SAFETY: passed on to the caller.
        let (stream, kernel, config) = unsafe {
            (value(stream, "stream")?, value(kernel, "kernel")?, value(config, "config")?)
        };
        if config.reserved != [0; 8] {
            return Err(invalid(
                "`config->reserved` is not 0: zero the configuration first".into(),
            ));
        }
        let parameters = &kernel.0.manifest().parameters;
        if count != parameters.len() {
            let kernel = kernel.0.name().into();
            let expected = parameters.len();
            return Err(Error::ArgumentCount { kernel, expected, given: count }.into());
        }
        if arguments.is_null() && count > 0 {
            return Err(null("arguments"));
        }
        let mut given = Vec::with_capacity(count);
        for (at, parameter) in parameters.iter().enumerate() {
            // SAFETY: passed on to the caller; `at` is less than `count`.
            let bytes = unsafe {
                let argument = *arguments.add(at);
                let first = value(argument.cast::<u8>(), &format!("arguments[{at}]"))?;
                std::slice::from_raw_parts(first, parameter.size as usize)
            };
            given.push(match (&parameter.ty, <[u8; 8]>::try_from(bytes)) {
                (Type::Pointer { .. }, Ok(address)) => Arg::address(u64::from_ne_bytes(address)),
                _ => Arg::Bytes(bytes),
            });
        }
        let dim = |[x, y, z]: [u32; 3]| Dim3::new(x, y.max(1), z.max(1));
        let mut launch =
            LaunchConfig::new(dim(config.grid), dim(config.block)).with_shared(config.shared_bytes);
        if config.cluster[0] != 0 {
            launch = launch.with_cluster(dim(config.cluster));
        }
        if config.cooperative != 0 {
            launch = launch.cooperative();
        }
        Ok(stream.0.launch(&kernel.0, &launch, &given)?)
    })
}

/// Waits for everything launched into the stream, at most `milliseconds`, and reports failures.
///
/// # Safety
/// `stream` must be open.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_synchronize(
    stream: *const gridlet_stream,
    milliseconds: u32,
) -> gridlet_status {
    guard(|| {
        // SAFETY: passed on to the caller.
        let stream = unsafe { value(stream, "stream") }?;
        Ok(stream.0.synchronize(Duration::from_millis(milliseconds.into()))?)
    })
}
