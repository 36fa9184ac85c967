//! Variables outside functions.

use inkwell::AddressSpace;
use inkwell::module::Linkage;
use inkwell::types::ArrayType;
use inkwell::values::{ArrayValue, PointerValue};

use super::bug;
use super::context::ModuleContext;
use super::{cpu, geometry};
use crate::error::{Error, Result};
use gridlet_lang::ir::tables::read_together;
use gridlet_lang::ir::{Global, Init, Space, symbol};

/// Device memory (NVVM IR Specification, "Address Spaces"). Most constants live here too, as nvcc's strings do.
pub(super) const GLOBAL: u16 = 1;

/// Constant memory, for tables that the lanes of a warp read [together](read_together).
const CONSTANT: u16 = 4;

/// The most bytes of a module's tables in constant memory. There are 64 KiB (PTX ISA, "Constant State Space"), which linked
/// modules share, and SMs keep a few at hand.
const MOST_CONSTANT: u64 = 16 << 10;

/// Shared memory.
const SHARED: u16 = 3;

/// The symbol of the dynamic shared memory.
const DYNAMIC_SHARED: &str = "__gridlet_dynamic_shared";

/// Alignment in bytes of the dynamic shared memory, and of large shared variables: enough for every vector.
const SHARED_ALIGNMENT: u32 = 16;

/// The most bytes of a short table.
const SHORT_TABLE: u64 = 32;

/// The name of a variable together with its red zones.
pub(super) fn guarded_name(name: &str) -> String {
    format!("{name}.guarded")
}

