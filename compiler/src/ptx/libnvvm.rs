//! libNVVM: NVVM IR to PTX, by NVIDIA's own compiler.
//!
//! The library is loaded at run time, so that Gridlet builds and runs without it. NVIDIA's "libNVVM
//! API v4.0 Reference Manual" describes its interface; section 1.2 allows calls of all functions
//! from several threads.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_char, c_int};
use std::path::Path;
use std::ptr;

use super::guard::{self, Process, Stop};
use super::{
    Ptx, PtxOptions, byte_fields, dot_products, early_loads, loop_invariants, narrow_differences,
    quotients, steady_reads, wide_registers, workarounds,
};
use crate::nvvm::NvvmModule;
use crate::nvvm::halves::{self, Refused};
use crate::toolchain::Version;
use crate::toolchain::library::{self, Handle as Program, NvidiaLibrary, ReadFn, SizeFn, Status};
use crate::{Error, Result};
use gridlet_lang::arch::{CudaArch, Dialect};

const NAME: &str = "libNVVM";

type IrVersionFn = unsafe extern "C" fn(*mut c_int, *mut c_int, *mut c_int, *mut c_int) -> Status;
type ErrorStringFn = unsafe extern "C" fn(Status) -> *const c_char;
type ProgramFn = unsafe extern "C" fn(*mut Program) -> Status;
type AddModuleFn = unsafe extern "C" fn(Program, *const c_char, usize, *const c_char) -> Status;
type WithOptionsFn = unsafe extern "C" fn(Program, c_int, *const *const c_char) -> Status;

/// The functions of the library. They are called only while [`LibNvvm`] keeps it loaded.
#[derive(Debug)]
struct Functions {
    ir_version: IrVersionFn,
    error_string: ErrorStringFn,
    create_program: ProgramFn,
    destroy_program: ProgramFn,
    add_module: AddModuleFn,
    lazy_add_module: AddModuleFn,
    verify_program: WithOptionsFn,
    compile_program: WithOptionsFn,
    compiled_result_size: SizeFn,
    compiled_result: ReadFn,
    program_log_size: SizeFn,
    program_log: ReadFn,
}

/// The loaded libNVVM library.
#[derive(Debug)]
pub struct LibNvvm {
    functions: Functions,
    ir_version: Version,
    /// The last field, so that the library is unloaded after everything that points into it.
    library: NvidiaLibrary,
}

impl LibNvvm {
    /// Loads the library and looks up all of its functions.
    ///
    /// # Errors
    /// `Missing` if the file does not load, lacks a function or is too old.
    pub fn load(path: &Path) -> Result<LibNvvm> {
        // SAFETY: the function has that type in the manual, section 3.1.
        let library =
            unsafe { NvidiaLibrary::load(NAME, path, "nvvmVersion", Version::MINIMUM_NVVM)? };
        macro_rules! function {
            ($name:literal) => {
                // SAFETY: the field that receives it has the manual's type, sections 3.1 and 4.1.
                unsafe { library.function(&[$name])? }
            };
        }
        let functions = Functions {
            ir_version: function!("nvvmIRVersion"),
            error_string: function!("nvvmGetErrorString"),
            create_program: function!("nvvmCreateProgram"),
            destroy_program: function!("nvvmDestroyProgram"),
            add_module: function!("nvvmAddModuleToProgram"),
            lazy_add_module: function!("nvvmLazyAddModuleToProgram"),
            verify_program: function!("nvvmVerifyProgram"),
            compile_program: function!("nvvmCompileProgram"),
            compiled_result_size: function!("nvvmGetCompiledResultSize"),
            compiled_result: function!("nvvmGetCompiledResult"),
            program_log_size: function!("nvvmGetProgramLogSize"),
            program_log: function!("nvvmGetProgramLog"),
        };
        let mut parts = [0; 4];
        let [ir_major, ir_minor, debug_major, debug_minor] = &mut parts;
        // SAFETY: the pointers are to integers that live through the call.
        unsafe { (functions.ir_version)(ir_major, ir_minor, debug_major, debug_minor) };
        let ir_version = Version::new(parts[0].unsigned_abs(), parts[1].unsigned_abs());
        Ok(LibNvvm { functions, ir_version, library })
    }

