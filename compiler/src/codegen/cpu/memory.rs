//! Shared variables: offsets in the block's shared memory.

use gridlet_artifact::cpu::abi::{Callback, SHARED_ALIGNMENT};
use inkwell::values::PointerValue;

use crate::codegen::bug;
use crate::codegen::function::FunctionEmitter;
use crate::codegen::values::{pointer, result};
use crate::error::{Error, Result};
use gridlet_lang::ir::{GlobalId, InstKind, Module, Operand, Space};
use gridlet_lang::layout::{static_shared_bytes, type_layout};

/// The placement of an image's shared variables.
pub(super) struct SharedMemory {
    /// In bytes, indexed by `ir::GlobalId`; `None` for globals that are not shared.
    pub(super) offsets: Vec<Option<u32>>,
    /// By kernel, the size in bytes of the variables that it uses.
    pub(super) bytes: Vec<u32>,
    /// Total size of all variables in bytes, including red zones.
    pub(super) span: u32,
}

impl SharedMemory {
    /// Places the shared variables of a module one after another, each followed by `gap` unused
    /// bytes.
    pub(super) fn of(module: &Module, gap: u64) -> Result<Self> {
        let mut end = 0_u64;
        let mut offsets = Vec::with_capacity(module.globals.len());
        for global in &module.globals {
            if global.space != Space::Shared {
                offsets.push(None);
                continue;
            }
            let layout = type_layout(&global.ty, &module.structs);
            if layout.alignment > SHARED_ALIGNMENT as u64 {
                return Err(bug(format!("`{}` is aligned to {}", global.name, layout.alignment)));
            }
            let start = end.next_multiple_of(layout.alignment.max(1));
            end = start.saturating_add(layout.size).saturating_add(gap);
            let too_large = |_| {
                Error::Invalid(format!("the shared variables up to `{}` take 4 GiB", global.name))
            };
            u32::try_from(end).map_err(too_large)?;
            offsets.push(Some(u32::try_from(start).map_err(too_large)?));
        }
        let bytes = static_shared_bytes(module).into_iter();
        let bytes = bytes.map(|bytes| u32::try_from(bytes).unwrap_or(u32::MAX)).collect();
        Ok(SharedMemory { offsets, bytes, span: end as u32 })
    }
}

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    pub(in crate::codegen) fn shared_offset(&self, id: GlobalId) -> Option<u32> {
        self.cx.cpu()?.shared.offsets.get(id.index()).copied().flatten()
    }

    /// Whether a global is a shared variable in a module for the CPU.
    pub(in crate::codegen) fn is_shared_on_cpu(&self, id: GlobalId) -> bool {
        self.shared_offset(id).is_some()
    }

    /// The address of a shared variable.
    pub(in crate::codegen) fn shared_address(&self, id: GlobalId) -> Result<PointerValue<'ctx>> {
        let (Some(base), Some(offset)) = (self.shared_base, self.shared_offset(id)) else {
            return Err(bug("an unexpected shared variable"));
        };
        let name = self.cx.ir.globals.get(id.index()).map_or("", |global| &global.name);
        self.offset(base, u64::from(offset), name)
    }

    /// The block's shared memory, if the function uses a shared variable.
    pub(in crate::codegen) fn load_shared_base(&self) -> Result<Option<PointerValue<'ctx>>> {
        let mut is_used = false;
        for inst in &self.function.instructions {
            inst.kind.for_each_operand(|operand| {
                if let Operand::Global(id) = operand {
                    is_used |= self.is_shared_on_cpu(*id);
                }
            });
            debug_assert!(!matches!(inst.kind, InstKind::Launch(_)), "launches are lowered");
        }
        if !is_used {
            return Ok(None);
        }
        let base = pointer(result(self.callback(Callback::SharedBase, &[])?)?)?;
        base.set_name("shared");
        Ok(Some(base))
    }
}
