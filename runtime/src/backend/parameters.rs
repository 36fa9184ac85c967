//! Compares the manifest with an image: the kernels' parameters, and whether an image exists for the device.

use gridlet_artifact::Artifact;
use gridlet_artifact::manifest::{self, ImageKind};
use gridlet_artifact::resident::{PARAMETERS_OFFSET, WORDS};

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
    for index in 0..=kernel.parameters.len() {
        let ours = kernel.parameters.get(index).map(|p| (u64::from(p.offset), u64::from(p.size)));
        match ask(index)? {
            Answer::Unknown => return Ok(()),
            theirs => compare(&kernel.name, index, ours, theirs)?,
        }
    }
    Ok(())
}

/// Compares the parameters of the entry of resident launches with the driver's: the first and the last of each kind, and
/// their number.
pub(crate) fn compare_resident(
    resident: &manifest::Resident,
    ask: impl Fn(usize) -> Result<Answer>,
) -> Result<()> {
    let words = resident.parameter_words as usize;
    let first = 1 + WORDS;
    for index in [0, 1, WORDS, first, first + words.saturating_sub(1), first + words] {
        let ours = match index {
            0 => Some((0, 8)),
            1..=WORDS => Some((8 + 4 * (index as u64 - 1), 4)),
            _ if index < first + words => {
                Some((PARAMETERS_OFFSET as u64 + 8 * (index - first) as u64, 8))
            }
            _ => None,
        };
        match ask(index)? {
            Answer::Unknown => return Ok(()),
            theirs => compare(&resident.symbol, index, ours, theirs)?,
        }
    }
    Ok(())
}

/// Compares one parameter's offset and size; `None` for no such parameter.
fn compare(kernel: &str, index: usize, ours: Option<(u64, u64)>, theirs: Answer) -> Result<()> {
    let theirs = match theirs {
        Answer::At { offset, size } => Some((offset, size)),
        Answer::NoSuch | Answer::Unknown => None,
    };
    if ours == theirs {
        return Ok(());
    }
    let describe = |at: Option<(u64, u64)>| match at {
        Some((offset, size)) => format!("offset {offset} and size {size}"),
        None => "none".to_string(),
    };
    Err(Error::ParameterMismatch {
        kernel: kernel.into(),
        index,
        manifest: describe(ours),
        driver: describe(theirs),
    })
}

#[cfg(test)]
mod tests;
