//! The driver's own interface, called directly.

use std::ffi::{CStr, c_int, c_void};

use anyhow::ensure;

/// A function of the driver.
///
/// # Safety
/// `F` is the symbol's function pointer type.
pub(crate) unsafe fn symbol<F: Copy>(name: &CStr) -> anyhow::Result<F> {
    assert_eq!(size_of::<F>(), size_of::<*mut c_void>());
    // SAFETY: the names are C strings; the caller vouches for the type.
    unsafe {
        let library = libc::dlopen(c"libcuda.so.1".as_ptr(), libc::RTLD_NOW);
        ensure!(!library.is_null(), "libcuda.so.1 does not load");
        let found = libc::dlsym(library, name.as_ptr());
        ensure!(!found.is_null(), "libcuda.so.1 has no {name:?}");
        Ok(std::mem::transmute_copy(&found))
    }
}

/// An error if a call of the driver failed.
pub(crate) fn check(call: &str, code: c_int) -> anyhow::Result<()> {
    ensure!(code == 0, "{call} failed with {code}");
    Ok(())
}
