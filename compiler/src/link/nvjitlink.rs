//! nvJitLink: device linking within this process.
//!
//! The library is loaded at run time. NVIDIA's "nvJitLink" guide describes its interface. The
//! header's functions are inline wrappers of versioned symbols (`__nvJitLinkCreate_13_0`);
//! libraries also export the plain names, and the symbols of every version up to their own.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;
use std::ptr;

use super::{Cubin, frames, stderr};
use crate::inputs::{InputKind, LinkInput};
use crate::ptx::Ptx;
use crate::toolchain::Version;
use crate::toolchain::library::{self, Handle, NvidiaLibrary, ReadFn, SizeFn, Status};
use crate::{Error, Result};
use gridlet_lang::arch::CudaArch;

const NAME: &str = "nvJitLink";

/// `NVJITLINK_INPUT_CUBIN`
const INPUT_CUBIN: c_int = 1;
/// `NVJITLINK_INPUT_PTX`
const INPUT_PTX: c_int = 2;
/// `NVJITLINK_INPUT_FATBIN`
const INPUT_FATBIN: c_int = 4;
/// `NVJITLINK_INPUT_OBJECT`
const INPUT_OBJECT: c_int = 5;
/// `NVJITLINK_INPUT_LIBRARY`
const INPUT_LIBRARY: c_int = 6;

type CreateFn = unsafe extern "C" fn(*mut Handle, u32, *const *const c_char) -> Status;
type DestroyFn = unsafe extern "C" fn(*mut Handle) -> Status;
type AddDataFn = unsafe extern "C" fn(Handle, c_int, *const c_void, usize, *const c_char) -> Status;
type CompleteFn = unsafe extern "C" fn(Handle) -> Status;

/// The functions of the library. They are called only while [`NvJitLink`] keeps it loaded.
#[derive(Debug)]
struct Functions {
    create: CreateFn,
    destroy: DestroyFn,
    add_data: AddDataFn,
    complete: CompleteFn,
    linked_cubin_size: SizeFn,
    linked_cubin: ReadFn,
    error_log_size: SizeFn,
    error_log: ReadFn,
    info_log_size: SizeFn,
    info_log: ReadFn,
}

/// The loaded nvJitLink library.
#[derive(Debug)]
pub struct NvJitLink {
    functions: Functions,
    /// The last field, so that the library is unloaded after everything that points into it.
    library: NvidiaLibrary,
}

impl NvJitLink {
    /// Loads the library and looks up all of its functions.
    ///
    /// # Errors
    /// `Missing` if the file does not load, lacks a function or is too old.
    pub fn load(path: &Path) -> Result<NvJitLink> {
        // SAFETY: the function has that type in the header.
        let library =
            unsafe { NvidiaLibrary::load(NAME, path, "nvJitLinkVersion", Version::MINIMUM_CUDA)? };
        let Version { major, minor, .. } = library.version();
        macro_rules! function {
            ($name:literal) => {{
                let versioned = format!("__{}_{major}_{minor}", $name);
                // SAFETY: the field that receives it has the header's type.
                unsafe { library.function(&[$name, &versioned])? }
            }};
        }
        let functions = Functions {
            create: function!("nvJitLinkCreate"),
            destroy: function!("nvJitLinkDestroy"),
            add_data: function!("nvJitLinkAddData"),
            complete: function!("nvJitLinkComplete"),
            linked_cubin_size: function!("nvJitLinkGetLinkedCubinSize"),
            linked_cubin: function!("nvJitLinkGetLinkedCubin"),
            error_log_size: function!("nvJitLinkGetErrorLogSize"),
            error_log: function!("nvJitLinkGetErrorLog"),
            info_log_size: function!("nvJitLinkGetInfoLogSize"),
            info_log: function!("nvJitLinkGetInfoLog"),
        };
        Ok(NvJitLink { functions, library })
    }

    /// Its version, which is the version of its CUDA toolkit.
    pub fn version(&self) -> Version {
        self.library.version()
    }

    /// The file it was loaded from.
    pub fn path(&self) -> &Path {
        self.library.path()
    }
}

/// Options of a device link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkOptions {
    /// The assembler's optimisation level: 0 or 3.
    pub opt_level: u8,
    /// Keep source lines, for profilers.
    pub line_info: bool,
    /// Keep full debug information.
    pub debug: bool,
}

impl Default for LinkOptions {
    fn default() -> Self {
        LinkOptions { opt_level: 3, line_info: false, debug: false }
    }
}

impl LinkOptions {
    gridlet_artifact::setters! {
        with_opt_level: opt_level: u8,
        with_line_info: line_info: bool,
        with_debug: debug: bool,
    }

