//! The search order for the parts of a CUDA toolkit.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use super::cache;

/// A part of a CUDA toolkit that Gridlet or its tests use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[expect(missing_docs, reason = "each variant is the part of that name")]
#[non_exhaustive]
pub enum Component {
    LibNvvm,
    LibDevice,
    NvJitLink,
    CudaDevRt,
    Ptxas,
    Nvlink,
    Cuobjdump,
    Nvdisasm,
    Nvcc,
}

impl Component {
    /// All of them, in the order of reports.
    pub const ALL: [Component; 9] = [
        Component::LibNvvm,
        Component::LibDevice,
        Component::NvJitLink,
        Component::CudaDevRt,
        Component::Ptxas,
        Component::Nvlink,
        Component::Cuobjdump,
        Component::Nvdisasm,
        Component::Nvcc,
    ];

    /// Its common name.
    pub fn name(self) -> &'static str {
        match self {
            Component::LibNvvm => "libNVVM",
            Component::LibDevice => "libdevice",
            Component::NvJitLink => "nvJitLink",
            Component::CudaDevRt => "libcudadevrt",
            Component::Ptxas => "ptxas",
            Component::Nvlink => "nvlink",
            Component::Cuobjdump => "cuobjdump",
            Component::Nvdisasm => "nvdisasm",
            Component::Nvcc => "nvcc",
        }
    }

    /// Its purpose.
    pub fn purpose(self) -> &'static str {
        match self {
            Component::LibNvvm => "compiles NVVM IR to PTX",
            Component::LibDevice => "mathematical functions",
            Component::NvJitLink => "device-links PTX to a cubin",
            Component::CudaDevRt => {
                "the device runtime, for launches from kernels with --launch cdp"
            }
            Component::Ptxas => {
                "assembles programs that need no linking, and long ones; without it nvJitLink does"
            }
            Component::Nvlink => "checks Gridlet's output in tests",
            Component::Cuobjdump | Component::Nvdisasm => "reads cubins in tests",
            Component::Nvcc => "the reference in tests and benchmarks",
        }
    }

    /// Whether building programs needs it; the other components serve tests and benchmarks.
    pub fn is_required(self) -> bool {
        matches!(
            self,
            Component::LibNvvm | Component::LibDevice | Component::NvJitLink | Component::CudaDevRt
        )
    }

    /// Whether it is an executable.
    pub fn is_program(self) -> bool {
        !self.is_required()
    }

    /// Its possible file names, the preferred one first.
    pub fn files(self) -> &'static [&'static str] {
        match self {
            Component::LibNvvm => &["libnvvm.so.4", "libnvvm.so"],
            Component::LibDevice => &["libdevice.10.bc"],
            Component::NvJitLink => {
                &["libnvJitLink.so.13", "libnvJitLink.so.12", "libnvJitLink.so"]
            }
            Component::CudaDevRt => &["libcudadevrt.a"],
            Component::Ptxas => &["ptxas"],
            Component::Nvlink => &["nvlink"],
            Component::Cuobjdump => &["cuobjdump"],
            Component::Nvdisasm => &["nvdisasm"],
            Component::Nvcc => &["nvcc"],
        }
    }

    /// Folders below a toolkit's root that may hold it, as laid out by the installers, by Linux
    /// distributions and by the wheels.
    pub fn folders(self) -> &'static [&'static str] {
        const LIBRARIES: &[&str] =
            &["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"];
        match self {
            Component::LibNvvm => &["nvvm/lib64", "nvvm/lib", "lib64", "lib"],
            Component::LibDevice => &["nvvm/libdevice"],
            Component::NvJitLink | Component::CudaDevRt => LIBRARIES,
            _ => &["bin"],
        }
    }

    /// The first of its files that exists below a root.
    pub(super) fn find_in(self, root: &Path) -> Option<PathBuf> {
        self.folders()
            .iter()
            .flat_map(|folder| self.files().iter().map(move |file| root.join(folder).join(file)))
            .find(|path| path.is_file())
    }
}

/// One entry of the search order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Place {
    /// The name of the entry: an environment variable, or `Gridlet's cache`.
    pub origin: String,
    /// The folder it names; `None` if the variable is not set.
    pub folder: Option<PathBuf>,
    /// The toolkit roots in the folder, in order. A folder that does not exist has none.
    pub roots: Vec<PathBuf>,
}

