//! Atomic operations and fences.
//!
//! libNVVM accepts `atomicrmw` and `cmpxchg` with any ordering and scope, but ignores both and
//! writes a plain `atom`: relaxed, at device scope. The writer adds the rest explicitly:
//!
//! * Ordering: `llvm.nvvm.membar.*` before the operation (release and stronger) and after it
//!   (acquire and stronger). On every architecture that Gridlet supports, `membar` is the
//!   sequentially consistent fence of its scope (PTX ISA, "membar / fence").
//! * Scope: `block` and system scope use `llvm.nvvm.atomic.*.gen.*.{cta,sys}`. Where no such
//!   intrinsic exists, `block` is widened to the device, and system scope uses `atom.sys` in
//!   assembly. Operations on shared memory are visible at most within the device, and need no wider
//!   scope.

use inkwell::llvm_sys::LLVMAtomicOrdering as Ordering;
use inkwell::llvm_sys::LLVMAtomicRMWBinOp as Rmw;

use super::body::{Argument, Body};
use super::llvm::{Shape, Type, Value};
use super::refusal::{Written, refuse};
use crate::nvvm::scope::{Scope, fences, stronger};

const SHARED: u32 = 3;

/// The scope of an atomic instruction. A cluster is part of a device; libNVVM's legacy dialect has no scope between it and the block.
fn scope_of(value: Value<'_>) -> Written<Scope> {
    match Scope::of(value) {
        Ok(Scope::Cluster) => Ok(Scope::Device),
        Ok(scope) => Ok(scope),
        Err(name) => refuse(format!("NVPTX has no synchronisation scope `{name}`"), Scope::INSTEAD),
    }
}

/// An operation on an integer or float in memory, by the names of libNVVM's intrinsics.
struct Operation {
    /// The `atomicrmw` operation, if libNVVM accepts it.
    native: Option<&'static str>,
    /// The operation in `llvm.nvvm.atomic.OP.gen.*`, if there is one.
    scoped: Option<&'static str>,
    /// The operation in `atom.sys.OP`, with the letter of the type.
    ptx: Option<(&'static str, char)>,
}

fn operation(rmw: Rmw) -> Option<Operation> {
    let of = |native, scoped, ptx| Some(Operation { native, scoped, ptx });
    match rmw {
        Rmw::LLVMAtomicRMWBinOpXchg => of(Some("xchg"), Some("exch"), Some(("exch", 'b'))),
        Rmw::LLVMAtomicRMWBinOpAdd => of(Some("add"), Some("add"), Some(("add", 'u'))),
        Rmw::LLVMAtomicRMWBinOpAnd => of(Some("and"), Some("and"), Some(("and", 'b'))),
        Rmw::LLVMAtomicRMWBinOpOr => of(Some("or"), Some("or"), Some(("or", 'b'))),
        Rmw::LLVMAtomicRMWBinOpXor => of(Some("xor"), Some("xor"), Some(("xor", 'b'))),
        Rmw::LLVMAtomicRMWBinOpMax => of(Some("max"), Some("max"), Some(("max", 's'))),
        Rmw::LLVMAtomicRMWBinOpMin => of(Some("min"), Some("min"), Some(("min", 's'))),
        // The intrinsics compare only signed numbers.
        Rmw::LLVMAtomicRMWBinOpUMax => of(Some("umax"), None, Some(("max", 'u'))),
        Rmw::LLVMAtomicRMWBinOpUMin => of(Some("umin"), None, Some(("min", 'u'))),
        Rmw::LLVMAtomicRMWBinOpUIncWrap => of(None, Some("inc"), None),
        Rmw::LLVMAtomicRMWBinOpUDecWrap => of(None, Some("dec"), None),
        _ => None,
    }
}

/// The operation in `atom.sys.OP`, with the letter of the type, if there is one on integers.
pub(crate) fn atomic_ptx(rmw: Rmw) -> Option<(&'static str, char)> {
    operation(rmw)?.ptx
}

impl<'m> Body<'_, 'm, '_> {
    pub(super) fn fence(&mut self, value: Value<'m>) -> Written<()> {
        if scope_of(value)? == Scope::Thread {
            // A compiler barrier suffices.
            self.line("call void asm sideeffect \"\", \"~{memory}\"()".to_owned());
            return Ok(());
        }
        self.membar(scope_of(value)?);
        Ok(())
    }

    fn membar(&mut self, scope: Scope) {
        let name = format!("llvm.nvvm.membar.{}", scope.membar());
        self.writer.declare(&name, "void", "");
        self.line(format!("call void @{name}()"));
    }

    /// Writes an atomic access with the fences that `ordering` requires. `reads` tells whether a
    /// sequentially consistent access also needs a fence after it.
    pub(super) fn fences_around(
        &mut self,
        value: Value<'m>,
        ordering: Ordering,
        reads: bool,
        access: impl FnOnce(&mut Self) -> Written<()>,
    ) -> Written<()> {
        let scope = scope_of(value)?;
        let ordered = scope != Scope::Thread;
        let (before, after) = fences(ordering, reads);
        if ordered && before {
            self.membar(scope);
        }
        access(self)?;
        if ordered && after {
            self.membar(scope);
        }
        Ok(())
    }

