//! From source text or a path to a program.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use gridlet::arch::Dialect;
use gridlet::cache::Cache;
use gridlet::compile::{
    self as compiler, Backend, BuildOptions, CpuOptions, DialectChoice, LinkInput, Session,
};
use gridlet::source::SourceMap;
use gridlet::toolchain::{Search, Toolchain, WHEELS};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use super::Program;
use super::core::{Core, Options};
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
/// `name`. `instances` names kernels with const parameters, as `"k::<8>"`. `link` lists files that define the program's
/// `extern fn`.
///
/// The other options are those of the program `gridlet`. `launch` is the way in which kernels launch kernels on a GPU: "auto",
/// "cdp" or "resident". `opt_level` is 3, or 0 for no optimisation, or 1 to compile for the CPU device in less time. `backend`
/// makes PTX: "libnvvm", which "auto" is, or "nvptx". `dialect` is that of NVVM IR: "auto", "legacy" or "modern". `fast_math`
/// computes with `f32` on GPUs as nvcc's `-use_fast_math` does. `debug_lines` gives images line tables and variables, for GPUs only with `opt_level=0`.
/// Without `cache`, everything is compiled anew.
///
/// A wrong program raises `CompileError`.
#[pyfunction]
#[pyo3(signature = (source, *, name="program.grid", instances=Vec::new(), link=Vec::new(), launch="auto", opt_level=3,
    backend="auto", dialect="auto", fast_math=false, debug_lines=false, cache=true))]
#[expect(clippy::too_many_arguments, reason = "each is a keyword in Python")]
pub(crate) fn compile(
    py: Python<'_>,
    source: &Bound<'_, PyAny>,
    name: &str,
    instances: Vec<String>,
    link: Vec<PathBuf>,
    launch: &str,
    opt_level: i64,
    backend: &str,
    dialect: &str,
    fast_math: bool,
    debug_lines: bool,
    cache: bool,
) -> PyResult<Program> {
    let launch = launch
        .parse()
        .map_err(|error| PyValueError::new_err(format!("launch: {error}, and `auto`")))?;
    let (optimize, quick) = match opt_level {
        0 => (false, false),
        1 => (true, true),
        3 => (true, false),
        other => {
            let text = format!("opt_level: there is no level {other}; there are 0, 1 and 3");
            return Err(PyValueError::new_err(text));
        }
    };
    let cuda = BuildOptions::default()
        .with_launch(launch)
        .with_dialect(choose("dialect", dialect, DIALECTS)?)
        .with_backend(choose("backend", backend, BACKENDS)?)
        .with_optimize(optimize)
        .with_debug_lines(debug_lines)
        .with_fast_math(fast_math);
    let cpu = CpuOptions::default()
        .with_optimize(optimize)
        .with_quick(quick)
        .with_debug_lines(debug_lines);
    let wanted = instances.iter().map(|name| name.parse().map_err(PyValueError::new_err));
    let wanted = wanted.collect::<PyResult<Vec<_>>>()?;
    let mut session = session(py)?;
    let input = Input::of(source, name)?;
    py.detach(|| {
        if !link.is_empty() || !cache {
            let read = |path: &PathBuf| {
                LinkInput::read(path).map_err(|error| compile_error(error, &SourceMap::default()))
            };
            let inputs = link.iter().map(read).collect::<PyResult<Vec<_>>>()?;
            let cache = cache.then(Cache::of_user).flatten();
            let own = Session::with_toolchain(session.toolchain().clone()).cached(cache);
            session = Arc::new(own.linking(inputs));
        }
        let sources = input.load()?;
        let shown = sources.clone();
        let program =
            compiler::check_for(sources, &wanted).map_err(|error| compile_error(error, &shown))?;
        let core = Core::of_source(program, session, Options { cuda, cpu });
        Ok(Program { core: Arc::new(core) })
    })
}

/// The values of `dialect`.
const DIALECTS: &[(&str, DialectChoice)] = &[
    ("auto", DialectChoice::Auto),
    ("legacy", DialectChoice::Fixed(Dialect::Legacy)),
    ("modern", DialectChoice::Fixed(Dialect::Modern)),
];

/// The values of `backend`.
const BACKENDS: &[(&str, Backend)] =
    &[("auto", Backend::LibNvvm), ("libnvvm", Backend::LibNvvm), ("nvptx", Backend::Nvptx)];

/// The value of an option that has a name.
fn choose<T: Copy>(option: &str, name: &str, values: &[(&str, T)]) -> PyResult<T> {
    let found = values.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let known: Vec<_> = values.iter().map(|(known, _)| format!("`{known}`")).collect();
        let text = format!("{option}: there is no `{name}`; there are {}", known.join(", "));
        PyValueError::new_err(text)
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
