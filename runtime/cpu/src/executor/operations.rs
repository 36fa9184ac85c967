//! Copies and fills in streams: grids of one thread, whose kernels are here instead of in an image.

use std::ffi::c_char;
use std::ptr;

use super::block::Runner;
use super::callbacks::{check_access, runner, runner_with_room};
use super::launch::ERROR_PENDING_COUNT;
use crate::abi::{
    ACCESS_BYTES, ACCESS_READ, ACCESS_WRITE, BlocksEntry, Entry, Geometry, KernelDescriptor,
    Location,
};
use crate::image::kernel_name;

/// Parameters of an operation: to; from, or the byte; how many.
type Parameters = [u64; 3];

/// A descriptor that never changes.
struct Operation(KernelDescriptor);

// SAFETY: nothing writes to it, and its name is a constant.
unsafe impl Sync for Operation {}

static COPY: Operation = operation(c"memcpy_async".as_ptr(), copy, copy_block);
static FILL: Operation = operation(c"memset_async".as_ptr(), fill, fill_block);

const fn operation(name: *const c_char, thread: Entry, blocks: BlocksEntry) -> Operation {
    Operation(KernelDescriptor {
        name,
        thread,
        blocks: Some(blocks),
        blocks_v3: None,
        parameter_bytes: size_of::<Parameters>() as u32,
        static_shared_bytes: 0,
        flags: 0,
        shared_span_bytes: 0,
    })
}

/// Whether a descriptor is one of those here.
pub(crate) fn is_operation(descriptor: *const KernelDescriptor) -> bool {
    ptr::eq(descriptor, &COPY.0) || ptr::eq(descriptor, &FILL.0)
}

/// The same by the name of its kernel. Kernels of programs have other names: these are built-ins.
pub(crate) fn is_operation_name(name: &str) -> bool {
    [&COPY, &FILL].iter().any(|operation| kernel_name(&operation.0) == name)
}

/// [`crate::abi::Callbacks::memcpy_async`]
pub(crate) unsafe extern "C-unwind" fn memcpy_async(
    to: *mut u8,
    from: *const u8,
    bytes: u64,
    stream: u64,
    location: Location,
) -> i32 {
    runner_with_room(location).operate(&COPY, [to as u64, from as u64, bytes], stream, location)
}

/// [`crate::abi::Callbacks::memset_async`]
pub(crate) unsafe extern "C-unwind" fn memset_async(
    to: *mut u8,
    value: i32,
    bytes: u64,
    stream: u64,
    location: Location,
) -> i32 {
    // The low byte counts.
    let byte = u64::from(value as u8);
    runner_with_room(location).operate(&FILL, [to as u64, byte, bytes], stream, location)
}

impl Runner {
    fn operate(
        &self,
        operation: &'static Operation,
        parameters: Parameters,
        stream: u64,
        location: Location,
    ) -> i32 {
        let buffer = self.parameter_buffer(&operation.0, [1; 3], [1; 3], 0);
        if buffer.is_null() {
            return ERROR_PENDING_COUNT;
        }
        // SAFETY: the buffer is large enough by the descriptor, and aligned to 64 bytes.
        unsafe { buffer.cast::<Parameters>().write(parameters) };
        let status = self.launch(buffer, stream, location);
        self.after_launch();
        status
    }

    /// Tells a checker of a range that is read or written.
    fn check_range(&self, address: u64, bytes: u64, kind: u32) {
        /// An access says its size in 32 bits.
        const STEP: u64 = 1 << 20;
        if !self.is_watched() {
            return;
        }
        let location = self.grid().location;
        let mut done = 0;
        while done < bytes {
            let left = bytes - done;
            // What goes over the end of its memory is told as one access across it.
            let step = if left > 2 * STEP { STEP } else { left };
            // SAFETY: it takes any address; at most two steps fit.
            unsafe {
                check_access(
                    address.wrapping_add(done) as *const _,
                    step as u32,
                    kind | ACCESS_BYTES,
                    location,
                );
            }
            done += step;
        }
    }

    /// Whether a checker hears of accesses: images without checks do not tell who wrote what.
    fn is_watched(&self) -> bool {
        self.shared.hooks.is_some() && self.tree().is_some_and(|tree| tree.image.is_checked())
    }
}

unsafe extern "C-unwind" fn copy(_: *const Geometry, parameters: *const u8) {
    // SAFETY: `operate` wrote them.
    let [to, from, bytes] = unsafe { parameters.cast::<Parameters>().read() };
    let runner = runner();
    runner.check_range(from, bytes, ACCESS_READ);
    runner.check_range(to, bytes, ACCESS_WRITE);
    // SAFETY: as right as the program is; a fault ends its grid.
    unsafe { ptr::copy(from as *const u8, to as *mut u8, bytes as usize) };
    if runner.is_watched() {
        runner.tell(|check| check.on_copied(from as usize, to as usize, bytes as usize));
    }
}

unsafe extern "C-unwind" fn fill(_: *const Geometry, parameters: *const u8) {
    // SAFETY: `operate` wrote them.
    let [to, byte, bytes] = unsafe { parameters.cast::<Parameters>().read() };
    runner().check_range(to, bytes, ACCESS_WRITE);
    // SAFETY: as in `copy`.
    unsafe { ptr::write_bytes(to as *mut u8, byte as u8, bytes as usize) };
}

/// The one block of one thread.
unsafe extern "C-unwind" fn copy_block(geometry: *mut Geometry, parameters: *const u8, _: u64) {
    // SAFETY: the same contract.
    unsafe { copy(geometry, parameters) };
}

/// The one block of one thread.
unsafe extern "C-unwind" fn fill_block(geometry: *mut Geometry, parameters: *const u8, _: u64) {
    // SAFETY: the same contract.
    unsafe { fill(geometry, parameters) };
}
