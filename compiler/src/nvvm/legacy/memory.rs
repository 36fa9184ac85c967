//! Stack slots, addresses, loads and stores.

use inkwell::llvm_sys::LLVMAtomicOrdering as Ordering;

use super::body::Body;
use super::llvm::{Shape, Type, Value};
use super::refusal::{Written, refuse};

/// Load metadata with the same meaning in LLVM 7 and LLVM 22. All other kinds (aliasing classes,
/// `!noundef`, …) only guide optimisation and are dropped.
const LOAD_METADATA: [&str; 2] = ["range", "invariant.load"];

impl<'m> Body<'_, 'm, '_> {
    pub(super) fn alloca(&mut self, value: Value<'m>) -> Written<()> {
        if value.ty().shape() != Shape::Pointer(0) {
            return refuse(
                "libNVVM's data layout has stack slots only in the generic address space",
                "use `alloca` in address space 0 and `addrspacecast`",
            );
        }
        let allocated = self.ty(value.allocated())?;
        let mut text = format!("alloca {allocated}");
        let count = value.operand(0);
        if count.unsigned() != Some(1) {
            text.push_str(&format!(", {}", self.typed(count)?));
        }
        if value.alignment() > 0 {
            text.push_str(&format!(", align {}", value.alignment()));
        }
        self.define(value, &text);
        self.erase(value)
    }

    /// Drops `nuw` and `nusw`, which only inform an optimiser.
    pub(super) fn gep(&mut self, value: Value<'m>) -> Written<()> {
        let operands = value.operands();
        let source = self.ty(value.gep_source())?;
        let mut text =
            format!("getelementptr{} {source}", if value.is_inbounds() { " inbounds" } else { "" });
        text.push_str(&format!(", {}", self.pointer(operands[0], &source)?));
        for &index in &operands[1..] {
            text.push_str(&format!(", {}", self.typed(index)?));
        }
        self.define(value, &text);
        self.erase(value)
    }

    /// The metadata of a kind that an instruction has, as it follows the instruction.
    pub(super) fn metadata(&mut self, value: Value<'m>, kind: &str) -> Written<String> {
        Ok(match value.metadata(self.writer.module.metadata_kind(kind)) {
            Some(node) => format!(", !{kind} !{}", self.writer.node(node)?),
            None => String::new(),
        })
    }

    pub(super) fn load(&mut self, value: Value<'m>) -> Written<()> {
        let ty = self.ty(value.ty())?;
        let from = self.pointer(value.operand(0), &ty)?;
        let ordering = value.ordering();
        let atomic = ordering != Ordering::LLVMAtomicOrderingNotAtomic;
        let volatile = if value.is_volatile() || atomic { " volatile" } else { "" };
        let mut text = format!("load{volatile} {ty}, {from}{}", alignment(value));
        for kind in LOAD_METADATA {
            text.push_str(&self.metadata(value, kind)?);
        }
        if !atomic {
            self.define(value, &text);
            return Ok(());
        }
        // libNVVM has no atomic loads. A volatile one becomes `ld.volatile`, which PTX defines as
        // `ld.relaxed.sys`: strong enough for every scope.
        check_atomic(value.ty(), value.alignment())?;
        self.fences_around(value, ordering, true, |body| {
            body.define(value, &text);
            Ok(())
        })
    }

    pub(super) fn store(&mut self, value: Value<'m>) -> Written<()> {
        let stored = value.operand(0);
        let ty = self.ty(stored.ty())?;
        let to = self.pointer(value.operand(1), &ty)?;
        let ordering = value.ordering();
        let atomic = ordering != Ordering::LLVMAtomicOrderingNotAtomic;
        let volatile = if value.is_volatile() || atomic { " volatile" } else { "" };
        let text = format!("store{volatile} {}, {to}{}", self.typed(stored)?, alignment(value));
        if !atomic {
            self.line(text);
            return Ok(());
        }
        check_atomic(stored.ty(), value.alignment())?;
        self.fences_around(value, ordering, false, |body| {
            body.line(text);
            Ok(())
        })
    }
}

fn alignment(value: Value<'_>) -> String {
    match value.alignment() {
        0 => String::new(),
        bytes => format!(", align {bytes}"),
    }
}

/// A volatile access is a single access only if it is aligned and of a scalar type whose size PTX
/// supports.
fn check_atomic(ty: Type<'_>, alignment: u32) -> Written<()> {
    let size = match ty.shape() {
        Shape::Int(8) => 1,
        Shape::Int(16) | Shape::Half => 2,
        Shape::Int(32) | Shape::Float => 4,
        Shape::Int(64) | Shape::Double | Shape::Pointer(_) => 8,
        _ => {
            return refuse(
                format!("an atomic access to `{}` would become several accesses", ty.print()),
                "use integers of 8, 16, 32 or 64 bits, floats or pointers",
            );
        }
    };
    if alignment != 0 && alignment < size {
        return refuse(
            "an unaligned atomic access would become several accesses",
            "align it to its size",
        );
    }
    Ok(())
}
