//! Downloads, checks, unpacks and repairs the pinned wheels in the cache.
//!
//! A toolkit is unpacked into `<name>.partial-<process>`, renamed to its final place, and the file `complete` is written
//! last. So an interrupted set-up never leaves a toolkit that looks complete. A lock keeps two set-ups apart; the
//! system releases it when its holder ends.

use std::fs::{File, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail, ensure};
use sha2::{Digest, Sha256};

use super::pins::{Pins, Wheel, hex};
use crate::{cache, report};

/// Prefixes of paths that are not unpacked: Gridlet does not use these files, two thirds of the total.
pub(crate) const SKIPPED: [&str; 4] = [
    "nvidia/cu13/lib/cmake/",
    "nvidia/cu13/include/cccl/cub/",
    "nvidia/cu13/include/cccl/thrust/",
    "nvidia/cu13/bin/__nvcc_device_query",
];
/// Lists the unpacked files: `<sha256> <bytes> <path>` on each line, in the order of the paths.
const MANIFEST: &str = "manifest";
const PARTIAL: &str = ".partial-";

/// How thoroughly to check a toolkit that is marked complete.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// Every file has its size.
    Sizes,
    /// Every file has its hash.
    Hashes,
}

/// A source of wheels.
pub(crate) trait Download {
    /// Finds the programs that downloading needs. Called once, before [`Download::download`].
    fn prepare(&mut self) -> Result<()>;
    /// Puts the wheels into `folder/wheels`; may use the rest of `folder`, which is empty before.
    fn download(&mut self, pins: &Pins, folder: &Path) -> Result<()>;
}

/// A complete toolkit.
pub(crate) struct Installed {
    /// `<cache>/toolkit/<name>`
    pub(crate) folder: PathBuf,
    /// Size of its files.
    pub(crate) bytes: u64,
    /// Whether this call fetched it.
    pub(crate) fetched: bool,
}

/// Ensures a complete toolkit of `pins` in `cache`, an absolute path.
pub(crate) fn install(
    cache: &Path,
    pins: &Pins,
    check: Check,
    download: &mut dyn Download,
) -> Result<Installed> {
    let toolkits = cache.join("toolkit");
    std::fs::create_dir_all(&toolkits).with_context(|| {
        format!("cannot make {}: set GRIDLET_CACHE to a folder to write in", toolkits.display())
    })?;
    let _lock = lock(&toolkits.join("lock"))?;
    let folder = toolkits.join(&pins.name);
    match state(&folder, pins, check)? {
        State::Complete { bytes } => return Ok(Installed { folder, bytes, fetched: false }),
        State::Absent => {}
        State::Damaged(why) => {
            report::step(&format!("{} is damaged ({why}): fetching it anew", folder.display()));
        }
    }
    remove_partial(&toolkits)?;
    download.prepare()?;
    let partial = toolkits.join(format!("{}{PARTIAL}{}", pins.name, std::process::id()));
    let made = make(pins, &partial, download).and_then(|bytes| {
        put_in_place(&partial, &folder, pins)?;
        Ok(bytes)
    });
    if made.is_err() {
        // The error matters more than a folder that the next set-up removes anyway.
        let _ = std::fs::remove_dir_all(&partial);
    }
    Ok(Installed { folder, bytes: made?, fetched: true })
}

/// Takes the lock, after waiting for another set-up if there is one.
fn lock(path: &Path) -> Result<File> {
    let file = File::options().create(true).write(true).truncate(false).open(path);
    let file = file.with_context(|| format!("cannot open {}", path.display()))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            report::step("waiting for another set-up to end");
            file.lock()?;
        }
        Err(TryLockError::Error(error)) => {
            return Err(error).with_context(|| format!("cannot lock {}", path.display()));
        }
    }
    Ok(file)
}

enum State {
    Complete { bytes: u64 },
    Absent,
    Damaged(String),
}

