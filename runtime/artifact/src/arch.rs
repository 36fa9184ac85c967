//! GPU and CPU architectures, and the rules for which image runs on which device.

use std::fmt;
use std::str::FromStr;

use crate::manifest::ImageKind;

/// A compute capability, such as 9.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(into = "String")]
pub struct ComputeCapability {
    /// Major number, before the dot.
    pub major: u32,
    /// Minor number, after the dot.
    pub minor: u32,
}

impl ComputeCapability {
    /// Capability `major.minor`.
    pub const fn new(major: u32, minor: u32) -> Self {
        ComputeCapability { major, minor }
    }

    /// The compilers' spelling, such as `sm_90`.
    pub fn sm(self) -> String {
        format!("sm_{}{}", self.major, self.minor)
    }
}

impl fmt::Display for ComputeCapability {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl From<ComputeCapability> for String {
    fn from(capability: ComputeCapability) -> String {
        capability.to_string()
    }
}

/// The architecture an image was compiled for, such as `sm_90`, `compute_90`, `sm_90a` or `sm_100f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageArch {
    /// The compute capability.
    pub capability: ComputeCapability,
    features: Features,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Features {
    /// No suffix.
    Baseline,
    /// `f`: family-specific; this crate treats devices of the same major capability as one family.
    Family,
    /// `a`: runs on exactly this compute capability.
    Specific,
}

impl ImageArch {
    /// Whether an image of this kind and architecture runs on the GPU.
    pub fn runs_on(self, kind: ImageKind, device: ComputeCapability) -> bool {
        let same_major = self.capability.major == device.major;
        match self.features {
            Features::Specific => self.capability == device,
            Features::Family => same_major && self.capability.minor <= device.minor,
            Features::Baseline => match kind {
                ImageKind::Cubin => same_major && self.capability.minor <= device.minor,
                ImageKind::Ptx => self.capability <= device,
                ImageKind::SharedObject => false,
            },
        }
    }

    /// Ranks images for the same capability: the more specific image is preferred.
    pub(crate) fn specificity(self) -> impl Ord {
        self.features
    }
}

impl FromStr for ImageArch {
    type Err = String;

    fn from_str(text: &str) -> Result<ImageArch, String> {
        let error = || format!("`{text}` is not an architecture such as `sm_90`");
        let rest =
            text.strip_prefix("sm_").or_else(|| text.strip_prefix("compute_")).ok_or_else(error)?;
        let (digits, features) = if let Some(digits) = rest.strip_suffix('a') {
            (digits, Features::Specific)
        } else if let Some(digits) = rest.strip_suffix('f') {
            (digits, Features::Family)
        } else {
            (rest, Features::Baseline)
        };
        // The last digit is the minor: `sm_120` is 12.0.
        if !(2..=4).contains(&digits.len()) || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(error());
        }
        let number: u32 = digits.parse().map_err(|_| error())?;
        Ok(ImageArch { capability: ComputeCapability::new(number / 10, number % 10), features })
    }
}

/// Prefix of every CPU image's architecture.
const CPU_PREFIX: &str = "cpu-";

/// The architecture of CPU images for this machine, such as `cpu-x86_64` or `cpu-aarch64`.
pub fn cpu_arch() -> String {
    format!("{CPU_PREFIX}{}", std::env::consts::ARCH)
}

/// Checks that the architecture is valid for this kind of image.
pub(crate) fn check(kind: ImageKind, arch: &str) -> Result<(), String> {
    match kind {
        ImageKind::Cubin | ImageKind::Ptx => arch.parse::<ImageArch>().map(|_| ()),
        ImageKind::SharedObject => match arch.strip_prefix(CPU_PREFIX) {
            Some(cpu) if !cpu.is_empty() => Ok(()),
            _ => Err(format!("`{arch}` is not an architecture such as `{}`", cpu_arch())),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn architectures_parse() {
        for (text, major, minor) in
            [("sm_75", 7, 5), ("compute_90", 9, 0), ("sm_90a", 9, 0), ("sm_120", 12, 0)]
        {
            let arch: ImageArch = text.parse().unwrap();
            assert_eq!(arch.capability, ComputeCapability::new(major, minor), "{text}");
        }
        for text in ["", "sm_", "sm_9", "90", "sm_90b", "sm_99999", "sm_-1", "gfx90a"] {
            assert!(text.parse::<ImageArch>().is_err(), "{text}");
        }
    }

    #[test]
    fn images_run_where_they_are_compatible() {
        let runs = |arch: &str, kind, major, minor| {
            arch.parse::<ImageArch>().unwrap().runs_on(kind, ComputeCapability::new(major, minor))
        };
        use ImageKind::{Cubin, Ptx};
        assert!(runs("sm_80", Cubin, 8, 6));
        assert!(!runs("sm_86", Cubin, 8, 0));
        assert!(!runs("sm_80", Cubin, 9, 0));
        assert!(runs("sm_80", Ptx, 9, 0));
        assert!(!runs("sm_100", Ptx, 9, 0));
        assert!(runs("sm_90a", Cubin, 9, 0));
        assert!(!runs("sm_90a", Ptx, 10, 0));
        assert!(runs("sm_100f", Cubin, 10, 3));
        assert!(!runs("sm_100f", Ptx, 12, 0));
        assert!(!runs("sm_90", ImageKind::SharedObject, 9, 0));
    }

    #[test]
    fn every_kind_has_its_own_architectures() {
        for (kind, arch, right) in [
            (ImageKind::Cubin, "sm_90", true),
            (ImageKind::Cubin, "cpu-x86_64", false),
            (ImageKind::SharedObject, "cpu-x86_64", true),
            (ImageKind::SharedObject, "cpu-aarch64", true),
            (ImageKind::SharedObject, "cpu-", false),
            (ImageKind::SharedObject, "sm_90", false),
        ] {
            assert_eq!(check(kind, arch).is_ok(), right, "{kind:?} {arch}");
        }
    }
}
