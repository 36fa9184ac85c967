//! A thread's geometry, read from the hardware's special registers.

use inkwell::values::BasicValueEnum;

use super::function::FunctionEmitter;
use crate::error::Result;
use gridlet_lang::ir::Module;
use gridlet_lang::ir::graph::uses_dynamic_shared;
use gridlet_lang::launch::resident::instructions;
use gridlet_lang::types::Type;

/// The special registers of the geometry's `dim3` fields, in field order.
const REGISTERS: [&str; 4] = ["tid", "ctaid", "ntid", "nctaid"];

/// Whether any kernel reads the base address of the dynamic shared memory.
pub(super) fn reads_dynamic_shared(module: &Module) -> bool {
    module.externs.iter().any(|item| item.span.is_none() && item.name == instructions::SHARED)
        || uses_dynamic_shared(module).contains(&true)
}

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Reads the geometry from the special registers.
    pub(super) fn hardware_geometry(&self) -> Result<BasicValueEnum<'ctx>> {
        if self.cx.cpu().is_some() {
            return self.geometry_argument();
        }
        let mut parts = Vec::with_capacity(REGISTERS.len() + 1);
        for register in REGISTERS {
            let lanes = ["x", "y", "z"]
                .map(|axis| self.special_register(&format!("{register}.{axis}")))
                .into_iter()
                .collect::<Result<Vec<_>>>()?;
            parts.push(self.aggregate(&lanes, &Type::DIM3)?);
        }
        let dynamic_shared =
            self.cx.dynamic_shared.unwrap_or_else(|| self.cx.pointer_type().const_null());
        parts.push(dynamic_shared.into());
        self.aggregate(&parts, &Type::GEOMETRY)
    }
}
