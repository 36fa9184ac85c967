//! Loading a program: the file that is named, and every file that is used from there on.
//!
//! `use "path.grid";` names a file relative to the folder of the file that says it. A file is read once,
//! however often and by whatever path it is used, so that files may use each other. What cannot be read is
//! noted in the [`SourceMap`] beside the `use`, and the checker reports it with all else that is wrong.
//!
//! The files come through the interface [`Files`], since this crate does no I/O: the compiler's crate has the disk.
//!
//! A file's name is its path from the folder of the first file, with `/`: it is the same on every machine.

use std::collections::{BTreeMap, VecDeque};
use std::io::{self, ErrorKind};
use std::path::{Component, Path, PathBuf};

use crate::diagnostics::ids;
use crate::error::{Error, Result};
use crate::source::{FileId, SourceMap, UseFailure};
use crate::syntax;

/// The most files of a program.
pub const MAX_FILES: usize = 256;

/// Where files come from.
pub trait Files {
    /// The one path of a file that may be reached by several.
    ///
    /// # Errors
    /// If there is no such file.
    fn identity(&self, path: &Path) -> io::Result<PathBuf>;

    /// What a file holds; of one that is too large at least a byte more than [`syntax::MAX_FILE_BYTES`].
    ///
    /// # Errors
    /// [`ErrorKind::IsADirectory`] for a folder, [`ErrorKind::Unsupported`] for what is neither a file nor a
    /// folder, else what the system says.
    fn read(&self, path: &Path) -> io::Result<Vec<u8>>;
}

/// Files in memory, by their paths.
#[derive(Clone, Debug, Default)]
pub struct Memory(pub BTreeMap<PathBuf, Vec<u8>>);

impl Memory {
    /// Files of these paths and texts.
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

/// Reads a program's first file, and all that is used from there on.
///
/// # Errors
/// For the first file: [`Error::Io`] if it cannot be read, [`Error::Invalid`] if it is a folder,
/// [`Error::Unreadable`] if it is not UTF-8. Those of used files are the checker's to report.
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
            Error::Invalid(format!("{shown}: is no file; name a .grid file instead"))
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

/// What is known while files are loaded.
struct Loader<'f, F> {
    files: &'f F,
    /// The folder of the first file.
    root: PathBuf,
    sources: SourceMap,
    /// What became of each file, by its identity.
    known: BTreeMap<PathBuf, std::result::Result<FileId, UseFailure>>,
    /// What each path in a folder gave: asking the system takes long.
    asked: BTreeMap<(PathBuf, String), std::result::Result<FileId, UseFailure>>,
    /// How many of those are no file.
    failures: usize,
    /// Files whose uses are not followed yet, with their folders.
    open: VecDeque<(FileId, PathBuf)>,
}

impl<F: Files> Loader<'_, F> {
    /// As [`Loader::file`], for what nobody has asked for yet.
    fn ask(&mut self, key: (PathBuf, String)) -> std::result::Result<FileId, UseFailure> {
        let used = match self.failures > MAX_FILES {
            true => Err(UseFailure {
                id: ids::TOO_MANY_FILES,
                message: format!(
                    "more than {MAX_FILES} files cannot be read; the rest is not looked for"
                ),
                hint: None,
            }),
            false => self.file(&key.1, &key.0),
        };
        self.failures += usize::from(used.is_err());
        self.asked.insert(key, used.clone());
        used
    }

    /// The file that a `use` in a file of `folder` names.
    fn file(&mut self, path: &str, folder: &Path) -> std::result::Result<FileId, UseFailure> {
        if path.is_empty() || Path::new(path).has_root() {
            return Err(UseFailure {
                id: ids::UNKNOWN_FILE,
                message: match path.is_empty() {
                    true => "this path is empty".into(),
                    false => "this path does not start at the file that says it".into(),
                },
                hint: Some("write a path from the folder of this file, as `../lib/a.grid`".into()),
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
        ErrorKind::Unsupported => (ids::UNREADABLE_FILE, format!("`{path}` is no file")),
        _ => (ids::UNREADABLE_FILE, format!("`{path}` cannot be read: {error}")),
    };
    let hint = match id {
        ids::UNKNOWN_FILE => Some("paths start at the folder of the file that says them".into()),
        _ => None,
    };
    UseFailure { id, message, hint }
}

/// The path of a file from the folder of the first one.
fn name(root: &Path, file: &Path) -> String {
    let shared = root.components().zip(file.components()).take_while(|(a, b)| a == b).count();
    let up = root.components().skip(shared).map(|_| "..".into());
    let down = file.components().skip(shared);
    let parts = up.chain(down.map(|part| part.as_os_str().to_string_lossy().into_owned()));
    parts.collect::<Vec<String>>().join("/")
}

#[cfg(test)]
mod tests;
