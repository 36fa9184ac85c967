//! LLVM's options that its interface for C lacks. They hold for the whole process.

use std::sync::Once;

use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;

/// Sets them, once:
/// - Debug information that the verifier refuses is kept. Otherwise LLVM prints the reason to standard error, drops all debug
///   information and goes on, where the verifier's message becomes our error.
/// - Code that cannot be reached is a trap. Otherwise a kernel on the CPU whose code is undefined runs on into what lies behind it.
pub(crate) fn set() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let words = [c"gridlet", c"--disable-auto-upgrade-debug-info", c"--trap-unreachable"]
            .map(|word| word.as_ptr());
        // SAFETY: C strings, and options that LLVM has. LLVM copies what it keeps.
        unsafe { LLVMParseCommandLineOptions(words.len() as i32, words.as_ptr(), c"".as_ptr()) };
    });
}
