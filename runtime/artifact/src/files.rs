//! Reading files.

use std::fs;
use std::io::{Error, ErrorKind, Result};
use std::path::Path;

/// The bytes of a file. Folders, pipes and devices are refused: reading a pipe that nobody writes never ends.
///
/// # Errors
/// [`ErrorKind::IsADirectory`] and [`ErrorKind::Unsupported`], with what to do, if it is not a file; as [`fs::read`].
pub fn read_file(path: &Path) -> Result<Vec<u8>> {
    let metadata = fs::metadata(path)?;
    if metadata.is_dir() {
        return Err(Error::new(ErrorKind::IsADirectory, "is a folder; name a file in it"));
    }
    if !metadata.is_file() {
        let why = "is not a file, but a pipe or a device; copy its contents into a file";
        return Err(Error::new(ErrorKind::Unsupported, why));
    }
    fs::read(path)
}
