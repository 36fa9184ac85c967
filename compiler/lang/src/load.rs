//! Loads a program: its first file and, transitively, every file it uses.
//!
//! `use "path.grid";` names a file relative to the folder of the file that contains it. Each file is read
//! once, however often and by whatever path it is used, so files may use each other. A file that cannot be
//! read is recorded in the [`SourceMap`] at its `use`, and the checker reports it with the other errors.
//!
//! Files come through the interface [`Files`], because this crate does no I/O; the crate `gridlet` implements
//! it for the disk.
//!
//! A file's name is its path relative to the folder of the first file, with `/`, so it is the same on every
//! machine.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use crate::diagnostics::ids;
use crate::error::{Error, Result};
use crate::source::{FileId, SourceMap, UseFailure};
use crate::syntax;

/// The maximum number of files in a program.
pub const MAX_FILES: usize = 256;

/// A source of files.
pub trait Files {
    /// The canonical path of a file, which may be reached by several.
    ///
    /// # Errors
    /// If there is no such file.
    fn identity(&self, path: &Path) -> io::Result<PathBuf>;

    /// The contents of a file. For a file that is too large, at least one byte more than
    /// [`syntax::MAX_FILE_BYTES`].
    ///
    /// # Errors
    /// [`ErrorKind::IsADirectory`] for a folder, [`ErrorKind::Unsupported`] for anything else that is not a
    /// regular file, otherwise the system's error.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// Files in memory, by their paths.
#[derive(Clone, Debug, Default)]
pub struct Memory(pub BTreeMap<PathBuf, Vec<u8>>);

impl Memory {
    /// Files with these paths and texts.
    pub fn new<'a>(files: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let file = |(path, text): (&str, &str)| (PathBuf::from(path), text.as_bytes().to_vec());
        Memory(files.into_iter().map(file).collect())
    }
}

impl Files for Memory {
    fn identity(&self, path: &Path) -> io::Result<PathBuf> {
        let mut parts = PathBuf::new();
        for part in path.components() {
            match part {
                Component::CurDir => {}
                Component::ParentDir if parts.file_name().is_some() => _ = parts.pop(),
                part => parts.push(part),
            }
        }
        Ok(parts)
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let path = self.identity(path)?;
        if let Some(bytes) = self.0.get(&path) {
            return Ok(bytes.clone());
        }
        let is_folder = self.0.keys().any(|file| file.starts_with(&path));
        Err(if is_folder { ErrorKind::IsADirectory } else { ErrorKind::NotFound }.into())
    }
}

/// Reads a program's first file and, transitively, every file it uses.
///
/// # Errors
/// For the first file: [`Error::Io`] if it cannot be read, [`Error::Invalid`] if it is a folder,
/// [`Error::Unreadable`] if it is not UTF-8. The checker reports the errors of used files.
pub fn load(files: &impl Files, path: &Path) -> Result<SourceMap> {
    let text = read_first(files, path)?;
    let name = path
        .file_name()
        .map_or_else(|| path.display().to_string(), |name| name.to_string_lossy().into_owned());
    let mut loader = Loader {
        files,
        root: folder_identity(files, folder_of(path)),
        sources: SourceMap::default(),
        known: BTreeMap::new(),
        asked: BTreeMap::new(),
        failures: 0,
        open: VecDeque::new(),
    };
    let first = loader.sources.add(name, text);
    if let Ok(identity) = files.identity(path) {
        loader.known.insert(identity, Ok(first));
    }
    loader.open.push_back((first, folder_of(path).to_path_buf()));
    while let Some((file, folder)) = loader.open.pop_front() {
        for (path, span) in syntax::used_paths(&loader.sources, file) {
            let key = (folder.clone(), path);
            let used = match loader.asked.get(&key) {
                Some(known) => known.clone(),
                None => loader.ask(key),
            };
            loader.sources.set_used(span, used);
        }
    }
    Ok(loader.sources)
}

/// The folder of a file; empty for one in the current folder.
fn folder_of(path: &Path) -> &Path {
    path.parent().unwrap_or(Path::new(""))
}

fn folder_identity(files: &impl Files, folder: &Path) -> PathBuf {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    files.identity(folder).unwrap_or_else(|_| folder.to_path_buf())
}

fn read_first(files: &impl Files, path: &Path) -> Result<String> {
    let shown = path.display();
    let bytes = files.read(path).map_err(|source| match source.kind() {
        ErrorKind::IsADirectory => {
            Error::Invalid(format!("{shown}: is a folder; name a .grid file in it instead"))
        }
        ErrorKind::Unsupported => {
            Error::Invalid(format!("{shown}: is not a file; name a .grid file instead"))
        }
        _ => Error::Io { path: path.into(), source },
    })?;
    String::from_utf8(bytes)
        .map_err(|error| Error::Unreadable(format!("{shown}: {}", not_utf8(&error))))
}

