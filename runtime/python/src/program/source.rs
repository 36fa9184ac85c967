//! From source text or a path to a program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gridlet::cache::Cache;
use gridlet::compile::{self as compiler, LinkInput, Session};
use gridlet::launch::LaunchChoice;
use gridlet::source::SourceMap;
use gridlet::toolchain::{Search, Toolchain, WHEELS};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::Program;
use super::core::Core;
use crate::errors::compile_error;

/// The folder of NVIDIA's compiler parts that pip installed.
pub(crate) fn toolkit(py: Python<'_>) -> PyResult<Option<OsString>> {
    py.import("gridlet._toolkit")?.call_method0("folder")?.extract()
}

/// The tools of this process.
fn session(py: Python<'_>) -> PyResult<Arc<Session>> {
    static SESSION: OnceLock<Arc<Session>> = OnceLock::new();

    if let Some(session) = SESSION.get() {
        return Ok(Arc::clone(session));
    }
    let wheels = toolkit(py)?;
    let variable = |name: &str| match (name, std::env::var_os(name)) {
        (WHEELS, None) => wheels.clone(),
        (_, value) => value,
    };
    let search = Search::from_variables(variable, Path::new("/usr/local/cuda"));
    let made = Session::with_toolchain(Toolchain::search(search)).cached(Cache::of_user());
    let made = Arc::new(made);
    Ok(Arc::clone(SESSION.get_or_init(|| made)))
}

/// Compiles a program.
///
/// `source` is a path (a `str` that ends in `.grid`, or any `os.PathLike`) or the program's text, which messages call
/// `name`. `instances` names kernels with const parameters, as `"k::<8>"`. `launch` is the way in which kernels launch
/// kernels on a GPU: "auto", "cdp" or "resident". `link` lists files that define the program's `extern fn`.
///
/// A wrong program raises `CompileError`.
#[pyfunction]
#[pyo3(signature = (source, *, name="program.grid", instances=Vec::new(), launch="auto", optimize=true, link=Vec::new()))]
pub(crate) fn compile(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    name: &str,
    instances: Vec<String>,
    launch: &str,
    optimize: bool,
    link: Vec<PathBuf>,
) -> PyResult<Program> {
    let launch: LaunchChoice = launch
        .parse()
        .map_err(|error| PyValueError::new_err(format!("launch: {error}, and `auto`")))?;
    let wanted = instances.iter().map(|name| name.parse().map_err(PyValueError::new_err));
    let wanted = wanted.collect::<PyResult<Vec<_>>>()?;
    let mut session = session(py)?;
    let input = Input::of(source, name)?;
    py.detach(|| {
        if !link.is_empty() {
            let read = |path: &PathBuf| {
                LinkInput::read(path).map_err(|error| compile_error(error, &SourceMap::default()))
            };
            let inputs = link.iter().map(read).collect::<PyResult<Vec<_>>>()?;
            let own = Session::with_toolchain(session.toolchain().clone()).cached(Cache::of_user());
            session = Arc::new(own.linking(inputs));
        }
        let sources = input.load()?;
        let shown = sources.clone();
        let program =
            compiler::check_for(sources, &wanted).map_err(|error| compile_error(error, &shown))?;
        Ok(Program { core: Arc::new(Core::of_source(program, session, launch, optimize)) })
    })
}

/// Reads a program from a bundle, which `gridlet build` or `Program.bundle` wrote.
#[pyfunction]
pub(crate) fn load(py: Python<'_>, path: PathBuf) -> PyResult<Program> {
    py.detach(|| Ok(Program { core: Arc::new(Core::of_bundle(&path)?) }))
}

/// What to compile.
enum Input {
    Path(PathBuf),
    Text { name: String, text: String },
}

impl Input {
    fn of(source: &Bound<'_, PyAny>, name: &str) -> PyResult<Input> {
        match source.extract::<String>() {
            Ok(text) if text.ends_with(".grid") && !text.contains('\n') => {
                Ok(Input::Path(text.into()))
            }
            Ok(text) => Ok(Input::Text { name: name.to_owned(), text }),
            Err(_) => source.extract().map(Input::Path).map_err(|_| {
                PyTypeError::new_err("source: expected a path or the text of a program")
            }),
        }
    }

    fn load(self) -> PyResult<SourceMap> {
        match self {
            Input::Text { name, text } => Ok(SourceMap::single(name, text)),
            Input::Path(path) => {
                let mut sources = compiler::load(&path)
                    .map_err(|error| compile_error(error, &SourceMap::default()))?;
                sources.set_folder(path.parent().unwrap_or(Path::new("")));
                Ok(sources)
            }
        }
    }
}
