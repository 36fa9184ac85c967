//! Which image runs on which device.

use std::fmt;
use std::str::FromStr;

use crate::manifest::ImageKind;

/// A compute capability, such as 9.0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
#[serde(into = "String")]
pub struct ComputeCapability {
    /// Before the dot.
    pub major: u32,
    /// After the dot.
    pub minor: u32,
}

impl ComputeCapability {
    /// The capability of those parts.
    pub const fn new(major: u32, minor: u32) -> Self {
        ComputeCapability { major, minor }
    }

    /// As compilers spell it: `sm_90`.
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

/// What an image was compiled for: `sm_90`, `compute_90`, `sm_90a`, `sm_100f`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageArch {
    /// The capability.
    pub capability: ComputeCapability,
    features: Features,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Features {
    /// No suffix.
    Baseline,
    /// `f`: devices of the same family, which this crate takes as the same major.
    Family,
    /// `a`: that compute capability alone.
    Specific,
}

impl ImageArch {
    /// Whether an image of that kind runs on the GPU.
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

    /// Of two images for the same capability, the one for fewer devices is the better.
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

/// Begins the architecture of every image for the CPU device.
const CPU_PREFIX: &str = "cpu-";

/// The architecture of images for the CPU device of this machine: `cpu-x86_64`, `cpu-aarch64`.
pub fn cpu_arch() -> String {
    format!("{CPU_PREFIX}{}", std::env::consts::ARCH)
}

/// Checks that an image's architecture is one of its kind.
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
