//! Finds NVIDIA's compiler parts: their paths and versions.
//!
//! Each component comes from the first root of the search order ([`Search`]) that has it, unless it
//! is older than [`Version::MINIMUM_CUDA`] and a later root has a newer one. A root that has every
//! component therefore provides them all.

pub mod cache;
pub(crate) mod library;
mod search;
mod version;

use std::path::{Path, PathBuf};

pub use search::{Component, Place, Search, WHEELS};
pub use version::Version;

use crate::{Error, Result};

/// The LLVM that Gridlet is built with.
pub const LLVM_VERSION: &str = "22.1";

/// A component that was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Found {
    component: Component,
    pub(crate) path: PathBuf,
    /// The version of its toolkit, if known.
    toolkit: Option<Version>,
}

impl Found {
    fn is_too_old(&self) -> bool {
        self.toolkit.is_some_and(|version| version < Version::MINIMUM_CUDA)
    }
}

/// The compiler parts of this machine.
#[derive(Clone, Debug)]
pub struct Toolchain {
    search: Search,
    found: Vec<Found>,
}

impl Toolchain {
    /// Searches the documented places. Never fails: a missing component is an error when it is
    /// requested.
    pub fn discover() -> Self {
        Toolchain::search(Search::from_environment())
    }

    /// Searches the places of `search`.
    pub fn search(search: Search) -> Self {
        let roots: Vec<_> = search.roots().map(|root| (root, Version::of_toolkit(root))).collect();
        let mut found = Vec::new();
        for component in Component::ALL {
            let mut all = roots.iter().filter_map(|(root, toolkit)| {
                let path = component.find_in(root)?;
                Some(Found { component, path, toolkit: *toolkit })
            });
            let first = all.next();
            let usable = first.iter().cloned().chain(all).find(|found| !found.is_too_old());
            found.extend(usable.or(first));
        }
        Toolchain { search, found }
    }

    /// The path of a component.
    ///
    /// # Errors
    /// `Missing`, with every path that was tried, or with the version that was found and the
    /// minimum version.
    pub fn path(&self, component: Component) -> Result<&Path> {
        let found = self.found(component).ok_or_else(|| Error::Missing {
            what: format!(
                "{} ({}) was not found. Looked in:{}",
                component.name(),
                component.files().join(" or "),
                self.search.probed(component)
            ),
            help: library::HELP.into(),
        })?;
        match found.toolkit {
            Some(version) if found.is_too_old() => Err(Error::Missing {
                what: format!(
                    "{} at {} is from CUDA {version}; Gridlet needs CUDA {} or later.",
                    component.name(),
                    found.path.display(),
                    Version::MINIMUM_CUDA
                ),
                help: library::HELP.into(),
            }),
            _ => Ok(&found.path),
        }
    }

    /// The version of the CUDA toolkit in which a component was found, if both are known.
    pub fn toolkit_version(&self, component: Component) -> Option<Version> {
        self.found(component)?.toolkit
    }

    /// The library that compiles NVVM IR. Errors as [`Toolchain::path`].
    pub fn libnvvm(&self) -> Result<&Path> {
        self.path(Component::LibNvvm)
    }

    /// `libdevice.10.bc`. Errors as [`Toolchain::path`].
    pub fn libdevice(&self) -> Result<&Path> {
        self.path(Component::LibDevice)
    }

    /// The library that device-links. Errors as [`Toolchain::path`].
    pub fn nvjitlink(&self) -> Result<&Path> {
        self.path(Component::NvJitLink)
    }

    /// `libcudadevrt.a`. Errors as [`Toolchain::path`].
    pub fn cudadevrt(&self) -> Result<&Path> {
        self.path(Component::CudaDevRt)
    }

    /// As [`Toolchain::cudadevrt`], for nvJitLink, which must be of the same toolkit or a newer one: nvJitLink 12.8 crashes on the
    /// archive of CUDA 13.0.
    ///
    /// # Errors
    /// As [`Toolchain::path`], and if the archive is newer than nvJitLink.
    #[cfg(feature = "llvm")]
    pub(crate) fn linkable_cudadevrt(&self) -> Result<&Path> {
        let archive = self.cudadevrt()?;
        let version = |component| self.toolkit_version(component);
        let versions = version(Component::CudaDevRt).zip(version(Component::NvJitLink));
        let release = |version: Version| (version.major, version.minor);
        match versions {
            Some((of_archive, linker)) if release(of_archive) > release(linker) => Err(Error::Missing {
                what: format!(
                    "libcudadevrt at {} is from CUDA {of_archive}, which nvJitLink of CUDA {linker} cannot link.",
                    archive.display()
                ),
                help: "Set GRIDLET_TOOLKIT to a CUDA toolkit with both, or use `--launch resident`, which needs no \
                       libcudadevrt."
                    .into(),
            }),
            _ => Ok(archive),
        }
    }

    /// The places searched, in order.
    pub fn places(&self) -> &[Place] {
        &self.search.places
    }

    pub(crate) fn found(&self, component: Component) -> Option<&Found> {
        self.found.iter().find(|found| found.component == component)
    }
}

#[cfg(test)]
pub(crate) mod tests;