fn state(folder: &Path, pins: &Pins, check: Check) -> Result<State> {
    if !folder.exists() {
        return Ok(State::Absent);
    }
    let Ok(complete) = std::fs::read_to_string(folder.join(cache::COMPLETE)) else {
        return Ok(State::Damaged("its set-up was interrupted".into()));
    };
    if complete.trim() != pins.hash(&SKIPPED) {
        return Ok(State::Damaged(format!("it is not what {} pins", pins.file)));
    }
    let Ok(manifest) = std::fs::read_to_string(folder.join(MANIFEST)) else {
        return Ok(State::Damaged("its manifest cannot be read".into()));
    };
    let total: u64 = manifest.lines().filter_map(parse_line).map(|(_, bytes, _)| bytes).sum();
    let bar = (check == Check::Hashes).then(|| report::byte_bar("checking hashes", total));
    for line in manifest.lines() {
        let Some((sha256, bytes, path)) = parse_line(line) else {
            return Ok(State::Damaged("its manifest is not as we write it".into()));
        };
        let file = folder.join(path);
        match std::fs::metadata(&file) {
            Err(_) => return Ok(State::Damaged(format!("{path} is missing"))),
            Ok(data) if data.len() != bytes => {
                let found = data.len();
                return Ok(State::Damaged(format!("{path} has {found} bytes, not {bytes}")));
            }
            Ok(_) => {}
        }
        if let Some(bar) = &bar {
            let mut hash = Sha256::new();
            copy(&mut File::open(&file)?, |part| {
                hash.update(part);
                bar.inc(part.len() as u64);
                Ok(())
            })
            .with_context(|| format!("cannot read {}", file.display()))?;
            if hex(&hash.finalize()) != sha256 {
                return Ok(State::Damaged(format!("{path} has another hash")));
            }
        }
    }
    if let Some(bar) = bar {
        bar.finish_and_clear();
    }
    Ok(State::Complete { bytes: total })
}

fn parse_line(line: &str) -> Option<(&str, u64, &str)> {
    let (sha256, rest) = line.split_once(' ')?;
    let (bytes, path) = rest.split_once(' ')?;
    Some((sha256, bytes.parse().ok()?, path))
}

/// Removes the leftovers of interrupted set-ups. The caller holds the lock, so no other set-up uses them.
fn remove_partial(toolkits: &Path) -> Result<()> {
    for entry in std::fs::read_dir(toolkits)? {
        let path = entry?.path();
        if path.file_name().is_some_and(|name| name.to_string_lossy().contains(PARTIAL)) {
            report::note(&format!("removing {}, which was interrupted", path.display()));
            std::fs::remove_dir_all(&path)
                .with_context(|| format!("cannot remove {}", path.display()))?;
        }
    }
    Ok(())
}

/// Downloads and unpacks into `partial`; returns the size of the unpacked files in bytes.
fn make(pins: &Pins, partial: &Path, download: &mut dyn Download) -> Result<u64> {
    let fetching = partial.join("download");
    let wheels = match fetch(pins, &fetching, download) {
        Ok(wheels) => wheels,
        Err(error) => {
            let text = format!("{error:#}");
            let first = text.lines().next().unwrap_or_default().trim_end_matches(':');
            report::step(&format!("{first}: trying once more"));
            fetch(pins, &fetching, download)?
        }
    };
    let bar = report::byte_bar("unpacking", pins.bytes());
    let mut lines = Vec::new();
    for (wheel, file) in pins.wheels.iter().zip(&wheels) {
        unpack(file, partial, &mut lines)
            .with_context(|| format!("cannot unpack {} {}", wheel.package, wheel.version))?;
        bar.inc(wheel.bytes);
    }
    bar.finish_and_clear();
    std::fs::remove_dir_all(&fetching)?;
    lines.sort_by(|a: &Line, b| a.path.cmp(&b.path));
    let text: String =
        lines.iter().map(|l| format!("{} {} {}\n", l.sha256, l.bytes, l.path)).collect();
    std::fs::write(partial.join(MANIFEST), text)?;
    Ok(lines.iter().map(|line| line.bytes).sum())
}

/// The wheels of `pins`, each checked, in their order.
fn fetch(pins: &Pins, folder: &Path, download: &mut dyn Download) -> Result<Vec<PathBuf>> {
    if folder.exists() {
        std::fs::remove_dir_all(folder)?;
    }
    std::fs::create_dir_all(folder)?;
    download.download(pins, folder)?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder.join("wheels"))? {
        files.push(entry?.path());
    }
    pins.wheels.iter().map(|wheel| find_wheel(wheel, &files, pins.file)).collect()
}

