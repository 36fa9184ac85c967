//! Reads a module from text or bitcode, in either dialect.

use std::sync::Once;

use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;

use super::child::{self, End};
use super::typed;
use crate::error::{Error, Result};
use crate::fatal;
use crate::messages::Messages;
use crate::toolchain::LLVM_VERSION;

/// Reads NVVM IR in either dialect, or any LLVM module, as text or bitcode, and verifies it. A module with typed pointers
/// keeps the meaning that it has in the legacy dialect. `name` is for messages.
///
/// # Errors
/// [`Error::Invalid`] with LLVM's message if it is not a module that LLVM can read, or if the verifier refuses it.
pub fn read<'ctx>(context: &'ctx Context, name: &str, bytes: &[u8]) -> Result<Module<'ctx>> {
    let buffer = MemoryBuffer::create_from_memory_range_copy(&bitcode(name, bytes)?, name);
    let module = context
        .create_module_from_ir(buffer)
        .map_err(|error| Error::internal("inputs", error.to_string()))?;
    module.set_name(name);
    Ok(module)
}

/// As [`read()`], but gives the module as bitcode that this LLVM wrote.
///
/// # Errors
/// As [`read()`].
pub(crate) fn bitcode(name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    if bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(b"\xde\xc0\x17\x0b") {
        fatal::install();
        warm_up();
        let read = || clean(name, bytes).map_err(|error| error.to_string());
        return match child::run(read)? {
            End::Done(result) => result.map_err(Error::Invalid),
            End::Died(how) => Err(unreadable(name, &format!("the file is damaged ({how})"))),
        };
    }
    let (owned_name, owned) = (name.to_owned(), bytes.to_vec());
    // Damaged bitcode can end in a fatal error.
    fatal::caught("reading a module", move || clean(&owned_name, &owned)).map_err(|error| {
        match error {
            Error::Tool { log, .. } => unreadable(name, &log),
            other => other,
        }
    })
}

/// Reads a module, and a file that is not one, for the first time in this process. LLVM then registers destructors, under a
/// lock of the C library that another thread may hold when a child process starts, and which the child would wait for in
/// vain.
fn warm_up() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let context = Context::create();
        let buffer = context.create_module("").write_bitcode_to_memory();
        let _ = clean("", buffer.as_slice());
        let _ = clean("", b"BC\xc0\xde    ");
    });
}

fn unreadable(name: &str, message: &str) -> Error {
    let message = message.trim();
    let said = if message.is_empty() { "the file is damaged" } else { message };
    let (line, said) = located(name, said).unwrap_or((String::new(), said));
    let unended = if lacks_terminator(said) {
        "\nThe block before this line does not end: its last instruction must be `br`, `ret`, `switch` or `unreachable`."
    } else {
        ""
    };
    Error::Invalid(format!(
        "{name}:{line} not a module that LLVM {LLVM_VERSION} can read: {said}{unended}"
    ))
}

/// Splits the place from a message of LLVM's reader of text, `name:12:3: error: expected type`, which quotes the line: `12:3:`
/// and the rest.
fn located<'a>(name: &str, message: &'a str) -> Option<(String, &'a str)> {
    let rest = message.strip_prefix(name)?.strip_prefix(':')?;
    let (place, said) = rest.split_once(": error: ")?;
    let (line, column) = place.split_once(':')?;
    let is_number = |text: &str| text.parse::<u32>().is_ok();
    (is_number(line) && is_number(column)).then(|| (format!("{place}:"), said))
}

/// Whether LLVM found a label or the end of a function where an instruction must be.
fn lacks_terminator(message: &str) -> bool {
    let mut lines = message.lines();
    let is_expected = lines.next() == Some("expected instruction opcode");
    let code = lines.next().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    is_expected && (code == "}" || code.ends_with(':'))
}

/// The module as bitcode that this LLVM wrote.
fn clean(name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let context = Context::create();
    // Those that make reading fail come back as its message.
    let _messages = Messages::of(&context);
    let text = std::str::from_utf8(bytes).ok();
    let is_typed = text.is_some_and(typed::is_typed);
    let text = text.filter(|_| is_typed).map(typed::with_types);
    let bytes = text.as_deref().map_or(bytes, str::as_bytes);
    // A copy, because LLVM's text parser needs a NUL after the text, and copying adds one.
    let buffer = MemoryBuffer::create_from_memory_range_copy(bytes, name);
    let module = context
        .create_module_from_ir(buffer)
        .map_err(|error| unreadable(name, &error.to_string()))?;
    if is_typed {
        typed::keep_meaning(&module, &context);
    }
    module.verify().map_err(|log| {
        Error::Invalid(format!("{name}: not valid LLVM IR: {}", log.to_string().trim_end()))
    })?;
    Ok(module.write_bitcode_to_memory().as_slice().to_vec())
}
