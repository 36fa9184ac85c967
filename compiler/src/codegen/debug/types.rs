//! The types of variables, with the sizes and offsets of [`layout`](gridlet_lang::layout).

use std::cell::{Cell, RefCell};
use std::collections::{BTreeSet, HashMap};

use inkwell::debug_info::{AsDIScope, DIDerivedType, DIFlags, DIFlagsConstants, DIType};

use super::Debug;
use crate::codegen::bug;
use crate::codegen::context::ModuleContext;
use crate::error::Result;
use gridlet_lang::types::{Scalar, StructId, Type};

/// DWARF 4, section 7.8, "Base Type Attribute Encodings".
mod encoding {
    pub(super) const BOOLEAN: u32 = 2;
    pub(super) const FLOAT: u32 = 4;
    pub(super) const SIGNED: u32 = 5;
    pub(super) const UNSIGNED: u32 = 7;
}

/// DWARF 4, section 7.5.4: `DW_TAG_pointer_type`.
const POINTER_TYPE: u32 = 0x0f;

/// The most structs behind pointers that are described: LLVM recurses over a chain of them, and takes about 1 KiB for each. Others
/// are declared by name.
const MAX_FOLLOWED: usize = 500;

/// The types made so far.
#[derive(Default)]
pub(super) struct Types<'ctx> {
    known: RefCell<HashMap<Type, DIType<'ctx>>>,
    /// The number of structs whose fields are being described.
    open: Cell<u32>,
    /// Placeholders for pointers in those structs, which may lead back to them, with their pointees.
    pointers: RefCell<Vec<(DIDerivedType<'ctx>, Type)>>,
    /// Whether they are being replaced.
    is_finishing: Cell<bool>,
    /// The structs whose descriptions pointers lead to.
    followed: RefCell<BTreeSet<StructId>>,
}

