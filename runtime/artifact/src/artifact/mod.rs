//! Artifacts: a manifest and its images, in memory, in a bundle, or as separate files.

mod bundle;
mod validate;

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;

use crate::arch::{ComputeCapability, ImageArch, cpu_arch};
use crate::error::{ArtifactError, ArtifactProblem};
use crate::files::read_file;
use crate::manifest::{Image, ImageKind, Kernel, Manifest};

/// The result of reading or writing an artifact.
type Result<T, E = ArtifactError> = std::result::Result<T, E>;

/// The device to select an image for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageTarget {
    /// A GPU with this compute capability.
    Gpu(ComputeCapability),
    /// The CPU device of this machine.
    Cpu,
}

/// A compiled program: a manifest and its images. Cheap to clone.
///
/// Every value is validated: this crate supports the manifest's version, the manifest is consistent, and every
/// image has the size, CRC-32 and SHA-256 that the manifest records. An artifact read for one device may skip the
/// SHA-256 comparison.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    inner: Arc<Inner>,
}

#[derive(Debug, PartialEq)]
struct Inner {
    manifest: Manifest,
    /// In the order of [`Manifest::images`]; shared because a driver may read an image for as long as it is loaded.
    images: Vec<Bytes>,
}

impl Artifact {
    /// Combines a manifest with the bytes of its images, in the order of [`Manifest::images`].
    ///
    /// # Errors
    /// [`ArtifactError`] if the manifest is inconsistent or the images do not match it.
    pub fn new(manifest: Manifest, images: Vec<Vec<u8>>) -> Result<Artifact> {
        let name = format!("program `{}`", manifest.program);
        let images = images.into_iter().map(Bytes::from).collect();
        validate::manifest(&manifest)
            .and_then(|()| Artifact::checked(manifest, images, None))
            .map_err(|problem| artifact_error(name, problem))
    }

    /// Reads a `.gridlet` bundle, or a manifest (a file with the extension `.json`) with its images next to it. Pipes and devices
    /// are refused.
    ///
    /// # Errors
    /// [`ArtifactError`] names the file and the problem.
    pub fn open(path: impl AsRef<Path>) -> Result<Artifact> {
        Artifact::open_to(None, path.as_ref())
    }

    /// Like [`Artifact::open`], but for one device: keeps only the image that suits it, or all images if none does.
    ///
    /// Compares the image's CRC-32 and, only if the manifest has none, its SHA-256. Hashing takes longer than the rest
    /// of loading on the host, and the CRC-32 misses only 1 in 2^32 random changes.
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

    /// Reads a bundle from memory.
    ///
    /// # Errors
    /// [`ArtifactError`] names the problem.
    pub fn from_bytes(bytes: &[u8]) -> Result<Artifact> {
        Artifact::unpack(bytes, &Bytes::copy_from_slice, None).map_err(bundle_error)
    }

    /// Reads a bundle from memory for one device, like [`Artifact::open_for`].
    ///
    /// # Errors
    /// As [`Artifact::from_bytes`].
    pub fn from_bytes_for(target: ImageTarget, bytes: &[u8]) -> Result<Artifact> {
        Artifact::unpack(bytes, &Bytes::copy_from_slice, Some(target)).map_err(bundle_error)
    }

    /// Like [`Artifact::from_bytes_for`], but borrows the image instead of copying it.
    ///
    /// # Errors
    /// As [`Artifact::from_bytes`].
    pub fn from_static_for(target: ImageTarget, bytes: &'static [u8]) -> Result<Artifact> {
        let whole = Bytes::from_static(bytes);
        Artifact::unpack(bytes, &|part| whole.slice_ref(part), Some(target)).map_err(bundle_error)
    }

    /// Encodes the bundle: [`MANIFEST_FILE`](crate::MANIFEST_FILE) first, then the images in the manifest's order. Equal
    /// artifacts give identical bytes.
    ///
    /// # Errors
    /// [`ArtifactError`] if the contents do not fit in a zip file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let manifest = self.manifest();
        bundle::write(manifest, &self.inner.images)
            .map_err(|problem| artifact_error(format!("program `{}`", manifest.program), problem))
    }

    /// Writes the bundle to a file.
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

    /// The manifest.
    pub fn manifest(&self) -> &Manifest {
        &self.inner.manifest
    }

    /// The kernel with this name; `None` if the program has none.
    pub fn kernel(&self, name: &str) -> Option<&Kernel> {
        self.manifest().kernels.iter().find(|kernel| kernel.name == name)
    }

    /// The images with their bytes, in the manifest's order. The bytes of a cubin are the file that nvcc would write, which the driver
    /// loads by `cuModuleLoadData` or `cuLibraryLoadData`.
    pub fn images(&self) -> impl Iterator<Item = (&Image, &[u8])> {
        self.manifest().images.iter().zip(self.inner.images.iter().map(|image| &image[..]))
    }

    /// The best image for a GPU, with its bytes: the cubin with the same major and the highest minor compute capability
    /// that does not exceed the device's (CUDA C++ Programming Guide, Binary Compatibility: machine code runs only on
    /// its own major capability and on the same or later minors), otherwise the newest PTX that does not exceed the
    /// device's capability (PTX Compatibility).
    pub fn image_for(&self, device: ComputeCapability) -> Option<(&Image, &[u8])> {
        self.shared_image_for(device).map(|(image, bytes)| (image, &bytes[..]))
    }

    /// Like [`Artifact::image_for`], but the bytes can be kept without copying.
    pub fn shared_image_for(&self, device: ComputeCapability) -> Option<(&Image, &Bytes)> {
        for_gpu(&self.manifest().images, device).map(|at| self.image_at(at))
    }

    /// The CPU image for this machine, with its bytes.
    pub fn image_for_cpu(&self) -> Option<(&Image, &[u8])> {
        for_cpu(&self.manifest().images)
            .map(|at| self.image_at(at))
            .map(|(image, bytes)| (image, &bytes[..]))
    }

    fn image_at(&self, at: usize) -> (&Image, &Bytes) {
        (&self.inner.manifest.images[at], &self.inner.images[at])
    }

    /// Checks the images against a manifest that already passed [`validate::manifest`]. With a target, skips the SHA-256
    /// of images that have a CRC-32.
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

    /// Reads a bundle; `keep` as in [`bundle::Bundle::open`].
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
        let bytes = read_file(path).map_err(|error| ArtifactProblem::Io(error.to_string()))?;
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

/// Reads an image that lies next to its manifest.
fn image_file(folder: &Path, file: &str) -> Result<Bytes, ArtifactProblem> {
    read_file(&folder.join(file)).map(Bytes::from).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => ArtifactProblem::NoImage(file.into()),
        _ => ArtifactProblem::Io(format!("image `{file}`: {error}")),
    })
}

/// Parses and validates a manifest; with a target, keeps only the image for that device.
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

/// Index of the best image for a GPU, by the rules of [`Artifact::image_for`].
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

/// Index of the CPU image for this machine.
fn for_cpu(images: &[Image]) -> Option<usize> {
    let arch = cpu_arch();
    images.iter().position(|image| image.kind == ImageKind::SharedObject && image.arch == arch)
}

/// Describes an image, with the size, CRC-32 and SHA-256 of `bytes`.
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
