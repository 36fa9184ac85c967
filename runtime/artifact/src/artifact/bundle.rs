//! Bundles: zip files that start with the manifest.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{Cursor, Read, Write};

use bytes::Bytes;
use zip::result::ZipError;
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::error::ArtifactProblem;
use crate::manifest::{Image, MANIFEST_FILE, Manifest};

/// Far above the size of any real manifest; guards against foreign zip files with an entry of the same name.
const MAX_MANIFEST_BYTES: u64 = 64 << 20;

/// Upper bound on the memory reserved for an entry before it is unpacked.
const MAX_RESERVED_BYTES: u64 = 16 << 20;

/// Signature at the start of every zip file with at least one entry.
const ZIP_MAGIC: &[u8] = b"PK\x03\x04";

pub(super) struct Bundle<'a> {
    bytes: &'a [u8],
    /// Turns a slice of `bytes` into an owned handle, possibly without copying.
    keep: &'a dyn Fn(&[u8]) -> Bytes,
    zip: ZipArchive<Cursor<&'a [u8]>>,
}

impl<'a> Bundle<'a> {
    /// Opens a bundle. `keep` turns a slice of `bytes` into an owned handle and need not copy it.
    pub(super) fn open(
        bytes: &'a [u8],
        keep: &'a dyn Fn(&[u8]) -> Bytes,
    ) -> Result<Bundle<'a>, ArtifactProblem> {
        if bytes.is_empty() {
            return Err(ArtifactProblem::NotABundle("it is empty".into()));
        }
        if !bytes.starts_with(&ZIP_MAGIC[..bytes.len().min(ZIP_MAGIC.len())]) {
            return Err(ArtifactProblem::NotABundle("it is not a zip file".into()));
        }
        let zip = ZipArchive::new(Cursor::new(bytes)).map_err(damaged)?;
        Ok(Bundle { bytes, keep, zip })
    }

    pub(super) fn manifest(&mut self) -> Result<Cow<'a, [u8]>, ArtifactProblem> {
        let bytes =
            self.entry(MANIFEST_FILE, MAX_MANIFEST_BYTES)?.ok_or(ArtifactProblem::NoManifest)?;
        if bytes.len() as u64 > MAX_MANIFEST_BYTES {
            return Err(ArtifactProblem::NotAManifest(format!(
                "it has over {MAX_MANIFEST_BYTES} bytes"
            )));
        }
        Ok(bytes)
    }

    pub(super) fn image(&mut self, image: &Image) -> Result<Bytes, ArtifactProblem> {
        match self.entry(&image.file, image.bytes)? {
            Some(Cow::Borrowed(part)) => Ok((self.keep)(part)),
            Some(Cow::Owned(bytes)) => Ok(bytes.into()),
            None => Err(ArtifactProblem::NoImage(image.file.clone())),
        }
    }

    /// Returns an entry's bytes after verifying its CRC-32. Stored entries are borrowed. Compressed entries are unpacked
    /// to at most `expected + 1` bytes: enough to detect an oversized entry, yet bounded for a zip bomb.
    fn entry(
        &mut self,
        name: &str,
        expected: u64,
    ) -> Result<Option<Cow<'a, [u8]>>, ArtifactProblem> {
        let entry = match self.zip.by_name(name) {
            Ok(entry) => entry,
            Err(ZipError::FileNotFound) => return Ok(None),
            Err(error) => return Err(damaged(error)),
        };
        let truncated =
            |error: &dyn Display| ArtifactProblem::Truncated(format!("`{name}`: {error}"));
        let size = entry.size();
        if entry.compression() == CompressionMethod::Stored {
            // The offset and size come from the file and may be wrong.
            let part = entry.data_start().and_then(|start| {
                let (start, size) = (usize::try_from(start).ok()?, usize::try_from(size).ok()?);
                self.bytes.get(start..start.checked_add(size)?)
            });
            return match part {
                None => Err(truncated(&"the entry extends past the end of the file")),
                Some(part) if crc32fast::hash(part) != entry.crc32() => {
                    Err(truncated(&"the CRC-32 does not match"))
                }
                Some(part) => Ok(Some(Cow::Borrowed(part))),
            };
        }
        let room = size.min(expected).min(MAX_RESERVED_BYTES);
        let mut bytes = Vec::with_capacity(usize::try_from(room).unwrap_or_default());
        let mut entry = entry.take(expected.saturating_add(1));
        entry.read_to_end(&mut bytes).map_err(|error| truncated(&error))?;
        Ok(Some(Cow::Owned(bytes)))
    }
}

fn damaged(error: ZipError) -> ArtifactProblem {
    ArtifactProblem::Truncated(error.to_string())
}

pub(super) fn write(manifest: &Manifest, images: &[Bytes]) -> Result<Vec<u8>, ArtifactProblem> {
    let io = |error: &dyn std::fmt::Display| ArtifactProblem::Io(error.to_string());
    // The output must be reproducible: no timestamps, and the same permissions on every system. Entries are stored
    // uncompressed because unpacking takes longer than the rest of loading on the host.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Stored)
        .last_modified_time(DateTime::DEFAULT)
        .unix_permissions(0o644);
    // Without white space: parsing the manifest dominates the cost of opening a small bundle.
    let mut json = serde_json::to_vec(manifest).map_err(|error| io(&error))?;
    json.push(b'\n');
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let images = images.iter().map(|bytes| &bytes[..]);
    let files = std::iter::once((MANIFEST_FILE, json.as_slice()))
        .chain(manifest.images.iter().map(|image| image.file.as_str()).zip(images));
    for (name, bytes) in files {
        zip.start_file(name, options).map_err(|error| io(&error))?;
        zip.write_all(bytes).map_err(|error| io(&error))?;
    }
    zip.finish().map(Cursor::into_inner).map_err(|error| io(&error))
}
