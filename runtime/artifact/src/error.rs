//! Errors of reading, writing and validating artifacts.

use crate::strategy::UnknownStrategy;

/// An artifact that cannot be read, written or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{artifact}: {problem}")]
pub struct ArtifactError {
    /// The file, or another name for the source of the bytes.
    pub artifact: String,
    /// The problem.
    pub problem: ArtifactProblem,
}

/// A way in which an artifact is damaged, foreign or too new.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactProblem {
    /// I/O failed.
    #[error("{0}")]
    Io(String),
    /// It is neither a bundle nor a manifest.
    #[error("not a Gridlet bundle: {0}")]
    NotABundle(String),
    /// It starts like a bundle but is truncated or damaged.
    #[error("a damaged or truncated bundle: {0}")]
    Truncated(String),
    /// The bundle lacks `manifest.json`.
    #[error("no `{}` in the bundle", crate::manifest::MANIFEST_FILE)]
    NoManifest,
    /// The manifest's JSON is malformed or lacks required members.
    #[error("not a Gridlet manifest: {0}")]
    NotAManifest(String),
    /// The manifest's version is newer than this crate supports.
    #[error("manifest version {found} is newer than this runtime's {supported}; update Gridlet")]
    TooNew {
        /// The manifest's version.
        found: u64,
        /// [`crate::manifest::MANIFEST_VERSION`].
        supported: u32,
    },
    /// The program launches in a way that this crate does not know.
    #[error(transparent)]
    Strategy(UnknownStrategy),
    /// The manifest contradicts itself.
    #[error("the manifest contradicts itself: {0}")]
    Inconsistent(String),
    /// An image listed in the manifest is missing.
    #[error("image `{0}` is missing")]
    NoImage(String),
    /// An image's size differs from the manifest's.
    #[error("image `{file}` has {found} bytes, the manifest says {expected}")]
    ImageSize {
        /// The image's file.
        file: String,
        /// Size in bytes, from the manifest.
        expected: u64,
        /// Actual size in bytes; a lower bound if the image is too long.
        found: u64,
    },
    /// An image's CRC-32 differs from the manifest's.
    #[error("image `{file}` is damaged: its CRC-32 is {found}, the manifest says {expected}")]
    ImageChecksum {
        /// The image's file.
        file: String,
        /// CRC-32 from the manifest.
        expected: String,
        /// CRC-32 of the bytes.
        found: String,
    },
    /// An image's SHA-256 differs from the manifest's.
    #[error("image `{file}` is damaged: its SHA-256 is {found}, the manifest says {expected}")]
    ImageHash {
        /// The image's file.
        file: String,
        /// SHA-256 from the manifest.
        expected: String,
        /// SHA-256 of the bytes.
        found: String,
    },
    /// The number of images given differs from the manifest's.
    #[error("{found} images given, the manifest lists {expected}")]
    ImageCount {
        /// Number of images in the manifest.
        expected: usize,
        /// Number of images given.
        found: usize,
    },
}

impl ArtifactProblem {
    /// A remedy, as a sentence; `None` where the message already gives one or none is known.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            ArtifactProblem::Truncated(_)
            | ArtifactProblem::ImageSize { .. }
            | ArtifactProblem::ImageChecksum { .. }
            | ArtifactProblem::ImageHash { .. }
            | ArtifactProblem::NoImage(_)
            | ArtifactProblem::NoManifest => Some("copy or build it again"),
            ArtifactProblem::NotABundle(_) | ArtifactProblem::NotAManifest(_) => {
                Some("`gridlet build --emit bundle` writes bundles")
            }
            ArtifactProblem::Strategy(_) => {
                Some("update Gridlet, or build the program again with a strategy that it has")
            }
            ArtifactProblem::Inconsistent(_) => Some("build it again with this version of Gridlet"),
            ArtifactProblem::Io(_)
            | ArtifactProblem::TooNew { .. }
            | ArtifactProblem::ImageCount { .. } => None,
        }
    }
}
