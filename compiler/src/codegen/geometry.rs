//! The geometry of a thread, as the hardware has it.

use inkwell::values::BasicValueEnum;

use super::function::FunctionEmitter;
use crate::error::Result;
use crate::ir::{InstKind, Module};
use crate::types::Type;

/// The special registers of the geometry's `dim3` fields, in their order.
const REGISTERS: [&str; 4] = ["tid", "ctaid", "ntid", "nctaid"];

/// Index of the geometry's field for the dynamic shared memory, after the `dim3`s.
const DYNAMIC_SHARED: u32 = REGISTERS.len() as u32;

/// Whether any function takes the address of the dynamic shared memory out of the geometry.
pub(super) fn reads_dynamic_shared(module: &Module) -> bool {
    module.functions.iter().any(|function| {
        function.instructions.iter().any(|inst| match &inst.kind {
            InstKind::Extract { base, index: DYNAMIC_SHARED } => {
                module.operand_type(function, base) == Type::GEOMETRY
            }
            InstKind::FieldAddress { base, index: DYNAMIC_SHARED } => {
                module.operand_type(function, base).pointee() == Some(&Type::GEOMETRY)
            }
            _ => false,
        })
    })
}

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// Reads the geometry from the special registers.
    pub(super) fn hardware_geometry(&self) -> Result<BasicValueEnum<'ctx>> {
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
