//! The report of `gridlet doctor`: components found, their state, and the places searched.

use std::path::Path;

use serde::Serialize;

use crate::Error;
use crate::link::NvJitLink;
use crate::ptx::libnvvm::LibNvvm;
use crate::toolchain::{Component, LLVM_VERSION, Toolchain, Version, library};

/// The data that `gridlet doctor` prints.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Report {
    /// The places searched, in order.
    pub places: Vec<PlaceReport>,
    /// LLVM, then the parts of the CUDA toolkit.
    pub components: Vec<ComponentReport>,
}

/// One entry of the search order.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PlaceReport {
    /// The name of the entry: `CUDA_HOME`, for example.
    pub origin: String,
    /// The folder it names; absent if the variable is not set.
    pub folder: Option<String>,
    /// The toolkits there.
    pub toolkits: Vec<String>,
}

/// The state of a component.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Status {
    /// Found, and it loads or runs.
    Found,
    /// Not found.
    Missing,
    /// Found, but too old.
    TooOld,
    /// Found, but it does not load or run.
    Unusable,
}

/// A part of the toolchain.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ComponentReport {
    /// Its name.
    pub name: &'static str,
    /// Its purpose.
    pub purpose: &'static str,
    /// Whether building programs needs it; the other components serve tests and benchmarks.
    pub required: bool,
    /// Its state.
    pub status: Status,
    /// Its path.
    pub path: Option<String>,
    /// Its own version, or its toolkit's if it has none.
    pub version: Option<String>,
    /// The problem, if there is one.
    pub problem: Option<String>,
    /// The remedy, if there is a problem.
    pub help: Option<String>,
}

impl Report {
    /// Whether every component that building needs is usable.
    pub fn can_build(&self) -> bool {
        self.components
            .iter()
            .all(|component| !component.required || component.status == Status::Found)
    }
}

/// Inspects every component, and loads or runs those that report their version.
pub fn report(toolchain: &Toolchain) -> Report {
    let text = |path: &Path| path.display().to_string();
    let places = toolchain.places().iter().map(|place| PlaceReport {
        origin: place.origin.clone(),
        folder: place.folder.as_deref().map(text),
        toolkits: place.roots.iter().map(|root| text(root)).collect(),
    });
    let llvm = ComponentReport {
        name: "LLVM",
        purpose: "writes the NVVM IR; linked into Gridlet",
        required: true,
        status: Status::Found,
        path: None,
        version: Some(LLVM_VERSION.into()),
        problem: None,
        help: None,
    };
    let parts = Component::ALL.into_iter().map(|component| describe(toolchain, component));
    Report { places: places.collect(), components: std::iter::once(llvm).chain(parts).collect() }
}

fn describe(toolchain: &Toolchain, component: Component) -> ComponentReport {
    let toolkit = toolchain.toolkit_version(component).map(|version| format!("CUDA {version}"));
    let mut report = ComponentReport {
        name: component.name(),
        purpose: component.purpose(),
        required: component.is_required(),
        status: Status::Found,
        path: toolchain.found(component).map(|found| found.path.display().to_string()),
        version: toolkit,
        problem: None,
        help: None,
    };
    let failed = match toolchain.path(component) {
        Ok(path) => match own_version(component, path) {
            Ok(version) => {
                report.version = version.or(report.version);
                return report;
            }
            Err(error) => {
                report.status = Status::Unusable;
                error
            }
        },
        Err(error) => {
            report.status = if report.path.is_some() { Status::TooOld } else { Status::Missing };
            error
        }
    };
    let (problem, help) = match failed {
        Error::Missing { what, help } => (what, help),
        other => (other.to_string(), library::HELP.into()),
    };
    report.problem = Some(problem);
    report.help = Some(help);
    report
}

/// The version that a component reports; `None` for files that contain none.
fn own_version(component: Component, path: &Path) -> crate::Result<Option<String>> {
    match component {
        Component::LibNvvm => {
            let library = LibNvvm::load(path)?;
            Ok(Some(format!("{}, NVVM IR {}", library.version(), library.ir_version())))
        }
        Component::NvJitLink => Ok(Some(NvJitLink::load(path)?.version().to_string())),
        Component::LibDevice | Component::CudaDevRt => Ok(None),
        _ => Version::of_tool(path).map(|version| Some(version.to_string())).map_err(|why| {
            Error::Missing {
                what: format!("{} does not run: {why}", path.display()),
                help: library::HELP.into(),
            }
        }),
    }
}
