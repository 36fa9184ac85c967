//! What can be wrong with an artifact.

/// An artifact that cannot be read, written or used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{artifact}: {problem}")]
pub struct ArtifactError {
    /// The file, or what else the bytes came from.
    pub artifact: String,
    /// What is wrong.
    pub problem: ArtifactProblem,
}

/// A way in which an artifact is damaged, foreign or too new.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ArtifactProblem {
    /// It cannot be read or written.
    #[error("{0}")]
    Io(String),
    /// It is neither a bundle nor a manifest.
    #[error("not a Gridlet bundle: {0}")]
    NotABundle(String),
    /// It begins as a bundle and is cut off or damaged.
    #[error("a damaged or truncated bundle: {0}")]
    Truncated(String),
    /// The bundle lacks `manifest.json`.
    #[error("no `{}` in the bundle", crate::manifest::MANIFEST_FILE)]
    NoManifest,
    /// The manifest is not the JSON that it should be.
    #[error("not a Gridlet manifest: {0}")]
    NotAManifest(String),
    /// The manifest is of a version that this crate does not know.
    #[error("manifest version {found} is newer than this runtime's {supported}; update Gridlet")]
    TooNew {
        /// Version of the manifest.
        found: u64,
        /// [`crate::manifest::MANIFEST_VERSION`].
        supported: u32,
    },
    /// The manifest contradicts itself.
    #[error("the manifest contradicts itself: {0}")]
    Inconsistent(String),
    /// An image that the manifest names is not there.
    #[error("image `{0}` is missing")]
    NoImage(String),
    /// An image has another size than the manifest says.
    #[error("image `{file}` has {found} bytes, the manifest says {expected}")]
    ImageSize {
        /// The image's file.
        file: String,
        /// Bytes by the manifest.
        expected: u64,
        /// Bytes that are there; for an image that is too long, at least so many.
        found: u64,
    },
    /// An image is not the one that the manifest was written for.
    #[error("image `{file}` is damaged: its CRC-32 is {found}, the manifest says {expected}")]
    ImageChecksum {
        /// The image's file.
        file: String,
        /// By the manifest.
        expected: String,
        /// Of the bytes.
        found: String,
    },
    /// The same, by the hash.
    #[error("image `{file}` is damaged: its SHA-256 is {found}, the manifest says {expected}")]
    ImageHash {
        /// The image's file.
        file: String,
        /// By the manifest.
        expected: String,
        /// Of the bytes.
        found: String,
    },
    /// The images given do not match the manifest's in number.
    #[error("{found} images given, the manifest lists {expected}")]
    ImageCount {
        /// By the manifest.
        expected: usize,
        /// Given.
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
            ArtifactProblem::Inconsistent(_) => Some("build it again with this version of Gridlet"),
            ArtifactProblem::Io(_)
            | ArtifactProblem::TooNew { .. }
            | ArtifactProblem::ImageCount { .. } => None,
        }
    }
}
