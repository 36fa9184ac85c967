//! The functions that images call.
//!
//! They run inside a coroutine that may be abandoned wherever it suspends, so none holds anything that drops
//! across [`Runner::wait`], [`Runner::suspend`] or [`Runner::end`]. The checks and launches that do hold something are
//! functions of their own that return first.

use std::ffi::{c_char, c_void};
use std::time::SystemTime;

use super::abi::{Callbacks, KernelDescriptor, Location, TRAP_DIVISION, TRAP_EXPLICIT};
use super::block::{Runner, current_runner};
use super::fault::FaultKind;
use super::launch::ERROR_INVALID_HANDLE;
use super::operations::{memcpy_async, memset_async};
use super::printf;
use super::warp::{WARP_THREADS, WarpOperation};
use crate::device::lock;

/// The table of every image.
pub(super) static CALLBACKS: Callbacks = Callbacks {
    shared_base,
    sync_threads,
    sync_warp,
    shuffle,
    vote,
    active_mask,
    lane_id,
    get_parameter_buffer,
    launch_device,
    printf,
    trap,
    clock64,
    global_timer,
    sm_id,
    check_access,
    poll,
    stream_create,
    stream_destroy,
    memcpy_async,
    memset_async,
    last_error,
    malloc,
    free,
};

/// The runner that called. Kernel code runs under one only.
#[inline(always)]
pub(super) fn runner<'a>() -> &'a Runner {
    match current_runner() {
        Some(runner) => runner,
        None => unreachable!("kernel code runs on workers"),
    }
}

unsafe extern "C-unwind" fn shared_base() -> *mut u8 {
    runner().shared_base()
}

unsafe extern "C-unwind" fn sync_threads(location: Location) {
    let runner = runner();
    runner.barrier(location);
    runner.leave_if_block_stopped();
}

unsafe extern "C-unwind" fn sync_warp(mask: u32, location: Location) {
    let runner = runner();
    runner.warp_operation(WarpOperation::Sync, mask, location);
    runner.leave_if_stopped();
}

unsafe extern "C-unwind" fn shuffle(
    mode: u32,
    mask: u32,
    value: u64,
    operand: u32,
    location: Location,
) -> u64 {
    let runner = runner();
    if !runner.has_threads() {
        return value;
    }
    let slot = runner.slot(runner.current.get());
    slot.value.set(value);
    slot.operand.set(operand);
    runner.warp_operation(WarpOperation::Shuffle(mode), mask, location);
    runner.leave_if_stopped();
    slot.value.get()
}

unsafe extern "C-unwind" fn vote(mode: u32, mask: u32, predicate: u32, location: Location) -> u32 {
    let runner = runner();
    if !runner.has_threads() {
        return predicate;
    }
    let slot = runner.slot(runner.current.get());
    slot.value.set(u64::from(predicate));
    runner.warp_operation(WarpOperation::Vote(mode), mask, location);
    runner.leave_if_stopped();
    // A vote's result has 32 bits.
    slot.value.get() as u32
}

unsafe extern "C-unwind" fn active_mask() -> u32 {
    let runner = runner();
    if !runner.has_threads() {
        return 1;
    }
    runner.warps[(runner.current.get() / WARP_THREADS) as usize].alive.get()
}

unsafe extern "C-unwind" fn lane_id() -> u32 {
    runner().current.get() % WARP_THREADS
}

unsafe extern "C-unwind" fn get_parameter_buffer(
    descriptor: *const KernelDescriptor,
    grid_dim: *const [u32; 3],
    block_dim: *const [u32; 3],
    shared_bytes: u32,
) -> *mut u8 {
    // SAFETY: the ABI says that both point to three integers.
    let (grid_dim, block_dim) = unsafe { (grid_dim.read(), block_dim.read()) };
    runner().parameter_buffer(descriptor, grid_dim, block_dim, shared_bytes)
}

unsafe extern "C-unwind" fn launch_device(buffer: *mut u8, stream: u64, location: Location) -> i32 {
    let runner = runner();
    let status = runner.launch(buffer, stream, location);
    runner.after_launch();
    status
}

unsafe extern "C-unwind" fn stream_create(handle: *mut u64) -> i32 {
    let runner = runner();
    let created = runner.shared.lock().create_stream(runner.node.get());
    // SAFETY: the ABI says that it points to a handle.
    unsafe { handle.write(created) };
    0
}

unsafe extern "C-unwind" fn stream_destroy(handle: u64) -> i32 {
    let runner = runner();
    let known = runner.shared.lock().destroy_stream(runner.node.get(), handle);
    if known { 0 } else { runner.error(ERROR_INVALID_HANDLE) }
}

unsafe extern "C-unwind" fn last_error() -> i32 {
    runner().take_last_error()
}

unsafe extern "C-unwind" fn malloc(bytes: u64) -> *mut u8 {
    runner().malloc(bytes)
}

unsafe extern "C-unwind" fn free(address: *mut u8, location: Location) {
    runner().free(address, location);
}

unsafe extern "C-unwind" fn printf(format: *const c_char, arguments: *const u8) -> i32 {
    // SAFETY: the ABI says that the format is a string and the arguments are packed for it.
    let (text, count) = unsafe { printf::format(format, arguments) };
    printf::write(&mut lock(&runner().shared.output), &text);
    count
}

unsafe extern "C-unwind" fn trap(kind: u32, location: Location, thread: u32) -> ! {
    let kind = match kind {
        TRAP_EXPLICIT => FaultKind::Trap,
        TRAP_DIVISION => FaultKind::Division,
        _ => FaultKind::Unreachable,
    };
    let runner = runner();
    runner.note_thread(thread);
    runner.end(kind, location)
}

unsafe extern "C-unwind" fn clock64() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 has a time-stamp counter.
    return unsafe { std::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    return nanoseconds();
}

unsafe extern "C-unwind" fn global_timer() -> u64 {
    nanoseconds()
}

/// Since 1970; 0 on a clock that is before.
fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

unsafe extern "C-unwind" fn sm_id() -> u32 {
    runner().worker
}

pub(super) unsafe extern "C-unwind" fn check_access(
    address: *const c_void,
    bytes: u32,
    kind: u32,
    location: Location,
) {
    let runner = runner();
    if let Some(hooks) = &runner.shared.hooks {
        let verdict = hooks.on_access(runner.position(), address as usize, bytes, kind, location);
        runner.obey(verdict, location);
        runner.leave_if_stopped();
    }
}

unsafe extern "C-unwind" fn poll(location: Location) {
    let runner = runner();
    if let Some(hooks) = &runner.shared.hooks {
        let verdict = hooks.on_poll(runner.position(), location);
        runner.obey(verdict, location);
    }
    runner.leave_if_stopped();
    runner.let_others_run(location);
    runner.leave_if_stopped();
}
