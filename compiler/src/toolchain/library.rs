//! Loads libNVVM and nvJitLink at run time, so that Gridlet builds and runs without them, and reads
//! their buffers.

use std::ffi::{CString, c_char, c_int, c_uint, c_void};
use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use libloading::Library;
use object::LittleEndian;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};

use super::Version;
use crate::{Error, Result};

/// The result of every function of the libraries; 0 is success.
pub(crate) type Status = c_int;
/// `nvvmProgram` or `nvJitLinkHandle`.
pub(crate) type Handle = *mut c_void;
/// A function that writes the size of a buffer in bytes.
pub(crate) type SizeFn = unsafe extern "C" fn(Handle, *mut usize) -> Status;
/// A function that fills a buffer of that size.
pub(crate) type ReadFn = unsafe extern "C" fn(Handle, *mut c_char) -> Status;

type VersionFn = unsafe extern "C" fn(*mut c_uint, *mut c_uint) -> Status;

/// The hint for a library that is missing or unusable.
pub(crate) const HELP: &str = "Run `cargo xtask setup`, or set CUDA_HOME to a CUDA toolkit, version 12.8 or later; \
     `gridlet doctor` shows what was found.";

/// A loaded library of NVIDIA's.
pub(crate) struct NvidiaLibrary {
    name: &'static str,
    path: PathBuf,
    version: Version,
    library: Library,
}

impl NvidiaLibrary {
    /// Loads a library with its symbols hidden from other libraries, so that versions 12 and 13 of
    /// one library can share a process, and checks its version, which `version_symbol` returns.
    ///
    /// # Errors
    /// `Missing` if the file does not exist, is truncated, built for another machine or too old, or
    /// does not load.
    ///
    /// # Safety
    /// `version_symbol` must write two 32-bit integers, major and minor version.
    pub(crate) unsafe fn load(
        name: &'static str,
        path: &Path,
        version_symbol: &str,
        minimum: Version,
    ) -> Result<NvidiaLibrary> {
        let missing = |what: String| Error::Missing { what, help: HELP.into() };
        let refuse = |why: String| {
            missing(format!("{name} could not be loaded from {}: {why}", path.display()))
        };
        check_whole(path).map_err(refuse)?;
        // SAFETY: the initialisers of the library run. It is NVIDIA's, found where the user keeps
        // the toolkit, and the check above has refused a truncated file, whose missing pages would
        // fault.
        let library = unsafe { Library::new(path) }.map_err(|error| {
            // The loader repeats the path; messages give it once.
            let text = error.to_string();
            refuse(text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text).to_owned())
        })?;
        // SAFETY: the caller guarantees the type. Signed and unsigned integers are passed alike.
        let version: VersionFn = unsafe { symbol(&library, &[version_symbol]) }
            .ok_or_else(|| missing(lacks(name, "of unknown version", path, version_symbol)))?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are to integers that live through the call.
        unsafe { version(&mut major, &mut minor) };
        let version = Version::new(major, minor);
        if version < minimum {
            return Err(missing(format!(
                "{name} at {} is version {version}; Gridlet needs {minimum} or later.",
                path.display(),
            )));
        }
        Ok(NvidiaLibrary { name, path: path.to_path_buf(), version, library })
    }

    /// Looks a function up by the first of its names that the library exports. It may be called
    /// only while the library is loaded.
    ///
    /// # Errors
    /// `Missing` if the library exports none of the names.
    ///
    /// # Safety
    /// `T` must be the type of the function.
    pub(crate) unsafe fn function<T: Copy>(&self, names: &[&str]) -> Result<T> {
        // SAFETY: the caller guarantees that the type is the function's.
        unsafe { symbol(&self.library, names) }.ok_or_else(|| Error::Missing {
            what: lacks(self.name, &self.version.to_string(), &self.path, names[0]),
            help: HELP.into(),
        })
    }

    /// Its version.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// The file it was loaded from.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }
}

impl fmt::Debug for NvidiaLibrary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct(self.name)
            .field("path", &self.path)
            .field("version", &self.version)
            .finish_non_exhaustive()
    }
}

/// Looks a symbol up by the first of its names that the library exports.
///
/// # Safety
/// `T` must be the type of the function.
unsafe fn symbol<T: Copy>(library: &Library, names: &[&str]) -> Option<T> {
    names.iter().find_map(|name| {
        // SAFETY: guaranteed by the caller.
        unsafe { library.get::<T>(name.as_bytes()) }.ok().map(|symbol| *symbol)
    })
}

fn lacks(name: &str, version: &str, path: &Path, symbol: &str) -> String {
    format!("{name} {version} at {} has no function `{symbol}`", path.display())
}

/// Reads a buffer of the library, a log or a result, by asking for its size first.
///
/// # Safety
/// Both functions must accept the handle, and `read` must write as many bytes as `size` reports.
pub(crate) unsafe fn read_buffer(handle: Handle, size: SizeFn, read: ReadFn) -> (Status, Vec<u8>) {
    let mut length = 0;
    // SAFETY: the caller guarantees the handle, and the integer lives through the call.
    let status = unsafe { size(handle, &mut length) };
    if status != 0 || length == 0 {
        return (status, Vec::new());
    }
    let mut bytes = vec![0_u8; length];
    // SAFETY: the buffer has the size that the library just reported.
    let status = unsafe { read(handle, bytes.as_mut_ptr().cast()) };
    (status, bytes)
}

/// The text in a buffer, up to its NUL.
pub(crate) fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(&bytes[..end]).into_owned()
}

/// Options as C strings.
///
/// # Errors
/// `Internal`, in `stage`, if one contains a NUL.
pub(crate) fn c_strings(stage: &'static str, options: Vec<String>) -> Result<Vec<CString>> {
    let strings = options.into_iter().map(CString::new).collect::<std::result::Result<_, _>>();
    strings.map_err(|error| Error::internal(stage, error.to_string()))
}

/// Refuses a file that is shorter than its headers say. The loader would map such a file without
/// checking, and the process would die on the first access to a missing page.
fn check_whole(path: &Path) -> std::result::Result<(), String> {
    // All headers of a shared library are within its first pages.
    const HEAD_BYTES: u64 = 64 * 1024;
    let file = File::open(path).map_err(|error| error.to_string())?;
    let length = file.metadata().map_err(|error| error.to_string())?.len();
    let mut head = Vec::new();
    file.take(HEAD_BYTES).read_to_end(&mut head).map_err(|error| error.to_string())?;

    let damaged = |_| "it is not a 64-bit shared library, or is damaged".to_owned();
    let header = FileHeader64::<LittleEndian>::parse(head.as_slice()).map_err(damaged)?;
    let endian = header.endian().map_err(damaged)?;
    let mut needed = header.e_shoff.get(endian)
        + u64::from(header.e_shnum.get(endian)) * u64::from(header.e_shentsize.get(endian));
    for segment in header.program_headers(endian, head.as_slice()).map_err(damaged)? {
        if segment.p_type(endian) == PT_LOAD {
            needed = needed.max(segment.p_offset(endian).saturating_add(segment.p_filesz(endian)));
        }
    }
    if length < needed {
        return Err(format!("it is truncated: {length} of {needed} bytes"));
    }
    Ok(())
}