/// The file of `wheel`, which `pinned` names. The downloader checks the hash too, but these files are programs that will run here.
fn find_wheel(wheel: &Wheel, files: &[PathBuf], pinned: &str) -> Result<PathBuf> {
    let start = wheel.file_start();
    let file = files
        .iter()
        .find(|file| {
            file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&start))
        })
        .with_context(|| format!("{} {} did not come", wheel.package, wheel.version))?;
    let mut hash = Sha256::new();
    let mut bytes = 0;
    copy(&mut File::open(file)?, |part| {
        hash.update(part);
        bytes += part.len() as u64;
        Ok(())
    })?;
    let sha256 = hex(&hash.finalize());
    ensure!(
        sha256 == wheel.sha256 && bytes == wheel.bytes,
        "{} {} came damaged: {bytes} bytes with sha256 {sha256}, but {pinned} pins {} bytes with {}",
        wheel.package,
        wheel.version,
        wheel.bytes,
        wheel.sha256
    );
    Ok(file.clone())
}

/// A file that was unpacked.
struct Line {
    sha256: String,
    bytes: u64,
    path: String,
}

/// Unpacks the wheel `file` into `folder` and adds a line for each file to `lines`.
fn unpack(file: &Path, folder: &Path, lines: &mut Vec<Line>) -> Result<()> {
    let mut archive = zip::ZipArchive::new(File::open(file)?)?;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let Some(path) = entry.enclosed_name() else {
            bail!("it has an entry that would lie outside of the folder")
        };
        let name = rooted(path.to_str().context("it has an entry whose name is not UTF-8")?);
        if entry.is_dir() || !is_wanted(&name) {
            continue;
        }
        ensure!(!entry.is_symlink(), "{name} is a link");
        let target = folder.join(&name);
        if let Some(parent) = target.parent() {
            std::fs::create_dir_all(parent)?;
        }
        let mut output =
            File::create(&target).with_context(|| format!("cannot make {}", target.display()))?;
        let mut hash = Sha256::new();
        let mut bytes = 0;
        // The zip crate compares the checksum at the entry's end.
        copy(&mut entry, |part| {
            hash.update(part);
            bytes += part.len() as u64;
            output.write_all(part)
        })
        .with_context(|| format!("cannot unpack {name}"))?;
        if entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0) {
            make_executable(&output)?;
        }
        lines.push(Line { sha256: hex(&hash.finalize()), bytes, path: name });
    }
    Ok(())
}

/// The place of a wheel's file below the toolkit's folder. Each package of CUDA 12 has a folder of its own in place of
/// [`cache::TOOLKIT_ROOT`].
fn rooted(path: &str) -> String {
    match path.strip_prefix("nvidia/").and_then(|rest| rest.split_once('/')) {
        Some((_, rest)) => format!("{}/{rest}", cache::TOOLKIT_ROOT),
        None => path.to_owned(),
    }
}

/// Whether a path is one of the toolkit's files or licences, and not Python's metadata.
fn is_wanted(path: &str) -> bool {
    let licence = path.contains(".dist-info/licenses/");
    let part = path.starts_with("nvidia/") && !path.ends_with("/__init__.py");
    (part || licence) && !SKIPPED.iter().any(|start| path.starts_with(start))
}

#[cfg(unix)]
fn make_executable(file: &File) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    Ok(file.set_permissions(std::fs::Permissions::from_mode(0o755))?)
}

#[cfg(not(unix))]
fn make_executable(_file: &File) -> Result<()> {
    Ok(())
}

/// Reads all of `from` and passes it to `each` in parts.
fn copy(from: &mut dyn Read, mut each: impl FnMut(&[u8]) -> std::io::Result<()>) -> Result<()> {
    let mut buffer = vec![0; 1 << 18];
    loop {
        match from.read(&mut buffer)? {
            0 => return Ok(()),
            count => each(&buffer[..count])?,
        }
    }
}

/// Replaces `folder` by `partial` and marks it complete.
fn put_in_place(partial: &Path, folder: &Path, pins: &Pins) -> Result<()> {
    if folder.exists() {
        // Remove the mark first, in case a later step is interrupted.
        match std::fs::remove_file(folder.join(cache::COMPLETE)) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error.into()),
            _ => std::fs::remove_dir_all(folder)
                .with_context(|| format!("cannot remove {}", folder.display()))?,
        }
    }
    std::fs::rename(partial, folder)?;
    let mut complete = File::create(folder.join(cache::COMPLETE))?;
    writeln!(complete, "{}", pins.hash(&SKIPPED))?;
    complete.sync_all()?;
    Ok(())
}

#[cfg(test)]
#[path = "wheels_tests.rs"]
mod tests;