/// The variable by which Gridlet's Python package names the folder where pip put NVIDIA's compiler parts.
pub const WHEELS: &str = "GRIDLET_WHEELS";

/// The places to search, in order.
///
/// | | |
/// |---|---|
/// | `GRIDLET_TOOLKIT` | a toolkit's root, for Gridlet alone; no other place is searched if the folder does not exist |
/// | `CUDA_HOME`, `CUDA_PATH` | a toolkit's root, as other tools use them |
/// | [`WHEELS`] | the folder `nvidia/cu13` of NVIDIA's Python packages; Gridlet's own Python package sets it |
/// | Gridlet's cache | the toolkits unpacked by `cargo xtask setup` ([`cache`]) |
/// | `/usr/local/cuda` | the current version of NVIDIA's installers |
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Search {
    /// The places, in search order.
    pub places: Vec<Place>,
}

impl Search {
    /// The documented order, with this process's environment.
    pub fn from_environment() -> Self {
        Search::from_variables(|name| std::env::var_os(name), Path::new("/usr/local/cuda"))
    }

    /// The documented order with other variables and another system folder, so that tests need not
    /// change the process's environment.
    pub fn from_variables(variable: impl Fn(&str) -> Option<OsString>, system: &Path) -> Self {
        let mut places = Vec::new();
        for name in ["GRIDLET_TOOLKIT", "CUDA_HOME", "CUDA_PATH"] {
            let folder = variable(name).filter(|value| !value.is_empty()).map(PathBuf::from);
            let place = Place::folder(name, folder);
            // Setting this variable rules out every other place, even if the folder does not exist.
            if name == "GRIDLET_TOOLKIT" && place.folder.is_some() && place.roots.is_empty() {
                return Search { places: vec![place] };
            }
            places.push(place);
        }
        // Not listed for the many who have no Python package.
        if let Some(folder) = variable(WHEELS).filter(|value| !value.is_empty()) {
            places.push(Place::folder("NVIDIA's Python packages", Some(folder.into())));
        }
        let cache = cache::cache_dir_in(&variable);
        places.push(Place {
            origin: "Gridlet's cache".into(),
            roots: cache.as_deref().map(cached_roots).unwrap_or_default(),
            folder: cache.as_deref().map(|cache| cache.join("toolkit")),
        });
        places.push(Place::folder("the system's toolkit", Some(system.to_path_buf())));
        Search { places }
    }

    /// Only the given toolkit roots, in their order.
    pub fn from_roots(roots: impl IntoIterator<Item = PathBuf>) -> Self {
        Search {
            places: roots.into_iter().map(|root| Place::folder("given", Some(root))).collect(),
        }
    }

    /// All roots, in order.
    pub fn roots(&self) -> impl Iterator<Item = &Path> {
        self.places.iter().flat_map(|place| &place.roots).map(PathBuf::as_path)
    }

    /// Every path that was tried for a component, one line per place.
    pub fn probed(&self, component: Component) -> String {
        let mut text = String::new();
        for place in &self.places {
            let what = match &place.folder {
                None => "not set".into(),
                Some(folder) if place.roots.is_empty() && folder.is_dir() => {
                    format!("{} has no complete toolkit", folder.display())
                }
                Some(folder) if place.roots.is_empty() => {
                    format!("{} does not exist", folder.display())
                }
                Some(_) => {
                    let paths = place.roots.iter().flat_map(|root| {
                        component
                            .folders()
                            .iter()
                            .map(move |folder| root.join(folder).display().to_string())
                    });
                    paths.collect::<Vec<_>>().join(", ")
                }
            };
            text.push_str(&format!("\n  {}: {what}", place.origin));
        }
        text
    }
}

impl Place {
    fn folder(origin: &str, folder: Option<PathBuf>) -> Self {
        let roots = folder.iter().filter(|folder| folder.is_dir()).cloned().collect();
        Place { origin: origin.into(), folder, roots }
    }
}

/// The roots of the complete toolkits in a cache, the newest first.
fn cached_roots(cache: &Path) -> Vec<PathBuf> {
    cache::toolkits_in(cache)
        .into_iter()
        .rev()
        .map(|folder| folder.join(cache::TOOLKIT_ROOT))
        .collect()
}
