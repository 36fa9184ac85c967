//! The cache of compilations: images by the hash of all that they are made from.
//!
//! [`Session::cached`](crate::compile::Session::cached) uses it. An entry is a file whose name is its key
//! (`cache/key.rs`). It is written under another name and renamed, so any number of processes may use the folder at once.
//! A file that is not a whole entry is no entry. When the entries exceed the limit, those that were unused for longest
//! are removed.
//!
//! ```text
//! <cache>/compiled/<key>      magic, SHA-256 of the rest, length of the description, description (JSON), parts
//! ```

pub(crate) mod key;

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use crate::toolchain::cache::cache_dir_in;
use key::Key;

/// The first bytes of an entry. A change of the format changes them.
const MAGIC: &[u8; 16] = b"gridlet compiled";
const HASH_BYTES: usize = 32;

/// The bytes that a cache keeps at most unless it is told otherwise.
pub const DEFAULT_LIMIT: u64 = 256 << 20;

/// The variable with that number of bytes; 0 turns the cache off.
pub const LIMIT_VARIABLE: &str = "GRIDLET_CACHE_SIZE";

/// The ending of a file that is being written.
const UNFINISHED: &str = "new";

/// After this time, a process that wrote such a file has died.
const ABANDONED: Duration = Duration::from_secs(3600);

/// A folder of compilations.
#[derive(Clone, Debug)]
pub struct Cache {
    folder: PathBuf,
    limit: u64,
}

/// What a cache holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Contents {
    /// The number of entries.
    pub entries: u64,
    /// Their size in bytes.
    pub bytes: u64,
}

/// A compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    /// The tools that made it, with their versions.
    pub(crate) tools: Vec<(String, String)>,
    /// Its images, and what else it gives.
    pub(crate) parts: Vec<Vec<u8>>,
}

#[derive(Serialize, Deserialize)]
struct Description {
    tools: Vec<(String, String)>,
    lengths: Vec<usize>,
}

impl Cache {
    /// A cache in a folder, which the first entry creates.
    pub fn new(folder: impl Into<PathBuf>) -> Cache {
        Cache { folder: folder.into(), limit: DEFAULT_LIMIT }
    }

    /// A cache that keeps at most `bytes`.
    pub fn with_limit(self, bytes: u64) -> Cache {
        Cache { limit: bytes, ..self }
    }

    /// The user's cache: the folder `compiled` in the [cache folder](crate::toolchain::cache::cache_dir), with the limit in
    /// `GRIDLET_CACHE_SIZE`. `None` if there is no such folder, or the limit is 0.
    pub fn of_user() -> Option<Cache> {
        Cache::from_variables(|name| std::env::var_os(name))
    }

    fn from_variables(variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<Cache> {
        let limit = variable(LIMIT_VARIABLE).filter(|value| !value.is_empty());
        let limit = limit.and_then(|value| value.to_str()?.parse().ok()).unwrap_or(DEFAULT_LIMIT);
        let folder = cache_dir_in(variable)?.join("compiled");
        (limit > 0).then(|| Cache::new(folder).with_limit(limit))
    }

    /// The folder.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The bytes that it keeps at most.
    pub fn limit(&self) -> u64 {
        self.limit
    }

    /// What it holds.
    ///
    /// # Errors
    /// The folder cannot be read. A folder that does not exist holds nothing.
    pub fn contents(&self) -> io::Result<Contents> {
        Ok(total(&self.files()?))
    }

    /// Removes everything that it holds, and returns what that was.
    ///
    /// # Errors
    /// The folder cannot be read, or a file in it cannot be removed.
    pub fn clear(&self) -> io::Result<Contents> {
        let files = self.files()?;
        for file in &files {
            remove(&file.path)?;
        }
        Ok(total(&files))
    }

    /// The compilation with a key, if it is there and whole.
    pub(crate) fn get(&self, key: &Key) -> Option<Entry> {
        let mut file = File::open(self.folder.join(key.name())).ok()?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).ok()?;
        let entry = decode(&bytes)?;
        // Only for the order of removal.
        let _ = file.set_modified(SystemTime::now());
        Some(entry)
    }

