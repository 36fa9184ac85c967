//! Selects the entries of images that suit this processor.

use crate::abi::LEVEL_V3;
use crate::error::{Error, Result};

/// Environment variable that selects the entries of images to run: `baseline` (any processor) or `x86-64-v3`. If it is
/// unset, the device uses the best level that the processor supports. The results are the same.
pub const LEVEL_VARIABLE: &str = "GRIDLET_CPU_LEVEL";

const BASELINE: &str = "baseline";

/// The processor features that image code may use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    /// The features of every processor of the architecture.
    Baseline,
    /// [`LEVEL_V3`].
    V3,
}

impl Level {
    /// The level for a device that starts now.
    ///
    /// # Errors
    /// [`Error::Threads`]: [`LEVEL_VARIABLE`] names an unknown level, or one that the processor does not support.
    pub(crate) fn choose() -> Result<Level> {
        Level::from_request(std::env::var(LEVEL_VARIABLE).ok().as_deref(), Level::of_processor())
    }

    fn from_request(request: Option<&str>, best: Level) -> Result<Level> {
        match request {
            None => Ok(best),
            Some(BASELINE) => Ok(Level::Baseline),
            Some(LEVEL_V3) if best == Level::V3 => Ok(Level::V3),
            Some(LEVEL_V3) => Err(Error::Threads {
                reason: format!(
                    "{LEVEL_VARIABLE} asks for {LEVEL_V3}, which this processor does not support: unset it"
                ),
            }),
            Some(other) => Err(Error::Threads {
                reason: format!(
                    "{LEVEL_VARIABLE} is `{other}`; it must be `{BASELINE}` or `{LEVEL_V3}`"
                ),
            }),
        }
    }

    /// The best level that this processor supports.
    fn of_processor() -> Level {
        #[cfg(target_arch = "x86_64")]
        {
            // The extensions of the level (System V ABI, "Micro-Architecture Levels") that a program can query.
            let has_v2 = is_x86_feature_detected!("sse4.2")
                && is_x86_feature_detected!("popcnt")
                && is_x86_feature_detected!("cmpxchg16b");
            let has_v3 = is_x86_feature_detected!("avx2")
                && is_x86_feature_detected!("bmi1")
                && is_x86_feature_detected!("bmi2")
                && is_x86_feature_detected!("f16c")
                && is_x86_feature_detected!("fma")
                && is_x86_feature_detected!("lzcnt")
                && is_x86_feature_detected!("movbe");
            if has_v2 && has_v3 {
                return Level::V3;
            }
        }
        Level::Baseline
    }

    /// Name, as in [`LEVEL_VARIABLE`].
    pub(crate) fn name(self) -> &'static str {
        match self {
            Level::Baseline => BASELINE,
            Level::V3 => LEVEL_V3,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_must_be_supported() {
        use Level::{Baseline, V3};
        for best in [Baseline, V3] {
            assert_eq!(Level::from_request(None, best).unwrap(), best);
            assert_eq!(Level::from_request(Some("baseline"), best).unwrap(), Baseline);
        }
        assert_eq!(Level::from_request(Some("x86-64-v3"), V3).unwrap(), V3);
        let refused =
            [Level::from_request(Some("x86-64-v3"), Baseline), Level::from_request(Some("v3"), V3)];
        let texts = refused.map(|refused| refused.unwrap_err().to_string());
        insta::assert_snapshot!(texts.join("\n"), @"
        the CPU device cannot start: GRIDLET_CPU_LEVEL asks for x86-64-v3, which this processor does not support: unset it
        the CPU device cannot start: GRIDLET_CPU_LEVEL is `v3`; it must be `baseline` or `x86-64-v3`
        ");
    }
}
