//! `xtask/toolkit.txt` and the files of `xtask/conformance`: packages, versions and hashes.

use anyhow::{Context, Result, bail};
use sha2::{Digest, Sha256};

/// The files, as they were when xtask was built: name and text.
const TOOLKIT: (&str, &str) = ("xtask/toolkit.txt", include_str!("../../toolkit.txt"));
const CONFORMANCE: [(&str, &str); 2] = [
    ("xtask/conformance/cuda-12.8.txt", include_str!("../../conformance/cuda-12.8.txt")),
    ("xtask/conformance/cuda-13.5.txt", include_str!("../../conformance/cuda-13.5.txt")),
];
/// The machines that the file has wheels for, in the order of its hashes and sizes.
const MACHINES: [&str; 2] = ["x86_64", "aarch64"];

/// A set of wheels for one kind of machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pins {
    /// The toolkit's folder in the cache.
    pub(crate) name: String,
    /// `x86_64` or `aarch64`.
    pub(crate) machine: String,
    /// In the order of the file.
    pub(crate) wheels: Vec<Wheel>,
    /// The file, from the workspace's folder.
    pub(crate) file: &'static str,
    /// Its text: a requirements file of pip.
    pub(crate) text: &'static str,
}

/// One package for one kind of machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wheel {
    /// `nvidia-nvvm`
    pub(crate) package: String,
    /// `13.0.88`
    pub(crate) version: String,
    /// Of the wheel, in lower-case hexadecimal.
    pub(crate) sha256: String,
    /// Size of the wheel.
    pub(crate) bytes: u64,
}

impl Pins {
    /// The pins for `machine`, as `std::env::consts::ARCH` names it.
    pub(crate) fn read(machine: &str) -> Result<Pins> {
        Pins::of(TOOLKIT, machine)
    }

    /// The pins of the toolkits for `cargo xtask conformance`, beside [`Pins::read`], the oldest first.
    pub(crate) fn conformance(machine: &str) -> Result<Vec<Pins>> {
        CONFORMANCE.into_iter().map(|source| Pins::of(source, machine)).collect()
    }

    fn of((file, text): (&'static str, &'static str), machine: &str) -> Result<Pins> {
        let Some(column) = MACHINES.iter().position(|name| *name == machine) else {
            bail!(
                "{file} has NVIDIA's parts for {}, not for {machine}: install a CUDA toolkit and set CUDA_HOME",
                MACHINES.join(" and ")
            );
        };
        let pins = parse(text, machine, column).context(file)?;
        Ok(Pins { file, text, ..pins })
    }

    /// A hash over the pinned wheels and over `also`, which describes how the caller unpacks them.
    pub(crate) fn hash(&self, also: &[&str]) -> String {
        let mut hash = Sha256::new();
        let wheels = self.wheels.iter().flat_map(|w| [&*w.package, &*w.version, &*w.sha256]);
        for part in
            [&*self.name, &*self.machine].into_iter().chain(wheels).chain(also.iter().copied())
        {
            hash.update(part);
            hash.update([0]);
        }
        hex(&hash.finalize())
    }

    /// The version of the first package, libNVVM's.
    pub(crate) fn version(&self) -> &str {
        self.wheels.first().map_or("", |wheel| &wheel.version)
    }

    /// Bytes to download.
    pub(crate) fn bytes(&self) -> u64 {
        self.wheels.iter().map(|wheel| wheel.bytes).sum()
    }
}

impl Wheel {
    /// How the wheel's file name starts.
    pub(crate) fn file_start(&self) -> String {
        format!("{}-{}-", self.package.replace('-', "_"), self.version)
    }
}

fn parse(text: &str, machine: &str, column: usize) -> Result<Pins> {
    let mut name = None;
    let mut bytes = None;
    let mut wheels = Vec::new();
    for line in text.replace("\\\n", " ").lines().map(str::trim) {
        if let Some(value) = line.strip_prefix("# toolkit:") {
            name = Some(value.trim().to_string());
        } else if let Some(value) = line.strip_prefix("# bytes:") {
            let size = value.split_whitespace().nth(column).context("too few sizes")?;
            bytes = Some(size.parse().with_context(|| format!("`{size}` is no size"))?);
        } else if !line.starts_with('#') && !line.is_empty() {
            let mut words = line.split_whitespace();
            let (package, version) = words
                .next()
                .and_then(|word| word.split_once("=="))
                .with_context(|| format!("no `package==version` in `{line}`"))?;
            let sha256 = words
                .filter_map(|word| word.strip_prefix("--hash=sha256:"))
                .nth(column)
                .filter(|hash| hash.len() == 64)
                .with_context(|| format!("{package} has no sha256 for {machine}"))?;
            wheels.push(Wheel {
                package: package.into(),
                version: version.into(),
                sha256: sha256.into(),
                bytes: bytes
                    .take()
                    .with_context(|| format!("{package} has no `# bytes:` before it"))?,
            });
        }
    }
    let name = name.context("no `# toolkit:`")?;
    Ok(Pins { name, machine: machine.into(), wheels, file: "", text: "" })
}

/// `bytes` in lower-case hexadecimal.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pins_of_both_machines_are_complete_and_differ() {
        let [x86, arm] = MACHINES.map(|machine| Pins::read(machine).unwrap());
        assert_eq!(x86.wheels.len(), 8);
        assert_eq!(arm.wheels.len(), 8);
        assert!((100_000_000..200_000_000).contains(&x86.bytes()), "{}", x86.bytes());
        for (a, b) in x86.wheels.iter().zip(&arm.wheels) {
            assert_eq!((&a.package, &a.version), (&b.package, &b.version));
            assert_ne!(a.sha256, b.sha256);
        }
        assert_eq!(x86.wheels[0].file_start(), "nvidia_nvvm-13.0.88-");
        assert!(Pins::read("riscv64").unwrap_err().to_string().contains("CUDA_HOME"));
    }

    #[test]
    fn the_pins_for_conformance_are_of_other_toolkits() {
        let pins = Pins::conformance("x86_64").unwrap();
        let names: Vec<&str> = pins.iter().map(|pins| pins.name.as_str()).collect();
        assert_eq!(names, ["cuda-12.8.93-1", "cuda-13.5.37-1"]);
        assert!(Pins::conformance("aarch64").is_err());
    }

    #[test]
    fn the_hash_follows_what_is_fetched() {
        let pins = Pins::read("x86_64").unwrap();
        let mut changed = pins.clone();
        changed.wheels[3].sha256 = "0".repeat(64);
        assert_ne!(pins.hash(&[]), changed.hash(&[]));
        assert_ne!(pins.hash(&[]), pins.hash(&["lib/cmake/"]));
        assert_eq!(pins.hash(&[]), pins.clone().hash(&[]));
    }

    #[test]
    fn a_pin_without_a_hash_or_a_size_is_refused() {
        let hash = format!("--hash=sha256:{}", "a".repeat(64));
        let file = |line: &str| format!("# toolkit: t\n{line}\n");
        assert!(parse(&file(&format!("# bytes: 5\np==1 \\\n {hash}")), "x86_64", 0).is_ok());
        assert!(parse(&file(&format!("p==1 {hash}")), "x86_64", 0).is_err());
        assert!(parse(&file("# bytes: 5\np==1 --hash=sha256:abc"), "x86_64", 0).is_err());
        assert!(parse(&file(&format!("# bytes: 5 5\np==1 {hash}")), "aarch64", 1).is_err());
        assert!(parse(&format!("# bytes: 5\np==1 {hash}"), "x86_64", 0).is_err());
    }
}
