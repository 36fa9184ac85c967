//! Versions of CUDA and its parts.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::process::Command;

/// A version such as `13.0` or `13.0.88`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Version {
    /// `13`
    pub major: u32,
    /// `0`
    pub minor: u32,
    /// `88`; absent if unknown.
    pub patch: Option<u32>,
}

impl Version {
    /// The oldest supported CUDA toolkit: the first whose tools know compute capability 10.0 and
    /// 12.0 and whose libNVVM reads modern IR (CUDA 12.8 release notes).
    pub const MINIMUM_CUDA: Version = Version::new(12, 8);

    /// The oldest supported libNVVM: the first that reads LLVM 7 IR (NVVM IR 2.0).
    pub const MINIMUM_NVVM: Version = Version::new(2, 0);

    /// A version without a patch number.
    pub const fn new(major: u32, minor: u32) -> Self {
        Version { major, minor, patch: None }
    }

    /// Parses the version at the start of a text: `13.0.88, built …`.
    pub fn parse(text: &str) -> Option<Version> {
        let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
        let mut parts = text[..end].split('.').map(str::parse);
        let major = parts.next()?.ok()?;
        let minor = parts.next()?.ok()?;
        let patch = parts.next().and_then(Result::ok);
        Some(Version { major, minor, patch })
    }

    /// The version of the toolkit in a folder: from `version.json`, which installers write, or else
    /// from `CUDART_VERSION` in its headers, which the wheels contain.
    pub fn of_toolkit(root: &Path) -> Option<Version> {
        version_json(root).or_else(|| version_header(root))
    }

    /// The version that a tool prints for `--version`.
    pub fn of_tool(path: &Path) -> Result<Version, String> {
        let output =
            Command::new(path).arg("--version").output().map_err(|error| error.to_string())?;
        let text = String::from_utf8_lossy(&output.stdout);
        if !output.status.success() {
            return Err(format!("`--version` ended with {}", output.status));
        }
        // `Cuda compilation tools, release 13.0, V13.0.88`
        text.rsplit_once(", V")
            .and_then(|(_, version)| Version::parse(version))
            .ok_or_else(|| "the output of `--version` has no version".into())
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)?;
        self.patch.map_or(Ok(()), |patch| write!(f, ".{patch}"))
    }
}

fn version_json(root: &Path) -> Option<Version> {
    let text = std::fs::read_to_string(root.join("version.json")).ok()?;
    let value: serde_json::Value = serde_json::from_str(&text).ok()?;
    Version::parse(value.get("cuda")?.get("version")?.as_str()?)
}

fn version_header(root: &Path) -> Option<Version> {
    // The definition precedes the first function of this half-megabyte header.
    const HEAD_BYTES: u64 = 64 * 1024;
    let mut head = Vec::new();
    let file = File::open(root.join("include").join("cuda_runtime_api.h")).ok()?;
    file.take(HEAD_BYTES).read_to_end(&mut head).ok()?;
    let head = String::from_utf8_lossy(&head);
    let (_, rest) = head.split_once("#define CUDART_VERSION")?;
    // 1000 * major + 10 * minor
    let number: u32 = rest.split_whitespace().next()?.parse().ok()?;
    Some(Version::new(number / 1000, number % 1000 / 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_parse_and_compare() {
        let full = Version { major: 13, minor: 0, patch: Some(88) };
        assert_eq!(Version::parse("13.0.88"), Some(full));
        assert_eq!(Version::parse("13.0.88\nBuild cuda_13.0"), Some(full));
        assert_eq!(Version::parse("12.8"), Some(Version::MINIMUM_CUDA));
        assert_eq!(Version::parse("13"), None);
        assert_eq!(Version::parse("release"), None);
        assert!(Version::parse("12.8.1") > Some(Version::MINIMUM_CUDA));
        assert!(Version::new(12, 6) < Version::MINIMUM_CUDA);
        assert_eq!(full.to_string(), "13.0.88");
    }

    #[test]
    fn a_toolkit_says_its_version_in_a_file_or_in_its_header() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        assert_eq!(Version::of_toolkit(root), None);
        std::fs::create_dir(root.join("include")).unwrap();
        std::fs::write(
            root.join("include/cuda_runtime_api.h"),
            "/* */\n#define CUDART_VERSION  12080\n",
        )
        .unwrap();
        assert_eq!(Version::of_toolkit(root), Some(Version::new(12, 8)));
        std::fs::write(
            root.join("version.json"),
            r#"{"cuda": {"name": "CUDA SDK", "version": "13.0.1"}}"#,
        )
        .unwrap();
        assert_eq!(Version::of_toolkit(root), Version::parse("13.0.1"));
        std::fs::write(root.join("version.json"), "{").unwrap();
        assert_eq!(Version::of_toolkit(root), Some(Version::new(12, 8)));
    }
}
