//! Debug information: the source line of each instruction, and the variables of the source.
//!
//! Images for the CPU have both, in DWARF. For GPUs, an unoptimised module has both, as with nvcc's `-G`; ptxas refuses to
//! optimise such a module. An optimised one asks for `.loc` directives only, as with nvcc's `-lineinfo`: ptxas makes the
//! tables from them, and the code stays the same.

mod scopes;
mod types;
mod variables;

use std::borrow::Cow;
use std::cell::RefCell;
use std::collections::BTreeMap;

use inkwell::debug_info::{
    AsDIScope, DICompileUnit, DIFile, DIFlags, DIFlagsConstants, DILocation, DIScope,
    DISubroutineType, DWARFEmissionKind, DWARFSourceLanguage, DebugInfoBuilder,
    debug_metadata_version,
};
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{FlagBehavior, Module};

use crate::codegen::bug;
use crate::codegen::context::{ModuleContext, strip_intrinsic_attributes};
use crate::codegen::function::FunctionEmitter;
use crate::error::Result;
use crate::inputs;
use gridlet_lang::ir::{Role, symbol};
use gridlet_lang::source::Span;
use gridlet_lang::types::Type;
pub(in crate::codegen) use scopes::Scopes;
use types::Types;

/// The DWARF version that all current debuggers read.
const DWARF_VERSION: u64 = 4;

/// The folder of every file. The true one is unknown here, and recording it would make the output depend on it.
/// Debuggers search the folder in which they run.
const FOLDER: &str = ".";

/// The name in line tables of what no source has.
const GENERATED: &str = "<gridlet>";

/// The builder of a module's debug information, and the parts shared by all functions.
pub(in crate::codegen) struct Debug<'ctx> {
    builder: DebugInfoBuilder<'ctx>,
    unit: DICompileUnit<'ctx>,
    /// By name, which may be that of a `#line` directive.
    files: RefCell<BTreeMap<String, DIFile<'ctx>>>,
    /// The type of all functions in modules without variables.
    function_type: DISubroutineType<'ctx>,
    is_optimized: bool,
    /// The types of variables, if the module has variables.
    types: Option<Types<'ctx>>,
}

impl<'ctx> Debug<'ctx> {
    /// Lines, and the `variables` too if they are wanted.
    pub(in crate::codegen) fn new(
        cx: &ModuleContext<'ctx, '_>,
        variables: bool,
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
        let kind = match variables {
            true => DWARFEmissionKind::Full,
            false => DWARFEmissionKind::LineTablesOnly,
        };
        let (builder, unit) = cx.module.create_debug_info_builder(
            true,
            DWARFSourceLanguage::C99,
            cx.ir.sources.files().first().map_or("module", |file| file.name.as_str()),
            FOLDER,
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
        let function_type = builder.create_subroutine_type(unit.get_file(), None, &[], 0);
        let types = variables.then(Types::default);
        Debug { builder, unit, files: RefCell::default(), function_type, is_optimized, types }
    }

    /// Whether the module has variables.
    pub(in crate::codegen) fn has_variables(&self) -> bool {
        self.types.is_some()
    }

    pub(in crate::codegen) fn finish(&self) {
        self.builder.finalize();
    }

    fn file(&self, cx: &ModuleContext<'ctx, '_>, span: Span) -> DIFile<'ctx> {
        self.file_of(cx.ir.sources.name(span))
    }

    /// The file of functions of the launch stage, which no source has.
    fn generated(&self) -> DIFile<'ctx> {
        self.file_of(GENERATED)
    }

    fn file_of(&self, name: &str) -> DIFile<'ctx> {
        if let Some(&known) = self.files.borrow().get(name) {
            return known;
        }
        let file = self.builder.create_file(name, FOLDER);
        self.files.borrow_mut().insert(name.to_owned(), file);
        file
    }
}

/// A valid module for GPUs whose compile units ask for `.loc` directives only, which LLVM's C API cannot say; `None` if they ask for
/// no more. ptxas refuses to optimise a module that asks for more. `is_foreign`: another compiler made the module, and LLVM's reader may
/// end over it.
pub(crate) fn directives_only<'ctx>(
    module: &Module<'ctx>,
    is_foreign: bool,
) -> Result<Option<Module<'ctx>>> {
    const UNIT: &str = "distinct !DICompileUnit(";
    const MORE: [&str; 2] = ["emissionKind: LineTablesOnly", "emissionKind: FullDebug"];
    if module.get_global_metadata_size("llvm.dbg.cu") == 0 {
        return Ok(None);
    }
    let text = module.print_to_string().to_string();
    let asks = |line: &str| {
        let is_unit = line.starts_with('!') && line.contains(UNIT);
        MORE.into_iter().find(|more| is_unit && line.contains(more))
    };
    if !text.lines().any(|line| asks(line).is_some()) {
        return Ok(None);
    }
    let lines = text.split_inclusive('\n').map(|line| match asks(line) {
        Some(more) => Cow::from(line.replacen(more, "emissionKind: DebugDirectivesOnly", 1)),
        None => line.into(),
    });
    let text: String = lines.collect();
    let name = module.get_name().to_string_lossy().into_owned();
    let bytes = match is_foreign {
        true => inputs::bitcode(&name, text.as_bytes())?,
        false => text.into_bytes(),
    };
    let buffer = MemoryBuffer::create_from_memory_range_copy(&bytes, &name);
    let read = module.get_context().create_module_from_ir(buffer);
    let read = read.map_err(|message| bug(message.to_string()))?;
    read.set_name(&name);
    // Reading adds them.
    strip_intrinsic_attributes(&read);
    Ok(Some(read))
}

