//! The table of variables in checked images: their memory and their names.

use gridlet_artifact::cpu::abi;
use inkwell::values::{BasicValue, PointerValue};

use super::export;
use crate::codegen::context::ModuleContext;
use crate::error::Result;
use gridlet_lang::ir::Space;
use gridlet_lang::layout::buffer_layout;
use gridlet_lang::types::Type;

/// Maximum number of parts; parameters with more are not listed.
const MAX_PARTS: usize = 64;

/// A row of the table.
struct Row<'ctx> {
    name: String,
    address: Option<PointerValue<'ctx>>,
    offset: u64,
    bytes: u64,
    kind: u32,
    kernel: u32,
}

/// The source name of a shared variable or static: `tile` for `k.tile` in the IR.
pub(super) fn source_name(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

impl<'ctx> ModuleContext<'ctx, '_> {
    /// Defines [`abi::VARIABLES_SYMBOL`] and its count, in checked images.
    pub(super) fn define_variables(&self) -> Result<()> {
        let Some(cpu) = self.cpu().filter(|cpu| cpu.check) else { return Ok(()) };
        let mut rows = Vec::new();
        for (at, global) in self.ir.globals.iter().enumerate() {
            let offset = cpu.shared.offsets.get(at).copied().flatten();
            let kind = match global.space {
                Space::Shared => abi::VARIABLE_SHARED,
                Space::Device => abi::VARIABLE_STATIC,
                Space::Constant if global.variable.is_some() => abi::VARIABLE_STATIC,
                Space::Constant => abi::VARIABLE_STRING,
            };
            rows.push(Row {
                name: source_name(&global.name).into(),
                address: self.globals.get(at).copied().filter(|_| offset.is_none()),
                offset: u64::from(offset.unwrap_or(0)),
                bytes: self.size(&global.ty),
                kind,
                kernel: 0,
            });
        }
        for (at, kernel) in self.ir.kernels.iter().enumerate() {
            let types = kernel.parameters.iter().map(|parameter| &parameter.ty);
            let slots = buffer_layout(types, &self.ir.structs).slots;
            for (parameter, slot) in kernel.parameters.iter().zip(slots) {
                for (name, offset, bytes) in self.numbers(&parameter.name, &parameter.ty)? {
                    let (offset, kind) = (slot.offset + offset, abi::VARIABLE_PARAMETER);
                    rows.push(Row { name, address: None, offset, bytes, kind, kernel: at as u32 });
                }
            }
        }
        self.define_table(&rows);
        Ok(())
    }

    /// The numbers in a parameter, each with its offset and size, without the padding between them.
    fn numbers(&self, name: &str, ty: &Type) -> Result<Vec<(String, u64, u64)>> {
        let mut open = vec![(name.to_owned(), 0, ty.clone())];
        let mut found = Vec::new();
        while let Some((name, offset, ty)) = open.pop() {
            if open.len() + found.len() > MAX_PARTS {
                return Ok(Vec::new());
            }
            if !matches!(ty, Type::Struct(_) | Type::Array(..) | Type::Vector(..)) {
                found.push((name, offset, self.size(&ty)));
                continue;
            }
            let count = self.part_count(&ty);
            for index in (0..count.min(MAX_PARTS as u64 + 1)).rev() {
                let (part, at) = self.part(&ty, index)?;
                let part_name = match &ty {
                    Type::Struct(id) => {
                        let fields = &self.ir.structs.get(*id).fields;
                        let field = fields.get(index as usize);
                        format!("{name}.{}", field.map_or("", |field| field.name.as_str()))
                    }
                    Type::Vector(..) => {
                        let lane = ["x", "y", "z", "w"].get(index as usize);
                        format!("{name}.{}", lane.copied().unwrap_or_default())
                    }
                    _ => format!("{name}[{index}]"),
                };
                open.push((part_name, offset + at, part));
            }
        }
        Ok(found)
    }

    fn define_table(&self, rows: &[Row<'ctx>]) {
        let (pointer, word, wide) = (self.pointer_type(), self.int_type(32), self.int_type(64));
        // `abi::VariableDescriptor`
        let fields =
            [pointer.into(), pointer.into(), wide.into(), wide.into(), word.into(), word.into()];
        let ty = self.context.struct_type(&fields, false);
        let rows: Vec<_> = rows
            .iter()
            .map(|row| {
                ty.const_named_struct(&[
                    self.c_string("gridlet.variable", &row.name).into(),
                    row.address.unwrap_or_else(|| pointer.const_null()).into(),
                    wide.const_int(row.offset, false).into(),
                    wide.const_int(row.bytes, false).into(),
                    word.const_int(u64::from(row.kind), false).into(),
                    word.const_int(u64::from(row.kernel), false).into(),
                ])
            })
            .collect();
        let table = ty.const_array(&rows).as_basic_value_enum();
        let count = word.const_int(rows.len() as u64, false).as_basic_value_enum();
        for (name, value) in [(abi::VARIABLES_SYMBOL, table), (abi::VARIABLE_COUNT_SYMBOL, count)] {
            let global = self.module.add_global(value.get_type(), None, name);
            global.set_initializer(&value);
            global.set_constant(true);
            export(global);
        }
    }
}