    pub(super) fn atomicrmw(&mut self, value: Value<'m>) -> Written<()> {
        self.fences_around(value, value.ordering(), true, |body| match value.rmw_operation() {
            Rmw::LLVMAtomicRMWBinOpFAdd | Rmw::LLVMAtomicRMWBinOpFSub => body.float_add(value),
            rmw => body.integer_rmw(value, rmw),
        })
    }

    fn integer_rmw(&mut self, value: Value<'m>, rmw: Rmw) -> Written<()> {
        // A subtraction is an addition of the negated operand.
        let subtraction = rmw == Rmw::LLVMAtomicRMWBinOpSub;
        let operation = operation(if subtraction { Rmw::LLVMAtomicRMWBinOpAdd } else { rmw });
        let Some(operation) = operation else {
            return refuse(
                "neither libNVVM nor PTX has this atomic operation",
                "use a loop with `cmpxchg`",
            );
        };
        let ty = value.ty();
        let (word, width) = memory_word(ty)?;
        if operation.native.is_none() && word != "i32" {
            return refuse("PTX wraps only 32-bit counters", "use `i32`, or a loop with `cmpxchg`");
        }
        let mut operand = self.word_operand(value, value.operand(1), word)?;
        if subtraction {
            operand = self.step(value, "negative", &format!("sub {word} 0, {operand}"));
        }
        let scope = self.needed_scope(value, operation.scoped.is_some())?;
        let text = match (scope, &operation) {
            (Scope::Device, Operation { native: Some(native), .. }) => {
                let volatile = if value.is_volatile() { " volatile" } else { "" };
                let pointer = self.pointer(value.operand(0), word)?;
                format!("atomicrmw{volatile} {native} {pointer}, {word} {operand} monotonic")
            }
            (Scope::Device, Operation { scoped: Some(wrapping), .. }) => {
                let pointer = self.pointer_argument(value.operand(0), word)?;
                let name = format!(
                    "llvm.nvvm.atomic.load.{wrapping}.32.p{}{word}",
                    space(value.operand(0).ty())
                );
                self.declared_call(&name, word, &[pointer, Argument::new(word, operand)])
            }
            (_, Operation { scoped: Some(scoped), .. }) => {
                let generic = self.generic(value, word)?;
                let name =
                    format!("llvm.nvvm.atomic.{scoped}.gen.i.{}.{word}.p0{word}", scope.membar());
                self.declared_call(&name, word, &[generic, Argument::new(word, operand)])
            }
            (_, Operation { ptx: Some((ptx, letter)), .. }) => {
                let generic = self.generic(value, word)?;
                let register = if width == 64 { 'l' } else { 'r' };
                format!(
                    "call {word} asm sideeffect \"atom.sys.{ptx}.{letter}{width} $0, [$1], $2;\", \
                     \"={register},l,{register},~{{memory}}\"({generic}, {word} {operand})"
                )
            }
            _ => {
                return refuse(
                    "libNVVM has no such atomic operation at this scope",
                    "use a loop with `cmpxchg`",
                );
            }
        };
        self.define_from_word(value, word, &text)
    }

    /// The scope to write. `atomicrmw` and `cmpxchg` have device scope by themselves.
    fn needed_scope(&self, value: Value<'m>, has_scoped: bool) -> Written<Scope> {
        let scope = scope_of(value)?;
        let shared = space(value.operand(0).ty()) == SHARED;
        Ok(match scope {
            _ if shared => Scope::Device,
            Scope::Thread | Scope::Block if !has_scoped => Scope::Device,
            Scope::Thread => Scope::Block,
            scope => scope,
        })
    }

    /// The pointer of an atomic instruction, cast to a generic pointer to `pointee`.
    fn generic(&mut self, value: Value<'m>, pointee: &str) -> Written<Argument> {
        let pointer = value.operand(0);
        if space(pointer.ty()) == 0 {
            return self.pointer_argument(pointer, pointee);
        }
        let from = self.any(pointer)?;
        let cast = self.step(value, "generic", &format!("addrspacecast {from} to {pointee}*"));
        Ok(Argument::new(format!("{pointee}*"), cast))
    }

    /// A value as the integer stored in memory.
    fn word_operand(
        &mut self,
        owner: Value<'m>,
        operand: Value<'m>,
        word: &str,
    ) -> Written<String> {
        let text = self.ty(operand.ty())?;
        let name = self.operand(operand)?;
        Ok(match operand.ty().shape() {
            Shape::Float | Shape::Double => {
                self.step(owner, "bits", &format!("bitcast {text} {name} to {word}"))
            }
            Shape::Pointer(_) => {
                self.step(owner, "bits", &format!("ptrtoint {text} {name} to {word}"))
            }
            _ => name,
        })
    }

    /// Defines `value` from `text`, an expression for the integer that was in memory.
    fn define_from_word(&mut self, value: Value<'m>, word: &str, text: &str) -> Written<()> {
        let ty = self.ty(value.ty())?;
        let back = match value.ty().shape() {
            Shape::Float | Shape::Double => "bitcast",
            Shape::Pointer(_) => "inttoptr",
            _ => {
                self.define(value, text);
                return Ok(());
            }
        };
        let old = self.step(value, "old", text);
        self.define(value, &format!("{back} {word} {old} to {ty}"));
        Ok(())
    }

