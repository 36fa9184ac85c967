//! Variables: parameters, locals, shared and static variables.
//!
//! Without optimisation each is in memory for the whole function, where a debugger can also change it. With optimisation,
//! which only images for the CPU have together with variables, LLVM tracks those in slots, and parameters in registers.

use inkwell::debug_info::{AsDIScope, DIFlags, DIFlagsConstants, DILocalVariable, DIScope};
use inkwell::llvm_sys::debuginfo::{
    LLVMDIBuilderInsertDbgValueRecordAtEnd, LLVMDIBuilderInsertDeclareRecordAtEnd,
};
use inkwell::values::{AsValueRef, BasicValueEnum, GlobalValue, PointerValue};

use super::Debug;
use crate::codegen::bug;
use crate::codegen::context::ModuleContext;
use crate::codegen::function::FunctionEmitter;
use crate::codegen::globals::guarded_name;
use crate::error::Result;
use gridlet_lang::ir::{Global, GlobalId, InstId, InstKind, Operand, Role, Space, Variable};
use gridlet_lang::source::Span;
use gridlet_lang::types::{Scalar, Type};

/// DWARF 4, section 7.7.1, "DWARF Expressions".
mod operation {
    pub(super) const DEREF: i64 = 0x06;
    pub(super) const PLUS_UCONST: i64 = 0x23;
}

