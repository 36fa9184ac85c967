//! Signals of kernels: a fault ends the block that caused it, and the process lives.
//!
//! The handlers run on a stack of their own. If the signal came from a kernel's coroutine, they note why and make the
//! coroutine return; everything else goes to whoever handled the signal before. [`interrupt`] uses a signal to leave
//! a kernel that loops for ever: only while it is in the image's own code, where it can hold no lock.

use std::ffi::{c_int, c_void};
use std::mem;
use std::ptr;
use std::sync::OnceLock;

use super::block::{Stop, current_runner};
use crate::fault::FaultKind;
use crate::memory::AlignedBytes;

/// Faults, in the order of [`PREVIOUS`].
const FAULTS: [c_int; 4] = [libc::SIGSEGV, libc::SIGBUS, libc::SIGFPE, libc::SIGILL];
/// Ignored unless somebody handles it, and used by few: urgent data on a socket.
const INTERRUPT: c_int = libc::SIGURG;

/// Bytes of a signal stack: a frame with the widest vector registers takes about 12 KiB.
const STACK_BYTES: usize = 64 * 1024;

/// Who handled the faults, and then the interrupt, before.
static PREVIOUS: OnceLock<[libc::sigaction; 5]> = OnceLock::new();

/// Installs the handlers, once in the process.
pub(crate) fn install() {
    PREVIOUS.get_or_init(|| {
        // SAFETY: all zeros is a valid `sigaction`: the default action.
        let mut previous: [libc::sigaction; 5] = unsafe { mem::zeroed() };
        for (signal, previous) in FAULTS.into_iter().chain([INTERRUPT]).zip(&mut previous) {
            // SAFETY: as above; the handler keeps to what a signal handler may do.
            unsafe {
                let mut action: libc::sigaction = mem::zeroed();
                action.sa_sigaction = handle as *const () as usize;
                action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
                // No interrupt within a handler: one after another would use up the signal stack.
                libc::sigaddset(&mut action.sa_mask, INTERRUPT);
                libc::sigaction(signal, &action, previous);
            }
        }
        previous
    });
}

/// Asks a worker to leave the kernel that it runs, if its launch was stopped. Nothing happens if the worker is
/// somewhere else at that moment: ask again.
pub(crate) fn interrupt(worker: libc::pthread_t) {
    // SAFETY: the caller holds the thread's handle, so the thread was not joined.
    unsafe { libc::pthread_kill(worker, INTERRUPT) };
}

/// The signal stack of a thread.
pub(crate) struct AlternateStack {
    _bytes: AlignedBytes,
    before: libc::stack_t,
}

impl AlternateStack {
    /// Gives this thread one; `None` if there is no memory (a stack overflow then ends the process).
    pub(crate) fn new() -> Option<AlternateStack> {
        let bytes = AlignedBytes::new(STACK_BYTES, 16)?;
        let stack =
            libc::stack_t { ss_sp: bytes.first().cast(), ss_flags: 0, ss_size: STACK_BYTES };
        // SAFETY: the bytes live until `drop` has put the former stack back.
        unsafe {
            let mut before: libc::stack_t = mem::zeroed();
            (libc::sigaltstack(&stack, &mut before) == 0)
                .then_some(AlternateStack { _bytes: bytes, before })
        }
    }
}

impl Drop for AlternateStack {
    fn drop(&mut self) {
        // SAFETY: what the thread had before.
        unsafe { libc::sigaltstack(&self.before, ptr::null_mut()) };
    }
}

/// The handler of all of them.
unsafe extern "C" fn handle(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    // SAFETY: with SA_SIGINFO the system passes both, for the duration of the call.
    let left = unsafe { leave_kernel(signal, &*info, &mut *context.cast::<libc::ucontext_t>()) };
    if !left {
        // SAFETY: the same arguments go on.
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
    // SAFETY: the stack pointer is within the coroutine, which `trap_at` checked; its frames hold nothing that must be
    // dropped, and the registers are set as the crate asks.
    unsafe { set_registers(context, &trap.setup_trap_handler(|| ())) };
    true
}

/// Does what would have been done without us.
unsafe fn pass_on(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let index = match signal {
        libc::SIGSEGV => 0,
        libc::SIGBUS => 1,
        libc::SIGFPE => 2,
        libc::SIGILL => 3,
        _ => 4,
    };
    let previous = PREVIOUS.get().map(|previous| &previous[index]);
    // SAFETY: the system passes it. Codes above 0 are the kernel's own (sigaction(2)).
    let is_sent = unsafe { (*info).si_code } <= 0;
    match previous.map_or(libc::SIG_DFL, |previous| previous.sa_sigaction) {
        libc::SIG_DFL if signal == INTERRUPT => {}
        // What somebody sent. A fault cannot be ignored: its instruction would run again for ever, and Linux would end
        // the process.
        libc::SIG_IGN if signal == INTERRUPT || is_sent => {}
        // The instruction runs again and has the default effect.
        libc::SIG_DFL | libc::SIG_IGN => {
            // SAFETY: puts the default action back.
            unsafe { libc::signal(signal, libc::SIG_DFL) };
        }
        handler => {
            let with_info = previous.is_some_and(|p| p.sa_flags & libc::SA_SIGINFO != 0);
            // SAFETY: a handler that the process had installed, called as its flags say.
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

/// Instruction and stack pointer.
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

/// Instruction and stack pointer.
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