impl<'ctx> ModuleContext<'ctx, '_> {
    /// Adds the IR's globals, and the dynamic shared memory if any function uses it.
    pub(super) fn add_globals(&mut self) -> Result<()> {
        let mut used = Vec::new();
        let in_constant_memory = self.tables_for_constant_memory();
        for (global, is_constant) in self.ir.globals.iter().zip(in_constant_memory) {
            let is_on_cpu = self.cpu().is_some();
            let address = if is_on_cpu && global.space == Space::Shared {
                // An offset in the block's shared memory, whose base each function loads.
                self.pointer_type().const_null()
            } else {
                self.add_global(global, is_constant)?
            };
            self.globals.push(address);
            if global.exported {
                used.push(address);
            }
        }
        if !used.is_empty() && self.cpu().is_none() {
            self.mark_used(&used);
        }
        if self.cpu().is_none() && geometry::reads_dynamic_shared(self.ir) {
            let ty = self.int_type(8).array_type(0);
            let space = AddressSpace::from(SHARED);
            let global = self.module.add_global(ty, Some(space), DYNAMIC_SHARED);
            global.set_linkage(Linkage::External);
            global.set_alignment(SHARED_ALIGNMENT);
            let address = global.as_pointer_value();
            self.dynamic_shared = Some(address.const_address_space_cast(self.pointer_type()));
        }
        Ok(())
    }

    /// By global, whether it goes to constant memory: the smallest tables first, as far as there is room.
    fn tables_for_constant_memory(&self) -> Vec<bool> {
        let mut chosen = vec![false; self.ir.globals.len()];
        if self.cpu().is_some() || self.keeps_bodies() {
            return chosen;
        }
        let together = read_together(self.ir);
        let mut tables: Vec<(u64, usize)> = (0..chosen.len())
            .filter(|at| together[*at])
            .map(|at| (self.size(&self.ir.globals[at].ty), at))
            .collect();
        tables.sort_unstable();
        let mut left = MOST_CONSTANT;
        for (bytes, at) in tables {
            let Some(rest) = left.checked_sub(bytes) else { break };
            left = rest;
            chosen[at] = true;
        }
        chosen
    }

    fn add_global(&self, global: &Global, is_constant: bool) -> Result<PointerValue<'ctx>> {
        let name = self.global_symbol(global);
        if self.module.get_global(&name).is_some() {
            return Err(bug(format!("two globals are called `{name}`")));
        }
        let zone = match self.cpu() {
            // Strings are read by `printf` only.
            Some(cpu) if global.space != Space::Constant || global.variable.is_some() => {
                cpu.red_zone()
            }
            _ => 0,
        };
        let ty = match zone {
            0 => self.bytes_type(&global.ty)?,
            _ => {
                let bytes = u32::try_from(self.size(&global.ty).saturating_add(2 * zone));
                let bytes =
                    bytes.map_err(|_| Error::Invalid(format!("`{}` takes 4 GiB", global.name)))?;
                self.int_type(8).array_type(bytes)
            }
        };
        let space = match global.space {
            _ if self.cpu().is_some() => 0,
            Space::Shared => SHARED,
            Space::Constant if is_constant => CONSTANT,
            Space::Device | Space::Constant => GLOBAL,
        };
        let own_name = if zone == 0 { name.clone() } else { guarded_name(&name) };
        let value = self.module.add_global(ty, Some(AddressSpace::from(space)), &own_name);
        if global.exported && self.cpu().is_some() && zone == 0 {
            cpu::export(value);
        }
        value.set_initializer(&self.initial_value(global, ty, zone)?);
        value.set_alignment(self.global_alignment(global));
        value.set_constant(global.space == Space::Constant);
        value.set_linkage(if global.exported { Linkage::External } else { Linkage::Internal });
        if zone > 0 {
            value.set_linkage(Linkage::Internal);
            let inside = self.inside_guarded(value, zone);
            if global.exported {
                self.export_guarded(inside, &name)?;
            }
            return Ok(inside);
        }
        let address = value.as_pointer_value();
        Ok(if space == 0 { address } else { address.const_address_space_cast(self.pointer_type()) })
    }

    /// The symbol of a global.
    pub(super) fn global_symbol(&self, global: &Global) -> String {
        if global.exported {
            return symbol::variable(&global.name);
        }
        let name = symbol::internal(&global.name);
        // libNVVM respells a `.`, but not where it describes the variable.
        if self.cpu().is_none() && self.keeps_bodies() { symbol::external(&name) } else { name }
    }

    /// At least 16 bytes for shared variables that are as large: ptxas then reads several elements at once.
    fn global_alignment(&self, global: &Global) -> u32 {
        let (alignment, size) = (self.alignment(&global.ty), self.size(&global.ty));
        if global.space != Space::Shared || self.cpu().is_some() || size < SHARED_ALIGNMENT.into() {
            return alignment;
        }
        // libNVVM would read a short table of bytes as words, and take these apart at each use of a byte.
        let is_short_table = alignment == 1 && size <= SHORT_TABLE;
        alignment.max(if is_short_table { 4 } else { SHARED_ALIGNMENT })
    }

    /// The initial bytes, after a red zone of `zone` bytes and up to the size of `ty`.
    fn initial_value(
        &self,
        global: &Global,
        ty: ArrayType<'ctx>,
        zone: u64,
    ) -> Result<ArrayValue<'ctx>> {
        match &global.init {
            Init::Unset => Ok(ty.get_undef()),
            Init::Zero => Ok(ty.const_zero()),
            Init::Bytes(bytes) if bytes.len() as u64 == self.size(&global.ty) => {
                let mut bytes = [&vec![0; zone as usize], bytes.as_slice()].concat();
                bytes.resize(ty.len() as usize, 0);
                Ok(self.context.const_string(&bytes, false))
            }
            Init::Bytes(bytes) => Err(Error::internal(
                "codegen",
                format!(
                    "`{}` has {} bytes, but its initial value has {}",
                    global.name,
                    ty.len(),
                    bytes.len()
                ),
            )),
        }
    }

    /// Keeps variables that only the host reads, through `@llvm.used`.
    fn mark_used(&self, addresses: &[PointerValue<'ctx>]) {
        let list = self.pointer_type().const_array(addresses);
        let used = self.module.add_global(list.get_type(), None, "llvm.used");
        used.set_linkage(Linkage::Appending);
        used.set_section(Some("llvm.metadata"));
        used.set_initializer(&list);
    }
}
