//! Signal handling: a fault in a kernel ends its block, but not the process.
//!
//! The handlers run on their own stack. If the signal came from a kernel's coroutine, they record the reason and leave
//! the coroutine; all other signals go to the previous handler. [`interrupt`] uses a signal to leave a kernel that
//! loops forever, but only while it executes the image's own code, which holds no lock.

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::OnceLock;

use super::block::{Stop, current_runner};
use crate::fault::FaultKind;
use crate::memory::AlignedBytes;

/// Fault signals, in the order of [`PREVIOUS`].
const FAULTS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
/// Urgent data on a socket: rarely used, and ignored by default.
const INTERRUPT: c_int = libc::SIGURG;

/// Size of a signal stack in bytes: a frame with the widest vector registers takes about 12 KiB.
const STACK_BYTES: usize = 64 * 1024;

/// Previous handlers of the fault signals and the interrupt.
static PREVIOUS: OnceLock<[libc::sigaction; 5]> = OnceLock::new();

/// Installs the handlers once per process.
pub(crate) fn install() {
    PREVIOUS.get_or_init(|| {
        // SAFETY: all zeros is a valid `sigaction`: the default action.
        let mut previous: [libc::sigaction; 5] = unsafe { mem::zeroed() };
        for (signal, previous) in FAULTS.into_iter().chain([INTERRUPT]).zip(&mut previous) {
            // SAFETY: as above; the handler is async-signal-safe.
            unsafe {
                let mut action: libc::sigaction = mem::zeroed();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
                // Block interrupts within a handler, because nested ones would use up the signal stack.
                libc::sigaddset(&mut action.sa_mask, INTERRUPT);
                libc::sigaction(signal, &action, previous);
            }
        }
        previous
    });
}

/// Asks a worker to leave its running kernel if the kernel's launch was stopped. Has no effect if the worker is
/// executing other code at that moment; callers must retry.
pub(crate) fn interrupt(worker: libc::pthread_t) {
    // SAFETY: the caller holds the thread's handle, so the thread has not been joined.
    unsafe { libc::pthread_kill(worker, INTERRUPT) };
}

/// The signal stack of a thread.
pub(crate) struct AlternateStack {
    _bytes: AlignedBytes,
    before: libc::stack_t,
}

impl AlternateStack {
    /// Installs a signal stack for this thread; `None` if out of memory (a stack overflow then ends the process).
    pub(crate) fn new() -> Option<AlternateStack> {
        let bytes = AlignedBytes::new(STACK_BYTES, 16)?;
        let stack =
            libc::stack_t { ss_sp: bytes.first().cast(), ss_flags: 0, ss_size: STACK_BYTES };
        // SAFETY: the bytes live until `drop` has restored the previous stack.
        unsafe {
            let mut before: libc::stack_t = mem::zeroed();
            (libc::sigaltstack(&stack, &mut before) == 0)
                .then_some(AlternateStack { _bytes: bytes, before })
        }
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        // SAFETY: restores the thread's previous stack.
        unsafe { libc::sigaltstack(&self.before, ptr::null_mut()) };
    }
}

/// Handler of all the signals.
unsafe extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the system passes both, for the duration of the call.
    let left = unsafe { leave_kernel(signal, &*info, &mut *context.cast::<libc::ucontext_t>()) };
    if !left {
        // SAFETY: the arguments are passed on unchanged.
        unsafe { pass_on(signal, info, context) };
    }
}