    /// Its own version: 2.0 since CUDA 11.
    pub fn version(&self) -> Version {
        self.library.version()
    }

    /// The version of NVVM IR that it reads.
    pub fn ir_version(&self) -> Version {
        self.ir_version
    }

    /// The file it was loaded from.
    pub fn path(&self) -> &Path {
        self.library.path()
    }

    fn error_string(&self, status: Status) -> String {
        // SAFETY: the function takes any integer and returns a string that lives as long as the library,
        // or null.
        unsafe {
            let text = (self.functions.error_string)(status);
            if text.is_null() {
                format!("error {status}")
            } else {
                CStr::from_ptr(text).to_string_lossy().into_owned()
            }
        }
    }
}

/// The result of a compilation.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PtxOutput {
    /// The PTX.
    pub ptx: Ptx,
    /// Warnings of the library; usually empty.
    pub log: String,
}

/// Verifies and compiles a module, in a child process, because libNVVM ends the process over some modules that it cannot compile.
/// `libdevice` is `libdevice.10.bc`, for modules that use its functions; unused functions cost nothing.
///
/// # Errors
/// `Invalid` if the module's dialect is not the architecture's or the options are out of range,
/// `Io` if libdevice cannot be read, `Tool` with the library's log if it refuses the module or ends over it, and if the system gives
/// no further process.
pub fn compile(
    library: &LibNvvm,
    module: &NvvmModule,
    libdevice: Option<&Path>,
    arch: CudaArch,
    options: &PtxOptions,
) -> Result<PtxOutput> {
    Ok(compile_in(Process::Child, library, module, libdevice, arch, options)?)
}

/// As [`compile()`], in either process, and tells an end of the library from its other errors.
pub(crate) fn compile_in(
    process: Process,
    library: &LibNvvm,
    module: &NvvmModule,
    libdevice: Option<&Path>,
    arch: CudaArch,
    options: &PtxOptions,
) -> std::result::Result<PtxOutput, Stop> {
    let job = Job::new(library, module, libdevice, arch, options)?;
    match process {
        #[cfg(feature = "llvm")]
        Process::This => {
            let _inside = guard::inside();
            Ok(job.run()?)
        }
        Process::Child => guard::apart(NAME, || job.run()),
    }
}

/// A compilation with checked options.
struct Job<'a> {
    library: &'a LibNvvm,
    module: &'a NvvmModule,
    libdevice: Option<Vec<u8>>,
    arguments: Vec<CString>,
    optimizes: bool,
}

impl<'a> Job<'a> {
    fn new(
        library: &'a LibNvvm,
        module: &'a NvvmModule,
        libdevice: Option<&Path>,
        arch: CudaArch,
        options: &PtxOptions,
    ) -> Result<Self> {
        if module.dialect != arch.dialect() {
            return Err(Error::Invalid(format!(
                "libNVVM requires NVVM IR in the {} dialect for {arch}, but that of `{}` is in the {} dialect",
                dialect_name(arch.dialect()),
                module.name,
                dialect_name(module.dialect),
            )));
        }
        let arguments = arguments(arch, options)?;
        let libdevice = match libdevice {
            Some(path) => Some(
                std::fs::read(path)
                    .map_err(|source| Error::Io { path: path.to_path_buf(), source })?,
            ),
            None => None,
        };

        Ok(Job { library, module, libdevice, arguments, optimizes: options.opt_level > 0 })
    }

