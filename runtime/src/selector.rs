//! Names of devices: `auto`, `cuda`, `cuda:1`, `cpu`.

use std::fmt;
use std::str::FromStr;

/// The device to open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DeviceSelector {
    /// The first GPU if there is one, else the CPU.
    #[default]
    Auto,
    /// The GPU with this ordinal.
    Cuda(u32),
    /// This machine's processor.
    Cpu,
}

impl FromStr for DeviceSelector {
    type Err = String;

    fn from_str(text: &str) -> Result<DeviceSelector, String> {
        match text {
            "auto" => Ok(DeviceSelector::Auto),
            "cuda" => Ok(DeviceSelector::Cuda(0)),
            "cpu" => Ok(DeviceSelector::Cpu),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|ordinal| ordinal.parse().ok())
                .map(DeviceSelector::Cuda)
                .ok_or_else(|| format!("`{text}` is not a device: use auto, cuda, cuda:N or cpu")),
        }
    }
}

impl fmt::Display for DeviceSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            DeviceSelector::Auto => f.write_str("auto"),
            DeviceSelector::Cuda(ordinal) => write!(f, "cuda:{ordinal}"),
            DeviceSelector::Cpu => f.write_str("cpu"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_parse() {
        for (text, selector) in [
            ("auto", DeviceSelector::Auto),
            ("cuda", DeviceSelector::Cuda(0)),
            ("cuda:12", DeviceSelector::Cuda(12)),
            ("cpu", DeviceSelector::Cpu),
        ] {
            assert_eq!(text.parse(), Ok(selector));
            assert_eq!(selector.to_string().parse(), Ok(selector));
        }
        for text in ["", "gpu", "cuda:", "cuda:-1", "cuda:x", "CPU", "cpu:0"] {
            let error = text.parse::<DeviceSelector>().unwrap_err();
            assert!(error.contains(&format!("`{text}`")), "{error}");
        }
    }
}
