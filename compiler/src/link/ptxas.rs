//! ptxas: assembling a whole program, which leaves nothing to link.
//!
//! nvJitLink assembles PTX to relocatable code, whose functions call each other by NVIDIA's ABI and whose variables have
//! no address yet. ptxas knows that nothing will be added and generates better code: "CUDA Binary Utilities" and the
//! guide of nvcc call the two modes relocatable device code and whole program compilation.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

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

/// Assembles PTX that [`is_whole`] to a cubin.
///
/// # Errors
/// `Invalid` if the options are out of range; `Io` if ptxas cannot be run; `Tool` with its log if it refuses the PTX.
pub(crate) fn assemble(
    ptxas: &Path,
    ptx: &Ptx,
    arch: CudaArch,
    options: &LinkOptions,
) -> Result<LinkOutput> {
    run(ptxas, ptx, options.arguments(arch)?)
}

/// Assembles PTX to an object file that is not linked.
///
/// # Errors
/// As [`assemble`].
pub(crate) fn compile(
    ptxas: &Path,
    ptx: &Ptx,
    arch: CudaArch,
    options: &LinkOptions,
) -> Result<LinkOutput> {
    let mut arguments = options.arguments(arch)?;
    arguments.push("--compile-only".into());
    run(ptxas, ptx, arguments)
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

fn run(ptxas: &Path, ptx: &Ptx, arguments: Vec<String>) -> Result<LinkOutput> {
    let io = |source| Error::Io { path: ptxas.to_path_buf(), source };
    let mut command = Command::new(ptxas);
    // Recursive functions are no mistake: the runtime sizes the stack.
    command.args(arguments).arg("--suppress-stack-size-warning");
    // Pipes, because ptxas writes the input's name into the cubin, which must not change from build to build. The output is
    // not called `/dev/stdout`, because root could replace that. ptxas of CUDA 12.8, 13.0 and 13.5 writes in place, and leaves
    // the file when a signal ends it.
    command.args(["/dev/stdin", "-o", "/proc/self/fd/1"]).env("LC_ALL", "C");
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(io)?;
    let input = child.stdin.take();
    let output = std::thread::scope(|scope| {
        scope.spawn(move || {
            // If ptxas ends before it has read everything, its status and log say why.
            let _ = input.map(|mut input| input.write_all(ptx.0.as_bytes()));
        });
        child.wait_with_output()
    })
    .map_err(io)?;
    let log = String::from_utf8_lossy(&output.stderr).trim().to_owned();
    if !output.status.success() {
        return Err(Error::Tool {
            tool: "ptxas",
            operation: format!("assembling the PTX ({})", output.status),
            log,
        });
    }
    Ok(LinkOutput { cubin: Cubin(output.stdout), log })
}

#[cfg(test)]
mod tests {
    use super::*;

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

    #[test]
    fn a_missing_program_is_an_error() {
        let options = LinkOptions::default();
        let path = Path::new("/nonexistent/ptxas");
        let error = assemble(path, &Ptx(String::new()), CudaArch::DEFAULT, &options).unwrap_err();
        assert!(matches!(error, Error::Io { path: of, .. } if of == path));
    }
}
