//! Build targets: GPU architectures and the CPU device.

use std::fmt;
use std::str::FromStr;

use gridlet_lang::arch::CudaArch;

/// The target of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Target {
    /// A GPU.
    Cuda(CudaArch),
    /// The CPU device, on the architecture that the compiler runs on.
    Cpu,
}

impl From<CudaArch> for Target {
    fn from(arch: CudaArch) -> Self {
        Target::Cuda(arch)
    }
}

/// `sm_90` or `cpu`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Cuda(arch) => arch.fmt(f),
            Target::Cpu => f.write_str("cpu"),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "cpu" {
            return Ok(Target::Cpu);
        }
        text.parse().map(Target::Cuda).map_err(|error: String| format!("{error}, cpu"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse() {
        for target in CudaArch::SUPPORTED.map(Target::from).into_iter().chain([Target::Cpu]) {
            assert_eq!(target.to_string().parse(), Ok(target));
        }
        let error = "x86_64".parse::<Target>().unwrap_err();
        assert!(error.ends_with("sm_120, cpu"), "{error}");
    }
}