/// Where a variable is.
enum Place<'ctx> {
    /// In memory, at this address.
    Memory(PointerValue<'ctx>),
    /// It is this value.
    Value(BasicValueEnum<'ctx>),
}

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// After the slots and parameters of a function are there, and before its code.
    pub(in crate::codegen) fn declare_variables(&self) -> Result<()> {
        let Some(debug) = self.cx.debug.as_ref().filter(|debug| debug.has_variables()) else {
            return Ok(());
        };
        // An entry for the CPU reads its parameters from memory and calls the body, which has them too.
        let is_wrapper = matches!(self.function.role, Role::Entry(_)) && self.cx.cpu().is_some();
        if self.scopes.is_none() || is_wrapper {
            return Ok(());
        }
        self.declare_parameters(debug)?;
        for (slot, &address) in self.function.slots.iter().zip(&self.slots) {
            if let Some(variable) = &slot.variable {
                self.keep_in_memory(address)?;
                self.declare(debug, variable, &slot.ty, Place::Memory(address), &[])?;
            }
        }
        self.declare_shared_on_cpu(debug)
    }

    /// Whether an instruction puts a parameter into its variable, in a module where debuggers wait for that.
    pub(in crate::codegen) fn begins_parameter(&self, kind: &InstKind) -> bool {
        let InstKind::Store { pointer: Operand::Slot(slot), value: Operand::Parameter(at) } = kind
        else {
            return false;
        };
        let variable = self.function.slots[slot.index()].variable.as_ref();
        self.cx.keeps_bodies() && variable.is_some_and(|one| one.parameter == Some(*at))
    }

    fn declare_parameters(&self, debug: &Debug<'ctx>) -> Result<()> {
        let of_slots =
            self.function.slots.iter().filter_map(|slot| slot.variable.as_ref()?.parameter);
        let of_slots: Vec<u32> = of_slots.collect();
        let parameters = self.function.parameters.iter().zip(&self.parameters);
        for (at, (parameter, &value)) in (0_u32..).zip(parameters) {
            if of_slots.contains(&at) || self.cx.size(&parameter.ty) == 0 {
                continue;
            }
            let is_hidden = at == 0 && self.function.takes_geometry;
            let place = if !debug.is_optimized {
                let address = self.spill(value, &parameter.ty, &parameter.name)?;
                Place::Memory(address)
            } else if is_hidden || !is_single(&parameter.ty) {
                continue;
            } else {
                Place::Value(value)
            };
            let (name, span) = (parameter.name.clone(), self.function.span);
            let variable = Variable { name, span, scope: None, parameter: Some(at) };
            match place {
                Place::Memory(address) if is_hidden => self.declare_geometry(debug, address)?,
                place => self.declare(debug, &variable, &parameter.ty, place, &[])?,
            }
        }
        Ok(())
    }

    /// The fields of the geometry, which are names of the language.
    fn declare_geometry(&self, debug: &Debug<'ctx>, address: PointerValue<'ctx>) -> Result<()> {
        for index in 0..self.cx.part_count(&Type::GEOMETRY) {
            let (ty, offset) = self.cx.part(&Type::GEOMETRY, index)?;
            let Type::Struct(id) = Type::GEOMETRY else { continue };
            let name = self.cx.ir.structs.get(id).fields[index as usize].name.clone();
            let span = self.function.span;
            let variable = Variable { name, span, scope: None, parameter: None };
            let offset = [operation::PLUS_UCONST, offset as i64];
            self.declare(debug, &variable, &ty, Place::Memory(address), &offset)?;
        }
        Ok(())
    }

    /// On the CPU, the shared variables that the function uses are at offsets in the block's shared memory.
    fn declare_shared_on_cpu(&self, debug: &Debug<'ctx>) -> Result<()> {
        let Some(base) = self.shared_base else { return Ok(()) };
        let ty = Type::pointer_mut(Type::Scalar(Scalar::U8));
        let place = match debug.is_optimized {
            true => None,
            false => Some(self.spill(base.into(), &ty, "shared")?),
        };
        for (id, global) in (0..).zip(&self.cx.ir.globals) {
            let (id, Some(variable)) = (GlobalId(id), &global.variable) else { continue };
            let Some(offset) = self.shared_offset(id).filter(|_| self.mentions(id)) else {
                continue;
            };
            let offset = [operation::PLUS_UCONST, i64::from(offset)];
            let (place, steps) = match place {
                Some(address) => {
                    (Place::Memory(address), [&[operation::DEREF], &offset[..]].concat())
                }
                None => (Place::Value(base.into()), [&offset[..], &[operation::DEREF]].concat()),
            };
            self.declare(debug, variable, &global.ty, place, &steps)?;
        }
        Ok(())
    }

    /// After an instruction: declares the variable at the address that it computes, if there is one, as a pointer. The
    /// address is generic, and debuggers of GPUs would take it for one of the space that the pointer is in.
    pub(in crate::codegen) fn declare_addressed(&self, id: InstId) -> Result<()> {
        let Some(debug) = self.cx.debug.as_ref().filter(|_| self.cx.keeps_bodies()) else {
            return Ok(());
        };
        for one in self.function.addressed.iter().filter(|one| one.address == id) {
            let Some(value) = self.values[id.index()] else { continue };
            let ty = self.type_of(&Operand::Inst(id));
            let place = Place::Memory(self.spill(value, &ty, &one.variable.name)?);
            self.declare(debug, &one.variable, &ty, place, &[])?;
        }
        Ok(())
    }

    fn mentions(&self, id: GlobalId) -> bool {
        let mut mentions = false;
        for inst in &self.function.instructions {
            inst.kind.for_each_operand(|operand| mentions |= *operand == Operand::Global(id));
        }
        mentions
    }

    /// A copy of a value in memory.
    fn spill(
        &self,
        value: BasicValueEnum<'ctx>,
        ty: &Type,
        name: &str,
    ) -> Result<PointerValue<'ctx>> {
        let address = self.alloca_raw(self.cx.memory_type(ty)?, self.cx.alignment(ty), name)?;
        self.store_part(address, 0, value, ty)?;
        self.keep_in_memory(address)?;
        Ok(address)
    }

    /// Lets libNVVM, which promotes variables to registers without optimisation too, see a use that it does not know.
    fn keep_in_memory(&self, address: PointerValue<'ctx>) -> Result<()> {
        if self.cx.cpu().is_some() {
            return Ok(());
        }
        let ty = self.cx.function_type(None, &[self.cx.pointer_type().into()]);
        let (code, constraints) = (String::new(), "l".to_owned());
        let nothing =
            self.cx.context.create_inline_asm(ty, code, constraints, true, false, None, false);
        self.build().build_indirect_call(ty, nothing, &[address.into()], "")?;
        Ok(())
    }

    fn declare(
        &self,
        debug: &Debug<'ctx>,
        variable: &Variable,
        ty: &Type,
        place: Place<'ctx>,
        steps: &[i64],
    ) -> Result<()> {
        let (Some(scopes), Some(types)) = (&self.scopes, &debug.types) else { return Ok(()) };
        if self.cx.size(ty) == 0 {
            return Ok(());
        }
        let (scope, span) = (scopes.of(variable), scopes.known(variable.span));
        let (file, line) = (debug.file(self.cx, span), self.cx.ir.sources.line(span));
        let (name, ty) = (variable.name.as_str(), types.of(self.cx, debug, ty)?);
        let flags = DIFlags::ZERO;
        let local = match variable.parameter {
            Some(at) => {
                let number = at + u32::from(!self.function.takes_geometry);
                debug
                    .builder
                    .create_parameter_variable(scope, name, number, file, line, ty, true, flags)
            }
            None => debug.builder.create_auto_variable(scope, name, file, line, ty, true, flags, 0),
        };
        self.record(debug, local, scope, span, place, steps)
    }

    fn record(
        &self,
        debug: &Debug<'ctx>,
        local: DILocalVariable<'ctx>,
        scope: DIScope<'ctx>,
        span: Span,
        place: Place<'ctx>,
        steps: &[i64],
    ) -> Result<()> {
        let block = self.build().get_insert_block().ok_or_else(|| bug("no block to emit into"))?;
        let position = self.position_in(debug, scope, span);
        let expression = debug.builder.create_expression(steps.to_vec());
        // SAFETY: all are alive and of this module. The block has no end yet, so that the next instruction takes the record.
        // inkwell would take the record for an instruction.
        unsafe {
            let (builder, block) = (debug.builder.as_mut_ptr(), block.as_mut_ptr());
            let (local, expression) = (local.as_mut_ptr(), expression.as_mut_ptr());
            let position = position.as_mut_ptr();
            match place {
                Place::Memory(address) => {
                    let address = address.as_value_ref();
                    LLVMDIBuilderInsertDeclareRecordAtEnd(
                        builder, address, local, expression, position, block,
                    );
                }
                Place::Value(value) => {
                    let value = value.as_value_ref();
                    LLVMDIBuilderInsertDbgValueRecordAtEnd(
                        builder, value, local, expression, position, block,
                    );
                }
            }
        }
        Ok(())
    }
}

