//! The file system, as a file provider for [`gridlet_lang::load`], and for messages that quote sources.

use std::fs;
use std::io::{self, ErrorKind, Read as _};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use gridlet_lang::load::Files;
use gridlet_lang::syntax::MAX_FILE_BYTES;

use crate::error::{Error, Result};

/// Files on disk.
#[derive(Clone, Copy, Debug, Default)]
pub struct Disk;

impl Files for Disk {
    fn identity(&self, path: &Path) -> io::Result<PathBuf> {
        fs::canonicalize(path)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let metadata = fs::metadata(path)?;
        if metadata.is_dir() {
            return Err(ErrorKind::IsADirectory.into());
        }
        // Reading a device or a pipe may never end.
        if !metadata.is_file() {
            return Err(ErrorKind::Unsupported.into());
        }
        let mut bytes = vec![];
        fs::File::open(path)?.take(MAX_FILE_BYTES as u64 + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    }
}

/// The bytes of a file. Folders, pipes and devices are refused: reading a pipe that nobody writes never ends.
///
/// # Errors
/// [`Error::Invalid`] if it is not a file, [`Error::Io`] if it cannot be read.
pub fn bytes(path: &Path) -> Result<Vec<u8>> {
    gridlet_artifact::read_file(path).map_err(|source| match source.kind() {
        ErrorKind::IsADirectory | ErrorKind::Unsupported => {
            Error::Invalid(format!("{}: {source}", path.display()))
        }
        _ => Error::Io { path: path.to_path_buf(), source },
    })
}

/// The text of a source file that a message may quote: a file of text that was not changed after `until`.
pub fn source(path: &Path, until: Option<SystemTime>) -> Option<String> {
    if let Some(until) = until
        && fs::metadata(path).and_then(|found| found.modified()).ok()? > until
    {
        return None;
    }
    let bytes = Disk.read(path).ok().filter(|bytes| bytes.len() <= MAX_FILE_BYTES)?;
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use gridlet_lang::load::load;
    use gridlet_lang::program::check;

    use super::*;

    #[test]
    fn the_disk_has_one_identity_for_a_link_and_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let write =
            |name: &str, text: &str| std::fs::write(folder.path().join(name), text).unwrap();
        std::fs::create_dir(folder.path().join("lib")).unwrap();
        write("p.grid", "use \"lib/a.grid\"; use \"link.grid\"; kernel k() { a(); }");
        write("lib/a.grid", "fn a() {}");
        #[cfg(unix)]
        std::os::unix::fs::symlink("lib/a.grid", folder.path().join("link.grid")).unwrap();
        #[cfg(not(unix))]
        write("link.grid", "use \"lib/a.grid\";");
        let sources = load(&Disk, &folder.path().join("p.grid")).unwrap();
        let names: Vec<&str> = sources.files().iter().map(|file| file.name.as_str()).collect();
        if cfg!(unix) {
            assert_eq!(names, ["p.grid", "lib/a.grid"]);
        }
        check(sources).unwrap();
    }
}
