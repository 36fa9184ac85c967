//! Debug information with the caller's lines, for modules that are built through inkwell.

use inkwell::builder::Builder;
use inkwell::context::AsContextRef as _;
use inkwell::debug_info::DIFile;
use inkwell::debug_info::{
    AsDIScope as _, DIFlags, DIFlagsConstants as _, DISubprogram, DWARFEmissionKind,
    DWARFSourceLanguage, DebugInfoBuilder, debug_metadata_version,
};
use inkwell::llvm_sys::core::LLVMSetCurrentDebugLocation2;
use inkwell::llvm_sys::debuginfo::{
    LLVMDIBuilderCreateDebugLocation, LLVMDIBuilderCreateLexicalBlockFile,
};
use inkwell::module::{FlagBehavior, Module};
use inkwell::values::FunctionValue;

use super::launch::yours;
use crate::error::Result;
use crate::nvvm::legacy::llvm;
use gridlet_lang::source::{MAX_LINES, wrong_file_name};

/// The lines of a source file, as debug information of a module. Lost launches, findings of `--check`, errors about launches and
/// tables of lines then name them. A source of several files needs one of these for each; a function may have lines of several.
#[must_use = "`finish` completes the debug information"]
pub struct SourceLines<'m, 'ctx> {
    module: &'m Module<'ctx>,
    builder: DebugInfoBuilder<'ctx>,
    file: DIFile<'ctx>,
    name: String,
}

/// Checks a position in a source.
///
/// # Errors
/// [`crate::Error::Invalid`] if tools cannot read the name of the file, or positions have no such line.
pub(super) fn check(file: &str, line: u32) -> Result<()> {
    check_file(file)?;
    check_line(line)
}

fn check_file(name: &str) -> Result<()> {
    wrong_file_name(name).map_or(Ok(()), |wrong| Err(yours(wrong)))
}

fn check_line(line: u32) -> Result<()> {
    if !(1..=MAX_LINES).contains(&line) {
        return Err(yours(format!(
            "there is no line {line}; lines count from 1, and the last is {MAX_LINES}"
        )));
    }
    Ok(())
}

impl<'m, 'ctx> SourceLines<'m, 'ctx> {
    /// The lines of a file, by its name, which may have a folder before it. Relative ones are relative to the folder of the module or
    /// of the bundle.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if tools cannot read the name: it is empty, is that of a folder, or has quotation marks or control
    /// characters.
    pub fn new(module: &'m Module<'ctx>, file: &str) -> Result<Self> {
        check_file(file)?;
        let version = u64::from(debug_metadata_version());
        let version = module.get_context().i32_type().const_int(version, false);
        let (flag, behaviour) = ("Debug Info Version", FlagBehavior::Warning);
        if module.get_flag(flag).is_none() {
            module.add_basic_value_flag(flag, behaviour, version);
        }
        let (language, kind) = (DWARFSourceLanguage::C99, DWARFEmissionKind::LineTablesOnly);
        let (builder, unit) = module.create_debug_info_builder(
            true, language, file, ".", "gridlet", true, "", 0, "", kind, 0, false, false, "", "",
        );
        Ok(SourceLines { module, builder, file: unit.get_file(), name: file.into() })
    }

    /// Sets the line of the instructions that a builder makes from here on. Call it after the builder moved to another function, too.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if the builder has no position, or the line is not one of 1 to 1,000,000.
    pub fn at(&self, builder: &Builder<'ctx>, line: u32) -> Result<()> {
        let function = builder.get_insert_block().and_then(|block| block.get_parent());
        let function = function.ok_or_else(|| yours("the builder has no position for a line"))?;
        check_line(line)?;
        let mut scope = self.subprogram(function, line).as_debug_info_scope().as_mut_ptr();
        let known = llvm::Value::of(&function).subprogram();
        let is_same_file = known.is_some_and(|known| known.file == self.name);
        let (context, file) = (self.module.get_context(), self.file.as_debug_info_scope());
        // SAFETY: the module, the builders and the nodes are alive, and of one context.
        unsafe {
            if !is_same_file {
                let debug = self.builder.as_mut_ptr();
                scope = LLVMDIBuilderCreateLexicalBlockFile(debug, scope, file.as_mut_ptr(), 0);
            }
            let context = context.as_ctx_ref();
            let none = std::ptr::null_mut();
            let at = LLVMDIBuilderCreateDebugLocation(context, line, 0, scope, none);
            LLVMSetCurrentDebugLocation2(builder.as_mut_ptr(), at);
        }
        Ok(())
    }

    /// The subprogram of a function, which may start in another file. One that is made starts at its first line.
    fn subprogram(&self, function: FunctionValue<'ctx>, line: u32) -> DISubprogram<'ctx> {
        function.get_subprogram().unwrap_or_else(|| {
            let ty = self.builder.create_subroutine_type(self.file, None, &[], 0);
            let name = function.get_name().to_string_lossy();
            let (scope, public) = (self.file.as_debug_info_scope(), DIFlags::PUBLIC);
            let made = self.builder.create_function(
                scope, &name, None, self.file, line, ty, true, true, line, public, true,
            );
            function.set_subprogram(made);
            made
        })
    }

    /// Completes the debug information.
    pub fn finish(self) {
        self.builder.finalize();
    }
}
