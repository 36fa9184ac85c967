//! Calls of the C API; the test of damaged inputs and the fuzz target contain this file.

use std::ffi::{CStr, CString, c_char};
use std::ptr;

use gridlet_compiler_c::*;

/// The status of a call and its first error.
pub(crate) type Answer = (gridlet_compile_status, Option<(String, String)>);

pub(crate) const OK: Answer = (gridlet_compile_status::Ok, None);

fn string(text: *const c_char) -> String {
    // SAFETY: strings of the API end in NUL.
    unsafe { CStr::from_ptr(text) }.to_str().expect("UTF-8").to_owned()
}

/// The id and the message of the first error, which must be complete.
fn take(diagnostics: *mut gridlet_diagnostics) -> Option<(String, String)> {
    let mut found = None;
    // SAFETY: the diagnostics and their strings are alive until they are freed.
    unsafe {
        for at in 0..gridlet_diagnostics_count(diagnostics) {
            let one = &*gridlet_diagnostics_get(diagnostics, at);
            let (id, message) = (string(one.id), string(one.message));
            assert!(!gridlet_explain(one.id).is_null(), "`{id}` is not explained");
            assert!(!message.is_empty() && string(one.rendered).contains(&message), "{message}");
            if one.severity == gridlet_severity::Error {
                found.get_or_insert((id, message));
            }
        }
        gridlet_diagnostics_free(diagnostics);
    }
    found
}

/// A module, or the refusal.
fn read(name: &str, data: &[u8]) -> Result<*mut gridlet_module, Answer> {
    let (mut module, mut diagnostics) = (ptr::null_mut(), ptr::null_mut());
    let name = CString::new(name).expect("no NUL");
    // SAFETY: all pointers are to live values.
    let status = unsafe {
        let data = (data.as_ptr().cast(), data.len());
        let to = (&raw mut module, &raw mut diagnostics);
        gridlet_module_read(name.as_ptr(), data.0, data.1, ptr::null(), to.0, to.1)
    };
    let answer = (status, take(diagnostics));
    if status == gridlet_compile_status::Ok { Ok(module) } else { Err(answer) }
}

/// Reads a module, and makes an output of it with a linked module.
pub(crate) fn build(
    (name, data): (&str, &[u8]),
    link: Option<(&str, &[u8])>,
    kind: &CStr,
    target: &CStr,
) -> (Answer, Vec<u8>) {
    let module = match read(name, data) {
        Ok(module) => module,
        Err(answer) => return (answer, vec![]),
    };
    let (mut compiler, mut options) = (ptr::null_mut(), ptr::null_mut());
    let (mut output, mut diagnostics) = (ptr::null_mut(), ptr::null_mut());
    // SAFETY: all pointers are to live values, which are freed once.
    unsafe {
        assert_eq!(gridlet_compiler_create(&raw mut compiler), gridlet_compile_status::Ok);
        assert_eq!(gridlet_options_create(&raw mut options), gridlet_compile_status::Ok);
        gridlet_options_add_target(options, target.as_ptr());
        let mut answer = OK;
        if let Some((name, data)) = link {
            let name = CString::new(name).expect("no NUL");
            answer.0 =
                gridlet_compiler_link(compiler, name.as_ptr(), data.as_ptr().cast(), data.len());
            if answer.0 != gridlet_compile_status::Ok {
                answer.1 = Some((String::new(), string(gridlet_compile_error())));
            }
        }
        if answer == OK {
            let to = (&raw mut output, &raw mut diagnostics);
            answer.0 = gridlet_module_emit(compiler, module, kind.as_ptr(), options, to.0, to.1);
            answer.1 = take(diagnostics);
        }
        let size = gridlet_output_size(output);
        let bytes = match size {
            0 => vec![],
            _ => std::slice::from_raw_parts(gridlet_output_data(output).cast(), size).to_vec(),
        };
        gridlet_output_free(output);
        gridlet_options_free(options);
        gridlet_module_free(module);
        gridlet_compiler_free(compiler);
        (answer, bytes)
    }
}