/// Whether a value of the type is one value of LLVM, which it tracks through optimisation.
fn is_single(ty: &Type) -> bool {
    matches!(ty, Type::Scalar(_) | Type::Pointer { .. } | Type::Stream)
}

impl<'ctx> ModuleContext<'ctx, '_> {
    /// After all functions are there: the variables outside them, and those of a GPU's blocks, each in the first function
    /// that uses it.
    pub(in crate::codegen) fn describe_globals(&self) -> Result<()> {
        let Some(debug) = self.debug.as_ref().filter(|debug| debug.has_variables()) else {
            return Ok(());
        };
        let mut users = vec![None; self.ir.globals.len()];
        for (function, value) in self.ir.functions.iter().zip(&self.functions) {
            for inst in &function.instructions {
                inst.kind.for_each_operand(|operand| {
                    if let Operand::Global(id) = operand
                        && let Some(user) = users.get_mut(id.index())
                    {
                        user.get_or_insert(*value);
                    }
                });
            }
        }
        for (global, user) in self.ir.globals.iter().zip(users) {
            let Some(variable) = &global.variable else { continue };
            let is_shared = global.space == Space::Shared;
            if is_shared && user.is_none() {
                continue;
            }
            let user = user.filter(|_| is_shared);
            let scope = user.and_then(|user| user.get_subprogram());
            let scope = match scope {
                Some(scope) => scope.as_debug_info_scope(),
                None => debug.unit.as_debug_info_scope(),
            };
            self.describe_global(debug, global, variable, scope)?;
        }
        Ok(())
    }

    fn describe_global(
        &self,
        debug: &Debug<'ctx>,
        global: &Global,
        variable: &Variable,
        scope: DIScope<'ctx>,
    ) -> Result<()> {
        let Some((value, zone)) = self.memory_of(global) else { return Ok(()) };
        let Some(types) = debug.types.as_ref().filter(|_| self.size(&global.ty) > 0) else {
            return Ok(());
        };
        let steps = if zone == 0 { vec![] } else { vec![operation::PLUS_UCONST, zone as i64] };
        let described = debug.builder.create_global_variable_expression(
            scope,
            &variable.name,
            "",
            debug.file(self, variable.span),
            self.ir.sources.line(variable.span),
            types.of(self, debug, &global.ty)?,
            !global.exported,
            Some(debug.builder.create_expression(steps)),
            None,
            0,
        );
        let kind = self.context.get_kind_id("dbg");
        value.set_metadata(described.as_metadata_value(self.context), kind);
        Ok(())
    }

    /// The memory of a global and how many bytes it has before the variable; `None` where functions compute its address.
    fn memory_of(&self, global: &Global) -> Option<(GlobalValue<'ctx>, u64)> {
        let name = self.global_symbol(global);
        let guarded = self.cpu().map(|cpu| cpu.red_zone()).filter(|&zone| zone > 0);
        match guarded.and_then(|zone| Some((self.module.get_global(&guarded_name(&name))?, zone))) {
            Some(found) => Some(found),
            None => Some((self.module.get_global(&name)?, 0)),
        }
    }
}
