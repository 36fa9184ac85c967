//! GPU architectures and how each tool spells them.

use std::fmt;
use std::str::FromStr;

/// The two input languages of libNVVM.
///
/// libNVVM reads LLVM 7 text with typed pointers below `compute_100`, and modern IR with opaque
/// pointers from there on (NVVM IR Specification 2.0, "Introduction").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// LLVM 7, typed pointers.
    Legacy,
    /// Opaque pointers.
    Modern,
}

/// A compute capability. Only this type renders `sm_90` and `compute_90`, so that no two tools can be given
/// different targets.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct CudaArch {
    major: u8,
    minor: u8,
}

impl CudaArch {
    /// The architectures that Gridlet builds for and tests, oldest first.
    pub const SUPPORTED: [CudaArch; 7] = [
        CudaArch::new(7, 5),
        CudaArch::new(8, 0),
        CudaArch::new(8, 6),
        CudaArch::new(8, 9),
        CudaArch::new(9, 0),
        CudaArch::new(10, 0),
        CudaArch::new(12, 0),
    ];

    /// The default of `--arch`: Hopper.
    pub const DEFAULT: CudaArch = CudaArch::new(9, 0);

    const fn new(major: u8, minor: u8) -> Self {
        CudaArch { major, minor }
    }

    /// The supported architecture for a device of compute capability `major.minor`: the newest of the same
    /// major version that is not newer than the device.
    pub fn for_device(major: u32, minor: u32) -> Option<CudaArch> {
        CudaArch::SUPPORTED
            .into_iter()
            .rev()
            .find(|arch| u32::from(arch.major) == major && u32::from(arch.minor) <= minor)
    }

    /// `sm_90`: the spelling of nvJitLink, ptxas and cubins.
    pub fn sm(self) -> String {
        format!("sm_{}{}", self.major, self.minor)
    }

    /// `compute_90`: the spelling of libNVVM.
    pub fn compute(self) -> String {
        format!("compute_{}{}", self.major, self.minor)
    }

    /// The dialect that libNVVM requires for this architecture.
    pub fn dialect(self) -> Dialect {
        if self.major >= 10 { Dialect::Modern } else { Dialect::Legacy }
    }

    /// Whether `redux.sync` can reduce integers over a warp (PTX ISA, "redux.sync").
    pub fn has_redux(self) -> bool {
        self.major >= 8
    }

    /// Whether numbers are converted to `bf16`, and fused multiply-adds of it are computed, by single instructions (PTX ISA,
    /// "cvt", "fma").
    pub fn has_bf16(self) -> bool {
        self.major >= 8
    }

    /// Whether PTX of every version for this architecture has `tanh.approx` (PTX ISA, "tanh").
    pub fn has_tanh(self) -> bool {
        self.major >= 8
    }

    /// Whether there are fences that only acquire or only release (PTX ISA, "fence"). LLVM's back end uses them from 9.0 on;
    /// ptxas of CUDA 12.8 takes them in PTX of every version.
    pub fn has_split_fences(self) -> bool {
        self.major >= 9
    }

    /// Whether the device runtime's public names stand for CDP2. Below 9.0 they stand for the older
    /// interface, which has no named streams (CUDA Programming Guide, "CUDA Dynamic Parallelism", CDP1).
    pub fn public_names_are_cdp2(self) -> bool {
        self.major >= 9
    }
}

impl fmt::Display for CudaArch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sm())
    }
}

impl FromStr for CudaArch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        CudaArch::SUPPORTED
            .into_iter()
            .find(|arch| arch.sm() == text || arch.compute() == text)
            .ok_or_else(|| {
                let known: Vec<String> = CudaArch::SUPPORTED.iter().map(|arch| arch.sm()).collect();
                format!(
                    "unknown architecture `{text}`; the supported ones are {}",
                    known.join(", ")
                )
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse_in_both_spellings_and_nothing_else_does() {
        for arch in CudaArch::SUPPORTED {
            assert_eq!(arch.sm().parse(), Ok(arch));
            assert_eq!(arch.compute().parse(), Ok(arch));
        }
        assert!("sm_70".parse::<CudaArch>().is_err());
        assert!("90".parse::<CudaArch>().is_err());
    }

    #[test]
    fn a_device_gets_the_newest_image_of_its_major_version() {
        assert_eq!(CudaArch::for_device(8, 7), Some(CudaArch::new(8, 6)));
        assert_eq!(CudaArch::for_device(9, 0), Some(CudaArch::new(9, 0)));
        assert_eq!(CudaArch::for_device(7, 0), None);
        assert_eq!(CudaArch::for_device(11, 0), None);
    }
}
