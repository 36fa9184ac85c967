//! Artifacts: a manifest and the images that it lists, in memory, in a bundle, or as files side by side.

mod bundle;
mod validate;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::arch::{ComputeCapability, ImageArch, cpu_arch};
use crate::error::{ArtifactError, ArtifactProblem};
use crate::manifest::{Image, ImageKind, Kernel, Manifest};

/// The result of reading or writing an artifact.
type Result<T, E = ArtifactError> = std::result::Result<T, E>;

/// The device that an image is chosen for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageTarget {
    /// A GPU of that compute capability.
    Gpu(ComputeCapability),
    /// The CPU device of this machine.
    Cpu,
}

/// A compiled program: a manifest and its images. Cheap to clone.
///
/// Every value of this type is whole: the manifest is one that this crate understands and agrees with itself,
/// and every image has the size, the CRC-32 and the SHA-256 that the manifest says; an artifact
/// that was read for one device may not have had the SHA-256 of its image compared.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    inner: Arc<Inner>,
}

#[derive(Debug, PartialEq)]
struct Inner {
    manifest: Manifest,
    /// In the order of [`Manifest::images`]; shared, since a driver may read one as long as it is loaded.
    images: Vec<Bytes>,
}

impl Artifact {
    /// From a manifest and the bytes of its images, in the order of [`Manifest::images`].
    ///
    /// # Errors
    /// [`ArtifactError`] if they do not belong together.
    pub fn new(manifest: Manifest, images: Vec<Vec<u8>>) -> Result<Artifact> {
        let name = format!("program `{}`", manifest.program);
        let images = images.into_iter().map(Bytes::from).collect();
        validate::manifest(&manifest)
            .and_then(|()| Artifact::checked(manifest, images, None))
            .map_err(|problem| artifact_error(name, problem))
    }

    /// Reads a `.gridlet` bundle, or a manifest (a file that ends in `.json`) with its images beside it.
    ///
    /// # Errors
    /// [`ArtifactError`] says what is wrong with which file.
    pub fn open(path: impl AsRef<Path>) -> Result<Artifact> {
        Artifact::open_to(None, path.as_ref())
    }

    /// Reads the same files for one device: only the image that suits it, or all images if none does.
    ///
    /// Compares the image's CRC-32 and, only if the manifest has none, its SHA-256: the hash takes longer than the rest
    /// of loading on the host, and the CRC-32 misses 1 of 2^32 random changes.
    ///
    /// # Errors
    /// As [`Artifact::open`].
    pub fn open_for(target: ImageTarget, path: impl AsRef<Path>) -> Result<Artifact> {
        Artifact::open_to(Some(target), path.as_ref())
    }

    fn open_to(target: Option<ImageTarget>, path: &Path) -> Result<Artifact> {
        Artifact::read(path, target)
            .map_err(|problem| artifact_error(path.display().to_string(), problem))
    }

