//! Artifacts: a manifest and the images that it lists, in memory, in a bundle, or as files side by side.

mod arch;
mod bundle;
mod validate;

use std::path::Path;
use std::sync::Arc;

pub use arch::{ComputeCapability, ImageArch, cpu_arch};

use crate::error::{ArtifactError, ArtifactProblem, Error, Result};
use crate::info::{DeviceInfo, DeviceKind};
use crate::manifest::{Image, ImageKind, Kernel, Manifest};

/// Name of the manifest in a bundle, and beside images that are not in one.
pub const MANIFEST_FILE: &str = "manifest.json";

/// A compiled program: a manifest and its images. Cheap to clone.
///
/// Every value of this type is whole: the manifest is one that this crate understands and agrees with itself,
/// and every image has the size and the SHA-256 that the manifest says.
#[derive(Clone, Debug, PartialEq)]
pub struct Artifact {
    inner: Arc<Inner>,
}

#[derive(Debug, PartialEq)]
struct Inner {
    manifest: Manifest,
    /// In the order of [`Manifest::images`].
    images: Vec<Vec<u8>>,
}

impl Artifact {
    /// From a manifest and the bytes of its images, in the order of [`Manifest::images`].
    ///
    /// # Errors
    /// [`Error::Artifact`] if they do not belong together.
    pub fn new(manifest: Manifest, images: Vec<Vec<u8>>) -> Result<Artifact> {
        let name = format!("program `{}`", manifest.program);
        Artifact::checked(manifest, images).map_err(|problem| artifact_error(name, problem))
    }

    /// Reads a `.gridlet` bundle, or a manifest (a file that ends in `.json`) with its images beside it.
    ///
    /// # Errors
    /// [`Error::Artifact`] says what is wrong with which file.
    pub fn open(path: impl AsRef<Path>) -> Result<Artifact> {
        let path = path.as_ref();
        Artifact::read(path, None)
            .map_err(|problem| artifact_error(path.display().to_string(), problem))
    }

    /// The same, with no image but the one for the device: the others are not read. All of them, if none is for it.
    pub(crate) fn open_for(device: &DeviceInfo, path: &Path) -> Result<Artifact> {
        Artifact::read(path, Some(device))
            .map_err(|problem| artifact_error(path.display().to_string(), problem))
    }

    /// Reads a bundle that is in memory.
    ///
    /// # Errors
    /// [`Error::Artifact`] says what is wrong.
    pub fn from_bytes(bytes: &[u8]) -> Result<Artifact> {
        Artifact::unpack(bytes, None).map_err(|problem| artifact_error("bundle".into(), problem))
    }

    /// The same, as [`Artifact::open_for`].
    pub(crate) fn from_bytes_for(device: &DeviceInfo, bytes: &[u8]) -> Result<Artifact> {
        Artifact::unpack(bytes, Some(device))
            .map_err(|problem| artifact_error("bundle".into(), problem))
    }

