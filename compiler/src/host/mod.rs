//! Build-script helper: compiles a program and generates a Rust module with a method for each
//! kernel, so that rustc checks the arguments of launches.
//!
//! `build.rs`, with `gridlet` among the `[build-dependencies]` and `gridlet-runtime` among the `[dependencies]`:
//!
//! ```no_run
//! fn main() -> Result<(), gridlet::host::BuildError> {
//!     gridlet::host::Build::new("src/saxpy.grid").cpu().ptx(gridlet::arch::CudaArch::DEFAULT).compile()
//! }
//! ```
//!
//! The host program:
//!
//! ```ignore
//! gridlet_runtime::include_program!("saxpy");
//!
//! let program = Program::load(&device)?;
//! program.saxpy(&stream, &LaunchConfig::new(4, 256), 1000, 2.0, &x, &mut y)?;
//! ```
//!
//! The module has a struct `Program` with the bundle, a method for each kernel and each `static`
//! variable, and the structs that they mention. A comment directly above a kernel becomes its
//! method's documentation. `gridlet_runtime::typed` documents the argument types. [`Build::arch`]
//! generates machine code and needs NVIDIA's compiler parts on the build machine; [`Build::ptx`]
//! and [`Build::cpu`] do not, but PTX serves no programs that launch through CUDA's
//! device runtime.

mod c;
mod c_names;
mod docs;
mod names;
mod rust;

use std::fmt;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use gridlet_artifact::Artifact;
use gridlet_artifact::cpu_arch;
use gridlet_artifact::manifest::ImageKind;

use crate::artifact::{self, NewImage};
use crate::compile::{self, Backend, BuildOptions, Checked, CpuOptions, KernelName, Session};
use crate::error::Error;
use crate::target;
use gridlet_lang::arch::CudaArch;
use gridlet_lang::diagnostics;
use gridlet_lang::launch::LaunchChoice;
use gridlet_lang::source::SourceMap;

pub use c::{c_header, object};
pub use docs::kernel_docs;
pub use rust::generate;

/// Compiles a program in a host program's build script.
#[derive(Clone, Debug)]
pub struct Build {
    file: PathBuf,
    archs: Vec<CudaArch>,
    ptx: Option<CudaArch>,
    cpu: bool,
    launch: LaunchChoice,
    kernels: Vec<String>,
    name: Option<String>,
    out: Option<PathBuf>,
}

/// Why [`Build::compile`] failed: the messages in human-readable form. `Debug` prints the same,
/// because cargo shows that for a build script that returns the error.
pub struct BuildError(String);

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "\n{}", self.0)
    }
}

impl std::error::Error for BuildError {}

impl Build {
    /// Builds the given `.grid` file and the files that it uses. The path is relative to the
    /// package, as in all build scripts.
    pub fn new(file: impl Into<PathBuf>) -> Build {
        Build {
            file: file.into(),
            archs: vec![],
            ptx: None,
            cpu: false,
            launch: LaunchChoice::default(),
            kernels: vec![],
            name: None,
            out: None,
        }
    }

    /// Adds machine code for an architecture; may be called several times. Needs NVIDIA's compiler
    /// parts.
    pub fn arch(mut self, arch: CudaArch) -> Build {
        self.archs.push(arch);
        self
    }

    /// Adds PTX for GPUs of that architecture or later, by LLVM's own back end; the driver compiles
    /// it when it loads the program. Not for programs that launch through the device runtime.
    pub fn ptx(mut self, arch: CudaArch) -> Build {
        self.ptx = Some(arch);
        self
    }

    /// Adds an image for the CPU device, for every processor of this machine's architecture. Needs
    /// a C compiler.
    pub fn cpu(mut self) -> Build {
        self.cpu = true;
        self
    }

    /// Sets how kernels launch kernels on GPUs; without it, the program decides as with `gridlet build --launch auto`. The
    /// host program is the same in any case.
    pub fn launch(mut self, launch: impl Into<LaunchChoice>) -> Build {
        self.launch = launch.into();
        self
    }

    /// Adds an instance of a kernel with const parameters, as `tile::<8>`, to those that the
    /// program launches.
    pub fn kernel(mut self, name: impl Into<String>) -> Build {
        self.kernels.push(name.into());
        self
    }

    /// Sets the name for `gridlet_runtime::include_program`, which defaults to the file name
    /// without its extension: for two programs with the same file name.
    pub fn name(mut self, name: impl Into<String>) -> Build {
        self.name = Some(name.into());
        self
    }

    /// Sets the output folder, which defaults to cargo's `OUT_DIR`.
    pub fn out_dir(mut self, folder: impl Into<PathBuf>) -> Build {
        self.out = Some(folder.into());
        self
    }

