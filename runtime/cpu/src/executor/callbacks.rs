//! The callbacks that images call.
//!
//! Callbacks run inside a coroutine that may be abandoned wherever it suspends, so none may hold a value with a
//! destructor across [`Runner::wait`], [`Runner::suspend`] or [`Runner::end`]. Checks and launches that hold such
//! values are separate functions that return first.

use std::borrow::Cow;
use std::ffi::{CStr, c_char, c_void};
use std::time::SystemTime;

use super::block::{Runner, current_runner};
use super::combine;
use super::launch::ERROR_INVALID_HANDLE;
use super::operations::{memcpy_async, memset_async};
use super::warp::{WARP_THREADS, WarpOperation};
use crate::abi::{
    Callbacks, KernelDescriptor, Location, POLL_ENDS, POLL_WAITS, POLL_YIELDS, TRAP_DIVISION,
    TRAP_EXPLICIT,
};
use crate::fault::FaultKind;
use crate::hooks::{Variable, Verdict};
use crate::printf;
use crate::sync::lock;

/// The callback table of every image.
pub(crate) static CALLBACKS: Callbacks = Callbacks {
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
    assert_fail,
    index_out_of_bounds,
    local_begins,
    locals_end,
    returns_early,
    combine,
};

/// The calling runner; kernel code always runs under one.
#[inline(always)]
pub(crate) fn runner<'a>() -> &'a Runner {
    match current_runner() {
        Some(runner) => runner,
        None => unreachable!("kernel code runs on workers"),
    }
}

/// Stack reserved for callbacks in bytes: a stack overflow in a callback that holds a lock could not be recovered.
const ROOM: usize = 32 * 1024;

/// Like [`runner`], for callbacks that take a lock: ends the block if the thread's stack is nearly exhausted.
pub(crate) fn runner_with_room<'a>(location: Location) -> &'a Runner {
    let runner = runner();
    let here = 0_u8;
    if (&raw const here).addr() < runner.stack_start() + ROOM {
        runner.end(FaultKind::StackOverflow, location);
    }
    runner
}

/// Like [`runner_with_room`], for callbacks that take a lock only if a checker is attached.
#[inline(always)]
fn runner_to_check<'a>(location: Location) -> &'a Runner {
    let runner = runner();
    if runner.shared.hooks.is_some() { runner_with_room(location) } else { runner }
}

unsafe extern "C-unwind" fn shared_base() -> *mut u8 {
    runner().shared_base()
}

unsafe extern "C-unwind" fn sync_threads(location: Location) {
    let runner = runner_to_check(location);
    runner.barrier(location);
    runner.leave_if_block_stopped();
}