    /// The bundle, byte for byte the same for the same artifact: [`MANIFEST_FILE`] first, then the images in
    /// the manifest's order.
    ///
    /// # Errors
    /// [`Error::Artifact`] if it does not fit a zip file.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        let manifest = self.manifest();
        bundle::write(manifest, &self.inner.images)
            .map_err(|problem| artifact_error(format!("program `{}`", manifest.program), problem))
    }

    /// Writes the bundle.
    ///
    /// # Errors
    /// [`Error::Artifact`] if the file cannot be written.
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

    /// The kernel of that name.
    ///
    /// # Errors
    /// [`Error::UnknownKernel`] lists those there are.
    pub fn kernel(&self, name: &str) -> Result<&Kernel> {
        let kernels = &self.manifest().kernels;
        kernels.iter().find(|kernel| kernel.name == name).ok_or_else(|| Error::UnknownKernel {
            name: name.into(),
            known: kernels.iter().map(|kernel| kernel.name.clone()).collect(),
        })
    }

    /// The images with their bytes, in the manifest's order.
    pub fn images(&self) -> impl Iterator<Item = (&Image, &[u8])> {
        self.manifest().images.iter().zip(self.inner.images.iter().map(Vec::as_slice))
    }

    /// The image that suits a GPU best, with its bytes: the cubin of the same major and the highest minor
    /// compute capability that is not above the device's (CUDA C++ Programming Guide, Binary Compatibility:
    /// machine code runs on later minors of its major only); else the newest PTX that is not above the
    /// device's (PTX Compatibility).
    pub fn image_for(&self, device: ComputeCapability) -> Option<(&Image, &[u8])> {
        for_gpu(&self.manifest().images, device).map(|at| self.image_at(at))
    }

    /// The image for the CPU device of this machine, with its bytes.
    pub fn image_for_cpu(&self) -> Option<(&Image, &[u8])> {
        for_cpu(&self.manifest().images).map(|at| self.image_at(at))
    }

    fn image_at(&self, at: usize) -> (&Image, &[u8]) {
        (&self.inner.manifest.images[at], &self.inner.images[at])
    }

    fn checked(manifest: Manifest, images: Vec<Vec<u8>>) -> Result<Artifact, ArtifactProblem> {
        validate::manifest(&manifest)?;
        if images.len() != manifest.images.len() {
            return Err(ArtifactProblem::ImageCount {
                expected: manifest.images.len(),
                found: images.len(),
            });
        }
        for (image, bytes) in manifest.images.iter().zip(&images) {
            validate::image(image, bytes)?;
        }
        Ok(Artifact { inner: Arc::new(Inner { manifest, images }) })
    }

    fn unpack(bytes: &[u8], device: Option<&DeviceInfo>) -> Result<Artifact, ArtifactProblem> {
        let mut bundle = bundle::Bundle::open(bytes)?;
        let manifest = manifest_for(&bundle.manifest()?, device)?;
        let images =
            manifest.images.iter().map(|image| bundle.image(image)).collect::<Result<_, _>>()?;
        Artifact::checked(manifest, images)
    }

    fn read(path: &Path, device: Option<&DeviceInfo>) -> Result<Artifact, ArtifactProblem> {
        let bytes = std::fs::read(path).map_err(|error| ArtifactProblem::Io(error.to_string()))?;
        if path.extension().is_none_or(|extension| extension != "json") {
            return Artifact::unpack(&bytes, device);
        }
        let manifest = manifest_for(&bytes, device)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut images = Vec::new();
        for image in &manifest.images {
            images.push(match std::fs::read(folder.join(&image.file)) {
                Ok(bytes) => bytes,
                Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                    return Err(ArtifactProblem::NoImage(image.file.clone()));
                }
                Err(error) => {
                    return Err(ArtifactProblem::Io(format!("image `{}`: {error}", image.file)));
                }
            });
        }
        Artifact::checked(manifest, images)
    }
}

/// The manifest of a JSON text, checked; for a device, only with the image for it.
fn manifest_for(json: &[u8], device: Option<&DeviceInfo>) -> Result<Manifest, ArtifactProblem> {
    let mut manifest = validate::parse(json)?;
    validate::manifest(&manifest)?;
    let chosen = device.and_then(|device| match device.kind {
        DeviceKind::Cuda => for_gpu(&manifest.images, device.compute_capability),
        DeviceKind::Cpu => for_cpu(&manifest.images),
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

/// The [`Image`] of those bytes: its size and SHA-256 filled in.
pub fn describe_image(kind: ImageKind, arch: &str, file: &str, bytes: &[u8]) -> Image {
    Image {
        kind,
        arch: arch.into(),
        file: file.into(),
        sha256: validate::sha256(bytes),
        bytes: bytes.len() as u64,
    }
}

fn artifact_error(artifact: String, problem: ArtifactProblem) -> Error {
    ArtifactError { artifact, problem }.into()
}

#[cfg(test)]
mod tests;
