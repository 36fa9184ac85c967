//! Every output of the compiler, by name: the command line and the C API choose among them.

use std::str::FromStr;

use gridlet_artifact::Artifact;
use gridlet_lang::ir;
use gridlet_lang::launch::{LaunchChoice, LaunchStrategy};
use gridlet_lang::layout;
use inkwell::module::Module;
use serde::Serialize;

use crate::artifact;
use crate::compile::{self, BuildOptions, Checked, CpuOptions, Session};
use crate::error::{Error, Result};
use crate::host;
use crate::modules::{self, Library, Own};
use crate::nvvm;
use crate::target::{self, Target};

/// The kind of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Kind {
    /// The IR with lowered launches, as text.
    Ir,
    /// The parameter buffers, as JSON.
    Layout,
    /// NVVM IR, as text; for the CPU, LLVM IR.
    Nvvm,
    /// NVVM IR, as LLVM bitcode of the modern dialect.
    Bitcode,
    /// PTX as the back end writes it. What is assembled can have more: see [`Built::ptx`](compile::Built::ptx).
    Ptx,
    /// Machine code for a GPU, device-linked.
    Cubin,
    /// An object file, before linking. For GPUs it is relocatable device code.
    Object,
    /// Machine code for the CPU, linked.
    SharedObject,
    /// The manifest, as JSON.
    Manifest,
    /// Manifest and images in one file.
    Bundle,
    /// The bundle as an object file for programs on this machine.
    HostObject,
    /// The header of [`Kind::HostObject`], for C and C++.
    Header,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Kind; 12] = [
        Kind::Ir,
        Kind::Layout,
        Kind::Nvvm,
        Kind::Bitcode,
        Kind::Ptx,
        Kind::Cubin,
        Kind::Object,
        Kind::SharedObject,
        Kind::Manifest,
        Kind::Bundle,
        Kind::HostObject,
        Kind::Header,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Ir => "ir",
            Kind::Layout => "layout",
            Kind::Nvvm => "nvvm",
            Kind::Bitcode => "bitcode",
            Kind::Ptx => "ptx",
            Kind::Cubin => "cubin",
            Kind::Object => "object",
            Kind::SharedObject => "shared-object",
            Kind::Manifest => "manifest",
            Kind::Bundle => "bundle",
            Kind::HostObject => "host-object",
            Kind::Header => "header",
        }
    }

    /// Whether each target has its own output. The others are of all targets together.
    pub fn per_target(self) -> bool {
        !matches!(
            self,
            Kind::Layout | Kind::Manifest | Kind::Bundle | Kind::HostObject | Kind::Header
        )
    }

    /// Whether a target has it.
    fn is_of(self, target: Target) -> bool {
        match target {
            Target::Cuda(_) => self != Kind::SharedObject,
            Target::Cpu => !matches!(self, Kind::Bitcode | Kind::Ptx | Kind::Cubin),
        }
    }

    /// Whether it is text.
    pub fn is_text(self) -> bool {
        matches!(
            self,
            Kind::Ir | Kind::Layout | Kind::Nvvm | Kind::Ptx | Kind::Manifest | Kind::Header
        )
    }

    /// Whether a module of NVVM IR must have kernels for it.
    pub fn needs_kernels(self) -> bool {
        !matches!(self, Kind::Nvvm | Kind::Bitcode | Kind::Ptx | Kind::Cubin | Kind::Object)
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(name: &str) -> std::result::Result<Self, String> {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        kind.ok_or_else(|| format!("there is no output `{name}`"))
    }
}