    /// As arguments, which are the same for nvJitLink and ptxas.
    pub(super) fn arguments(&self, arch: CudaArch) -> Result<Vec<String>> {
        if !matches!(self.opt_level, 0 | 3) {
            return Err(Error::Invalid(format!(
                "optimisation level {}: device linking supports 0 and 3",
                self.opt_level
            )));
        }
        let mut arguments = vec![format!("-arch={}", arch.sm()), format!("-O{}", self.opt_level)];
        if self.debug {
            arguments.push("-g".into());
        }
        if self.line_info {
            arguments.push("-lineinfo".into());
        }
        Ok(arguments)
    }
}

/// The result of a device link.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct LinkOutput {
    /// The linked machine code.
    pub cubin: Cubin,
    /// Warnings and remarks of the library; usually empty.
    pub log: String,
}

/// A program to link.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub enum Program<'a> {
    /// PTX, whose functions nvJitLink assembles one after another.
    Ptx(&'a Ptx),
    /// An object file of ptxas.
    Object(&'a Cubin),
}

impl<'a> From<&'a Ptx> for Program<'a> {
    fn from(ptx: &'a Ptx) -> Self {
        Program::Ptx(ptx)
    }
}

/// Links a program with the inputs, except IR and C, which hold no GPU code; PTX is assembled before.
/// `cudadevrt` is `libcudadevrt.a`, for programs that launch.
///
/// # Errors
/// `Invalid` if the options are out of range, or if a name or text contains a NUL; `Io` if
/// `cudadevrt` cannot be read; `Tool` with the library's messages if it refuses an input, a symbol
/// stays unresolved, or it prints that inputs do not fit together.
pub fn device_link<'a>(
    library: &NvJitLink,
    program: impl Into<Program<'a>>,
    cudadevrt: Option<&Path>,
    inputs: &[LinkInput],
    arch: CudaArch,
    options: &LinkOptions,
) -> Result<LinkOutput> {
    let arguments = library::c_strings("link", options.arguments(arch)?)?;
    // Read here rather than by the library, so that a missing file gets a clear error.
    let cudadevrt = match cudadevrt {
        Some(path) => Some(
            std::fs::read(path).map_err(|source| Error::Io { path: path.to_path_buf(), source })?,
        ),
        None => None,
    };
    let text;
    let (what, kind, bytes) = match program.into() {
        Program::Ptx(Ptx(ptx)) => {
            let nul = |_| Error::Invalid("the PTX contains a NUL character".into());
            text = CString::new(ptx.as_str()).map_err(nul)?;
            ("reading the PTX", INPUT_PTX, text.as_bytes_with_nul())
        }
        Program::Object(Cubin(object)) => ("reading the object file", INPUT_CUBIN, &object[..]),
    };
    let inputs = inputs.iter().filter(|input| input.is_for_device_link());
    let inputs = inputs.map(Given::new).collect::<Result<Vec<_>>>()?;
    let link = || {
        let session = Session::new(library, &arguments)?;
        session.add(what, kind, bytes, c"program.ptx")?;
        for input in &inputs {
            let operation = format!("reading {}", input.name.to_string_lossy());
            session.add(&operation, input.kind, &input.bytes, &input.name)?;
        }
        if let Some(bytes) = &cudadevrt {
            session.add("reading libcudadevrt", INPUT_LIBRARY, bytes, c"libcudadevrt.a")?;
        }
        session.complete()?;
        let mut cubin = Cubin(session.cubin()?);
        frames::mend(&mut cubin);
        Ok(LinkOutput { cubin, log: session.logs() })
    };
    let (linked, heard) = stderr::heard(link);
    let printed = heard.errors.join("\n");
    match linked {
        Ok(_) if !printed.is_empty() => {
            Err(Error::Tool { tool: NAME, operation: "linking".into(), log: printed })
        }
        Ok(LinkOutput { cubin, log }) => {
            let log = format!("{}\n{log}", heard.others.join("\n")).trim().to_owned();
            Ok(LinkOutput { cubin, log })
        }
        Err(Error::Tool { tool, operation, log }) => {
            let log = format!("{printed}\n{log}").trim().to_owned();
            Err(Error::Tool { tool, operation, log })
        }
        Err(other) => Err(other),
    }
}

/// An input in the form that the library expects.
struct Given {
    kind: c_int,
    bytes: Vec<u8>,
    name: CString,
}

impl Given {
    fn new(input: &LinkInput) -> Result<Given> {
        let nul = || Error::Invalid(format!("{:?} contains a NUL character", input.name));
        let name = CString::new(input.name.as_str()).map_err(|_| nul())?;
        let mut bytes = input.bytes.clone();
        let kind = match input.kind {
            InputKind::Ptx => {
                // Text must end in NUL.
                bytes = CString::new(bytes).map_err(|_| nul())?.into_bytes_with_nul();
                INPUT_PTX
            }
            InputKind::Cubin => INPUT_CUBIN,
            InputKind::Fatbin => INPUT_FATBIN,
            InputKind::Archive => INPUT_LIBRARY,
            _ => INPUT_OBJECT,
        };
        Ok(Given { kind, bytes, name })
    }
}