    fn run(&self) -> Result<PtxOutput> {
        let once = |module: &NvvmModule| {
            compile_once(self.library, module, self.libdevice.as_deref(), &self.arguments)
        };
        let mut compiled = once(self.module);
        let mut module = Cow::Borrowed(self.module);
        // Each kind once.
        let mut hidden: Vec<Refused> = Vec::new();
        while module.dialect == Dialect::Legacy
            && let Err(Error::Tool { log, .. }) = &compiled
            && let Some(refused) = Refused::of(log).filter(|refused| !hidden.contains(refused))
            && let Ok(text) = str::from_utf8(&module.bytes)
            && let Some(text) = halves::hide(text, refused)
        {
            hidden.push(refused);
            module.to_mut().bytes = text.into_bytes();
            compiled = once(&module);
        }
        let compiled = compiled.map_err(|error| with_line(error, &self.module.bytes));
        compiled.map(|PtxOutput { ptx: Ptx(ptx), log }| {
            let ptx = match self.optimizes {
                true => {
                    let ptx = early_loads::hoist(dot_products::unpack(byte_fields::direct(ptx)));
                    let ptx = wide_registers::widen(narrow_differences::widen(ptx));
                    let ptx = steady_reads::hoist(quotients::expand(workarounds::apply(ptx)));
                    loop_invariants::hoist(ptx)
                }
                false => workarounds::apply(ptx),
            };
            PtxOutput { ptx: Ptx(ptx), log }
        })
    }
}

/// Verifies and compiles a module with checked arguments. The PTX is as libNVVM writes it.
fn compile_once(
    library: &LibNvvm,
    module: &NvvmModule,
    libdevice: Option<&[u8]>,
    arguments: &[CString],
) -> Result<PtxOutput> {
    let session = Session::new(library)?;
    let name = CString::new(module.name.replace('\0', "")).unwrap_or_default();
    session.add_module("reading the module", library.functions.add_module, &module.bytes, &name)?;
    if let Some(bytes) = libdevice {
        session.add_module(
            "reading libdevice",
            library.functions.lazy_add_module,
            bytes,
            c"libdevice",
        )?;
    }
    // The compiler does not check its input, and may crash on a module that the verifier would
    // refuse.
    session.with_options("verification", library.functions.verify_program, arguments)?;
    session.with_options("compilation", library.functions.compile_program, arguments)?;
    let log = session.log();
    // It drops inline PTX whose constraints it does not know, and succeeds.
    if log.lines().any(|line| line.trim_start().starts_with("error")) {
        return Err(Error::Tool { tool: NAME, operation: "compilation".into(), log });
    }
    Ok(PtxOutput { ptx: Ptx(session.result()?), log })
}

/// An error of libNVVM's parser, `a.ll (8, 16): parse expected type`, with the line of the text that libNVVM got.
fn with_line(error: Error, text: &[u8]) -> Error {
    let Error::Tool { tool, operation, mut log } = error else { return error };
    let line = log.split_once("): parse ").and_then(|(before, _)| {
        let (line, _) = before.rsplit_once(" (")?.1.split_once(", ")?;
        let at = line.parse::<usize>().ok()?.checked_sub(1)?;
        str::from_utf8(text).ok()?.lines().nth(at)
    });
    if let Some(line) = line {
        log = format!("{log}\n  context: {}", line.trim());
    }
    Error::Tool { tool, operation, log }
}

fn dialect_name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Legacy => "legacy",
        Dialect::Modern => "modern",
    }
}

fn arguments(arch: CudaArch, options: &PtxOptions) -> Result<Vec<CString>> {
    let PtxOptions { opt_level, line_info, debug, fast_math } = *options;
    if !matches!(opt_level, 0 | 3) {
        return Err(Error::Invalid(format!(
            "optimisation level {opt_level}: libNVVM supports 0 and 3"
        )));
    }
    if debug && opt_level != 0 {
        return Err(Error::Invalid("debug information requires optimisation level 0".into()));
    }
    let mut arguments = vec![format!("-arch={}", arch.compute()), format!("-opt={opt_level}")];
    if debug {
        arguments.push("-g".into());
    } else if line_info {
        arguments.push("-generate-line-info".into());
    }
    if fast_math {
        arguments.extend(["-ftz=1", "-prec-div=0", "-prec-sqrt=0"].map(String::from));
    }
    library::c_strings("ptx", arguments)
}

