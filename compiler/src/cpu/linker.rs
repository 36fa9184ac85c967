//! Links images. Modules that the C compiler must compile or link take the system's linker through the C compiler; all
//! others need neither.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::path::Path;
use std::process::{Command, Stdio};

use super::{SharedObject, in_process};
use crate::error::{Error, Result};
use crate::inputs::LinkInput;
use crate::temporary;

/// The C compilers to try, in this order, unless `CC` names one.
const COMPILERS: [&str; 3] = ["cc", "gcc", "clang"];

/// Linker options. No start files: an image has nothing to initialise, and a C input's `_init` and
/// `_fini` are functions like any other. Every undefined symbol must be resolved, so that a missing
/// one is an error here instead of when the image is loaded. No build id, so that the output is
/// reproducible.
const ARGUMENTS: [&str; 7] = [
    "-shared",
    "-nostartfiles",
    "-Wl,-init=no.init",
    "-Wl,-fini=no.fini",
    "-Wl,-z,defs",
    "-Wl,--gc-sections",
    "-Wl,--build-id=none",
];

/// Options for C inputs. `-Bsymbolic` binds the image's symbols to its own definitions, whatever
/// else the process defines under the same name.
const INPUT_ARGUMENTS: [&str; 3] = ["-O2", "-fPIC", "-Wl,-Bsymbolic"];

/// Links an object file to a shared object, together with the inputs that the C compiler accepts. Without such inputs,
/// the link needs no other program, if the C library is glibc.
///
/// # Errors
/// [`Error::Tool`] with the linker's or the C compiler's log if compiling or linking fails; [`Error::Missing`] if there is
/// no C compiler where one is needed.
pub fn link(object: &[u8], inputs: &[LinkInput]) -> Result<SharedObject> {
    let inputs = inputs.iter().filter(|given| given.is_for_host_link());
    // A linker refuses objects without code for this machine.
    let inputs: Vec<_> = inputs.filter(|given| !given.has_nothing_for(false)).collect();
    match in_process::Libraries::of_this_process().filter(|_| inputs.is_empty()) {
        Some(libraries) => in_process::link(object, &libraries),
        None => through_c_compiler(object, &inputs),
    }
}

fn through_c_compiler(object: &[u8], inputs: &[&LinkInput]) -> Result<SharedObject> {
    let folder = tempfile::tempdir().map_err(|source| Error::Missing {
        what: format!(
            "cannot create a temporary folder in {}: {}",
            std::env::temp_dir().display(),
            source.kind()
        ),
        help: "Set TMPDIR to a writable folder.".into(),
    })?;
    let _listed = temporary::list(folder.path());
    let (input, output) = (folder.path().join("image.o"), folder.path().join("image.so"));
    std::fs::write(&input, object).map_err(|source| Error::Io { path: input.clone(), source })?;
    let mut arguments = vec![];
    // Their paths here, and as the user knows them.
    let mut known = vec![];
    for (at, given) in inputs.iter().enumerate() {
        // Numbered, because two inputs may have the same name.
        let path = folder.path().join(format!("{at}-{}", given.name));
        std::fs::write(&path, &given.bytes)
            .map_err(|source| Error::Io { path: path.clone(), source })?;
        if let Some(folder) = &given.folder {
            let here = Path::new(".");
            let folder = if folder.as_os_str().is_empty() { here } else { folder };
            arguments.extend(["-iquote".into(), folder.as_os_str().to_owned()]);
        }
        let shown = given
            .folder
            .as_ref()
            .map_or_else(|| (&given.name).into(), |folder| folder.join(&given.name));
        known.push((path.display().to_string(), shown.display().to_string()));
        arguments.push(path.into_os_string());
    }
    if !arguments.is_empty() {
        arguments.extend(INPUT_ARGUMENTS.map(OsString::from));
    }
    let chosen = std::env::var_os("CC").filter(|value| !value.is_empty());
    let compilers = match &chosen {
        Some(chosen) => vec![chosen.clone()],
        None => COMPILERS.map(OsString::from).to_vec(),
    };
    for compiler in &compilers {
        let ran = run(compiler, &input, &output, &arguments);
        if ran.map_err(|error| of_inputs(error, &known))? {
            let bytes = std::fs::read(&output)
                .map_err(|source| Error::Io { path: output.clone(), source })?;
            return Ok(SharedObject(bytes));
        }
    }
    if let ([compiler], Some(_)) = (compilers.as_slice(), &chosen) {
        let (program, _) = words(compiler);
        return Err(Error::Missing {
            what: format!(
                "There is no program `{}`, which `CC` names to link an image for the CPU with: `CC={}`.",
                program.to_string_lossy(),
                compiler.to_string_lossy()
            ),
            help: "Install it, or name another C compiler in `CC`.".into(),
        });
    }
    let names: Vec<_> = compilers.iter().map(|name| name.to_string_lossy()).collect();
    Err(Error::Missing {
        what: format!(
            "No C compiler to link an image for the CPU with: tried {}.",
            names.join(", ")
        ),
        help:
            "Install one (`apt-get install gcc libc6-dev`, `dnf install gcc`), or name one in `CC`."
                .into(),
    })
}

/// A failure of the linker, attributed to the inputs if its messages tell of them.
fn of_inputs(error: Error, inputs: &[(String, String)]) -> Error {
    const CLASHES: [&str; 2] = ["multiple definition", "duplicate symbol"];
    let Error::Tool { log, .. } = &error else { return error };
    let is_theirs = inputs.iter().any(|(path, _)| log.contains(path))
        || (!inputs.is_empty() && CLASHES.iter().any(|clash| log.contains(clash)));
    if !is_theirs {
        return error;
    }
    let log = inputs.iter().fold(log.clone(), |log, (path, shown)| log.replace(path, shown));
    Error::Input { log }
}

/// The program and its first arguments: `CC` may hold arguments after the name, as for make. An existing
/// file whose name contains a space is a name without arguments.
fn words(compiler: &OsString) -> (OsString, Vec<OsString>) {
    if Path::new(compiler).is_file() {
        return (compiler.clone(), vec![]);
    }
    let text = compiler.to_string_lossy();
    let mut words = text.split_whitespace().map(OsString::from);
    (words.next().unwrap_or_default(), words.collect())
}

/// Runs a compiler; returns false if it does not exist.
fn run(compiler: &OsString, input: &Path, output: &Path, more: &[OsString]) -> Result<bool> {
    let text = compiler.to_string_lossy();
    let (program, first) = words(compiler);
    let mut command = Command::new(program);
    command.args(first);
    command
        .args(ARGUMENTS)
        .arg("-o")
        .arg(output)
        .arg(input)
        .args(more)
        .arg("-lm")
        .stdin(Stdio::null());
    // English messages, for bug reports.
    command.env("LC_ALL", "C");
    let result = match command.output() {
        Ok(result) => result,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(false),
        Err(source) => return Err(Error::Io { path: compiler.into(), source }),
    };
    if result.status.success() {
        return Ok(true);
    }
    let log = [result.stdout, result.stderr].concat();
    Err(Error::Tool {
        tool: "C compiler",
        operation: format!("linking an image with `{text}` ({})", result.status),
        log: String::from_utf8_lossy(&log).trim().to_owned(),
    })
}
