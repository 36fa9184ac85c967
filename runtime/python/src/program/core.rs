//! A program and what was built from it.

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::compile::{self, BuildOptions, Checked, CpuOptions, Session};
use gridlet::diagnostics;
use gridlet::source::SourceMap;
use gridlet::target::Target;
use gridlet_runtime::manifest::{Manifest, Type};
use gridlet_runtime::{Artifact, Program as RtProgram};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::dtype::DType;
use crate::errors::{compile_error, diagnostics_to_python, raise, run_error};
use crate::handles::Opened;

/// Where the images come from.
enum Origin {
    /// A checked program.
    Source {
        program: Box<Checked>,
        session: Arc<Session>,
        options: Options,
        /// Images that were built.
        built: Mutex<Vec<(Image, Artifact)>>,
    },
    /// A bundle.
    Bundle(Artifact),
}

/// The options of a program's images.
#[derive(Clone, Copy)]
pub(super) struct Options {
    /// For GPUs, whatever the architecture.
    pub(super) cuda: BuildOptions,
    /// For the CPU device.
    pub(super) cpu: CpuOptions,
}

/// What an image was built for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Image {
    Gpu(CudaArch),
    Cpu { check: bool },
}

/// A program loaded on a device, by the device's number.
type Loaded = (u64, Weak<Opened>, RtProgram);

/// A program.
pub(super) struct Core {
    origin: Origin,
    pub(super) manifest: Manifest,
    /// The element type behind each pointer parameter of each kernel, and the type of every other.
    wanted: Vec<Vec<Option<DType>>>,
    loaded: Mutex<Vec<Loaded>>,
}

impl Core {
    fn new(origin: Origin, manifest: Manifest) -> Core {
        let wanted = manifest.kernels.iter().map(|kernel| {
            let types = kernel.parameters.iter().map(|parameter| match &parameter.ty {
                Type::Pointer { to, .. } => DType::of_program(to, &manifest),
                other => DType::of_program(other, &manifest),
            });
            types.collect()
        });
        Core { wanted: wanted.collect(), origin, manifest, loaded: Mutex::default() }
    }

    pub(super) fn of_source(program: Checked, session: Arc<Session>, options: Options) -> Core {
        let manifest = artifact::describe(&program, options.cuda.launch);
        let program = Box::new(program);
        Core::new(Origin::Source { program, session, options, built: Mutex::default() }, manifest)
    }

    pub(super) fn of_bundle(path: &Path) -> PyResult<Core> {
        let artifact =
            Artifact::open(path).map_err(|error| run_error(gridlet_runtime::Error::from(error)))?;
        let manifest = artifact.manifest().clone();
        Ok(Core::new(Origin::Bundle(artifact), manifest))
    }

    /// The type that each parameter of a kernel takes.
    pub(super) fn wanted(&self, kernel: usize) -> &[Option<DType>] {
        &self.wanted[kernel]
    }

    /// The sources, for messages.
    pub(super) fn sources(&self) -> Option<&Arc<SourceMap>> {
        match &self.origin {
            Origin::Source { program, .. } => Some(&program.sources),
            Origin::Bundle(_) => None,
        }
    }

    fn source(&self) -> PyResult<(&Checked, &Session, &Options)> {
        match &self.origin {
            Origin::Source { program, session, options, .. } => Ok((program, session, options)),
            Origin::Bundle(_) => {
                Err(raise("Error", "the program was loaded from a bundle, which has no source"))
            }
        }
    }

