//! Loading NVIDIA's shared libraries.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use libloading::Library;
use object::LittleEndian;
use object::elf::{FileHeader64, PT_LOAD};
use object::read::elf::{FileHeader, ProgramHeader};

use crate::{Error, Result};

/// The hint for a library that is missing or unusable.
pub(crate) const HELP: &str = "Run `cargo xtask setup`, or set CUDA_HOME to a CUDA toolkit, version 12.8 or later; \
     `gridlet doctor` shows what was found.";

/// Loads a library with its symbols hidden from other libraries, so that versions 12 and 13 of one
/// library can share a process.
///
/// # Errors
/// `Missing` if the file does not exist, is truncated or built for another machine, or does not
/// load.
pub(crate) fn open(name: &str, path: &Path) -> Result<Library> {
    let refuse = |why: String| Error::Missing {
        what: format!("{name} could not be loaded from {}: {why}", path.display()),
        help: HELP.into(),
    };
    check_whole(path).map_err(refuse)?;
    // SAFETY: the initialisers of the library run. It is NVIDIA's, found where the user keeps the
    // toolkit, and the check above has refused a truncated file, whose missing pages would fault.
    unsafe { Library::new(path) }.map_err(|error| {
        // The loader repeats the path; messages give it once.
        let text = error.to_string();
        refuse(text.strip_prefix(&format!("{}: ", path.display())).unwrap_or(&text).to_owned())
    })
}

/// Looks a function up by the first of its names that the library exports.
///
/// # Safety
/// `T` must be the type of the function.
pub(crate) unsafe fn function<T: Copy>(library: &Library, names: &[&str]) -> Option<T> {
    names.iter().find_map(|name| {
        // SAFETY: the caller guarantees that the type is the function's.
        unsafe { library.get::<T>(name.as_bytes()) }.ok().map(|symbol| *symbol)
    })
}

/// The error for a function that a library lacks.
pub(crate) fn lacks(name: &str, path: &Path, version: &str, symbol: &str) -> Error {
    Error::Missing {
        what: format!("{name} {version} at {} has no function `{symbol}`", path.display()),
        help: HELP.into(),
    }
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
