//! The compiler for C hosts: `compiler/include/gridlet_compiler.h` is generated from this file and its neighbours, and a test
//! keeps it up to date.
//!
//! No function unwinds: a panic returns [`gridlet_compile_status::Internal`].

#![allow(non_camel_case_types, reason = "names of C")]

#[path = "../../../runtime/c/src/boundary.rs"]
mod boundary;
mod diagnostics;
mod options;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_void};
use std::fs;
use std::path::{Path, PathBuf};
use std::ptr;
use std::sync::OnceLock;
use std::time::SystemTime;

use gridlet::builder;
use gridlet::compile::{self, Checked, LinkInput, Session};
use gridlet::diagnostics::{ids, reference};
use gridlet::disk;
use gridlet::emit::{self, Input, Kind};
use gridlet::error::Error;
use gridlet::inkwell::context::Context;
use gridlet::modules::{self, Library, Own};
use gridlet::source::SourceMap;
use gridlet::target::Target;

use boundary::{Status, bytes, c_string, close, give, guard, invalid, null, text, value};
pub use diagnostics::{
    gridlet_diagnostic, gridlet_diagnostics, gridlet_label, gridlet_place, gridlet_severity,
};
pub use options::*;

/// The result of a call.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum gridlet_compile_status {
    /// Success.
    Ok = 0,
    /// An argument is NULL, not UTF-8, or invalid.
    InvalidArgument = 1,
    /// The program, or a linked module, is wrong.
    Program = 2,
    /// A compiler part is missing or too old.
    Missing = 3,
    /// A compiler part refused its input.
    Tool = 4,
    /// A file cannot be read or written.
    File = 5,
    /// A bug in Gridlet.
    Internal = 6,
}

impl Status for gridlet_compile_status {
    const OK: Self = gridlet_compile_status::Ok;
    const INVALID_ARGUMENT: Self = gridlet_compile_status::InvalidArgument;
    const PANIC: Self = gridlet_compile_status::Internal;
}

type Failure = boundary::Failure<gridlet_compile_status>;

/// The tools of a process and the modules to link: found and read once, for any number of programs.
pub struct gridlet_compiler(Session);

/// A program: source text or IR that was read and checked.
pub struct gridlet_module {
    input: Read,
    /// The sources, for messages.
    sources: SourceMap,
}

enum Read {
    Program(Box<Checked>),
    /// NVVM IR. Each output reads it again, so that outputs can be made on any thread.
    Nvvm {
        name: String,
        bytes: Vec<u8>,
        /// For a file: its folder, against which names of sources resolve, and when it was written.
        file: Option<(PathBuf, Option<SystemTime>)>,
    },
}

/// An output in memory.
pub struct gridlet_output(Vec<u8>);

fn status(error: &Error) -> gridlet_compile_status {
    match error {
        Error::Program(_) | Error::Unreadable(_) | Error::Module { .. } | Error::Input { .. } => {
            gridlet_compile_status::Program
        }
        Error::Missing { .. } => gridlet_compile_status::Missing,
        Error::Tool { .. } => gridlet_compile_status::Tool,
        Error::Invalid(_) | Error::Mistakes(_) => gridlet_compile_status::InvalidArgument,
        Error::Io { .. } => gridlet_compile_status::File,
        _ => gridlet_compile_status::Internal,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure { status: status(&error), message: error.to_string() }
    }
}

/// The messages of a call that compiles.
struct Messages(gridlet_diagnostics);

impl Messages {
    /// Notes an error, with the places in `sources`.
    fn failed(&mut self, error: Error, sources: &SourceMap) -> Failure {
        match &error {
            Error::Program(diagnostics) => self.0.extend(diagnostics, sources),
            other => self.0.error(other),
        }
        error.into()
    }
}

