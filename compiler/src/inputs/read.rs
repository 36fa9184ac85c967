//! Reads a module from text or bitcode, in either dialect.

use std::sync::Once;

use inkwell::context::Context;
use inkwell::debug_info::debug_metadata_version;
use inkwell::llvm_sys::support::LLVMParseCommandLineOptions;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::Module;

use super::typed::{self, Look};
use super::{annotations, cycles, nesting};
use crate::child::{self, End, Limits};
use crate::error::{Error, Mistake, Place, Result};
use crate::fatal;
use crate::messages::Messages;
use crate::toolchain::LLVM_VERSION;

/// Reads NVVM IR in either dialect, or any LLVM module, as text or bitcode, and verifies it. A module with typed pointers
/// keeps the meaning that it has in the legacy dialect. `name` is for messages.
///
/// # Errors
/// [`Error::Mistakes`] with LLVM's message if it is not a module that LLVM can read, or if the verifier refuses it.
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
    keep_debug_information();
    let bytes = without_mark(bytes);
    let is_bitcode = is_bitcode(bytes);
    fatal::install();
    warm_up();
    let read = || clean(name, bytes).map_err(|error| error.to_string());
    match child::run("reading a module", Limits::Short, || {}, read)? {
        End::Done(Ok(bitcode)) => return Ok(bitcode),
        End::Done(Err(message)) if is_bitcode => return Err(Error::Invalid(message)),
        // Below, with its place.
        End::Done(Err(_)) => {}
        End::Died { how, .. } if is_bitcode => {
            return Err(unreadable(name, &format!("the file is damaged ({how})")));
        }
        End::Died { how, .. } => return Err(unreadable(name, &format!("{UPGRADES} ({how})"))),
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

/// LLVM upgrades old forms when it reads a module, without a look at whether they have that form.
const UPGRADES: &str = "LLVM ends over it, probably over a call of an intrinsic with other arguments than it has, or over a node of \
     `!nvvm.annotations`: each must be a function or a variable, and then names with numbers, as in `!{ptr @k, !\"kernel\", i32 1}`";

/// A file without the byte order mark that some editors write before text in UTF-8.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

fn is_bitcode(bytes: &[u8]) -> bool {
    bytes.starts_with(b"BC\xc0\xde") || bytes.starts_with(b"\xde\xc0\x17\x0b")
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

/// Makes LLVM keep debug information that its verifier refuses. Otherwise it prints the reason to standard error, drops all
/// debug information and goes on, where the verifier's message becomes our error.
fn keep_debug_information() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let words = [c"gridlet".as_ptr(), c"--disable-auto-upgrade-debug-info".as_ptr()];
        // SAFETY: two C strings, and an option that LLVM has. LLVM copies what it keeps.
        unsafe { LLVMParseCommandLineOptions(2, words.as_ptr(), c"".as_ptr()) };
    });
}

/// How deep brackets may nest in text. LLVM and the tools behind it recurse over types and constants, and their stack ends some
/// ten thousand levels deep.
pub(crate) const MAX_NESTING: usize = 500;

/// The error for text whose brackets nest too deep, with the first of them.
fn too_deep(name: &str, text: &[u8], at: usize) -> Error {
    let before = &text[..at];
    let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
    let column = 1 + before.iter().rev().take_while(|byte| **byte != b'\n').count();
    let place = place(name, line, Some(column as u32));
    let message = format!(
        "more than {MAX_NESTING} brackets are open here; write types and constants that nest less"
    );
    mistake(name, Some(place), message)
}

fn mistake(name: &str, place: Option<Place>, message: String) -> Error {
    Error::Mistakes(vec![Mistake::new(name, place, message)])
}

fn place(name: &str, line: usize, column: Option<u32>) -> Place {
    Place { file: name.to_owned(), line: line as u32, column }
}

fn unreadable(name: &str, message: &str) -> Error {
    let message = message.trim();
    let said = if message.is_empty() { "the file is damaged" } else { message };
    let (place, said) = located(name, said).map_or((None, said), |(at, said)| (Some(at), said));
    let unended = if lacks_terminator(said) {
        "\nThe block before this line does not end: its last instruction must be `br`, `ret`, `switch` or `unreachable`."
    } else {
        ""
    };
    let message = format!("not a module that LLVM {LLVM_VERSION} can read: {said}{unended}");
    mistake(name, place, message)
}

/// Splits the place from a message of LLVM's reader of text, `name:12:3: error: expected type`, which quotes the line.
fn located<'a>(name: &str, message: &'a str) -> Option<(Place, &'a str)> {
    let rest = message.strip_prefix(name)?.strip_prefix(':')?;
    let (at, said) = rest.split_once(": error: ")?;
    let (line, column) = at.split_once(':')?;
    Some((place(name, line.parse().ok()?, Some(column.parse().ok()?)), said))
}