/// One `nvvmProgram`.
struct Session<'a> {
    library: &'a LibNvvm,
    program: Program,
}

impl<'a> Session<'a> {
    fn new(library: &'a LibNvvm) -> Result<Self> {
        let mut session = Session { library, program: ptr::null_mut() };
        // SAFETY: the pointer is to a handle that lives through the call.
        let status = unsafe { (library.functions.create_program)(&mut session.program) };
        session.check("making a program", status)?;
        Ok(session)
    }

    fn add_module(
        &self,
        operation: &str,
        add: AddModuleFn,
        bytes: &[u8],
        name: &CStr,
    ) -> Result<()> {
        // SAFETY: pointer and length are of one slice, the name ends in NUL, and the program is
        // live. The library copies what it keeps: the manual demands nothing beyond the call.
        let status =
            unsafe { add(self.program, bytes.as_ptr().cast(), bytes.len(), name.as_ptr()) };
        self.check(operation, status)
    }

    fn with_options(
        &self,
        operation: &str,
        function: WithOptionsFn,
        options: &[CString],
    ) -> Result<()> {
        let pointers: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        // SAFETY: the array and its NUL-terminated strings live through the call, and the program is live.
        let status = unsafe { function(self.program, pointers.len() as c_int, pointers.as_ptr()) };
        self.check(operation, status)
    }

    fn result(&self) -> Result<String> {
        let functions = &self.library.functions;
        let (status, text) = self.text(functions.compiled_result_size, functions.compiled_result);
        self.check("reading the result", status)?;
        Ok(text)
    }

    fn log(&self) -> String {
        let functions = &self.library.functions;
        self.text(functions.program_log_size, functions.program_log).1.trim().to_owned()
    }

    fn text(&self, size: SizeFn, read: ReadFn) -> (Status, String) {
        // SAFETY: the program is live, and callers pass the two functions for one buffer.
        let (status, bytes) = unsafe { library::read_buffer(self.program, size, read) };
        (status, library::text(&bytes))
    }

    fn check(&self, operation: &str, status: Status) -> Result<()> {
        if status == 0 {
            return Ok(());
        }
        Err(Error::Tool {
            tool: NAME,
            operation: format!("{operation} ({})", self.library.error_string(status)),
            log: if self.program.is_null() { String::new() } else { self.log() },
        })
    }
}

impl Drop for Session<'_> {
    fn drop(&mut self) {
        if !self.program.is_null() {
            // SAFETY: the program is live, and nothing uses it after this.
            unsafe { (self.library.functions.destroy_program)(&mut self.program) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_match_the_library_interface() {
        let spelled = |options: &PtxOptions| -> Vec<String> {
            let arguments = arguments(CudaArch::DEFAULT, options).unwrap();
            arguments.into_iter().map(|text| text.into_string().unwrap()).collect()
        };
        assert_eq!(spelled(&PtxOptions::default()), ["-arch=compute_90", "-opt=3"]);
        let lines = PtxOptions { line_info: true, ..PtxOptions::default() };
        assert_eq!(spelled(&lines), ["-arch=compute_90", "-opt=3", "-generate-line-info"]);
        let debug =
            PtxOptions { opt_level: 0, debug: true, line_info: true, ..PtxOptions::default() };
        assert_eq!(spelled(&debug), ["-arch=compute_90", "-opt=0", "-g"]);
        let fast = PtxOptions { fast_math: true, ..PtxOptions::default() };
        let expected = ["-arch=compute_90", "-opt=3", "-ftz=1", "-prec-div=0", "-prec-sqrt=0"];
        assert_eq!(spelled(&fast), expected);
    }

    #[test]
    fn invalid_options_are_refused() {
        for options in [
            PtxOptions { opt_level: 2, ..PtxOptions::default() },
            PtxOptions { debug: true, ..PtxOptions::default() },
        ] {
            let error = arguments(CudaArch::DEFAULT, &options).unwrap_err();
            assert!(matches!(error, Error::Invalid(_)), "{error}");
        }
    }
}
