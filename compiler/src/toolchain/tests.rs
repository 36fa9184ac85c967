use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use super::*;
use crate::doctor::{Status, report};

/// A temporary folder with fake toolkits.
pub(crate) struct Disk(tempfile::TempDir);

impl Disk {
    pub(crate) fn new() -> Self {
        Disk(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, path: &str) -> PathBuf {
        self.0.path().join(path)
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.path(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub(crate) fn toolkit(&self, root: &str, version: &str, files: &[&str]) {
        self.write(
            &format!("{root}/version.json"),
            &format!(r#"{{"cuda": {{"version": "{version}"}}}}"#),
        );
        for file in files {
            self.write(&format!("{root}/{file}"), "");
        }
    }

    /// Runs the documented search, with these variables set to folders of this disk.
    fn discover(&self, variables: &[(&str, &str)]) -> Toolchain {
        let variable = |name: &str| {
            let (_, folder) = variables.iter().find(|(known, _)| *known == name)?;
            Some(if folder.is_empty() {
                OsString::new()
            } else {
                self.path(folder).into_os_string()
            })
        };
        Toolchain::search(Search::from_variables(variable, &self.path("usr/local/cuda")))
    }

    /// A path relative to this disk.
    fn inside<'a>(&self, path: &'a Path) -> &'a str {
        path.strip_prefix(self.0.path()).unwrap().to_str().unwrap()
    }

    fn shown(&self, error: &Error) -> String {
        error.to_string().replace(self.0.path().to_str().unwrap(), "DISK")
    }
}

const INSTALLED: [&str; 5] = [
    "nvvm/lib64/libnvvm.so.4",
    "nvvm/libdevice/libdevice.10.bc",
    "lib64/libnvJitLink.so.13",
    "targets/x86_64-linux/lib/libcudadevrt.a",
    "bin/ptxas",
];
const UNPACKED: [&str; 5] = [
    "lib/libnvvm.so.4",
    "nvvm/libdevice/libdevice.10.bc",
    "lib/libnvJitLink.so.13",
    "lib/libcudadevrt.a",
    "bin/cuobjdump",
];

#[test]
fn a_component_comes_from_the_first_place_that_has_it() {
    let disk = Disk::new();
    disk.toolkit("usr/local/cuda", "13.0.1", &INSTALLED);
    disk.toolkit("cache/toolkit/cuda-13.0.88/nvidia/cu13", "13.0", &UNPACKED);
    disk.write("cache/toolkit/cuda-13.0.88/complete", "");
    disk.toolkit("home", "13.5", &INSTALLED[..2]);

    let found = disk.discover(&[]);
    assert_eq!(disk.inside(found.libnvvm().unwrap()), "usr/local/cuda/nvvm/lib64/libnvvm.so.4");
    assert_eq!(
        disk.inside(found.cudadevrt().unwrap()),
        "usr/local/cuda/targets/x86_64-linux/lib/libcudadevrt.a"
    );
    assert_eq!(found.toolkit_version(Component::LibNvvm), Version::parse("13.0.1"));

    let cache = "cache/toolkit/cuda-13.0.88/nvidia/cu13";
    let found = disk.discover(&[("GRIDLET_CACHE", "cache"), ("CUDA_PATH", "home")]);
    assert_eq!(disk.inside(found.libnvvm().unwrap()), "home/nvvm/lib64/libnvvm.so.4");
    assert_eq!(disk.inside(found.nvjitlink().unwrap()), format!("{cache}/lib/libnvJitLink.so.13"));
    let cuobjdump = found.path(Component::Cuobjdump).unwrap();
    assert_eq!(disk.inside(cuobjdump), format!("{cache}/bin/cuobjdump"));
    let ptxas = found.path(Component::Ptxas).unwrap();
    assert_eq!(disk.inside(ptxas), "usr/local/cuda/bin/ptxas");

    let all = [("GRIDLET_TOOLKIT", "usr/local/cuda"), ("CUDA_HOME", "home"), ("CUDA_PATH", "")];
    let found = disk.discover(&all);
    assert_eq!(disk.inside(found.libnvvm().unwrap()), "usr/local/cuda/nvvm/lib64/libnvvm.so.4");
}

#[test]
fn python_packages_come_before_the_cache() {
    let disk = Disk::new();
    disk.toolkit("cache/toolkit/cuda-13.0.88/nvidia/cu13", "13.0", &UNPACKED);
    disk.write("cache/toolkit/cuda-13.0.88/complete", "");
    disk.toolkit("site-packages/nvidia/cu13", "13.1", &UNPACKED[..4]);
    let variables = [("GRIDLET_CACHE", "cache"), (WHEELS, "site-packages/nvidia/cu13")];
    let found = disk.discover(&variables);
    assert_eq!(disk.inside(found.libnvvm().unwrap()), "site-packages/nvidia/cu13/lib/libnvvm.so.4");
    let places: Vec<_> = found.places().iter().map(|place| place.origin.as_str()).collect();
    let expected = [
        "GRIDLET_TOOLKIT",
        "CUDA_HOME",
        "CUDA_PATH",
        "NVIDIA's Python packages",
        "Gridlet's cache",
        "the system's toolkit",
    ];
    assert_eq!(places, expected);
}

#[test]
fn the_cache_counts_only_what_is_complete_and_prefers_the_newest() {
    let disk = Disk::new();
    for version in ["13.0.9", "13.0.88", "13.1.0"] {
        disk.toolkit(&format!("cache/toolkit/cuda-{version}/nvidia/cu13"), version, &UNPACKED);
    }
    let variables = [("GRIDLET_CACHE", "cache")];
    assert!(disk.discover(&variables).libnvvm().is_err());
    disk.write("cache/toolkit/cuda-13.0.9/complete", "");
    disk.write("cache/toolkit/cuda-13.0.88/complete", "");
    let found = disk.discover(&variables);
    let expected = "cache/toolkit/cuda-13.0.88/nvidia/cu13/lib/libnvvm.so.4";
    assert_eq!(disk.inside(found.libnvvm().unwrap()), expected);
}

#[cfg(feature = "llvm")]
#[test]
fn an_archive_that_nvjitlink_cannot_link_is_refused() {
    let disk = Disk::new();
    disk.toolkit("home", "12.8.1", &INSTALLED[..3]);
    disk.toolkit("usr/local/cuda", "13.0", &INSTALLED);
    let error = disk.discover(&[("CUDA_HOME", "home")]).linkable_cudadevrt().unwrap_err();
    let shown = disk.shown(&error);
    assert!(shown.contains("13.0, which nvJitLink of CUDA 12.8.1 cannot link"), "{shown}");
    // Of one release, whatever is known of the last number.
    disk.toolkit("home", "13.0", &INSTALLED[..3]);
    disk.toolkit("usr/local/cuda", "13.0.1", &INSTALLED);
    assert!(disk.discover(&[("CUDA_HOME", "home")]).linkable_cudadevrt().is_ok());
}

#[test]
fn the_cache_folder_follows_the_variables() {
    let folder = |variables: &[(&str, &str)]| {
        let variable = |name: &str| {
            variables
                .iter()
                .find(|(known, _)| *known == name)
                .map(|(_, value)| OsString::from(value))
        };
        cache::cache_dir_in(variable).map(|path| path.to_str().unwrap().to_owned())
    };
    let all = [("GRIDLET_CACHE", "/a"), ("XDG_CACHE_HOME", "/b"), ("HOME", "/c")];
    assert_eq!(folder(&all).as_deref(), Some("/a"));
    assert_eq!(folder(&all[1..]).as_deref(), Some("/b/gridlet"));
    assert_eq!(folder(&all[2..]).as_deref(), Some("/c/.cache/gridlet"));
    assert_eq!(folder(&[]), None);
    let relative = [("GRIDLET_CACHE", ""), ("XDG_CACHE_HOME", "b"), ("HOME", "/c")];
    assert_eq!(folder(&relative).as_deref(), Some("/c/.cache/gridlet"));
}

#[test]
fn a_missing_component_is_an_error_that_lists_the_places_searched() {
    let disk = Disk::new();
    fs::create_dir_all(disk.path("cache/toolkit/broken")).unwrap();
    fs::create_dir_all(disk.path("home")).unwrap();
    let found =
        disk.discover(&[("GRIDLET_CACHE", "cache"), ("CUDA_HOME", "home"), ("CUDA_PATH", "gone")]);
    insta::assert_snapshot!("missing", disk.shown(&found.libnvvm().unwrap_err()));
}

#[test]
fn a_missing_named_toolkit_is_not_replaced() {
    let disk = Disk::new();
    disk.toolkit("home", "13.0.88", &INSTALLED);
    assert!(disk.discover(&[("CUDA_HOME", "home")]).libnvvm().is_ok());
    let found = disk.discover(&[("GRIDLET_TOOLKIT", "gone"), ("CUDA_HOME", "home")]);
    insta::assert_snapshot!("gone", disk.shown(&found.libnvvm().unwrap_err()));
}

#[test]
fn a_toolkit_that_is_too_old_is_skipped_or_reported() {
    let disk = Disk::new();
    disk.toolkit("home", "11.8.0", &INSTALLED);
    let variables = [("CUDA_HOME", "home"), ("GRIDLET_CACHE", "cache")];
    let found = disk.discover(&variables);
    insta::assert_snapshot!("too_old", disk.shown(&found.libnvvm().unwrap_err()));
    let report = report(&found);
    let libnvvm = report.components.iter().find(|component| component.name == "libNVVM").unwrap();
    assert_eq!(libnvvm.status, Status::TooOld);
    assert_eq!(libnvvm.version.as_deref(), Some("CUDA 11.8.0"));
    assert!(!report.can_build());

    disk.toolkit("cache/toolkit/cuda-13.0.88/nvidia/cu13", "13.0", &UNPACKED);
    disk.write("cache/toolkit/cuda-13.0.88/complete", "");
    let found = disk.discover(&variables);
    assert!(disk.inside(found.libnvvm().unwrap()).starts_with("cache/"));
}

#[test]
fn a_machine_without_components_has_a_report() {
    let disk = Disk::new();
    let report = report(&disk.discover(&[]));
    let missing = report.components.iter().filter(|component| component.status == Status::Missing);
    assert_eq!(missing.count(), Component::ALL.len());
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["components"][1]["name"], "libNVVM");
    assert_eq!(json["components"][1]["status"], "missing");
    assert_eq!(json["places"][0]["origin"], "GRIDLET_TOOLKIT");
    assert!(json["places"][0]["folder"].is_null());
}

#[test]
fn the_llvm_version_matches_the_linked_library() {
    let (major, minor, _) = inkwell::support::get_llvm_version();
    assert_eq!(LLVM_VERSION, format!("{major}.{minor}"));
}