    /// Compiles the program, writes the bundle and the module that
    /// `gridlet_runtime::include_program` includes, both named after the program's file or by
    /// [`Build::name`], and tells cargo which files they depend on. Warnings of the program become
    /// cargo's warnings.
    ///
    /// # Errors
    /// Any error of the program or the tools, or of writing the files.
    pub fn compile(&self) -> Result<(), BuildError> {
        let out = match (&self.out, std::env::var_os("OUT_DIR")) {
            (Some(folder), _) => folder.clone(),
            (None, Some(folder)) => folder.into(),
            (None, None) => {
                let text = "OUT_DIR is not set: call this from a build script, or set a folder with `out_dir`";
                return Err(BuildError(text.into()));
            }
        };
        let mut sources = compile::load(&self.file).map_err(|error| plain(&error))?;
        let folder = self.file.parent().unwrap_or(Path::new(""));
        sources.set_folder(folder);
        for file in sources.files() {
            print_directive(&format!("rerun-if-changed={}", sources.shown_name(file)))?;
        }
        let wanted = self.kernels.iter().map(|name| name.parse::<KernelName>());
        let wanted = wanted.collect::<Result<Vec<_>, String>>().map_err(BuildError)?;
        let shown = sources.clone();
        let program = compile::check_for(sources, &wanted).map_err(|error| show(&error, &shown))?;
        for warning in &program.warnings {
            let text = diagnostics::render(std::slice::from_ref(warning), &shown, false);
            for line in text.lines().filter(|line| !line.trim().is_empty()) {
                print_directive(&format!("warning={line}"))?;
            }
        }
        let bundle = self.images(&program).map_err(|error| show(&error, &shown))?;
        let (stem, manifest) =
            (self.name.clone().unwrap_or_else(|| program.name()), bundle.manifest());
        let file = format!("{stem}.gridlet");
        let bytes = format!("include_bytes!({file:?})");
        let module = generate(manifest, &kernel_docs(&program), &bytes);
        let failed = |path: &Path, error: &dyn fmt::Display| {
            BuildError(format!("{}: {error}", path.display()))
        };
        let path = out.join(file);
        bundle.write(&path).map_err(|error| failed(&path, &error))?;
        let path = out.join(format!("{stem}.rs"));
        fs::write(&path, module).map_err(|error| failed(&path, &error))
    }

    fn images(&self, program: &Checked) -> crate::Result<Artifact> {
        if self.archs.is_empty() && self.ptx.is_none() && !self.cpu {
            return Err(Error::Invalid("no build target: call `arch`, `ptx` or `cpu`".into()));
        }
        let (session, stem) = (Session::new(), program.name());
        let options = BuildOptions { launch: self.launch, ..BuildOptions::default() };
        let image = |kind, arch: String, ending, bytes| {
            let file = format!("{stem}.{arch}.{ending}");
            NewImage { kind, arch, file, bytes }
        };
        let mut images = vec![];
        let cubins = target::for_each(&self.archs, |&arch| {
            session.cubin(program, &BuildOptions { arch, ..options })
        })?;
        for (arch, built) in self.archs.iter().zip(cubins) {
            images.push(image(ImageKind::Cubin, arch.sm(), "cubin", built.cubin.0));
        }
        if let Some(arch) = self.ptx {
            if program.needs_device_runtime(options.strategy(program)) {
                return Err(Error::Invalid(
                    "the program launches kernels or calls the device runtime, which PTX alone does not contain: use `arch`, or the launch strategy `resident`"
                        .into(),
                ));
            }
            let options = BuildOptions { backend: Backend::Nvptx, arch, ..options };
            let (ptx, _) = session.ptx(program, &options)?;
            images.push(image(ImageKind::Ptx, arch.compute(), "ptx", ptx.0.into_bytes()));
        }
        if self.cpu {
            let object = session.cpu_image(program, &CpuOptions::portable())?.0;
            images.push(image(ImageKind::SharedObject, cpu_arch(), "so", object));
        }
        artifact::assemble(&session, program, images, &options)
    }
}

/// Prints a directive for cargo.
fn print_directive(text: &str) -> Result<(), BuildError> {
    writeln!(std::io::stdout(), "cargo:{text}").map_err(|error| plain(&error))
}

fn plain(error: &dyn fmt::Display) -> BuildError {
    BuildError(error.to_string())
}

fn show(error: &Error, sources: &SourceMap) -> BuildError {
    match error {
        Error::Program(messages) => BuildError(diagnostics::render(messages, sources, false)),
        other => plain(other),
    }
}

#[cfg(test)]
mod tests;