/// The input of an output.
#[derive(Clone, Copy)]
#[non_exhaustive]
pub enum Input<'a, 'ctx> {
    /// A program of the language, or of a front end that builds its IR.
    Program(&'a Checked),
    /// A module of another compiler with kernels.
    Own(&'a Own<'ctx>),
    /// A module of another compiler, which may be a library without kernels. It has the outputs of which
    /// [`Kind::needs_kernels`] is false, for GPUs.
    Library(&'a Library<'ctx>),
}

/// Makes an output of `input` for `targets`, of which the same one may be named again. If [`Kind::per_target`] holds, there must be
/// one target.
///
/// # Errors
/// [`Error::Invalid`] if the target or the input lacks this kind, with fast mathematics for the CPU, and with statistics or resident launches
/// for a module of another compiler; [`Error::Module`] if the module of another compiler is
/// wrong; otherwise as the functions of [`compile`], [`Session`] and [`artifact`].
pub fn emit(
    session: &Session,
    input: Input<'_, '_>,
    kind: Kind,
    targets: &[Target],
    cuda: &BuildOptions,
    cpu: &CpuOptions,
) -> Result<Vec<u8>> {
    if cuda.fast_math && targets.contains(&Target::Cpu) {
        let message = "the CPU device computes exactly, so its results would differ from those of fast mathematics on GPUs";
        return Err(Error::Invalid(message.into()));
    }
    let targets = &target::distinct(targets)[..];
    let target = match targets {
        [target] => *target,
        [first, ..] if !kind.per_target() => *first,
        _ => {
            let count = targets.len();
            let message = format!("`{}` is made for one target, not {count}", kind.name());
            return Err(Error::Invalid(message));
        }
    };
    if !kind.is_of(target) {
        return Err(lacks(kind, target));
    }
    if !matches!(input, Input::Program(_)) {
        refuse_for_modules(cuda)?;
    }
    match (kind, input) {
        (Kind::Layout, Input::Program(program)) => layout_json(program),
        (Kind::Layout, Input::Own(own)) => layout_json(own.program()),
        (Kind::Header, Input::Program(program)) => {
            let manifest = artifact::describe(program, cuda.launch);
            Ok(host::c_header(&program.name(), &manifest)?.into_bytes())
        }
        (Kind::Header, Input::Own(own)) => {
            let name = own.program().name();
            Ok(host::c_header(&name, &artifact::describe_own(own))?.into_bytes())
        }
        (Kind::Manifest | Kind::Bundle | Kind::HostObject, Input::Program(program)) => {
            let built = artifact::build_for(session, program, targets, cuda, cpu)?;
            packed(kind, &program.name(), built)
        }
        (Kind::Manifest | Kind::Bundle | Kind::HostObject, Input::Own(own)) => {
            let built = artifact::build_own(session, own, targets, cuda, cpu);
            packed(kind, &own.program().name(), built.map_err(Error::in_nvvm_ir)?)
        }
        (_, Input::Program(program)) => match target {
            Target::Cuda(arch) => for_gpu(session, program, kind, &BuildOptions { arch, ..*cuda }),
            Target::Cpu => for_cpu(session, program, kind, cpu),
        },
        (_, Input::Own(own)) => match target {
            Target::Cuda(arch) => own_for_gpu(session, own, kind, &BuildOptions { arch, ..*cuda }),
            Target::Cpu => own
                .cpu_program()
                .and_then(|program| for_cpu(session, program, kind, cpu))
                .map_err(Error::in_nvvm_ir),
        },
        (_, Input::Library(library)) => match target {
            Target::Cuda(arch) if !kind.needs_kernels() => {
                let is_checked = !matches!(kind, Kind::Nvvm | Kind::Bitcode);
                let options = BuildOptions { arch, ..*cuda };
                let checked = match is_checked {
                    true => library.check_for(arch, options.uses_libnvvm()),
                    false => Ok(()),
                };
                let made = checked.and_then(|()| {
                    let module = library.module();
                    let name = module.get_name().to_string_lossy();
                    module_for_gpu(session, module, kind, &options)
                        .map_err(|error| modules::at(&name, library.explain(error)))
                });
                made.map_err(Error::in_nvvm_ir)
            }
            _ => Err(lacks(kind, target)),
        },
    }
}

/// Makes an output for each target, for a kind of which [`Kind::per_target`] holds. Those of a program are made several at
/// a time; modules of other compilers belong to one thread.
///
/// # Errors
/// As [`emit`], for the first target that fails.
pub fn emit_each(
    session: &Session,
    input: Input<'_, '_>,
    kind: Kind,
    targets: &[Target],
    cuda: &BuildOptions,
    cpu: &CpuOptions,
) -> Result<Vec<Vec<u8>>> {
    let one = std::slice::from_ref;
    match input {
        Input::Program(program) => target::for_each(targets, |target| {
            emit(session, Input::Program(program), kind, one(target), cuda, cpu)
        }),
        _ => {
            let make = |target| emit(session, input, kind, one(target), cuda, cpu);
            targets.iter().map(make).collect()
        }
    }
}

/// Refuses options that change a program before it is compiled.
fn refuse_for_modules(options: &BuildOptions) -> Result<()> {
    let why = match options.launch {
        _ if options.statistics => "there are no statistics of its launches",
        LaunchChoice::Fixed(LaunchStrategy::Resident) => {
            "its launches go through CUDA's device runtime, and cannot be resident"
        }
        LaunchChoice::Auto | LaunchChoice::Fixed(LaunchStrategy::Cdp) => return Ok(()),
    };
    Err(Error::Invalid(format!("NVVM IR is compiled as it is: {why}")))
}

/// The error for a target without this kind.
fn lacks(kind: Kind, target: Target) -> Error {
    let has = |one: &Kind| one.per_target() && one.is_of(target);
    let names: Vec<&str> = Kind::ALL.into_iter().filter(has).map(Kind::name).collect();
    let (last, others) = names.split_last().map_or(("", &[][..]), |(last, others)| (*last, others));
    let kinds = format!("{} and {last}", others.join(", "));
    Error::Invalid(format!("the target {target} gives {kinds}, not `{}`", kind.name()))
}

fn for_gpu(
    session: &Session,
    program: &Checked,
    kind: Kind,
    options: &BuildOptions,
) -> Result<Vec<u8>> {
    Ok(match kind {
        Kind::Ir => ir::print::print(&compile::lower(program, options)?).into_bytes(),
        Kind::Nvvm => compile::nvvm(program, options)?.bytes,
        Kind::Bitcode => compile::bitcode(program, options)?,
        Kind::Ptx => session.ptx(program, options)?.0.0.into_bytes(),
        Kind::Cubin => session.cubin(program, options)?.cubin.0,
        Kind::Object => session.object(program, options)?.0,
        _ => return Err(lacks(kind, options.arch.into())),
    })
}

fn for_cpu(
    session: &Session,
    program: &Checked,
    kind: Kind,
    options: &CpuOptions,
) -> Result<Vec<u8>> {
    Ok(match kind {
        Kind::Ir => ir::print::print(&compile::lower_for_cpu(program, options)?).into_bytes(),
        Kind::Nvvm => compile::cpu_llvm(program, options)?.into_bytes(),
        Kind::Object => compile::cpu_object(program, options)?,
        Kind::SharedObject => session.cpu_image(program, options)?.0,
        _ => return Err(lacks(kind, Target::Cpu)),
    })
}

fn own_for_gpu(
    session: &Session,
    own: &Own<'_>,
    kind: Kind,
    options: &BuildOptions,
) -> Result<Vec<u8>> {
    if kind == Kind::Ir {
        return Err(Error::Invalid(
            "NVVM IR has no `ir` for GPUs, because it is compiled as it is; the target cpu shows what the CPU device runs"
                .into(),
        ));
    }
    let module = own.module();
    let check = || own.check_for(options.arch, options.uses_libnvvm());
    let made = match kind {
        Kind::Ptx => check().and_then(|()| ptx(session, module, options)),
        Kind::Cubin => session.own_cubin(own, options).map(|cubin| cubin.0),
        Kind::Nvvm | Kind::Bitcode => module_for_gpu(session, module, kind, options),
        Kind::Object => check().and_then(|()| module_for_gpu(session, module, kind, options)),
        _ => return Err(lacks(kind, options.arch.into())),
    };
    made.map_err(|error| Error::in_nvvm_ir(own.explain(error)))
}

/// An output of a module that was checked.
fn module_for_gpu(
    session: &Session,
    module: &Module<'_>,
    kind: Kind,
    options: &BuildOptions,
) -> Result<Vec<u8>> {
    let compiled = || session.ptx_of(module, options);
    Ok(match kind {
        Kind::Nvvm => compile::nvvm_text(module, options.dialect())?.bytes,
        Kind::Bitcode => nvvm::modern_bitcode(module)?.bytes,
        Kind::Ptx => compiled()?.0.0.into_bytes(),
        Kind::Object => session.assemble_object(&compiled()?.0, options)?.0,
        _ => session.device_link(&compiled()?.0, false, options)?.0.0,
    })
}

fn ptx(session: &Session, module: &Module<'_>, options: &BuildOptions) -> Result<Vec<u8>> {
    Ok(session.ptx_of(module, options)?.0.0.into_bytes())
}

fn layout_json(program: &Checked) -> Result<Vec<u8>> {
    let structs = &program.module.structs;
    let buffers: Vec<_> =
        program.parameter_buffers().map(|buffer| buffer.described(structs)).collect();
    json(&layout::to_json(&buffers))
}

fn packed(kind: Kind, name: &str, artifact: Artifact) -> Result<Vec<u8>> {
    if kind == Kind::Manifest {
        return json(artifact.manifest());
    }
    let bundle = artifact.to_bytes().map_err(|error| Error::internal("emit", error.to_string()))?;
    if kind == Kind::HostObject { host::object(name, &bundle) } else { Ok(bundle) }
}

fn json(value: &impl Serialize) -> Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)
        .map_err(|error| Error::internal("emit", error.to_string()))?;
    bytes.push(b'\n');
    Ok(bytes)
}
