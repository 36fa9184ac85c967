//! Temporary files and folders, listed so that a program that a signal ends can remove them too.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The files and folders that exist now.
static LISTED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn listed() -> MutexGuard<'static, Vec<PathBuf>> {
    LISTED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The entry of a temporary file or folder, which leaves the list when dropped.
#[derive(Debug)]
pub struct Listed(PathBuf);

/// Lists a temporary file or folder, which its owner removes before it drops the entry.
pub fn list(path: &Path) -> Listed {
    listed().push(path.into());
    Listed(path.into())
}

impl Drop for Listed {
    fn drop(&mut self) {
        let mut listed = listed();
        if let Some(at) = listed.iter().position(|path| *path == self.0) {
            listed.swap_remove(at);
        }
    }
}

/// Removes all listed files and folders: the process is about to end. From now on the list stays locked, so that the
/// threads that still run neither remove nor add any.
pub fn remove_all() {
    /// A linker that still writes into a folder may make removing it fail.
    const ATTEMPTS: u32 = 100;
    let listed = listed();
    for path in listed.iter() {
        for _ in 0..ATTEMPTS {
            let removed =
                if path.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) };
            if removed.is_ok() || !path.exists() {
                break;
            }
        }
    }
    std::mem::forget(listed);
}

#[cfg(test)]
mod tests {
    use super::{list, listed};

    #[test]
    fn an_entry_leaves_the_list_when_dropped() {
        let folder = tempfile::tempdir().unwrap();
        let is_listed = || listed().iter().any(|path| path == folder.path());
        let entry = list(folder.path());
        assert!(is_listed());
        drop(entry);
        assert!(!is_listed());
    }
}
