//! LLVM's fatal errors as errors of the stage that ran into them.
//!
//! LLVM reports some faults of its input as fatal errors, which end the process: an intrinsic that the target lacks, for
//! instance ("Cannot select"). The function that reports them must not return. So work on modules of other compilers runs
//! on a thread of its own, which stops for good at a fatal error, while the caller gets the message. The thread's memory
//! leaks; nothing else does, because the work owns all that it uses.

use std::any::Any;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::{Once, mpsc};
use std::thread;

use inkwell::llvm_sys::error_handling::LLVMInstallFatalErrorHandler;

use crate::error::{Error, Result};

/// LLVM's recursion is as deep as on a main thread.
const STACK_BYTES: usize = 8 << 20;

type Report = Box<dyn Fn(String)>;

thread_local! {
    /// The receiver of a fatal error on this thread.
    static REPORT: RefCell<Option<Report>> = const { RefCell::new(None) };
}

/// The end of the work.
enum End<T> {
    Done(Result<T>),
    Panic(Box<dyn Any + Send>),
    Fatal(String),
}

/// Runs `work`, which calls LLVM.
///
/// # Errors
/// Those of `work`; [`Error::Tool`] with LLVM's message for a fatal error.
pub(crate) fn caught<T: Send + 'static>(
    operation: &str,
    work: impl FnOnce() -> Result<T> + Send + 'static,
) -> Result<T> {
    install();
    let failed = |log: String| Error::Tool { tool: "LLVM", operation: operation.into(), log };
    let (sender, receiver) = mpsc::channel();
    let run = move || {
        let fatal = sender.clone();
        let report: Report = Box::new(move |text| _ = fatal.send(End::Fatal(text)));
        REPORT.set(Some(report));
        let end = match catch_unwind(AssertUnwindSafe(work)) {
            Ok(result) => End::Done(result),
            Err(panic) => End::Panic(panic),
        };
        let _ = sender.send(end);
    };
    thread::Builder::new()
        .name("gridlet-llvm".into())
        .stack_size(STACK_BYTES)
        .spawn(run)
        .map_err(|error| failed(format!("no thread: {error}")))?;
    match receiver.recv() {
        Ok(End::Done(result)) => result,
        Ok(End::Panic(panic)) => resume_unwind(panic),
        Ok(End::Fatal(text)) => Err(failed(text.trim().to_owned())),
        Err(_) => Err(Error::internal("fatal", "the thread ended without a result")),
    }
}

/// Installs LLVM's handler for this process.
pub(crate) fn install() {
    static INSTALL: Once = Once::new();
    // SAFETY: the handler has LLVM's type, and is a function of this program.
    INSTALL.call_once(|| unsafe { LLVMInstallFatalErrorHandler(Some(on_fatal_error)) });
}

/// Sets the receiver of a fatal error on this thread, for a child process, which ends with it.
pub(crate) fn report_to(report: impl Fn(String) + 'static) {
    REPORT.set(Some(Box::new(report)));
}

/// LLVM's handler. On threads that do not run [`caught`], LLVM goes on as if it had none: it ends the process.
extern "C" fn on_fatal_error(reason: *const c_char) {
    // SAFETY: LLVM passes a string that lives through the call.
    let text = unsafe { CStr::from_ptr(reason) }.to_string_lossy().into_owned();
    let report = REPORT.try_with(|report| report.borrow_mut().take()).ok().flatten();
    let Some(report) = report else {
        eprintln!("LLVM ERROR: {text}");
        return;
    };
    report(text);
    loop {
        thread::park();
    }
}
