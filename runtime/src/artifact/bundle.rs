//! Bundles: a zip file with the manifest first.

use std::io::{Cursor, Read, Write};

use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use super::MANIFEST_FILE;
use crate::error::ArtifactProblem;
use crate::manifest::{Image, Manifest};

/// No manifest comes near this; a foreign zip file may hold anything of that name.
const MOST_MANIFEST_BYTES: u64 = 64 << 20;

/// The most that is reserved for an entry before it is unpacked.
const MOST_ROOM: u64 = 16 << 20;

/// How every zip file with at least one entry begins.
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

pub(super) struct Bundle<'a> {
    zip: ZipArchive<Cursor<&'a [u8]>>,
}

impl<'a> Bundle<'a> {
    pub(super) fn open(bytes: &'a [u8]) -> Result<Bundle<'a>, ArtifactProblem> {
        if bytes.is_empty() {
            return Err(ArtifactProblem::NotABundle("it is empty".into()));
        }
        if !bytes.starts_with(&ZIP_MAGIC[..bytes.len().min(ZIP_MAGIC.len())]) {
            return Err(ArtifactProblem::NotABundle("it is not a zip file".into()));
        }
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
        Ok(Bundle { zip })
    }

    pub(super) fn manifest(&mut self) -> Result<Vec<u8>, ArtifactProblem> {
        let bytes =
            self.entry(MANIFEST_FILE, MOST_MANIFEST_BYTES)?.ok_or(ArtifactProblem::NoManifest)?;
        if bytes.len() as u64 > MOST_MANIFEST_BYTES {
            return Err(ArtifactProblem::NotAManifest(format!(
                "it has over {MOST_MANIFEST_BYTES} bytes"
            )));
        }
        Ok(bytes)
    }

    pub(super) fn image(&mut self, image: &Image) -> Result<Vec<u8>, ArtifactProblem> {
        self.entry(&image.file, image.bytes)?
            .ok_or_else(|| ArtifactProblem::NoImage(image.file.clone()))
    }

    /// The bytes of an entry, at most one more than `expected`: enough to see that there are too many, and no
    /// more than that for one that is made to unpack to gigabytes.
    fn entry(&mut self, name: &str, expected: u64) -> Result<Option<Vec<u8>>, ArtifactProblem> {
        let entry = match self.zip.by_name(name) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(damaged(error)),
        };
        // An entry says itself how much it unpacks to, which may be a lie.
        let room = entry.size().min(expected).min(MOST_ROOM);
        let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or_default());
        let mut entry = entry.take(expected.saturating_add(1));
        entry
            .read_to_end(&mut bytes)
            .map_err(|error| ArtifactProblem::Truncated(format!("`{name}`: {error}")))?;
        Ok(Some(bytes))
    }
}

fn damaged(error: ZipError) -> ArtifactProblem {
    ArtifactProblem::Truncated(error.to_string())
}

pub(super) fn write(manifest: &Manifest, images: &[Vec<u8>]) -> Result<Vec<u8>, ArtifactProblem> {
    let io = |error: &dyn std::fmt::Display| ArtifactProblem::Io(error.to_string());
    // Same artifact, same bytes: no clock, and the same permissions on every system.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::DEFAULT)
        .unix_permissions(0o644);
    let mut json = serde_json::to_vec_pretty(manifest).map_err(|error| io(&error))?;
    json.push(b'\n');
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let files = std::iter::once((MANIFEST_FILE, json.as_slice())).chain(
        manifest
            .images
            .iter()
            .zip(images)
            .map(|(image, bytes)| (image.file.as_str(), bytes.as_slice())),
    );
    for (name, bytes) in files {
        zip.start_file(name, options).map_err(|error| io(&error))?;
        zip.write_all(bytes).map_err(|error| io(&error))?;
    }
    zip.finish().map(Cursor::into_inner).map_err(|error| io(&error))
}
