//! `gridlet check`

use std::path::{Path, PathBuf};

use gridlet::arch::CudaArch;
use gridlet::compile::{BuildOptions, CpuOptions, Session};
use gridlet::diagnostics::{Diagnostic, Severity, ids};
use gridlet::emit::{self, Input, Kind};
use gridlet::inkwell::context::Context;
use gridlet::modules::Own;
use gridlet::source::SourceMap;
use gridlet::target::Target;

use crate::build::refuse;
use crate::input::FileKind;
use crate::report::{Failure, Outcome, Reporter};
use crate::{input, status};

/// Options of `gridlet check`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// The programs: .grid files, or NVVM IR as .ll or .bc
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,
    /// Architectures for which NVVM IR is checked, as for `gridlet build`: sm_75 to sm_120, or cpu [default: sm_90]
    #[arg(long, value_name = "ARCH", value_delimiter = ',')]
    arch: Vec<Target>,
    /// Treat a warning as an error: an id, or `warnings` for all
    #[arg(short = 'D', long, value_name = "ID", value_parser = which)]
    deny: Vec<Which>,
    /// Hide a warning: an id, or `warnings` for all. Takes precedence over --deny
    #[arg(short = 'A', long, value_name = "ID", value_parser = which)]
    allow: Vec<Which>,
}

/// The warnings that an option selects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Which {
    All,
    One(&'static str),
}

fn which(text: &str) -> Result<Which, String> {
    if text == "warnings" {
        return Ok(Which::All);
    }
    if let Some(id) = ids::WARNINGS.iter().find(|id| **id == text) {
        return Ok(Which::One(id));
    }
    if ids::lookup(text).is_some() {
        return Err(format!("`{text}` is always an error"));
    }
    let near = ids::nearest(text).map(|near| format!("; did you mean `{near}`?"));
    Err(format!("there is no such warning{}", near.unwrap_or_default()))
}

impl Options {
    /// Drops the allowed warnings and turns the denied ones into errors.
    fn judge(&self, warnings: &[Diagnostic]) -> Vec<Diagnostic> {
        let has = |list: &[Which], id: &str| {
            list.iter().any(|which| {
                matches!(which, Which::All) || matches!(which, Which::One(one) if *one == id)
            })
        };
        let shown = warnings.iter().filter(|warning| !has(&self.allow, warning.id));
        let judged = shown.map(|warning| match has(&self.deny, warning.id) {
            true => Diagnostic { severity: Severity::Error, ..warning.clone() },
            false => warning.clone(),
        });
        judged.collect()
    }
}

/// Checks every file, even after one fails. The worst status wins.
pub(crate) fn run(options: &Options, reporter: &Reporter) -> Outcome {
    let is_module = |file: &PathBuf| FileKind::of(file) == FileKind::Nvvm;
    if !options.arch.is_empty() && !options.files.iter().any(is_module) {
        refuse(&["--arch"], "the language is the same for every architecture")?;
    }
    let mut worst = 0;
    for file in &options.files {
        let outcome = match FileKind::of(file) {
            FileKind::Nvvm => module(file, options, reporter),
            _ => program(file, options, reporter),
        };
        if let Err(failure) = outcome {
            reporter.failure(&failure);
            worst = worst.max(failure.status());
        }
    }
    if worst == 0 { Ok(()) } else { Err(Failure::shown(worst)) }
}

fn program(file: &Path, options: &Options, reporter: &Reporter) -> Outcome {
    let program = input::read(file, &[], reporter)?;
    show(&program.warnings, &program.sources, options, reporter)
}

/// Shows the warnings that are not allowed, and fails if one is denied.
fn show(
    warnings: &[Diagnostic],
    sources: &SourceMap,
    options: &Options,
    reporter: &Reporter,
) -> Outcome {
    let messages = options.judge(warnings);
    reporter.diagnostics(&messages, sources);
    match messages.iter().any(|message| message.severity == Severity::Error) {
        true => Err(Failure::shown(status::PROGRAM)),
        false => Ok(()),
    }
}

/// Whether a module is right for an architecture. Tools that are here compile it, because they refuse more than can be known of every
/// version of them; nothing is linked, so functions may be missing.
fn compiles(session: &Session, own: &Own<'_>, arch: CudaArch) -> gridlet::Result<()> {
    let (cuda, cpu) = (BuildOptions::for_arch(arch), CpuOptions::default());
    for kind in [Kind::Object, Kind::Ptx] {
        match emit::emit(session, Input::Own(own), kind, &[arch.into()], &cuda, &cpu) {
            Err(gridlet::Error::Missing { .. }) => {}
            made => return made.map(drop),
        }
    }
    own.check(arch)
}

/// Whether a module becomes an image for the CPU device.
fn compiles_for_cpu(session: &Session, own: &Own<'_>) -> gridlet::Result<()> {
    let (cuda, cpu) = (BuildOptions::default(), CpuOptions::portable().with_quick(true));
    emit::emit(session, Input::Own(own), Kind::Object, &[Target::Cpu], &cuda, &cpu).map(drop)
}

/// Checks a module of NVVM IR for some targets, by default for one architecture.
fn module(file: &Path, options: &Options, reporter: &Reporter) -> Outcome {
    let context = Context::create();
    let own = input::module(&context, file)?;
    let session = Session::new();
    let default = [Target::Cuda(CudaArch::DEFAULT)];
    let targets = if options.arch.is_empty() { &default[..] } else { &options.arch };
    for target in targets {
        match target {
            Target::Cuda(arch) => compiles(&session, &own, *arch).map_err(input::foreign)?,
            _ => compiles_for_cpu(&session, &own).map_err(input::foreign)?,
        }
    }
    // The CPU device would not run what calls functions that are missing.
    let for_gpu = targets.iter().any(|target| matches!(target, Target::Cuda(_)));
    let warnings = if for_gpu { own.warnings() } else { own.program().warnings.clone() };
    show(&warnings, &own.program().sources, options, reporter)
}