/// As [`give`], for calls that compile: stores their messages in `diagnostics`.
///
/// # Safety
/// `to` and `diagnostics` must be NULL or have room for a pointer.
unsafe fn compile<T>(
    to: *mut *mut T,
    what: &str,
    diagnostics: *mut *mut gridlet_diagnostics,
    make: impl FnOnce(&mut Messages) -> Result<T, Failure>,
) -> gridlet_compile_status {
    let mut messages = Messages(gridlet_diagnostics::default());
    // SAFETY: passed on to the caller.
    let status = unsafe { give(to, what, || make(&mut messages)) };
    if diagnostics.is_null() {
        return status;
    }
    let stored = guard::<gridlet_compile_status>(|| {
        if status != gridlet_compile_status::Ok && !messages.0.has_error() {
            let id = match status {
                gridlet_compile_status::Internal => ids::INTERNAL_ERROR,
                _ => ids::WRONG_CALL,
            };
            // SAFETY: a string of this thread.
            let message = unsafe { CStr::from_ptr(boundary::last_error()) };
            messages.0.add_error(id, None, &message.to_string_lossy(), &message.to_string_lossy());
        }
        let made = match messages.0.list.is_empty() {
            true => ptr::null_mut(),
            false => Box::into_raw(Box::new(messages.0)),
        };
        // SAFETY: passed on to the caller.
        unsafe { diagnostics.write(made) };
        Ok(())
    });
    if stored == gridlet_compile_status::Ok { status } else { stored }
}

/// The message of the last failure on this thread; empty if there was none. Valid until the next failing call on
/// this thread.
#[unsafe(no_mangle)]
pub extern "C" fn gridlet_compile_error() -> *const c_char {
    boundary::last_error()
}

/// The version of the compiler. The string is never freed.
#[unsafe(no_mangle)]
pub extern "C" fn gridlet_compiler_version() -> *const c_char {
    concat!(env!("CARGO_PKG_VERSION"), "\0").as_ptr().cast()
}

/// The reference's text on an id of a diagnostic, as `gridlet explain` shows it; NULL for an unknown id. The string is never
/// freed.
///
/// # Safety
/// `id` must be NULL or a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_explain(id: *const c_char) -> *const c_char {
    static ENTRIES: OnceLock<BTreeMap<&str, CString>> = OnceLock::new();
    let mut found = ptr::null();
    guard::<gridlet_compile_status>(|| {
        // SAFETY: passed on to the caller.
        let id = unsafe { text(id, "id") }?;
        let entries = ENTRIES.get_or_init(|| {
            reference::entries().map(|entry| (entry.id, c_string(entry.text))).collect()
        });
        found = entries.get(id).map_or(ptr::null(), |text| text.as_ptr());
        Ok(())
    });
    found
}

/// Finds this machine's compiler parts, which are loaded when they are first needed.
///
/// # Safety
/// `compiler` must have room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_compiler_create(
    compiler: *mut *mut gridlet_compiler,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe { give(compiler, "compiler", || Ok(gridlet_compiler(Session::new()))) }
}

/// Adds a module that defines functions which programs declare as `extern fn`. The ending of its name says what it is:
/// .ll, .bc, .ptx, .cubin, .fatbin, .o, .a or .c.
///
/// # Safety
/// `compiler` must not be in use elsewhere, `name` must be a string, and `data` must have `size` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_compiler_link(
    compiler: *mut gridlet_compiler,
    name: *const c_char,
    data: *const c_void,
    size: usize,
) -> gridlet_compile_status {
    guard(|| {
        // SAFETY: passed on to the caller.
        unsafe {
            let compiler = compiler.as_mut().ok_or_else(|| null("compiler"))?;
            let data = bytes(data, size, "data")?;
            compiler.0.link(LinkInput::new(text(name, "name")?, data.to_vec())?);
            Ok(())
        }
    })
}

/// Frees a compiler.
///
/// # Safety
/// `compiler` must be NULL, or a compiler that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_compiler_free(compiler: *mut gridlet_compiler) {
    // SAFETY: passed on to the caller.
    unsafe { close::<_, gridlet_compile_status>(compiler) }
}

/// Reads and checks a program in memory. The ending of `name` says what it is: .ll or .bc for NVVM IR of either dialect, as text or
/// bitcode; .gir for the text form of Gridlet's IR; anything else for the language. `name` also appears in messages. `options` may be
/// NULL; of them, only the instances matter here. `diagnostics` may be NULL; otherwise it gets the messages, or NULL if there are none.
/// A program that is refused has errors among them; warnings come with a module.
///
/// # Safety
/// `name` must be a string, `data` must have `size` bytes, `options` must be NULL or alive, and `module` and `diagnostics` must have
/// room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_module_read(
    name: *const c_char,
    data: *const c_void,
    size: usize,
    options: *const gridlet_options,
    module: *mut *mut gridlet_module,
    diagnostics: *mut *mut gridlet_diagnostics,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        compile(module, "module", diagnostics, |messages| {
            let name = text(name, "name")?;
            let data = bytes(data, size, "data")?;
            read(name, data, options.as_ref(), messages)
        })
    }
}

