//! Debug information with the caller's lines, for modules that are built through inkwell.

use inkwell::builder::Builder;
use inkwell::debug_info::DIFile;
use inkwell::debug_info::{
    AsDIScope as _, DIFlags, DIFlagsConstants as _, DISubprogram, DWARFEmissionKind,
    DWARFSourceLanguage, DebugInfoBuilder, debug_metadata_version,
};
use inkwell::module::{FlagBehavior, Module};
use inkwell::values::FunctionValue;

use super::launch::yours;
use crate::error::Result;

/// The lines of a source file, as debug information of a module. Lost launches, findings of `--check`, errors about launches and
/// tables of lines then name them.
#[must_use = "`finish` completes the debug information"]
pub struct SourceLines<'m, 'ctx> {
    module: &'m Module<'ctx>,
    builder: DebugInfoBuilder<'ctx>,
    file: DIFile<'ctx>,
}

impl<'m, 'ctx> SourceLines<'m, 'ctx> {
    /// The lines of a file, by its name, which may have a folder before it. Relative ones are relative to the folder of the module or
    /// of the bundle.
    pub fn new(module: &'m Module<'ctx>, file: &str) -> Self {
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
        SourceLines { module, builder, file: unit.get_file() }
    }

    /// Sets the line of the instructions that a builder makes from here on. Call it after the builder moved to another function, too.
    ///
    /// # Errors
    /// [`crate::Error::Invalid`] if the builder has no position, or the line is 0.
    pub fn at(&self, builder: &Builder<'ctx>, line: u32) -> Result<()> {
        let function = builder.get_insert_block().and_then(|block| block.get_parent());
        let function = function.ok_or_else(|| yours("the builder has no position for a line"))?;
        if line == 0 {
            return Err(yours("there is no line 0; lines count from 1"));
        }
        let scope = self.subprogram(function, line).as_debug_info_scope();
        let context = self.module.get_context();
        let at = self.builder.create_debug_location(context, line, 0, scope, None);
        builder.set_current_debug_location(at);
        Ok(())
    }

    /// The subprogram of a function. It starts at its first line.
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