    /// Adds a compilation. A failure, such as a full disk, changes nothing.
    pub(crate) fn put(&self, key: &Key, entry: &Entry) {
        let Some(bytes) = encode(entry) else { return };
        if bytes.len() as u64 <= self.limit && self.write(&key.name(), &bytes).is_ok() {
            let _ = self.trim();
        }
    }

    fn write(&self, name: &str, bytes: &[u8]) -> io::Result<()> {
        static FILES: AtomicU64 = AtomicU64::new(0);
        let number = FILES.fetch_add(1, Ordering::Relaxed);
        fs::create_dir_all(&self.folder)?;
        let own = self.folder.join(format!("{name}.{}-{number}.{UNFINISHED}", process::id()));
        let written = File::create_new(&own).and_then(|mut file| file.write_all(bytes));
        written.and_then(|()| fs::rename(&own, self.folder.join(name))).inspect_err(|_| {
            let _ = fs::remove_file(&own);
        })
    }

    /// Removes what was unused for longest until a quarter of the limit is free, if the limit is exceeded, and what
    /// processes that died have left.
    fn trim(&self) -> io::Result<()> {
        let mut files = self.files()?;
        let now = SystemTime::now();
        let age = |file: &Stored| now.duration_since(file.used).unwrap_or_default();
        for file in files.iter().filter(|file| file.is_unfinished() && age(file) > ABANDONED) {
            remove(&file.path)?;
        }
        files.retain(|file| !file.is_unfinished());
        let mut bytes = total(&files).bytes;
        if bytes <= self.limit {
            return Ok(());
        }
        files.sort_by_key(|file| file.used);
        for file in files {
            if bytes <= self.limit - self.limit / 4 {
                break;
            }
            remove(&file.path)?;
            bytes -= file.bytes;
        }
        Ok(())
    }

    /// The entries, and the files that become entries. Other files in the folder are not the cache's.
    fn files(&self) -> io::Result<Vec<Stored>> {
        let folder = match fs::read_dir(&self.folder) {
            Ok(folder) => folder,
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(error) => return Err(error),
        };
        let mut files = Vec::new();
        for item in folder {
            let item = item?;
            let name = item.file_name();
            let stem = name.to_str().and_then(|name| name.split('.').next()).unwrap_or_default();
            // Another process may have removed it since.
            let Ok(metadata) = item.metadata() else { continue };
            if Key::is_name(stem) && metadata.is_file() {
                let used = metadata.modified()?;
                files.push(Stored { path: item.path(), bytes: metadata.len(), used });
            }
        }
        Ok(files)
    }
}

/// A file of a cache.
struct Stored {
    path: PathBuf,
    bytes: u64,
    used: SystemTime,
}

impl Stored {
    fn is_unfinished(&self) -> bool {
        self.path.extension() == Some(OsStr::new(UNFINISHED))
    }
}

fn total(files: &[Stored]) -> Contents {
    let entries = files.iter().filter(|file| !file.is_unfinished()).count() as u64;
    Contents { entries, bytes: files.iter().map(|file| file.bytes).sum() }
}

/// Removes a file, unless another process has.
fn remove(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

fn encode(entry: &Entry) -> Option<Vec<u8>> {
    let lengths = entry.parts.iter().map(Vec::len).collect();
    let description =
        serde_json::to_vec(&Description { tools: entry.tools.clone(), lengths }).ok()?;
    let mut rest = (description.len() as u64).to_le_bytes().to_vec();
    rest.extend(description);
    rest.extend(entry.parts.iter().flatten());
    Some([&MAGIC[..], &Sha256::digest(&rest), &rest].concat())
}

fn decode(bytes: &[u8]) -> Option<Entry> {
    let (hash, rest) = bytes.strip_prefix(MAGIC)?.split_at_checked(HASH_BYTES)?;
    if Sha256::digest(rest).as_slice() != hash {
        return None;
    }
    let (length, rest) = rest.split_first_chunk()?;
    let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
    let (description, mut rest) = rest.split_at_checked(length)?;
    let Description { tools, lengths } = serde_json::from_slice(description).ok()?;
    let mut parts = Vec::with_capacity(lengths.len());
    for length in lengths {
        let (part, after) = rest.split_at_checked(length)?;
        parts.push(part.to_vec());
        rest = after;
    }
    rest.is_empty().then_some(Entry { tools, parts })
}

#[cfg(test)]
mod tests;
