//! Modules of others that are linked in: where `extern fn` is defined.

use std::fs;
use std::path::{Path, PathBuf};

use crate::{Error, Result};

/// What a linked module is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InputKind {
    /// LLVM IR as text or bitcode, for GPUs or for this machine by its target triple.
    Ir,
    /// PTX, for GPUs.
    Ptx,
    /// Machine code of one architecture of GPUs.
    Cubin,
    /// Machine code of several.
    Fatbin,
    /// An object file: for this machine, or with code for GPUs (`nvcc -rdc=true -c`).
    Object,
    /// An archive of object files.
    Archive,
    /// C, for this machine.
    C,
}

/// A module of others.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkInput {
    /// Its file's name, for messages.
    pub name: String,
    /// What it is.
    pub kind: InputKind,
    /// What it holds.
    pub bytes: Vec<u8>,
    /// The folder of its file, where C finds what it includes.
    pub folder: Option<PathBuf>,
}

impl LinkInput {
    /// A module by the ending of its name: `.ll .bc .ptx .cubin .fatbin .o .a .c`.
    ///
    /// # Errors
    /// [`Error::Invalid`] for any other ending.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Result<LinkInput> {
        let name = name.into();
        let ending = Path::new(&name).extension().and_then(|ending| ending.to_str());
        let kind = match ending {
            Some("ll" | "bc") => InputKind::Ir,
            Some("ptx") => InputKind::Ptx,
            Some("cubin") => InputKind::Cubin,
            Some("fatbin") => InputKind::Fatbin,
            Some("o") => InputKind::Object,
            Some("a") => InputKind::Archive,
            Some("c") => InputKind::C,
            _ => {
                return Err(Error::Invalid(format!(
                    "{name}: what is linked in ends in .ll, .bc, .ptx, .cubin, .fatbin, .o, .a or .c"
                )));
            }
        };
        Ok(LinkInput { name, kind, bytes, folder: None })
    }

    /// Reads a module from a file.
    ///
    /// # Errors
    /// As [`LinkInput::new`]; [`Error::Io`] if the file cannot be read.
    pub fn read(path: &Path) -> Result<LinkInput> {
        let bytes =
            fs::read(path).map_err(|source| Error::Io { path: path.to_path_buf(), source })?;
        let name = path.file_name().map_or_else(String::new, |name| name.to_string_lossy().into());
        let folder = path.parent().map(Path::to_path_buf);
        Ok(LinkInput { folder, ..LinkInput::new(name, bytes)? })
    }

    /// Whether nvJitLink takes it as it is.
    pub(crate) fn is_for_device_link(&self) -> bool {
        !matches!(self.kind, InputKind::Ir | InputKind::C)
    }

    /// Whether the system's linker takes it, by way of the C compiler.
    pub(crate) fn is_for_host_link(&self) -> bool {
        matches!(self.kind, InputKind::Object | InputKind::Archive | InputKind::C)
    }

    /// Whether what it defines can only be seen by linking it.
    pub(crate) fn is_opaque(&self) -> bool {
        !matches!(self.kind, InputKind::Ir | InputKind::C | InputKind::Ptx)
    }
}