/// Whether LLVM found a label or the end of a function where an instruction must be.
fn lacks_terminator(message: &str) -> bool {
    let mut lines = message.lines();
    let is_expected = lines.next() == Some("expected instruction opcode");
    let code = lines.next().unwrap_or_default().split(';').next().unwrap_or_default().trim();
    is_expected && (code == "}" || code.ends_with(':'))
}

/// The line of the text that a message of LLVM's verifier is about, if only one can be: the message quotes instructions and
/// nodes of metadata, these with all their fields and other numbers.
fn line_of(text: &str, log: &str) -> Option<usize> {
    let node = |code: &str| {
        let (number, node) = code.strip_prefix('!')?.split_once(" = ")?;
        let kind = node.trim_start_matches("distinct ").split_once('(')?.0;
        number.parse::<u32>().is_ok().then(|| kind.to_owned())
    };
    log.lines().skip(1).map(str::trim).filter(|quoted| !quoted.is_empty()).find_map(|quoted| {
        let kind = node(quoted);
        // Of functions and variables, the message has only the name.
        let symbol = quoted.strip_prefix("ptr @").or_else(|| quoted.strip_prefix("ptr addrspace"));
        let symbol = symbol.map(|rest| rest.rsplit('@').next().unwrap_or_default());
        let is_it = |line: &str| match (&kind, symbol) {
            (Some(_), _) => node(line.trim()) == kind,
            (None, Some(symbol)) => defines(line, symbol),
            (None, None) => line.split(';').next().unwrap_or_default().trim() == quoted,
        };
        let mut lines = (1..).zip(text.lines()).filter(|(_, line)| is_it(line));
        let (at, _) = lines.next()?;
        lines.next().is_none().then_some(at)
    })
}

/// Whether a line defines or declares a symbol.
fn defines(line: &str, symbol: &str) -> bool {
    let rest = |start: &str| line.split_once(start).map(|(_, rest)| rest.trim_start());
    let is_function = line.starts_with("declare ") || line.starts_with("define ");
    let at = format!("@{symbol}");
    is_function && rest(&at).is_some_and(|rest| rest.starts_with('('))
        || line.starts_with(&at) && rest(&at).is_some_and(|rest| rest.starts_with('='))
}

/// The module as bitcode that this LLVM wrote.
fn clean(name: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let context = Context::create();
    // Those that make reading fail come back as its message.
    let _messages = Messages::of(&context);
    let look = if is_bitcode(bytes) { Look::default() } else { typed::look(bytes, MAX_NESTING) };
    if let Some(at) = look.too_deep {
        return Err(too_deep(name, bytes, at));
    }
    let original = std::str::from_utf8(bytes).ok();
    if let Some(line) = original.and_then(|text| nesting::deep_type(text, MAX_NESTING)) {
        let message = format!(
            "this type has more than {MAX_NESTING} others inside each other; write types that nest less"
        );
        return Err(mistake(name, Some(place(name, line, None)), message));
    }
    if let Some(at) = original.and_then(annotations::wrong_line) {
        return Err(mistake(name, Some(place(name, at, None)), annotations::WRONG.into()));
    }
    if let Some(at) = original.and_then(annotations::wrong_version) {
        return Err(mistake(name, Some(place(name, at, None)), annotations::WRONG_VERSION.into()));
    }
    let is_typed = look.is_typed && original.is_some();
    let text = original.filter(|_| is_typed).map(typed::with_types);
    let bytes = text.as_deref().map_or(bytes, str::as_bytes);
    // A copy, because LLVM's text parser needs a NUL after the text, and copying adds one.
    let buffer = MemoryBuffer::create_from_memory_range_copy(bytes, name);
    let module = context
        .create_module_from_ir(buffer)
        .map_err(|error| unreadable(name, &error.to_string()))?;
    // That of other versions, which LLVM does not read.
    if module.get_debug_metadata_version() != debug_metadata_version() {
        module.strip_debug_info();
    }
    if is_typed {
        typed::keep_meaning(&module, &context);
    }
    let printed = || module.print_to_string().to_string();
    if original.is_none()
        && module.get_global_metadata_size("nvvmir.version") > 0
        && annotations::wrong_version(&printed()).is_some()
    {
        return Err(mistake(name, None, annotations::WRONG_VERSION.into()));
    }
    let cycle = original.map_or_else(
        || cycles::line_of_cycle(&printed()).map(|_| None),
        |text| cycles::line_of_cycle(text).map(Some),
    );
    if let Some(line) = cycle {
        let place = line.map(|line| place(name, line, None));
        return Err(mistake(name, place, cycles::CYCLE.into()));
    }
    module.verify().map_err(|log| {
        let log = log.to_string();
        let line = original.and_then(|text| line_of(text, &log));
        let place = line.map(|line| place(name, line, None));
        mistake(name, place, format!("not valid LLVM IR: {}", log.trim_end()))
    })?;
    Ok(module.write_bitcode_to_memory().as_slice().to_vec())
}
