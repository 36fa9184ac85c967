//! Compares the manifest with an image: the kernels' parameters, and whether an image exists for the device.

use gridlet_artifact::Artifact;
use gridlet_artifact::manifest::{self, ImageKind};

use crate::error::{Error, Result};
use crate::info::DeviceInfo;

/// The error that no image of the artifact runs on the device.
pub(crate) fn no_image(artifact: &Artifact, device: &DeviceInfo) -> Error {
    let kind = |kind| match kind {
        ImageKind::Cubin => "cubin",
        ImageKind::Ptx => "PTX",
        ImageKind::SharedObject => "shared object",
    };
    let images = artifact.manifest().images.iter();
    let available =
        images.map(|image| format!("{} for {}", kind(image.kind), image.arch)).collect();
    Error::NoImage { device: device.title(), available }
}

/// The driver's answer about a parameter.
pub(crate) enum Answer {
    Unknown,
    NoSuch,
    At { offset: u64, size: u64 },
}

/// Compares the manifest's parameters, and their number, with the driver's.
pub(crate) fn compare_parameters(
    kernel: &manifest::Kernel,
    ask: impl Fn(usize) -> Result<Answer>,
) -> Result<()> {
    let describe = |offset: u64, size: u64| format!("offset {offset} and size {size}");
    let none = || "none".to_string();
    for index in 0..=kernel.parameters.len() {
        let ours = kernel.parameters.get(index).map(|p| (u64::from(p.offset), u64::from(p.size)));
        let theirs = match ask(index)? {
            Answer::Unknown => return Ok(()),
            Answer::NoSuch => None,
            Answer::At { offset, size } => Some((offset, size)),
        };
        if ours != theirs {
            return Err(Error::ParameterMismatch {
                kernel: kernel.name.clone(),
                index,
                manifest: ours.map_or_else(none, |(offset, size)| describe(offset, size)),
                driver: theirs.map_or_else(none, |(offset, size)| describe(offset, size)),
            });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