/// Ends the block whose coroutine the signal interrupted; false if there is none.
unsafe fn leave_kernel(
    signal: c_int,
    info: &libc::siginfo_t,
    context: &mut libc::ucontext_t,
) -> bool {
    let Some(runner) = current_runner() else { return false };
    let (instruction, stack_pointer) = position(context);
    let Some(trap) = runner.trap_at(stack_pointer) else { return false };
    let mut address = None;
    let kind = match signal {
        INTERRUPT => {
            let in_image = runner
                .tree()
                .is_some_and(|tree| tree.is_stopped() && tree.image.has_code(instruction));
            if !in_image {
                return false;
            }
            FaultKind::Cancelled
        }
        libc::SIGFPE => FaultKind::Arithmetic,
        libc::SIGILL => FaultKind::Instruction,
        _ => {
            // SAFETY: these signals carry an address.
            let at = unsafe { info.si_addr() } as usize;
            address = Some(at as u64);
            if runner.is_guard(at) {
                address = None;
                FaultKind::StackOverflow
            } else if signal == libc::SIGBUS {
                FaultKind::Bus
            } else {
                FaultKind::Access
            }
        }
    };
    runner.note_signal(Stop { kind, location: 0, address });
    // SAFETY: `trap_at` checked that the stack pointer is within the coroutine; its frames have no destructors, and the
    // registers are set as corosensei requires.
    unsafe { set_registers(context, &trap.setup_trap_handler(|| ())) };
    true
}

/// Passes a signal on to the previous handler or the default action.
unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let index = match signal {
        libc::SIGSEGV => 0,
        libc::SIGBUS => 1,
        libc::SIGFPE => 2,
        libc::SIGILL => 3,
        _ => 4,
    };
    let previous = PREVIOUS.get().map(|previous| &previous[index]);
    // SAFETY: the system passes it. Codes above 0 mean that the kernel raised the signal (sigaction(2)).
    let is_sent = unsafe { (*info).si_code } <= 0;
    match previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction) {
        libc::SIG_DFL if signal == INTERRUPT => {}
        // Ignore signals sent by a process. A fault cannot be ignored: its instruction would run again forever, and
        // Linux would end the process.
        libc::SIG_IGN if signal == INTERRUPT || is_sent => {}
        // The instruction runs again, this time with the default action.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: restores the default action.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        handler => {
            let with_info = previous.is_some_and(|p| p.sa_flags & libc::SA_SIGINFO != 0);
            // SAFETY: this handler was installed by the process, and is called according to its flags.
            unsafe {
                if with_info {
                    let handler: unsafe extern "C" fn(c_int, *mut libc::siginfo_t, *mut c_void) =
                        mem::transmute(handler);
                    handler(signal, info, context);
                } else {
                    let handler: unsafe extern "C" fn(c_int) = mem::transmute(handler);
                    handler(signal);
                }
            }
        }
    }
}

/// The instruction pointer and the stack pointer.
#[cfg(target_arch = "x86_64")]
fn position(context: &libc::ucontext_t) -> (usize, usize) {
    let registers = &context.uc_mcontext.gregs;
    (registers[libc::REG_RIP as usize] as usize, registers[libc::REG_RSP as usize] as usize)
}

#[cfg(target_arch = "x86_64")]
fn set_registers(context: &mut libc::ucontext_t, to: &corosensei::trap::TrapHandlerRegs) {
    let registers = &mut context.uc_mcontext.gregs;
    registers[libc::REG_RIP as usize] = to.rip as i64;
    registers[libc::REG_RSP as usize] = to.rsp as i64;
    registers[libc::REG_RBP as usize] = to.rbp as i64;
    registers[libc::REG_RDI as usize] = to.rdi as i64;
    registers[libc::REG_RSI as usize] = to.rsi as i64;
}

/// The instruction pointer and the stack pointer.
#[cfg(target_arch = "aarch64")]
fn position(context: &libc::ucontext_t) -> (usize, usize) {
    (context.uc_mcontext.pc as usize, context.uc_mcontext.sp as usize)
}

#[cfg(target_arch = "aarch64")]
fn set_registers(context: &mut libc::ucontext_t, to: &corosensei::trap::TrapHandlerRegs) {
    let machine = &mut context.uc_mcontext;
    machine.pc = to.pc;
    machine.sp = to.sp;
    machine.regs[0] = to.x0;
    machine.regs[1] = to.x1;
    machine.regs[29] = to.x29;
    machine.regs[30] = to.lr;
}
