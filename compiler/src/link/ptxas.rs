//! ptxas: assembling whole programs, which leaves nothing to link, and object files for nvJitLink.
//!
//! nvJitLink assembles, too, but one function after another, and only to relocatable code, whose functions call each other by
//! NVIDIA's ABI and whose variables have no address yet. For a whole program ptxas knows that nothing will be added and generates better
//! code: "CUDA Binary Utilities" and the guide of nvcc call the two modes relocatable device code and whole program compilation.

use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::{Cubin, LinkOptions, LinkOutput};
use crate::ptx::Ptx;
use crate::{Error, Result};
use gridlet_lang::arch::CudaArch;

/// Functions of the GPU's system that ptxas knows ("CUDA C++ Programming Guide", "Formatted Output", "Dynamic Global Memory
/// Allocation" and "Assertion").
const SYSTEM: [&str; 4] = ["vprintf", "malloc", "free", "__assertfail"];

/// Whether a module calls no function of another module.
pub(crate) fn is_whole(ptx: &Ptx) -> bool {
    extern_functions(ptx).all(|name| SYSTEM.contains(&name))
}

/// The functions that a module declares and leaves to other modules.
pub(crate) fn extern_functions(ptx: &Ptx) -> impl Iterator<Item = &str> {
    ptx.0.split(".extern .func").skip(1).map(|rest| {
        // `.extern .func  (.param .b32 r) name` or `.extern .func name`
        let rest = rest.trim_start();
        let name = match rest.strip_prefix('(') {
            Some(result) => result.split_once(')').map_or("", |(_, name)| name).trim_start(),
            None => rest,
        };
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && !"_$".contains(c));
        &name[..end.unwrap_or(name.len())]
    })
}

/// What ptxas makes of PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Output {
    /// A cubin, of PTX that [`is_whole`].
    Cubin,
    /// An object file that is not linked.
    Object,
}

/// Assembles PTX to an object file that is not linked.
///
/// # Errors
/// As [`Process::start`] and [`Process::assemble`].
pub(crate) fn compile(
    ptxas: &Path,
    ptx: &Ptx,
    arch: CudaArch,
    options: &LinkOptions,
) -> Result<LinkOutput> {
    Process::start(ptxas, Output::Object, arch, options)?.assemble(ptx)
}

/// Makes the kernels and variables that Gridlet adds to every program weak: objects of several programs define them, and
/// the linker keeps one.
pub(crate) fn share_added_symbols(ptx: &Ptx) -> Ptx {
    const VISIBLE: &str = ".visible ";
    let line = |line: &str| match line.strip_prefix(VISIBLE) {
        Some(rest) if rest.split(['[', '(', ' ', '\n']).any(|word| word.starts_with(ADDED)) => {
            format!(".weak {rest}")
        }
        _ => line.to_owned(),
    };
    Ptx(ptx.0.split_inclusive('\n').map(line).collect())
}

/// How the names start that Gridlet adds to a program.
const ADDED: &str = "__gridlet_";

/// A running ptxas that waits for its input. It takes some 10 ms until it reads, so whoever compiles the PTX starts it before. One that is
/// dropped ends.
pub(crate) struct Process {
    child: Child,
    ptxas: PathBuf,
    output: Output,
    arch: CudaArch,
    options: LinkOptions,
}

impl Process {
    /// Starts ptxas.
    ///
    /// # Errors
    /// `Invalid` if the options are out of range; `Io` if ptxas cannot be run.
    pub(crate) fn start(
        ptxas: &Path,
        output: Output,
        arch: CudaArch,
        options: &LinkOptions,
    ) -> Result<Process> {
        let mut command = Command::new(ptxas);
        command.args(options.arguments(arch)?);
        if output == Output::Object {
            command.arg("--compile-only");
        }
        // Recursive functions are no mistake: the runtime sizes the stack. Several threads (`--split-compile`) would assemble other code:
        // two kernels of the quadtree take 82 registers with them and 60 without.
        command.arg("--suppress-stack-size-warning");
        // Pipes, because ptxas writes the input's name into the cubin, which must not change from build to build. The output is
        // not called `/dev/stdout`, because root could replace that. ptxas of CUDA 12.8, 13.0 and 13.5 writes in place, and leaves
        // the file when a signal ends it.
        command.args(["/dev/stdin", "-o", "/proc/self/fd/1"]).env("LC_ALL", "C");
        let child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .map_err(|source| Error::Io { path: ptxas.to_path_buf(), source })?;
        Ok(Process { child, ptxas: ptxas.to_path_buf(), output, arch, options: *options })
    }