impl<'ctx> Types<'ctx> {
    /// The description of a type other than `()`.
    pub(super) fn of(
        &self,
        cx: &ModuleContext<'ctx, '_>,
        debug: &Debug<'ctx>,
        ty: &Type,
    ) -> Result<DIType<'ctx>> {
        if let Some(&known) = self.known.borrow().get(ty) {
            return Ok(known);
        }
        let is_inside = self.open.get() > 0;
        let bits = cx.size(ty).saturating_mul(8);
        let made = match ty {
            Type::Unit => return Err(bug("a variable without a type")),
            Type::Scalar(scalar) => basic(debug, scalar.name(), bits, encoding_of(*scalar))?,
            Type::Stream => basic(debug, "stream", bits, encoding::UNSIGNED)?,
            Type::Pointer { pointee, .. } if is_inside => {
                // SAFETY: `finish_pointers` replaces it when the outermost struct is done.
                let hole = unsafe { debug.builder.create_placeholder_derived_type(cx.context) };
                self.pointers.borrow_mut().push((hole, (**pointee).clone()));
                hole.as_type()
            }
            Type::Pointer { pointee, .. } => self.pointer(cx, debug, pointee)?.as_type(),
            Type::Array(element, count) => {
                let element = self.of(cx, debug, element)?;
                let count = i64::try_from(*count).unwrap_or(i64::MAX);
                let alignment = cx.alignment(ty) * 8;
                let range = std::iter::once(0..count).collect::<Vec<_>>();
                debug.builder.create_array_type(element, bits, alignment, &range).as_type()
            }
            Type::Struct(_) | Type::Vector(..) => self.structure(cx, debug, ty)?,
        };
        // LLVM may merge other types with equal ones when it learns what their pointers point to.
        if !is_inside || matches!(ty, Type::Struct(_)) {
            self.known.borrow_mut().insert(ty.clone(), made);
        }
        self.finish_pointers(cx, debug)?;
        Ok(made)
    }

    fn pointer(
        &self,
        cx: &ModuleContext<'ctx, '_>,
        debug: &Debug<'ctx>,
        pointee: &Type,
    ) -> Result<DIDerivedType<'ctx>> {
        // A pointer to nothing is one to bytes.
        let pointee = if *pointee == Type::Unit { &Type::Scalar(Scalar::U8) } else { pointee };
        let pointee = match innermost(pointee) {
            Type::Struct(id) if !self.follow(*id) => declaration(cx, debug, *id),
            _ => self.of(cx, debug, pointee)?,
        };
        // Not `create_pointer_type`, which gives it an address space: 0 is that of code to debuggers of GPUs.
        Ok(debug.builder.create_reference_type(pointee, POINTER_TYPE))
    }

    /// Whether pointers to a struct lead to its description. The first ones do, because each step of any chain is then one of them.
    fn follow(&self, id: StructId) -> bool {
        let mut followed = self.followed.borrow_mut();
        followed.contains(&id) || followed.len() < MAX_FOLLOWED && followed.insert(id)
    }

    /// Replaces the placeholders, unless a struct is not done or this is already under way.
    fn finish_pointers(&self, cx: &ModuleContext<'ctx, '_>, debug: &Debug<'ctx>) -> Result<()> {
        if self.open.get() > 0 || self.is_finishing.replace(true) {
            return Ok(());
        }
        loop {
            let Some((hole, pointee)) = self.pointers.borrow_mut().pop() else { break };
            let pointer = self.pointer(cx, debug, &pointee)?;
            // SAFETY: the placeholder was popped, and no type that contains it is kept but structs, which LLVM does not
            // merge because their identifiers differ.
            unsafe { debug.builder.replace_placeholder_derived_type(hole, pointer) };
        }
        self.is_finishing.set(false);
        Ok(())
    }

    /// A struct, or a vector as a struct of its elements.
    fn structure(
        &self,
        cx: &ModuleContext<'ctx, '_>,
        debug: &Debug<'ctx>,
        ty: &Type,
    ) -> Result<DIType<'ctx>> {
        let declared = match ty {
            Type::Struct(id) => Some((cx.ir.structs.get(*id), id.0)),
            _ => None,
        };
        let span = declared.and_then(|(item, _)| item.span);
        let (file, line) = match span {
            Some(span) => (debug.file(cx, span), cx.ir.sources.line(span)),
            None => (debug.unit.get_file(), 0),
        };
        let scope = file.as_debug_info_scope();
        self.open.set(self.open.get() + 1);
        let mut members = vec![];
        for index in 0..cx.part_count(ty) {
            let (part, offset) = cx.part(ty, index)?;
            let name = match declared {
                Some((item, _)) => item.fields[index as usize].name.as_str(),
                None => AXES[index as usize % AXES.len()],
            };
            let of = self.of(cx, debug, &part)?;
            let (bits, alignment) = (cx.size(&part) * 8, cx.alignment(&part) * 8);
            let flags = DIFlags::ZERO;
            let member = debug.builder.create_member_type(
                scope,
                name,
                file,
                line,
                bits,
                alignment,
                offset * 8,
                flags,
                of,
            );
            members.push(member.as_type());
        }
        self.open.set(self.open.get() - 1);
        let name = ty.display(&cx.ir.structs).to_string();
        let identifier = declared.map_or_else(|| name.clone(), |(_, id)| format!("{name}.{id}"));
        let (bits, alignment) = (cx.size(ty) * 8, cx.alignment(ty) * 8);
        let made = debug.builder.create_struct_type(
            scope,
            &name,
            file,
            line,
            bits,
            alignment,
            DIFlags::ZERO,
            None,
            &members,
            0,
            None,
            &identifier,
        );
        Ok(made.as_type())
    }
}

/// The type of the elements of arrays inside each other.
fn innermost(mut ty: &Type) -> &Type {
    while let Type::Array(element, _) = ty {
        ty = element;
    }
    ty
}

/// A struct of which only the name is told. Debuggers look for its description elsewhere.
fn declaration<'ctx>(
    cx: &ModuleContext<'ctx, '_>,
    debug: &Debug<'ctx>,
    id: StructId,
) -> DIType<'ctx> {
    let (scope, file) = (debug.unit.as_debug_info_scope(), debug.unit.get_file());
    let (name, flags) = (&cx.ir.structs.get(id).name, DIFlags::FWD_DECL);
    let made =
        debug.builder.create_struct_type(scope, name, file, 0, 0, 0, flags, None, &[], 0, None, "");
    made.as_type()
}

/// The elements of a vector.
const AXES: [&str; 4] = ["x", "y", "z", "w"];

fn basic<'ctx>(debug: &Debug<'ctx>, name: &str, bits: u64, encoding: u32) -> Result<DIType<'ctx>> {
    let made = debug.builder.create_basic_type(name, bits, encoding, DIFlags::ZERO);
    Ok(made.map_err(|error| bug(error.to_string()))?.as_type())
}

fn encoding_of(scalar: Scalar) -> u32 {
    match scalar {
        Scalar::Bool => encoding::BOOLEAN,
        _ if scalar.is_float() => encoding::FLOAT,
        _ if scalar.is_signed() => encoding::SIGNED,
        _ => encoding::UNSIGNED,
    }
}
