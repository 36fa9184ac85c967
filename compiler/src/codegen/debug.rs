//! Debug information: the source line of each instruction.
//!
//! Images for the CPU get line tables of DWARF. For GPUs, the module asks for `.loc` directives only, as nvcc's `-lineinfo` does:
//! ptxas makes the tables from them, and the code stays the same.

use inkwell::context::Context;
use inkwell::debug_info::{
    AsDIScope, DIFile, DIFlags, DIFlagsConstants, DISubroutineType, DWARFEmissionKind,
    DWARFSourceLanguage, DebugInfoBuilder, debug_metadata_version,
};
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{FlagBehavior, Module};

use crate::codegen::bug;
use crate::codegen::context::ModuleContext;
use crate::codegen::function::FunctionEmitter;
use crate::error::Result;
use gridlet_lang::ir::{Role, symbol};

/// The DWARF version that all current debuggers read.
const DWARF_VERSION: u64 = 4;

/// The builder of a module's debug information, and the parts shared by all functions.
pub(in crate::codegen) struct DebugLines<'ctx> {
    builder: DebugInfoBuilder<'ctx>,
    /// By `FileId`.
    files: Vec<DIFile<'ctx>>,
    function_type: DISubroutineType<'ctx>,
    is_optimized: bool,
}

impl<'ctx> DebugLines<'ctx> {
    pub(in crate::codegen) fn new(
        cx: &ModuleContext<'ctx, '_>,
        kind: DWARFEmissionKind,
        is_optimized: bool,
    ) -> Self {
        let version = |value| cx.int_type(32).const_int(value, false);
        let flags = [
            ("Debug Info Version", u64::from(debug_metadata_version())),
            ("Dwarf Version", DWARF_VERSION),
        ];
        for (name, value) in flags {
            cx.module.add_basic_value_flag(name, FlagBehavior::Warning, version(value));
        }
        let names: Vec<&str> =
            cx.ir.sources.files().iter().map(|file| file.name.as_str()).collect();
        // The folder is unknown here, and recording it would make the output depend on it.
        // Debuggers search the folder in which they run.
        let folder = ".";
        let (builder, unit) = cx.module.create_debug_info_builder(
            true,
            DWARFSourceLanguage::C99,
            names.first().copied().unwrap_or("module"),
            folder,
            "gridlet",
            is_optimized,
            "",
            0,
            "",
            kind,
            0,
            true,
            false,
            "",
            "",
        );
        let files = names.iter().map(|name| builder.create_file(name, folder)).collect();
        let function_type = builder.create_subroutine_type(unit.get_file(), None, &[], 0);
        DebugLines { builder, files, function_type, is_optimized }
    }

    pub(in crate::codegen) fn finish(&self) {
        self.builder.finalize();
    }
}

/// A module for GPUs whose compile unit asks for `.loc` directives only, which LLVM's C API cannot say.
pub(in crate::codegen) fn directives_only<'ctx>(
    module: &Module<'ctx>,
    context: &'ctx Context,
) -> Result<Module<'ctx>> {
    const UNIT: &str = "distinct !DICompileUnit(";
    let text = module.print_to_string().to_string();
    let (before, unit) = text.split_once(UNIT).ok_or_else(|| bug("no compile unit"))?;
    let unit =
        unit.replacen("emissionKind: LineTablesOnly", "emissionKind: DebugDirectivesOnly", 1);
    let text = format!("{before}{UNIT}{unit}");
    let name = module.get_name().to_string_lossy().into_owned();
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), &name);
    let read = context.create_module_from_ir(buffer).map_err(|message| bug(message.to_string()))?;
    read.set_name(&name);
    Ok(read)
}

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Called before the first instruction of a function.
    pub(in crate::codegen) fn enter_function(&self) {
        if self.cx.cpu().is_some() {
            self.cx.add_cpu_attributes(self.value);
        }
        self.span.set(self.function.span);
        let Some(debug) = &self.cx.debug else { return };
        let Some(&file) = debug.files.get(self.function.span.file.0 as usize) else { return };
        let line = self.cx.ir.sources.line(self.function.span);
        let name = self.value.get_name().to_string_lossy();
        // Users know the body by the kernel's name; entries keep their own.
        let name = match self.function.role {
            Role::Entry(_) => name.strip_prefix(symbol::OWN).unwrap_or(&name),
            Role::Device => self.function.name.as_str(),
            Role::Body(kernel) => &self.cx.ir.kernel(kernel).name,
        };
        let function = debug.builder.create_function(
            file.as_debug_info_scope(),
            name,
            None,
            file,
            line,
            debug.function_type,
            true,
            true,
            line,
            DIFlags::PUBLIC,
            debug.is_optimized,
        );
        self.value.set_subprogram(function);
        self.set_debug_location();
    }

    /// Assigns the current span to the instructions that follow.
    pub(in crate::codegen) fn set_debug_location(&self) {
        let Some(debug) = &self.cx.debug else { return };
        let Some(function) = self.value.get_subprogram() else { return };
        let at = self.cx.ir.sources.position(self.span.get());
        let location = debug.builder.create_debug_location(
            self.cx.context,
            at.line,
            at.column,
            function.as_debug_info_scope(),
            None,
        );
        self.build().set_current_debug_location(location);
    }
}