    /// Whether it was started for this.
    pub(crate) fn is_for(&self, output: Output, arch: CudaArch, options: &LinkOptions) -> bool {
        (self.output, self.arch, &self.options) == (output, arch, options)
    }

    /// Assembles PTX.
    ///
    /// # Errors
    /// `Io` if the process cannot be waited for; `Tool` with its log if it refuses the PTX.
    pub(crate) fn assemble(mut self, ptx: &Ptx) -> Result<LinkOutput> {
        let pipes = (self.child.stdin.take(), self.child.stdout.take(), self.child.stderr.take());
        let (input, cubin, log) = pipes;
        let (cubin, log) = std::thread::scope(|scope| {
            scope.spawn(move || {
                // If ptxas ends before it has read everything, its status and log say why.
                let _ = input.map(|mut input| input.write_all(ptx.0.as_bytes()));
            });
            let log = scope.spawn(|| read(log));
            (read(cubin), log.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
        });
        let io = |source| Error::Io { path: self.ptxas.clone(), source };
        let (cubin, log) = (cubin.map_err(io)?, log.map_err(io)?);
        let status = self.child.wait().map_err(io)?;
        let log = String::from_utf8_lossy(&log).trim().to_owned();
        if !status.success() {
            return Err(Error::Tool {
                tool: "ptxas",
                operation: format!("assembling the PTX ({status})"),
                log: with_lines(&log, &ptx.0),
            });
        }
        Ok(LinkOutput { cubin: Cubin(cubin), log })
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Both do nothing to a process that was waited for.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// All that comes through a pipe.
fn read(pipe: Option<impl Read>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![];
    pipe.map_or(Ok(0), |mut pipe| pipe.read_to_end(&mut bytes))?;
    Ok(bytes)
}

/// What ends the number of a quoted line.
const QUOTE: &str = " | ";

/// The number of the line that a message of ptxas is about.
fn number(message: &str) -> Option<usize> {
    message.split_once(", line ")?.1.split_once(';')?.0.parse().ok()
}

/// A log with the lines of PTX that it names, each behind the last message about it.
fn with_lines(log: &str, ptx: &str) -> String {
    let (messages, code): (Vec<&str>, Vec<&str>) = (log.lines().collect(), ptx.lines().collect());
    let mut text = vec![];
    for (at, message) in messages.iter().enumerate() {
        text.push((*message).to_owned());
        let line = number(message)
            .filter(|line| messages.get(at + 1).and_then(|next| number(next)) != Some(*line));
        let quoted = line.and_then(|line| Some((line, code.get(line.checked_sub(1)?)?)));
        text.extend(quoted.map(|(line, code)| format!("  {line}{QUOTE}{}", code.trim())));
    }
    text.join("\n")
}

/// The lines of PTX in a log by [`with_lines`], each with what is said about it.
#[cfg(feature = "llvm")]
pub(crate) fn quoted_lines(log: &str) -> Vec<(String, Vec<String>)> {
    let (mut found, mut said) = (vec![], vec![]);
    for line in log.lines() {
        let quoted = line.strip_prefix("  ").and_then(|line| line.split_once(QUOTE));
        match quoted {
            Some((at, code)) if at.parse::<usize>().is_ok() => {
                found.push((code.to_owned(), std::mem::take(&mut said)));
            }
            _ if number(line).is_some() => {
                let message = line.split_once(" : ").or_else(|| line.split_once(": "));
                said.extend(message.map(|(_, message)| message.trim().to_owned()));
            }
            _ => {}
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn logs_quote_the_lines_that_they_name() {
        let log = "ptxas /dev/stdin, line 2; error   : Unknown modifier '.x'\n\
            ptxas /dev/stdin, line 2; error   : Unexpected type\nptxas fatal   : aborted";
        let quoted = with_lines(log, ".version 8.0\n\tmov.x %r1, 1;\n");
        assert!(quoted.contains("type\n  2 | mov.x %r1, 1;\nptxas fatal"), "{quoted}");
        let said = vec!["Unknown modifier '.x'".to_owned(), "Unexpected type".to_owned()];
        assert_eq!(quoted_lines(&quoted), [("mov.x %r1, 1;".to_owned(), said)]);
        assert_eq!(quoted_lines(log), []);
    }

    #[test]
    fn a_module_that_calls_another_one_is_not_whole() {
        let whole = |text: &str| is_whole(&Ptx(text.into()));
        assert!(whole(".visible .entry k() { ret; }"));
        assert!(whole(
            ".extern .func  (.param .b32 func_retval0) vprintf\n(\n\t.param .b64 a\n)\n;"
        ));
        assert!(whole(".extern .func free\n(\n)\n;\n.extern .func __assertfail(.param .b64 a);"));
        assert!(!whole(
            ".extern .func free\n(\n)\n;\n.extern .func  (.param .b32 r) other(.param .b32 a);"
        ));
        assert!(!whole(".extern .func free_all;"));
    }

    #[test]
    fn added_symbols_are_weak() {
        let added = ".visible .global .align 4 .b8 __gridlet_lost_launches[16];\n.visible .entry __gridlet_fill(\n";
        let own = ".visible .entry k(\n.func __gridlet_own(\n\tcall __gridlet_fill;\n";
        let shared = share_added_symbols(&Ptx(format!("{added}{own}"))).0;
        assert_eq!(shared, format!("{}{own}", added.replace(".visible", ".weak")));
    }

    /// A program that writes what it reads.
    fn cat(folder: &Path) -> PathBuf {
        let path = folder.join("ptxas");
        std::fs::write(&path, "#!/bin/sh\nexec cat\n").unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
        path
    }

    /// Starts it, again if another thread's new process still has the file open for writing.
    fn started(path: &Path) -> Process {
        let options = LinkOptions::default();
        let start = || Process::start(path, Output::Cubin, CudaArch::DEFAULT, &options);
        let is_busy = |error: &Error| matches!(error, Error::Io { source, .. } if source.kind() == io::ErrorKind::ExecutableFileBusy);
        loop {
            match start() {
                Err(error) if is_busy(&error) => std::thread::yield_now(),
                other => return other.unwrap(),
            }
        }
    }

    #[test]
    fn a_waiting_process_assembles_what_it_was_started_for() {
        let folder = tempfile::tempdir().unwrap();
        let process = started(&cat(folder.path()));
        let options = LinkOptions::default();
        assert!(process.is_for(Output::Cubin, CudaArch::DEFAULT, &options));
        assert!(!process.is_for(Output::Object, CudaArch::DEFAULT, &options));
        let others = options.with_opt_level(0);
        assert!(!process.is_for(Output::Cubin, CudaArch::DEFAULT, &others));
        // More than a pipe holds.
        let ptx = Ptx("ret;\n".repeat(100_000));
        assert_eq!(process.assemble(&ptx).unwrap().cubin.0, ptx.0.into_bytes());
    }

    #[test]
    fn a_dropped_process_ends() {
        let folder = tempfile::tempdir().unwrap();
        let process = started(&cat(folder.path()));
        let entry = PathBuf::from(format!("/proc/{}", process.child.id()));
        assert!(entry.exists());
        drop(process);
        assert!(!entry.exists());
    }

    #[test]
    fn a_missing_program_is_an_error() {
        let options = LinkOptions::default();
        let path = Path::new("/nonexistent/ptxas");
        let error = compile(path, &Ptx(String::new()), CudaArch::DEFAULT, &options).unwrap_err();
        assert!(matches!(error, Error::Io { path: of, .. } if of == path));
    }
}