/// As `gridlet_module_read`, for a file. A program of the language may use other files, and the sources that the debug information of
/// NVVM IR names are looked for from the file's folder, so that findings about a bundle quote them.
///
/// # Safety
/// As for `gridlet_module_read`; `path` must be a string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_module_open(
    path: *const c_char,
    options: *const gridlet_options,
    module: *mut *mut gridlet_module,
    diagnostics: *mut *mut gridlet_diagnostics,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        compile(module, "module", diagnostics, |messages| {
            let path = Path::new(text(path, "path")?);
            if Form::of(path) == Form::Source {
                let sources =
                    compile::load(path).map_err(|error| messages.failed(error, &nowhere()))?;
                return check(sources, path.parent(), options.as_ref(), messages);
            }
            let data = disk::bytes(path).map_err(|error| messages.failed(error, &nowhere()))?;
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            let mut module = read(&name, &data, options.as_ref(), messages)?;
            if let Read::Nvvm { file, .. } = &mut module.input {
                let written = fs::metadata(path).and_then(|found| found.modified()).ok();
                let folder = path.parent().unwrap_or(Path::new(""));
                *file = Some((folder.into(), written));
            }
            Ok(module)
        })
    }
}

/// Frees a module.
///
/// # Safety
/// `module` must be NULL, or a module that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_module_free(module: *mut gridlet_module) {
    // SAFETY: passed on to the caller.
    unsafe { close::<_, gridlet_compile_status>(module) }
}

/// Makes an output: `bundle`, `host-object`, `header`, `manifest` (JSON), `layout` (JSON), `ir`, `nvvm`, `bitcode`, `ptx`, `cubin`, `object` or
/// `shared-object`, as `gridlet build --emit` does. Bundles, host objects and manifests are of all targets of the options; the others,
/// except `layout` and `header`, need options with one target. `options` may be NULL for the defaults. `diagnostics` as for `gridlet_module_read`;
/// warnings are those of NVIDIA's tools.
///
/// # Safety
/// All handles must be alive, `kind` must be a string, and `output` and `diagnostics` must have room for a pointer.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_module_emit(
    compiler: *const gridlet_compiler,
    module: *const gridlet_module,
    kind: *const c_char,
    options: *const gridlet_options,
    output: *mut *mut gridlet_output,
    diagnostics: *mut *mut gridlet_diagnostics,
) -> gridlet_compile_status {
    // SAFETY: passed on to the caller.
    unsafe {
        compile(output, "output", diagnostics, |messages| {
            let session = &value(compiler, "compiler")?.0;
            let module = value(module, "module")?;
            let kind: Kind = text(kind, "kind")?.parse().map_err(invalid)?;
            let defaults = gridlet_options::default();
            let options = options.as_ref().unwrap_or(&defaults);
            let made = make(session, module, kind, options);
            messages.0.extend(&session.take_tool_warnings(), &module.sources);
            let mut bytes = made.map_err(|error| messages.failed(error, &module.sources))?;
            bytes.push(0);
            Ok(gridlet_output(bytes))
        })
    }
}

/// The bytes of an output; NULL for NULL. A zero byte follows them, so that text is a string. Valid until the output is freed.
///
/// # Safety
/// `output` must be NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_output_data(output: *const gridlet_output) -> *const c_void {
    // SAFETY: passed on to the caller.
    unsafe { output.as_ref() }.map_or(ptr::null(), |output| output.0.as_ptr().cast())
}

/// The number of bytes of an output, without the zero byte behind them; 0 for NULL.
///
/// # Safety
/// `output` must be NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_output_size(output: *const gridlet_output) -> usize {
    // SAFETY: passed on to the caller.
    unsafe { output.as_ref() }.map_or(0, |output| output.0.len() - 1)
}

/// Frees an output.
///
/// # Safety
/// `output` must be NULL, or an output that is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_output_free(output: *mut gridlet_output) {
    // SAFETY: passed on to the caller.
    unsafe { close::<_, gridlet_compile_status>(output) }
}

/// The number of diagnostics; 0 for NULL.
///
/// # Safety
/// `diagnostics` must be NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_diagnostics_count(
    diagnostics: *const gridlet_diagnostics,
) -> usize {
    // SAFETY: passed on to the caller.
    unsafe { diagnostics.as_ref() }.map_or(0, |diagnostics| diagnostics.list.len())
}

