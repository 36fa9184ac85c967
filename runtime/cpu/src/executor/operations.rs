//! Stream copies and fills: single-thread grids whose kernels are defined here instead of in an image.

use std::ffi::c_char;
use std::ptr;

use super::block::Runner;
use super::callbacks::{check_access, runner, runner_with_room};
use super::launch::ERROR_MEMORY;
use crate::abi::{
    ACCESS_BYTES, ACCESS_READ, ACCESS_WRITE, BlocksEntry, Entry, Geometry, KernelDescriptor,
    Location,
};
use crate::image::kernel_name;

/// Parameters of an operation: destination; source, or the fill byte; size in bytes.
type Parameters = [u64; 3];

/// A constant descriptor.
struct Operation(KernelDescriptor);

// SAFETY: it is never written, and its name is a constant.
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
        max_block_threads: 0,
    })
}

/// Whether the descriptor is one of the operations here.
pub(crate) fn is_operation(descriptor: *const KernelDescriptor) -> bool {
    ptr::eq(descriptor, &COPY.0) || ptr::eq(descriptor, &FILL.0)
}

/// Whether the kernel name is an operation's. Program kernels have other names, because these are built-ins.
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
    // Only the low byte counts.
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
            return ERROR_MEMORY;
        }
        // SAFETY: by the descriptor, the buffer is large enough and aligned to 64 bytes.
        unsafe { buffer.cast::<Parameters>().write(parameters) };
        let status = self.launch(buffer, stream, location);
        self.after_launch();
        status
    }

    /// Reports a range that is read or written to the checker.
    fn check_range(&self, address: u64, bytes: u64, kind: u32) {
        /// An access reports its size in 32 bits, so large ranges are split.
        const STEP: u64 = 1 << 20;
        if !self.is_watched() {
            return;
        }
        let location = self.grid().location;
        let mut done = 0;
        while done < bytes {
            let left = bytes - done;
            // The last step spans the end, so that an overrun is reported as one access across it.
            let step = if left > 2 * STEP { STEP } else { left };
            // SAFETY: `check_access` accepts any address; the size fits because it is at most two steps.
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

    /// Whether to report accesses: only if the image is checked, because unchecked images do not report their writes.
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
    // SAFETY: the program is responsible for the addresses; a fault ends its grid.
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

/// Entry for the single block of one thread.
unsafe extern "C-unwind" fn copy_block(geometry: *mut Geometry, parameters: *const u8, _: u64) {
    // SAFETY: the contract is the same.
    unsafe { copy(geometry, parameters) };
}

/// Entry for the single block of one thread.
unsafe extern "C-unwind" fn fill_block(geometry: *mut Geometry, parameters: *const u8, _: u64) {
    // SAFETY: the contract is the same.
    unsafe { fill(geometry, parameters) };
}