unsafe extern "C-unwind" fn sync_warp(mask: u32, location: Location) {
    let runner = runner_to_check(location);
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
    let runner = runner_to_check(location);
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
    let runner = runner_to_check(location);
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

unsafe extern "C-unwind" fn combine(mode: u32, mask: u32, value: u64, location: Location) -> u64 {
    let runner = runner_to_check(location);
    if !runner.has_threads() {
        return combine::of_one(mode, value);
    }
    let slot = runner.slot(runner.current.get());
    slot.value.set(value);
    runner.warp_operation(WarpOperation::Combine(mode), mask, location);
    runner.leave_if_stopped();
    slot.value.get()
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
    // SAFETY: per the ABI, both point to three integers.
    let (grid_dim, block_dim) = unsafe { (grid_dim.read(), block_dim.read()) };
    runner_with_room(0).parameter_buffer(descriptor, grid_dim, block_dim, shared_bytes)
}

unsafe extern "C-unwind" fn launch_device(buffer: *mut u8, stream: u64, location: Location) -> i32 {
    let runner = runner_with_room(location);
    let status = runner.launch(buffer, stream, location);
    runner.after_launch();
    status
}

unsafe extern "C-unwind" fn stream_create(handle: *mut u64) -> i32 {
    let runner = runner_with_room(0);
    let created = runner.shared.lock().create_stream(runner.node.get());
    // SAFETY: per the ABI, it points to a handle.
    unsafe { handle.write(created) };
    0
}

unsafe extern "C-unwind" fn stream_destroy(handle: u64) -> i32 {
    let runner = runner_with_room(0);
    let known = runner.shared.lock().destroy_stream(runner.node.get(), handle);
    if known { 0 } else { runner.error(ERROR_INVALID_HANDLE) }
}

unsafe extern "C-unwind" fn last_error() -> i32 {
    runner().take_last_error()
}

unsafe extern "C-unwind" fn malloc(bytes: u64) -> *mut u8 {
    runner_with_room(0).malloc(bytes)
}

unsafe extern "C-unwind" fn free(address: *mut u8, location: Location) {
    runner_with_room(location).free(address, location);
}

unsafe extern "C-unwind" fn printf(
    format: *const c_char,
    arguments: *const u8,
    location: Location,
) -> i32 {
    let runner = runner_with_room(location);
    if runner.has_check() {
        runner.note_location(location);
        // SAFETY: as below.
        unsafe { check_strings(runner, format, arguments, location) };
        runner.leave_if_stopped();
    }
    // SAFETY: per the ABI, the format is a string and the arguments are packed for it.
    let (text, count) = unsafe { printf::format(format, arguments) };
    printf::write(&mut lock(&runner.shared.output), &text);
    count
}

/// Checks the strings that a `printf` is about to read.
///
/// # Safety
/// The format must be a string, and the arguments must match it; the strings among them may be anything.
unsafe fn check_strings(
    runner: &Runner,
    format: *const c_char,
    arguments: *const u8,
    location: Location,
) {
    // SAFETY: guaranteed by the caller.
    let strings = unsafe { printf::strings(format, arguments) };
    // For a null pointer, `printf` prints `(null)`.
    for (address, limit) in strings.into_iter().filter(|(address, _)| *address != 0) {
        let thread = runner.current.get();
        let verdict = runner.tell(|check| check.on_string(thread, address, limit, location));
        runner.obey(verdict.unwrap_or(Verdict::Continue), location);
    }
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

/// Nanoseconds since 1970; 0 if the clock is set earlier.
fn nanoseconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

unsafe extern "C-unwind" fn sm_id() -> u32 {
    runner().worker
}

pub(crate) unsafe extern "C-unwind" fn check_access(
    address: *const c_void,
    bytes: u32,
    kind: u32,
    location: Location,
) {
    let runner = runner_to_check(location);
    runner.note_location(location);
    let thread = runner.current.get();
    let verdict =
        runner.tell(|check| check.on_access(thread, address as usize, bytes, kind, location));
    if let Some(verdict) = verdict {
        runner.obey(verdict, location);
        runner.leave_if_stopped();
    }
}

unsafe extern "C-unwind" fn index_out_of_bounds(
    index: i64,
    count: u64,
    kind: u32,
    array: *const c_char,
    location: Location,
) -> ! {
    let runner = runner_to_check(location);
    let thread = runner.current.get();
    runner.tell(|check| check.on_index(thread, index, count, kind, &text(array), location));
    runner.end(FaultKind::Checked, location)
}

unsafe extern "C-unwind" fn local_begins(
    address: *const c_void,
    bytes: u32,
    name: *const c_char,
    location: Location,
) {
    let runner = runner_to_check(location);
    runner.note_location(location);
    let thread = runner.current.get();
    runner.tell(|check| {
        let name = text(name).as_ref().into();
        let variable = Variable { name, offset: address as usize, bytes: bytes as usize };
        check.on_local(thread, &variable, location);
    });
}

unsafe extern "C-unwind" fn locals_end(count: u32) {
    let runner = runner_to_check(0);
    runner.tell(|check| check.on_locals_end(runner.current.get(), count));
}

unsafe extern "C-unwind" fn returns_early() {
    runner().return_early();
}

/// Reads a string of an image.
fn text<'a>(of_image: *const c_char) -> Cow<'a, str> {
    // SAFETY: per the ABI, it is a string; it is a constant of the running image.
    unsafe { CStr::from_ptr(of_image) }.to_string_lossy()
}

unsafe extern "C-unwind" fn assert_fail(
    message: *const c_char,
    file: *const c_char,
    line: u32,
    function: *const c_char,
    location: Location,
    thread: u32,
) -> ! {
    let runner = runner_with_room(location);
    runner.note_thread(thread);
    fail_assertion(runner, &text(message), &text(file), line, &text(function));
    runner.end(FaultKind::Trap, location)
}

/// Prints CUDA's message (CUDA C++ Programming Guide, Assertion) to the output of `printf`.
fn fail_assertion(runner: &Runner, message: &str, file: &str, line: u32, function: &str) {
    let position = runner.position();
    let triple = |[x, y, z]: [u32; 3]| format!("[{x},{y},{z}]");
    let text = format!(
        "{file}:{line}: {function}: block: {}, thread: {} Assertion `{message}` failed.\n",
        triple(position.block),
        triple(position.thread)
    );
    printf::write(&mut lock(&runner.shared.output), text.as_bytes());
}

unsafe extern "C-unwind" fn poll(kind: u32, location: Location) {
    let runner = runner_to_check(location);
    if runner.has_check() {
        runner.note_location(location);
        let thread = runner.current.get();
        if kind & POLL_WAITS != 0 {
            let verdict = runner.tell(|check| check.on_poll(thread, location));
            runner.obey(verdict.unwrap_or(Verdict::Continue), location);
        } else if kind & POLL_ENDS != 0 {
            runner.tell(|check| check.on_turn(thread));
        }
    }
    runner.leave_if_stopped();
    if kind & POLL_YIELDS != 0 {
        runner.let_others_run(location);
        runner.leave_if_stopped();
    }
}
