//! Output files: each is written whole beside its place and then renamed, so that a failed write leaves the old file.

use std::fs::{self, Metadata, Permissions};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use gridlet::{Error, temporary};
use tempfile::NamedTempFile;

use crate::report::Outcome;

/// The permissions of a new file, from which the process's mask is taken.
const NEW: u32 = 0o666;

/// A file that is written but not at its place yet.
struct Staged {
    to: PathBuf,
    file: NamedTempFile,
    /// After the file, so that it is removed before it leaves the list.
    _listed: temporary::Listed,
}

/// Writes files. If one cannot be written, none is replaced.
pub(crate) fn write_all(files: &[(PathBuf, &[u8])]) -> Outcome {
    let mut staged = Vec::with_capacity(files.len());
    for (path, bytes) in files {
        let failed = |source| Error::Io { path: path.clone(), source };
        staged.extend(stage(path, bytes).map_err(failed)?.map(|staged| (path, staged)));
    }
    for (path, Staged { to, file, _listed }) in staged {
        let failed =
            |error: tempfile::PersistError| Error::Io { path: path.clone(), source: error.error };
        file.persist(to).map_err(failed)?;
    }
    Ok(())
}

/// Writes a file beside its place. `None` if it is written in place: a device or a pipe, or a file in a folder that takes
/// no new files.
fn stage(path: &Path, bytes: &[u8]) -> std::io::Result<Option<Staged>> {
    // A link keeps pointing to the file.
    let to = fs::canonicalize(path).unwrap_or_else(|_| path.into());
    let old = fs::metadata(&to).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return fs::write(path, bytes).map(|()| None);
    }
    let folder = to.parent().filter(|folder| !folder.as_os_str().is_empty());
    let made = tempfile::Builder::new()
        .prefix(".gridlet-")
        .permissions(Permissions::from_mode(NEW))
        .tempfile_in(folder.unwrap_or(Path::new(".")));
    let mut file = match made {
        Err(error) if error.kind() == ErrorKind::PermissionDenied && old.is_some() => {
            return fs::write(path, bytes).map(|()| None);
        }
        made => made?,
    };
    let listed = temporary::list(file.path());
    file.write_all(bytes)?;
    if let Some(permissions) = old.as_ref().map(Metadata::permissions) {
        // A read-only file is not replaced, as it would not be overwritten.
        if permissions.readonly() {
            return Err(ErrorKind::PermissionDenied.into());
        }
        file.as_file().set_permissions(permissions)?;
    }
    Ok(Some(Staged { to, file, _listed: listed }))
}