    fn float_add(&mut self, value: Value<'m>) -> Written<()> {
        let (ty, short) = match value.ty().shape() {
            Shape::Float => ("float", "f32"),
            Shape::Double => ("double", "f64"),
            _ => {
                return refuse(
                    "libNVVM's atomic float addition supports only `float` and `double`",
                    "use a loop with `cmpxchg`",
                );
            }
        };
        let mut operand = self.operand(value.operand(1))?;
        if value.rmw_operation() == Rmw::LLVMAtomicRMWBinOpFSub {
            operand = self.step(value, "negative", &format!("fsub {ty} -0.000000e+00, {operand}"));
        }
        let text = match self.needed_scope(value, true)? {
            Scope::Device => {
                let name = format!(
                    "llvm.nvvm.atomic.load.add.{short}.p{}{short}",
                    space(value.operand(0).ty())
                );
                let pointer = self.pointer_argument(value.operand(0), ty)?;
                self.declared_call(&name, ty, &[pointer, Argument::new(ty, operand)])
            }
            scope => {
                let generic = self.generic(value, ty)?;
                let name =
                    format!("llvm.nvvm.atomic.add.gen.f.{}.{short}.p0{short}", scope.membar());
                self.declared_call(&name, ty, &[generic, Argument::new(ty, operand)])
            }
        };
        self.define(value, &text);
        Ok(())
    }

    pub(super) fn cmpxchg(&mut self, value: Value<'m>) -> Written<()> {
        let (success, failure) = value.cmpxchg_orderings();
        self.fences_around(value, stronger(success, failure), true, |body| body.exchange(value))
    }

    /// Drops `weak`: an exchange that never fails spuriously satisfies it.
    fn exchange(&mut self, value: Value<'m>) -> Written<()> {
        let held = value.operand(1).ty();
        let (word, _) = memory_word(held)?;
        let expected = self.word_operand(value, value.operand(1), word)?;
        let replacement = self.word_operand(value, value.operand(2), word)?;
        let pointer = value.operand(0);
        let scope = self.needed_scope(value, true)?;
        if scope == Scope::Device {
            let target = self.pointer(pointer, word)?;
            let volatile = if value.is_volatile() { " volatile" } else { "" };
            let text = format!(
                "cmpxchg{volatile} {target}, {word} {expected}, {word} {replacement} monotonic monotonic"
            );
            if matches!(held.shape(), Shape::Int(_)) {
                self.define(value, &text);
                return Ok(());
            }
            let pair = self.step(value, "pair", &text);
            let old = self.step(value, "old", &format!("extractvalue {{ {word}, i1 }} {pair}, 0"));
            let equal =
                self.step(value, "equal", &format!("extractvalue {{ {word}, i1 }} {pair}, 1"));
            return self.define_pair(value, held, word, &old, &equal);
        }
        let generic = self.generic(value, word)?;
        let name = format!("llvm.nvvm.atomic.cas.gen.i.{}.{word}.p0{word}", scope.membar());
        let call = self.declared_call(
            &name,
            word,
            &[generic, Argument::new(word, expected.as_str()), Argument::new(word, replacement)],
        );
        let old = self.step(value, "old", &call);
        let equal = self.step(value, "equal", &format!("icmp eq {word} {old}, {expected}"));
        self.define_pair(value, held, word, &old, &equal)
    }

    /// Defines the result of a `cmpxchg` from the word that was in memory and whether it equalled
    /// the expected one.
    fn define_pair(
        &mut self,
        value: Value<'m>,
        held: Type<'m>,
        word: &str,
        old: &str,
        equal: &str,
    ) -> Written<()> {
        let ty = self.ty(held)?;
        let pair = self.ty(value.ty())?;
        let old = match held.shape() {
            Shape::Pointer(_) => {
                self.step(value, "pointer", &format!("inttoptr {word} {old} to {ty}"))
            }
            _ => old.to_owned(),
        };
        let first = self.step(value, "first", &format!("insertvalue {pair} undef, {ty} {old}, 0"));
        self.define(value, &format!("insertvalue {pair} {first}, i1 {equal}, 1"));
        Ok(())
    }
}

fn space(pointer: Type<'_>) -> u32 {
    match pointer.shape() {
        Shape::Pointer(space) => space,
        _ => 0,
    }
}

/// The integer type for libNVVM's atomic operations on a type, and its width.
fn memory_word(ty: Type<'_>) -> Written<(&'static str, u32)> {
    match ty.shape() {
        Shape::Int(32) | Shape::Float => Ok(("i32", 32)),
        Shape::Int(64) | Shape::Double | Shape::Pointer(_) => Ok(("i64", 64)),
        _ => refuse(
            format!("libNVVM has no atomic operation on `{}`", ty.print()),
            "use 32 or 64 bits; a narrower value goes through `cmpxchg` on the word that holds it",
        ),
    }
}
