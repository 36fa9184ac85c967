//! From an LLVM module to PTX, in this process or in a child.

use inkwell::module::Module;
use inkwell::values::GlobalValue;

use super::{Backend, BuildOptions, Session, nvvm_text_with};
use crate::error::{Error, Result};
use crate::ptx::guard::{Ended, Process, Stop};
use crate::ptx::{self, Ptx, PtxOptions};
use crate::{codegen, inputs, nvvm};

impl Session {
    /// Compiles any LLVM module that conforms to NVVM IR to PTX. The compiler runs in a child process: libNVVM and LLVM end theirs over
    /// some modules.
    ///
    /// # Errors
    /// As [`Session::ptx`]; [`Error::Tool`] with the intrinsics or functions over which a compiler ends, and if the system gives no
    /// further process.
    pub fn ptx_of(&self, module: &Module<'_>, options: &BuildOptions) -> Result<(Ptx, String)> {
        let has = |list| module.get_global_metadata_size(list) > 0;
        if has("llvm.dbg.cu") || has("nvvm.annotations") {
            let text = module.print_to_string().to_string();
            // LLVM's verifier would not end.
            if inputs::cycles::line_of_cycle(&text).is_some() {
                return Err(Error::Invalid(format!(
                    "debug information: {}",
                    inputs::cycles::CYCLE
                )));
            }
            // What the compilers make of them may differ from run to run.
            if inputs::annotations::wrong_line(&text).is_some() {
                return Err(Error::Invalid(inputs::annotations::WRONG.into()));
            }
        }
        let at_fault = |stop: &Stop| match stop {
            Stop::Ended(ended) => Some(ended.clone()),
            Stop::Failed(error) => Ended::refusal(error),
        };
        self.ptx_by(module, options, Process::Child).map_err(|stop| {
            let ends = |part: &Module<'_>| {
                let stop = self.ptx_by(part, options, Process::Child).err()?;
                at_fault(&stop)
            };
            let found = at_fault(&stop)
                .and_then(|ended| Some((ended.tool, ptx::culprits::name(module, &ended, ends)?)));
            found.map_or_else(
                || stop.into(),
                |(tool, log)| Error::Tool { tool, operation: ptx::guard::COMPILING.into(), log },
            )
        })
    }

    /// Compiles a module to PTX in this process or in a child.
    pub(super) fn ptx_by(
        &self,
        module: &Module<'_>,
        options: &BuildOptions,
        process: Process,
    ) -> std::result::Result<(Ptx, String), Stop> {
        // Copying an invalid module would end the process. libNVVM may be newer than LLVM.
        nvvm::verify(module, |name| name.starts_with("llvm.nvvm."))?;
        let directives = match options.debug_variables() {
            true => None,
            false => codegen::directives_only(module, matches!(process, Process::Child))?,
        };
        let module = directives.as_ref().unwrap_or(module);
        let libdevice =
            if codegen::uses_libdevice(module) { Some(self.toolchain.libdevice()?) } else { None };
        let ptx_options = PtxOptions {
            opt_level: options.opt_level(),
            fast_math: options.fast_math,
            line_info: options.debug_lines,
            debug: options.debug_variables(),
        };
        let (ptx, log) = match options.backend {
            Backend::Nvptx => {
                let (arch, given) = (options.arch, &ptx_options);
                let ptx = ptx::nvptx::compile_in(process, module, libdevice, arch, given)?;
                (ptx, String::new())
            }
            Backend::LibNvvm => {
                // Passes of LLVM may crash over modules of other compilers.
                let check_sums = match process {
                    Process::This if options.optimize => {
                        ptx::check_sums::by_bytes(module, options.arch, &ptx_options)?
                    }
                    _ => None,
                };
                let module = check_sums.as_ref().unwrap_or(module);
                let unmasked = match process {
                    Process::This if options.optimize => {
                        ptx::shift_counts::unmask(module, options.arch, &ptx_options)?
                    }
                    _ => None,
                };
                let module = unmasked.as_ref().unwrap_or(module);
                let unrolled = match process {
                    Process::This if options.optimize => {
                        ptx::table_loops::unroll(module, options.arch, &ptx_options)?
                    }
                    _ => None,
                };
                let module = unrolled.as_ref().unwrap_or(module);
                // libNVVM and ptxas do not take them beside descriptions of variables.
                let named = match options.debug_variables() {
                    true => None,
                    false => nvvm::subprograms::add(module),
                };
                let nvvm = nvvm_text_with(named.as_ref().unwrap_or(module), options)?;
                let (library, arch, given) = (self.libnvvm()?, options.arch, &ptx_options);
                let output =
                    ptx::libnvvm::compile_in(process, library, &nvvm, libdevice, arch, given)?;
                if let Some(log) = ptx::culprits::unknown(&output.ptx.0) {
                    let operation = ptx::guard::COMPILING.into();
                    return Err(Error::Tool { tool: "libNVVM", operation, log }.into());
                }
                let log = nvvm::subprograms::without_lines(&output.log);
                self.note("libNVVM", &log);
                (output.ptx, log)
            }
        };
        let name = |it: GlobalValue<'_>| it.get_name().to_string_lossy().into_owned();
        Ok((ptx::order::by_names(ptx, module.get_globals().map(name)), log))
    }
}
