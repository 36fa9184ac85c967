//! LLVM's messages about the modules of a context, which it would print to standard error. An error would end the process.

use std::cell::RefCell;
use std::ffi::{CStr, c_void};

use inkwell::context::{AsContextRef, Context};
use inkwell::llvm_sys::LLVMDiagnosticSeverity;
use inkwell::llvm_sys::core::{
    LLVMContextGetDiagnosticContext, LLVMContextGetDiagnosticHandler,
    LLVMContextSetDiagnosticHandler, LLVMDisposeMessage, LLVMGetDiagInfoDescription,
    LLVMGetDiagInfoSeverity,
};
use inkwell::llvm_sys::prelude::LLVMDiagnosticInfoRef;
use inkwell::module::Module;

/// Takes the messages of a context for as long as it lives. Errors are kept; remarks and warnings, such as that of a loop
/// that cannot be unrolled as the program asks, are dropped: they name no line of the program.
pub(crate) struct Messages<'ctx> {
    context: &'ctx Context,
    errors: Box<RefCell<Vec<String>>>,
}

impl<'ctx> Messages<'ctx> {
    pub(crate) fn of(context: &'ctx Context) -> Self {
        let messages = Messages { context, errors: Box::default() };
        let errors: *const RefCell<Vec<String>> = &*messages.errors;
        // SAFETY: the context is alive. `collect` gets `errors` back, which is boxed, so it does not move; dropping
        // `messages` takes the handler away.
        unsafe {
            LLVMContextSetDiagnosticHandler(
                context.as_ctx_ref(),
                Some(collect),
                errors.cast_mut().cast(),
            );
        }
        messages
    }

    /// The errors until now.
    pub(crate) fn take_errors(&self) -> Vec<String> {
        self.errors.take()
    }
}

impl Drop for Messages<'_> {
    fn drop(&mut self) {
        // SAFETY: the context is alive.
        unsafe {
            LLVMContextSetDiagnosticHandler(self.context.as_ctx_ref(), None, std::ptr::null_mut());
        }
    }
}

/// Keeps an error's text.
extern "C" fn collect(info: LLVMDiagnosticInfoRef, errors: *mut c_void) {
    // SAFETY: LLVM passes a diagnostic that is alive during the call; its description is ours to
    // dispose of and NUL-terminated. `errors` is the pointer that `Messages::of` registered. It is
    // never used from two threads, because the context is not.
    unsafe {
        if LLVMGetDiagInfoSeverity(info) != LLVMDiagnosticSeverity::LLVMDSError {
            return;
        }
        let text = LLVMGetDiagInfoDescription(info);
        let errors = &*errors.cast::<RefCell<Vec<String>>>();
        errors.borrow_mut().push(CStr::from_ptr(text).to_string_lossy().into_owned());
        LLVMDisposeMessage(text);
    }
}

/// Links a module into another.
///
/// # Errors
/// LLVM's message.
pub(crate) fn link<'ctx>(module: &Module<'ctx>, other: Module<'ctx>) -> Result<(), String> {
    let context = module.get_context().as_ctx_ref();
    // inkwell leaves a handler in the context that writes to a pointer of its own stack.
    // SAFETY: the context is alive, and gets the handler back that it had.
    unsafe {
        let handler = LLVMContextGetDiagnosticHandler(context);
        let argument = LLVMContextGetDiagnosticContext(context);
        let linked = module.link_in_module(other);
        LLVMContextSetDiagnosticHandler(context, handler, argument);
        linked.map_err(|message| message.to_string())
    }
}