fn not_utf8(error: &std::string::FromUtf8Error) -> String {
    let at = error.utf8_error().valid_up_to();
    let line = error.as_bytes()[..at].iter().filter(|&&byte| byte == b'\n').count() + 1;
    let byte = error.as_bytes()[at];
    format!(
        "not UTF-8 text: invalid byte 0x{byte:02x} at byte {at} (line {line}); save the file as UTF-8"
    )
}

/// The state of a load.
struct Loader<'f, F> {
    files: &'f F,
    /// The folder of the first file.
    root: PathBuf,
    sources: SourceMap,
    /// The outcome for each file, by its canonical path.
    known: BTreeMap<PathBuf, std::result::Result<FileId, UseFailure>>,
    /// The outcome for each path in a folder: asking the system is slow.
    asked: BTreeMap<(PathBuf, String), std::result::Result<FileId, UseFailure>>,
    /// The number of failures among those.
    failures: usize,
    /// Files whose `use`s are still to be followed, with their folders.
    open: VecDeque<(FileId, PathBuf)>,
}

impl<F: Files> Loader<'_, F> {
    /// Does the work of [`Loader::file`] for a path that is not in `asked` yet.
    fn ask(&mut self, key: (PathBuf, String)) -> std::result::Result<FileId, UseFailure> {
        let used = match self.failures > MAX_FILES {
            true => Err(UseFailure {
                id: ids::TOO_MANY_FILES,
                message: format!(
                    "more than {MAX_FILES} files cannot be read; the rest are skipped"
                ),
                hint: None,
            }),
            false => self.file(&key.1, &key.0),
        };
        self.failures += usize::from(used.is_err());
        self.asked.insert(key, used.clone());
        used
    }

    /// The file that a `use` in `folder` names.
    fn file(&mut self, path: &str, folder: &Path) -> std::result::Result<FileId, UseFailure> {
        if path.is_empty() || Path::new(path).has_root() {
            return Err(UseFailure {
                id: ids::UNKNOWN_FILE,
                message: match path.is_empty() {
                    true => "this path is empty".into(),
                    false => "this path is absolute".into(),
                },
                hint: Some(
                    "write a path relative to this file's folder, such as `../lib/a.grid`".into(),
                ),
            });
        }
        let whole = folder.join(path);
        let identity =
            self.files.identity(&whole).map_err(|error| unread(path, error.kind(), &error))?;
        if let Some(known) = self.known.get(&identity) {
            return known.clone();
        }
        let made = self.add(path, &whole, &identity);
        self.known.insert(identity, made.clone());
        made
    }

    fn add(
        &mut self,
        path: &str,
        whole: &Path,
        identity: &Path,
    ) -> std::result::Result<FileId, UseFailure> {
        if self.sources.files().len() >= MAX_FILES {
            return Err(UseFailure {
                id: ids::TOO_MANY_FILES,
                message: format!("the program has more than {MAX_FILES} files"),
                hint: None,
            });
        }
        let bytes = self.files.read(whole).map_err(|error| unread(path, error.kind(), &error))?;
        let text = String::from_utf8(bytes).map_err(|error| UseFailure {
            id: ids::UNREADABLE_FILE,
            message: format!("`{path}`: {}", not_utf8(&error)),
            hint: None,
        })?;
        let id = self.sources.add(name(&self.root, identity), text);
        self.open.push_back((id, folder_of(whole).to_path_buf()));
        Ok(id)
    }
}

fn unread(path: &str, kind: ErrorKind, error: &io::Error) -> UseFailure {
    let (id, message) = match kind {
        ErrorKind::NotFound | ErrorKind::NotADirectory => {
            (ids::UNKNOWN_FILE, format!("there is no file `{path}`"))
        }
        ErrorKind::IsADirectory => (ids::UNREADABLE_FILE, format!("`{path}` is a folder")),
        ErrorKind::Unsupported => (ids::UNREADABLE_FILE, format!("`{path}` is not a file")),
        _ => (ids::UNREADABLE_FILE, format!("`{path}` cannot be read: {error}")),
    };
    let hint = match id {
        ids::UNKNOWN_FILE => {
            Some("paths are relative to the folder of the file that contains the `use`".into())
        }
        _ => None,
    };
    UseFailure { id, message, hint }
}

/// The path of a file relative to the folder of the first one.
fn name(root: &Path, file: &Path) -> String {
    let shared = root.components().zip(file.components()).take_while(|(a, b)| a == b).count();
    let up = root.components().skip(shared).map(|_| "..".into());
    let down = file.components().skip(shared);
    let parts = up.chain(down.map(|part| part.as_os_str().to_string_lossy().into_owned()));
    parts.collect::<Vec<String>>().join("/")
}

#[cfg(test)]
mod tests;
