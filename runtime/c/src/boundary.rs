//! The boundary between Rust and C: a failure becomes a status with a message, and no panic crosses it. The C APIs of the
//! runtime and of the compiler both contain this file.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_void};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The result of a call.
pub(crate) trait Status: Copy {
    /// Success.
    const OK: Self;
    /// An argument is NULL, not UTF-8, or invalid.
    const INVALID_ARGUMENT: Self;
    /// A bug in Gridlet.
    const PANIC: Self;
}

/// Why a call failed.
pub(crate) struct Failure<S> {
    pub(crate) status: S,
    pub(crate) message: String,
}

thread_local! {
    static LAST_ERROR: RefCell<CString> = RefCell::new(CString::default());
}

/// The message of the last failure on this thread.
pub(crate) fn last_error() -> *const c_char {
    LAST_ERROR.try_with(|last| last.borrow().as_ptr()).unwrap_or(c"".as_ptr())
}

pub(crate) fn invalid<S: Status>(message: String) -> Failure<S> {
    Failure { status: S::INVALID_ARGUMENT, message }
}

pub(crate) fn null<S: Status>(what: &str) -> Failure<S> {
    invalid(format!("`{what}` is NULL"))
}

/// Text for C, which cannot contain NUL characters.
pub(crate) fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "?")).unwrap_or_default()
}

/// Runs a call, stores the message of a failure, and catches panics.
pub(crate) fn guard<S: Status>(call: impl FnOnce() -> Result<(), Failure<S>>) -> S {
    let failure = match catch_unwind(AssertUnwindSafe(call)) {
        Ok(Ok(())) => return S::OK,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text =
                text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
            let message = format!("Gridlet panicked, which is a bug: {text}");
            // Dropping the panic's value may itself panic.
            std::mem::forget(panic);
            Failure { status: S::PANIC, message }
        }
    };
    let text = c_string(&failure.message);
    // On a thread that is ending, the thread-local is gone.
    let _ = LAST_ERROR.try_with(|last| *last.borrow_mut() = text);
    failure.status
}

/// # Safety
/// `text` must be NULL or a string that lives through the call.
pub(crate) unsafe fn text<'a, S: Status>(
    text: *const c_char,
    what: &str,
) -> Result<&'a str, Failure<S>> {
    if text.is_null() {
        return Err(null(what));
    }
    // SAFETY: passed on to the caller.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| invalid(format!("`{what}` is not UTF-8 text")))
}

/// # Safety
/// `pointer` must be NULL or point to a value that lives through the call.
pub(crate) unsafe fn value<'a, T, S: Status>(
    pointer: *const T,
    what: &str,
) -> Result<&'a T, Failure<S>> {
    // SAFETY: passed on to the caller.
    unsafe { pointer.as_ref() }.ok_or_else(|| null(what))
}

/// The bytes at an address; with `count` 0, the address may be NULL.
///
/// # Safety
/// `first` must be NULL or point to `count` bytes that live through the call.
pub(crate) unsafe fn bytes<'a, S: Status>(
    first: *const c_void,
    count: usize,
    what: &str,
) -> Result<&'a [u8], Failure<S>> {
    if count == 0 {
        return Ok(&[]);
    }
    if first.is_null() {
        return Err(null(what));
    }
    if isize::try_from(count).is_err() {
        return Err(invalid(format!("`{what}` cannot have {count} bytes")));
    }
    // SAFETY: passed on to the caller; the length was checked against the largest possible slice.
    Ok(unsafe { std::slice::from_raw_parts(first.cast(), count) })
}

/// Creates a handle and stores it in `to`; stores NULL on failure.
///
/// # Safety
/// `to` must be NULL or have room for a pointer.
pub(crate) unsafe fn give<T, S: Status>(
    to: *mut *mut T,
    what: &str,
    make: impl FnOnce() -> Result<T, Failure<S>>,
) -> S {
    guard(|| {
        if to.is_null() {
            return Err(null(what));
        }
        // SAFETY: passed on to the caller.
        unsafe { to.write(std::ptr::null_mut()) };
        let made = Box::into_raw(Box::new(make()?));
        // SAFETY: as above.
        unsafe { to.write(made) };
        Ok(())
    })
}

/// Drops a handle.
///
/// # Safety
/// `handle` must be NULL, or come from [`give`] and not be used again.
pub(crate) unsafe fn close<T, S: Status>(handle: *mut T) {
    if !handle.is_null() {
        guard::<S>(|| {
            // SAFETY: passed on to the caller.
            drop(unsafe { Box::from_raw(handle) });
            Ok(())
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Code(i32);

    impl Status for Code {
        const OK: Code = Code(0);
        const INVALID_ARGUMENT: Code = Code(1);
        const PANIC: Code = Code(8);
    }

    #[test]
    fn a_panic_is_a_status() {
        let status = guard(|| -> Result<(), Failure<Code>> { panic!("no {}", "way") });
        assert_eq!(status, Code::PANIC);
        // SAFETY: a string of this thread.
        let text = unsafe { CStr::from_ptr(last_error()) };
        assert_eq!(text.to_str(), Ok("Gridlet panicked, which is a bug: no way"));
    }
}