impl<'ctx> ModuleContext<'ctx, '_> {
    /// Whether bodies of kernels stay functions, where a debugger can stop: libNVVM loses shared variables of inlined
    /// functions, and on the CPU a body would be in several entries.
    pub(in crate::codegen) fn keeps_bodies(&self) -> bool {
        self.debug.as_ref().is_some_and(|debug| debug.has_variables() && !debug.is_optimized)
    }
}

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Called before the first instruction of a function.
    pub(in crate::codegen) fn enter_function(&mut self) -> Result<()> {
        if self.cx.cpu().is_some() {
            self.cx.add_cpu_attributes(self.value);
        }
        self.span.set(self.function.span);
        let Some(debug) = &self.cx.debug else { return Ok(()) };
        // The position of the function before.
        self.build().unset_current_debug_location();
        let home = self.home();
        // A debugger shows nothing of a function without a position. But line tables lose what is inlined into one.
        if home.is_none() && debug.has_variables() {
            return Ok(());
        }
        let file = home.map_or_else(|| debug.generated(), |span| debug.file(self.cx, span));
        let line = home.map_or(1, |span| self.cx.ir.sources.line(span));
        let name = self.value.get_name().to_string_lossy();
        // Users know the body by the kernel's name; entries keep their own.
        let name = match self.function.role {
            Role::Entry(_) => name.strip_prefix(symbol::OWN).unwrap_or(&name),
            Role::Device => source_name(&self.function.name),
            Role::Body(kernel) => &self.cx.ir.kernel(kernel).name,
        };
        let function = debug.builder.create_function(
            file.as_debug_info_scope(),
            name,
            None,
            file,
            line,
            self.subroutine_type(debug, file)?,
            true,
            true,
            line,
            DIFlags::PUBLIC,
            debug.is_optimized,
        );
        self.value.set_subprogram(function);
        let scope = function.as_debug_info_scope();
        match home {
            Some(span) => {
                self.scopes = Some(self.scopes_of(debug, scope, span));
                self.set_debug_location();
            }
            None => {
                // ptxas refuses line 0.
                let first =
                    debug.builder.create_debug_location(self.cx.context, line, 1, scope, None);
                self.build().set_current_debug_location(first);
            }
        }
        Ok(())
    }

    /// The position of the function, or where that is not known, of its first instruction that has one. Functions of the
    /// launch stage have none.
    fn home(&self) -> Option<Span> {
        let instructions = self.function.instructions.iter().map(|inst| inst.span);
        let mut spans = std::iter::once(self.function.span).chain(instructions);
        let files = self.cx.ir.sources.files().len();
        spans.find(|span| *span != Span::NOWHERE).filter(|span| (span.file.0 as usize) < files)
    }

    /// The parameters and the result as the source has them.
    fn subroutine_type(
        &self,
        debug: &Debug<'ctx>,
        file: DIFile<'ctx>,
    ) -> Result<DISubroutineType<'ctx>> {
        let Some(types) = &debug.types else { return Ok(debug.function_type) };
        let of = |ty: &Type| types.of(self.cx, debug, ty);
        let result = &self.function.result;
        let result = if *result == Type::Unit { None } else { Some(of(result)?) };
        let hidden = usize::from(self.function.takes_geometry);
        let own = self.function.parameters.iter().skip(hidden);
        let parameters = own.map(|item| of(&item.ty)).collect::<Result<Vec<_>>>()?;
        Ok(debug.builder.create_subroutine_type(file, result, &parameters, 0))
    }

    /// Assigns the current span to the instructions that follow.
    pub(in crate::codegen) fn set_debug_location(&self) {
        if self.in_prologue.get() {
            self.build().unset_current_debug_location();
            return;
        }
        if let Some((debug, scopes)) = self.cx.debug.as_ref().zip(self.scopes.as_ref()) {
            let span = scopes.known(self.span.get());
            let location = self.position_in(debug, self.scope_at(debug, scopes, span), span);
            self.build().set_current_debug_location(location);
        }
    }

    /// A position in a scope of this function.
    fn position_in(
        &self,
        debug: &Debug<'ctx>,
        scope: DIScope<'ctx>,
        span: Span,
    ) -> DILocation<'ctx> {
        let at = self.cx.ir.sources.position(span);
        debug.builder.create_debug_location(self.cx.context, at.line, at.column, scope, None)
    }
}

/// The name in the source of a function whose name is reserved.
fn source_name(name: &str) -> &str {
    name.strip_prefix(symbol::OWN).unwrap_or(name)
}