/// A diagnostic by its index, counted from 0; NULL if there is none. Valid until the diagnostics are freed.
///
/// # Safety
/// `diagnostics` must be NULL or alive.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_diagnostics_get(
    diagnostics: *const gridlet_diagnostics,
    index: usize,
) -> *const gridlet_diagnostic {
    // SAFETY: passed on to the caller.
    let diagnostics = unsafe { diagnostics.as_ref() };
    diagnostics.and_then(|all| all.list.get(index)).map_or(ptr::null(), ptr::from_ref)
}

/// Frees diagnostics.
///
/// # Safety
/// `diagnostics` must be NULL, or diagnostics that are not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridlet_diagnostics_free(diagnostics: *mut gridlet_diagnostics) {
    // SAFETY: passed on to the caller.
    unsafe { close::<_, gridlet_compile_status>(diagnostics) }
}

/// The form of a program, by the ending of its name.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Form {
    Source,
    Nvvm,
    Ir,
}

impl Form {
    fn of(name: &Path) -> Form {
        match name.extension().and_then(|ending| ending.to_str()) {
            Some("ll" | "bc") => Form::Nvvm,
            Some("gir") => Form::Ir,
            _ => Form::Source,
        }
    }
}

/// For messages that name no place.
fn nowhere() -> SourceMap {
    SourceMap::default()
}

fn read(
    name: &str,
    data: &[u8],
    options: Option<&gridlet_options>,
    messages: &mut Messages,
) -> Result<gridlet_module, Failure> {
    let form = Form::of(Path::new(name));
    if form == Form::Nvvm {
        // Whether it has kernels does not matter yet: libraries have some outputs, too.
        modules::read(&Context::create(), name, data)
            .map_err(|error| messages.failed(Error::in_nvvm_ir(error), &nowhere()))?;
        let input = Read::Nvvm { name: name.to_owned(), bytes: data.to_vec(), file: None };
        return Ok(gridlet_module { input, sources: nowhere() });
    }
    let Ok(text) = std::str::from_utf8(data) else {
        let error = Error::Unreadable(format!("{name}: not UTF-8 text"));
        return Err(messages.failed(error, &nowhere()));
    };
    let sources = SourceMap::single(name, text);
    if form == Form::Source {
        return check(sources, None, options, messages);
    }
    let mut sources = sources;
    let program = builder::read_into(&mut sources, name, text)
        .map_err(|error| messages.failed(error.into(), &sources))?;
    let sources = (*program.sources).clone();
    Ok(gridlet_module { input: Read::Program(Box::new(program)), sources })
}

fn check(
    mut sources: SourceMap,
    folder: Option<&Path>,
    options: Option<&gridlet_options>,
    messages: &mut Messages,
) -> Result<gridlet_module, Failure> {
    sources.set_folder(&folder.map_or_else(PathBuf::new, Path::to_path_buf));
    let instances = options.map_or(&[][..], |options| &options.instances);
    let program = compile::check_for(sources.clone(), instances)
        .map_err(|error| messages.failed(error, &sources))?;
    messages.0.extend(&program.warnings, &sources);
    Ok(gridlet_module { input: Read::Program(Box::new(program)), sources })
}

fn make(
    session: &Session,
    module: &gridlet_module,
    kind: Kind,
    options: &gridlet_options,
) -> gridlet::Result<Vec<u8>> {
    let emit =
        |input| emit::emit(session, input, kind, options.targets(), &options.cuda, &options.cpu);
    match &module.input {
        Read::Program(program) => emit(Input::Program(program)),
        Read::Nvvm { name, bytes, file } => {
            if let Some(instance) = options.instances.first() {
                let why = "NVVM IR has no kernels with const parameters";
                return Err(Error::Invalid(format!("there is no instance `{instance}`: {why}")));
            }
            let context = Context::create();
            if kind.needs_kernels() || options.targets().contains(&Target::Cpu) {
                let mut own = Own::read(&context, name, bytes).map_err(Error::in_nvvm_ir)?;
                if let Some((folder, written)) = file {
                    own.find_sources(folder, *written);
                }
                return emit(Input::Own(&own));
            }
            let library = Library::read(&context, name, bytes).map_err(Error::in_nvvm_ir)?;
            emit(Input::Library(&library))
        }
    }
}