/// One `nvJitLinkHandle`.
struct Session<'a> {
    library: &'a NvJitLink,
    handle: Handle,
}

impl<'a> Session<'a> {
    fn new(library: &'a NvJitLink, arguments: &[CString]) -> Result<Self> {
        let mut session = Session { library, handle: ptr::null_mut() };
        let pointers: Vec<*const c_char> = arguments.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the array and its NUL-terminated strings live through the call, and so does the
        // handle behind the pointer.
        let status = unsafe {
            (library.functions.create)(
                &mut session.handle,
                pointers.len() as u32,
                pointers.as_ptr(),
            )
        };
        session.check("making a linker", status)?;
        Ok(session)
    }

    fn add(&self, operation: &str, kind: c_int, bytes: &[u8], name: &CStr) -> Result<()> {
        // SAFETY: pointer and length are of one slice, the name ends in NUL, and the handle is
        // live. The caller's slices live until after `complete`.
        let status = unsafe {
            (self.library.functions.add_data)(
                self.handle,
                kind,
                bytes.as_ptr().cast(),
                bytes.len(),
                name.as_ptr(),
            )
        };
        self.check(operation, status)
    }

    fn complete(&self) -> Result<()> {
        // SAFETY: the handle is live.
        let status = unsafe { (self.library.functions.complete)(self.handle) };
        self.check("linking", status)
    }

    fn cubin(&self) -> Result<Vec<u8>> {
        let functions = &self.library.functions;
        let (status, bytes) = self.read(functions.linked_cubin_size, functions.linked_cubin);
        self.check("reading the cubin", status)?;
        Ok(bytes)
    }

    /// The error log followed by the info log.
    fn logs(&self) -> String {
        let functions = &self.library.functions;
        let logs = [
            self.read(functions.error_log_size, functions.error_log).1,
            self.read(functions.info_log_size, functions.info_log).1,
        ];
        logs.map(|bytes| library::text(&bytes).trim().to_owned()).join("\n").trim().to_owned()
    }

    fn read(&self, size: SizeFn, read: ReadFn) -> (Status, Vec<u8>) {
        // SAFETY: the handle is live, and callers pass the two functions for one buffer.
        unsafe { library::read_buffer(self.handle, size, read) }
    }

    fn check(&self, operation: &str, status: Status) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        Err(Error::Tool {
            tool: NAME,
            operation: format!("{operation} ({})", error_name(status)),
            log: if self.handle.is_null() { String::new() } else { self.logs() },
        })
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: the handle is live, and nothing uses it after this.
            unsafe { (self.library.functions.destroy)(&mut self.handle) };
        }
    }
}

/// The name in `nvJitLinkResult`; the library has no function that returns it.
fn error_name(status: Status) -> String {
    const NAMES: [&str; 18] = [
        "UNRECOGNIZED_OPTION",
        "MISSING_ARCH",
        "INVALID_INPUT",
        "PTX_COMPILE",
        "NVVM_COMPILE",
        "INTERNAL",
        "THREADPOOL",
        "UNRECOGNIZED_INPUT",
        "FINALIZE",
        "NULL_INPUT",
        "INCOMPATIBLE_OPTIONS",
        "INCORRECT_INPUT_TYPE",
        "ARCH_MISMATCH",
        "OUTDATED_LIBRARY",
        "MISSING_FATBIN",
        "UNRECOGNIZED_ARCH",
        "UNSUPPORTED_ARCH",
        "LTO_NOT_ENABLED",
    ];
    let known = usize::try_from(status).ok().and_then(|status| NAMES.get(status.checked_sub(1)?));
    known.map_or_else(|| format!("error {status}"), |name| format!("NVJITLINK_ERROR_{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_match_the_library_interface() {
        let options = LinkOptions { opt_level: 0, line_info: true, debug: true };
        let arguments = options.arguments(CudaArch::DEFAULT).unwrap();
        assert_eq!(arguments, ["-arch=sm_90", "-O0", "-g", "-lineinfo"]);
        let refused = LinkOptions { opt_level: 1, ..options }.arguments(CudaArch::DEFAULT);
        assert!(matches!(refused, Err(Error::Invalid(_))));
    }

    #[test]
    fn error_codes_have_the_names_of_the_header() {
        assert_eq!(error_name(4), "NVJITLINK_ERROR_PTX_COMPILE");
        assert_eq!(error_name(9), "NVJITLINK_ERROR_FINALIZE");
        assert_eq!(error_name(18), "NVJITLINK_ERROR_LTO_NOT_ENABLED");
        assert_eq!(error_name(19), "error 19");
        assert_eq!(error_name(-1), "error -1");
    }
}