    /// Reads a bundle that is in memory.
    ///
    /// # Errors
    /// [`ArtifactError`] says what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Artifact> {
        Artifact::unpack(bytes, &Bytes::copy_from_slice, None).map_err(bundle_error)
    }

    /// Reads a bundle that is in memory for one device, as [`Artifact::open_for`].
    ///
    /// # Errors
    /// As [`Artifact::from_bytes`].
    pub fn from_bytes_for(target: ImageTarget, bytes: &[u8]) -> Result<Artifact> {
        Artifact::unpack(bytes, &Bytes::copy_from_slice, Some(target)).map_err(bundle_error)
    }

    /// As [`Artifact::from_bytes_for`], without a copy of the image.
    ///
    /// # Errors
    /// As [`Artifact::from_bytes`].
    pub fn from_static_for(target: ImageTarget, bytes: &'static [u8]) -> Result<Artifact> {
        let whole = Bytes::from_static(bytes);
        Artifact::unpack(bytes, &|part| whole.slice_ref(part), Some(target)).map_err(bundle_error)
    }

    /// The bundle, byte for byte the same for the same artifact: [`MANIFEST_FILE`](crate::MANIFEST_FILE) first, then the images in
    /// the manifest's order.
    ///
    /// # Errors
    /// [`ArtifactError`] if it does not fit a zip file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let manifest = self.manifest();
        bundle::write(manifest, &self.inner.images)
            .map_err(|problem| artifact_error(format!("program `{}`", manifest.program), problem))
    }

    /// Writes the bundle.
    ///
    /// # Errors
    /// [`ArtifactError`] if the file cannot be written.
    pub fn write(&self, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        let bytes = self.to_bytes()?;
        std::fs::write(path, bytes).map_err(|error| {
            artifact_error(path.display().to_string(), ArtifactProblem::Io(error.to_string()))
        })
    }

    /// What the artifact says of itself.
    pub fn manifest(&self) -> &Manifest {
        &self.inner.manifest
    }

    /// The kernel of that name; `None` if the program has none.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.manifest().kernels.iter().find(|kernel| kernel.name == name)
    }

    /// The images with their bytes, in the manifest's order.
    pub fn images(&self) -> impl Iterator<Item = (&Image, &[u8])> {
        self.manifest().images.iter().zip(self.inner.images.iter().map(|image| &image[..]))
    }

    /// The image that suits a GPU best, with its bytes: the cubin of the same major and the highest minor
    /// compute capability that is not above the device's (CUDA C++ Programming Guide, Binary Compatibility:
    /// machine code runs on later minors of its major only); else the newest PTX that is not above the
    /// device's (PTX Compatibility).
    pub fn image_for(&self, device: ComputeCapability) -> Option<(&Image, &[u8])> {
        self.shared_image_for(device).map(|(image, bytes)| (image, &bytes[..]))
    }

    /// The same, with bytes that can be kept without a copy.
    pub fn shared_image_for(&self, device: ComputeCapability) -> Option<(&Image, &Bytes)> {
        for_gpu(&self.manifest().images, device).map(|at| self.image_at(at))
    }

    /// The image for the CPU device of this machine, with its bytes.
    pub fn image_for_cpu(&self) -> Option<(&Image, &[u8])> {
        for_cpu(&self.manifest().images)
            .map(|at| self.image_at(at))
            .map(|(image, bytes)| (image, &bytes[..]))
    }

    fn image_at(&self, at: usize) -> (&Image, &Bytes) {
        (&self.inner.manifest.images[at], &self.inner.images[at])
    }

    /// Whole, if a manifest that [`validate::manifest`] has seen and its images belong together. For a device the SHA-256
    /// of an image with a CRC-32 is not compared.
    fn checked(
        manifest: Manifest,
        images: Vec<Bytes>,
        target: Option<ImageTarget>,
    ) -> Result<Artifact, ArtifactProblem> {
        if images.len() != manifest.images.len() {
            return Err(ArtifactProblem::ImageCount {
                expected: manifest.images.len(),
                found: images.len(),
            });
        }
        for (image, bytes) in manifest.images.iter().zip(&images) {
            validate::image(image, bytes)?;
            if target.is_none() || image.crc32.is_none() {
                validate::hash(image, bytes)?;
            }
        }
        Ok(Artifact { inner: Arc::new(Inner { manifest, images }) })
    }

    /// Of a bundle; `keep` as in [`bundle::Bundle::open`].
    fn unpack(
        bytes: &[u8],
        keep: &dyn Fn(&[u8]) -> Bytes,
        target: Option<ImageTarget>,
    ) -> Result<Artifact, ArtifactProblem> {
        let mut bundle = bundle::Bundle::open(bytes, keep)?;
        let manifest = manifest_for(&bundle.manifest()?, target)?;
        let images =
            manifest.images.iter().map(|image| bundle.image(image)).collect::<Result<_, _>>()?;
        Artifact::checked(manifest, images, target)
    }

    fn read(path: &Path, target: Option<ImageTarget>) -> Result<Artifact, ArtifactProblem> {
        let bytes = std::fs::read(path).map_err(|error| ArtifactProblem::Io(error.to_string()))?;
        if path.extension().is_none_or(|extension| extension != "json") {
            let whole = Bytes::from(bytes);
            return Artifact::unpack(&whole, &|part| whole.slice_ref(part), target);
        }
        let manifest = manifest_for(&bytes, target)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let images = manifest.images.iter().map(|image| image_file(folder, &image.file));
        let images = images.collect::<Result<_, _>>()?;
        Artifact::checked(manifest, images, target)
    }
}

/// The bytes of an image that lies beside its manifest.
fn image_file(folder: &Path, file: &str) -> Result<Bytes, ArtifactProblem> {
    std::fs::read(folder.join(file)).map(Bytes::from).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ArtifactProblem::NoImage(file.into()),
        _ => ArtifactProblem::Io(format!("image `{file}`: {error}")),
    })
}

/// The manifest of a JSON text, checked; for a device, only with the image for it.
fn manifest_for(json: &[u8], target: Option<ImageTarget>) -> Result<Manifest, ArtifactProblem> {
    let mut manifest = validate::parse(json)?;
    validate::manifest(&manifest)?;
    let chosen = target.and_then(|target| match target {
        ImageTarget::Gpu(capability) => for_gpu(&manifest.images, capability),
        ImageTarget::Cpu => for_cpu(&manifest.images),
    });
    if let Some(at) = chosen {
        manifest.images = vec![manifest.images.swap_remove(at)];
    }
    Ok(manifest)
}

/// Which of the images is the best for a GPU: see [`Artifact::image_for`].
fn for_gpu(images: &[Image], device: ComputeCapability) -> Option<usize> {
    let best = |kind: ImageKind| {
        let of_kind = images.iter().enumerate().filter(|(_, image)| image.kind == kind);
        of_kind
            .filter_map(|(at, image)| Some((image.arch.parse::<ImageArch>().ok()?, at)))
            .filter(|(arch, _)| arch.runs_on(kind, device))
            .max_by_key(|(arch, _)| (arch.capability, arch.specificity()))
            .map(|(_, at)| at)
    };
    best(ImageKind::Cubin).or_else(|| best(ImageKind::Ptx))
}

/// Which of the images is for the CPU device of this machine.
fn for_cpu(images: &[Image]) -> Option<usize> {
    let arch = cpu_arch();
    images.iter().position(|image| image.kind == ImageKind::SharedObject && image.arch == arch)
}

/// The [`Image`] of those bytes: its size, CRC-32 and SHA-256 filled in.
pub fn describe_image(kind: ImageKind, arch: &str, file: &str, bytes: &[u8]) -> Image {
    Image {
        kind,
        arch: arch.into(),
        file: file.into(),
        crc32: Some(validate::crc32(bytes)),
        sha256: validate::sha256(bytes),
        bytes: bytes.len() as u64,
    }
}

fn bundle_error(problem: ArtifactProblem) -> ArtifactError {
    artifact_error("bundle".into(), problem)
}

fn artifact_error(artifact: String, problem: ArtifactProblem) -> ArtifactError {
    ArtifactError { artifact, problem }
}

#[cfg(test)]
mod tests;