    /// The program on a device; builds and loads it there the first time. Call it without the interpreter's lock.
    pub(super) fn loaded(&self, opened: &Arc<Opened>) -> PyResult<RtProgram> {
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, _, program)) = loaded.iter().find(|(number, ..)| *number == opened.number) {
            return Ok(program.clone());
        }
        // Keeping the program of a device that nobody uses any more would keep the device open.
        loaded.retain(|(_, device, _)| device.strong_count() > 0);
        let artifact = match &self.origin {
            Origin::Bundle(artifact) => artifact.clone(),
            Origin::Source { .. } => self.image(self.target(opened)?)?,
        };
        let program = RtProgram::load(&opened.device, &artifact).map_err(run_error)?;
        loaded.push((opened.number, Arc::downgrade(opened), program.clone()));
        Ok(program)
    }

    fn target(&self, opened: &Opened) -> PyResult<Image> {
        if opened.is_cpu() {
            return Ok(Image::Cpu { check: opened.check });
        }
        let capability = opened.device.info().compute_capability;
        CudaArch::for_device(capability.major, capability.minor).map(Image::Gpu).ok_or_else(|| {
            let text = format!("Gridlet cannot build for GPUs of compute capability {capability}");
            raise("MissingError", text)
        })
    }

    fn image(&self, image: Image) -> PyResult<Artifact> {
        let (program, session, options) = self.source()?;
        let Origin::Source { built, .. } = &self.origin else {
            return Err(raise("Error", "a bundle has its images already"));
        };
        let mut built = built.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, artifact)) = built.iter().find(|(known, _)| *known == image) {
            return Ok(artifact.clone());
        }
        let (target, check) = match image {
            Image::Gpu(arch) => (Target::Cuda(arch), false),
            Image::Cpu { check } => (Target::Cpu, check),
        };
        let cpu = options.cpu.with_check(check);
        let artifact = artifact::build_for(session, program, &[target], &options.cuda, &cpu)
            .map_err(|error| compile_error(error, &program.sources))?;
        built.push((image, artifact.clone()));
        Ok(artifact)
    }

    fn options(&self, arch: &str) -> PyResult<(&Checked, &Session, BuildOptions)> {
        let (program, session, options) = self.source()?;
        let arch = arch.parse().map_err(PyValueError::new_err)?;
        Ok((program, session, options.cuda.with_arch(arch)))
    }

    pub(super) fn nvvm(&self, arch: &str) -> PyResult<String> {
        let (program, _, options) = self.options(arch)?;
        let module = compile::nvvm(program, &options);
        let module = module.map_err(|error| compile_error(error, &program.sources))?;
        Ok(String::from_utf8_lossy(&module.bytes).into_owned())
    }

    pub(super) fn ptx(&self, arch: &str) -> PyResult<String> {
        let (program, session, options) = self.options(arch)?;
        let made = session.ptx(program, &options);
        Ok(made.map_err(|error| compile_error(error, &program.sources))?.0.0)
    }

    pub(super) fn cubin(&self, arch: &str) -> PyResult<Vec<u8>> {
        let (program, session, options) = self.options(arch)?;
        let made = session.cubin(program, &options);
        Ok(made.map_err(|error| compile_error(error, &program.sources))?.cubin.0)
    }

    pub(super) fn bundle(
        &self,
        targets: &[String],
        check: bool,
        native: bool,
    ) -> PyResult<Vec<u8>> {
        let (program, session, options) = self.source()?;
        let mut all = Vec::new();
        for target in targets {
            all.push(match target.as_str() {
                "cpu" => Target::Cpu,
                arch => Target::Cuda(arch.parse().map_err(PyValueError::new_err)?),
            });
        }
        if all.is_empty() {
            return Err(PyValueError::new_err("targets: give at least one, such as \"sm_90\""));
        }
        let cpu = options.cpu.with_check(check).with_native(native);
        artifact::build_for(session, program, &all, &options.cuda, &cpu)
            .map_err(|error| compile_error(error, &program.sources))?
            .to_bytes()
            .map_err(|error| run_error(gridlet_runtime::Error::from(error)))
    }

    pub(super) fn warnings<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.origin {
            Origin::Source { program, .. } => {
                diagnostics_to_python(py, &program.warnings, &program.sources)
            }
            Origin::Bundle(_) => diagnostics_to_python(py, &[], &SourceMap::default()),
        }
    }

    pub(super) fn rendered_warnings(&self) -> String {
        match &self.origin {
            Origin::Source { program, .. } => {
                let text = diagnostics::render(&program.warnings, &program.sources, false);
                text.trim_end().to_owned()
            }
            Origin::Bundle(_) => String::new(),
        }
    }

    pub(super) fn layout(&self) -> Value {
        let kernels = self.manifest.kernels.iter().map(|kernel| {
            let parameters = kernel.parameters.iter().map(|parameter| {
                json!({
                    "name": parameter.name,
                    "type": parameter.ty.to_string(),
                    "offset": parameter.offset,
                    "size": parameter.size,
                    "alignment": parameter.alignment,
                })
            });
            json!({
                "kernel": kernel.name,
                "size": kernel.parameter_bytes,
                "parameters": parameters.collect::<Vec<_>>(),
            })
        });
        json!({"limit": gridlet::layout::MAX_PARAMETER_BYTES, "kernels": kernels.collect::<Vec<_>>()})
    }
}
