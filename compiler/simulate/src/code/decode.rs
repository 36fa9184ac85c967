//! A module in the form in which it is run.

use std::collections::BTreeMap;
use std::sync::Arc;

use gridlet_lang::ir::{Init, Module, Role, Space as GlobalSpace};
use gridlet_lang::layout::{buffer_layout, field_offset, type_layout};
use gridlet_lang::source::SourceMap;
use gridlet_lang::types::{StructId, Type};

use super::Function;
use super::function::decode;
use crate::memory::{Memory, Space, address};

/// The alignment of a block's dynamic shared memory, in bytes.
const DYNAMIC_ALIGNMENT: u64 = 128;

/// A kernel's entry.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    pub(crate) function: u32,
    /// Offset in the parameter buffer and bytes of each parameter.
    pub(crate) parameters: Vec<(u32, u32)>,
    /// Bytes of the parameter buffer.
    pub(crate) bytes: u32,
}

/// A module in the form in which it is run.
#[derive(Clone, Debug)]
pub(crate) struct Code {
    pub(crate) sources: Arc<SourceMap>,
    pub(crate) functions: Vec<Function>,
    pub(crate) entries: BTreeMap<String, Entry>,
    /// Device memory at the start: the globals.
    pub(crate) memory: Memory,
    /// Address and bytes of the variables in device memory.
    pub(crate) variables: BTreeMap<String, (u64, u64)>,
    /// Bytes of all variables in shared memory. The dynamic shared memory follows.
    pub(crate) shared_bytes: u64,
    pub(crate) geometry: GeometryLayout,
}

/// Offsets of the fields of `geometry`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GeometryLayout {
    pub(crate) fields: [u32; 5],
    /// Offsets of `x`, `y` and `z` in `dim3`.
    pub(crate) axes: [u32; 3],
}

/// Where the globals are: an address, or the offset in a block's shared memory.
pub(super) enum GlobalPlace {
    Address(u64),
    Shared(u32),
}

impl Code {
    /// Decodes a lowered module.
    ///
    /// # Errors
    /// A message if the module is too large for the model.
    pub(crate) fn new(module: &Module) -> Result<Code, String> {
        let structs = &module.structs;
        let mut memory = Memory::default();
        let mut places = vec![];
        let mut variables = BTreeMap::new();
        let shared = module.globals.iter().filter(|global| global.space == GlobalSpace::Shared);
        let shared = buffer_layout(shared.map(|global| &global.ty), structs);
        let mut shared_slots = shared.slots.iter();
        for global in &module.globals {
            if global.space == GlobalSpace::Shared {
                let offset = shared_slots.next().map_or(0, |slot| slot.offset);
                places.push(GlobalPlace::Shared(offset as u32));
                continue;
            }
            let size = type_layout(&global.ty, structs).size;
            let bytes = match &global.init {
                Init::Bytes(bytes) => bytes.clone(),
                Init::Zero | Init::Unset => vec![0; size as usize],
            };
            let writable = global.space == GlobalSpace::Device;
            let too_large = || format!("`{}` is too large for the model", global.name);
            let at = memory.allocate(bytes, writable).ok_or_else(too_large)?;
            variables.insert(global.name.clone(), (at, size));
            places.push(GlobalPlace::Address(at));
        }
        let functions = module.functions.iter().map(|function| decode(module, function, &places));
        let functions = functions.collect::<Result<Vec<_>, _>>()?;
        let mut entries = BTreeMap::new();
        for (at, function) in module.functions.iter().enumerate() {
            if let Role::Entry(_) = function.role {
                let types = function.parameters.iter().map(|parameter| &parameter.ty);
                let buffer = buffer_layout(types, structs);
                let slots = buffer.slots.iter();
                let parameters = slots.map(|slot| (slot.offset as u32, slot.size as u32)).collect();
                let bytes = buffer.size as u32;
                let entry = Entry { function: at as u32, parameters, bytes };
                entries.insert(function.name.clone(), entry);
            }
        }
        let offset = |id, index| field_offset(id, index, structs) as u32;
        Ok(Code {
            sources: Arc::clone(&module.sources),
            functions,
            entries,
            memory,
            variables,
            shared_bytes: shared.size.next_multiple_of(DYNAMIC_ALIGNMENT),
            geometry: GeometryLayout {
                fields: [0, 1, 2, 3, 4].map(|index| offset(StructId::GEOMETRY, index)),
                axes: [0, 1, 2].map(|index| offset(StructId::DIM3, index)),
            },
        })
    }
}

/// Bytes of a type. Modules whose layouts were computed have no larger type than fits.
pub(super) fn size(module: &Module, ty: &Type) -> u32 {
    type_layout(ty, &module.structs).size as u32
}

/// The address of a kernel's entry.
pub(super) fn kernel_address(index: usize) -> u64 {
    address(Space::Kernel, index, 0)
}
