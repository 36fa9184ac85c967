//! The tests of the front end in one program; each module tests one stage or one document.

mod diagnostics;
mod editors;
mod format;
mod ir;
mod mutations;
mod passes;
mod reference;
mod time;
mod tree_rules;
mod variables;

use std::io;
use std::path::{Path, PathBuf};

/// The folder `compiler`. Its `tests` holds the programs and snapshots shared by the crates of the compiler.
fn compiler() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// The files on disk: the front end itself does no I/O.
struct Disk;

impl gridlet_lang::load::Files for Disk {
    fn identity(&self, path: &Path) -> io::Result<PathBuf> {
        path.canonicalize()
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        std::fs::read(path)
    }
}
