//! Atomic operations, accesses and fences with the order and the scope that a module gives them.
//!
//! LLVM 22's back end writes `atomicrmw` of every order and scope as a plain `atom`: relaxed, at device scope. libNVVM does so in the
//! modern dialect, too, gives every `cmpxchg` device scope, and refuses fences, atomic loads and stores, and `cmpxchg` of pointers. Here
//! they become what both take, as the legacy writer does it (`legacy::atomics`): order by `llvm.nvvm.membar.*` around the operation,
//! system scope by `atom.sys` in assembly, loads and stores `volatile`, which PTX defines as relaxed at system scope.

use inkwell::AddressSpace;
use inkwell::builder::{Builder, BuilderError};
use inkwell::llvm_sys::core::{
    LLVMSetCmpXchgFailureOrdering, LLVMSetCmpXchgSuccessOrdering, LLVMSetOrdering, LLVMSetVolatile,
};
use inkwell::llvm_sys::{LLVMAtomicOrdering as Ordering, LLVMAtomicRMWBinOp as Rmw, LLVMOpcode};
use inkwell::module::Module;
use inkwell::types::BasicTypeEnum;
use inkwell::values::{
    AnyValue as _, BasicMetadataValueEnum, BasicValueEnum, InstructionValue, PointerValue,
};

use super::build::{bug, replace};
use super::legacy::atomic_ptx;
use super::legacy::llvm::{self, Shape, Type, Value};
use super::scope::{Scope, fences, stronger};
use crate::error::{Error, Result};

const MONOTONIC: Ordering = Ordering::LLVMAtomicOrderingMonotonic;

/// The address space of shared memory, whose atomic operations no other device sees.
const SHARED: u32 = 3;

/// The compiler of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Compiler {
    LibNvvm,
    Nvptx,
}

/// Whether [`write()`] would change a module.
pub(super) fn is_needed(module: &Module<'_>, compiler: Compiler) -> bool {
    instructions(llvm::Module::new(module)).any(|one| is_wrong(one, compiler))
}

fn instructions(module: llvm::Module<'_>) -> impl Iterator<Item = Value<'_>> {
    let blocks = module.functions().into_iter().flat_map(Value::blocks);
    blocks.flat_map(|block| block.instructions())
}

/// Gives atomic operations, accesses and fences forms that keep their order and scope.
///
/// # Errors
/// [`Error::Invalid`] for scopes that NVPTX lacks.
pub(crate) fn write(module: &Module<'_>, compiler: Compiler) -> Result<()> {
    let wrong: Vec<_> = instructions(llvm::Module::new(module))
        .filter(|one| is_wrong(*one, compiler))
        .map(|one| one.raw())
        .collect();
    let builder = module.get_context().create_builder();
    for raw in wrong {
        // SAFETY: an instruction of the module; rewriting another one does not remove it.
        let instruction = unsafe { InstructionValue::new(raw) };
        Rewriter { module, builder: &builder }.rewrite(instruction)?;
    }
    Ok(())
}

/// Whether a compiler refuses an instruction, or drops its order or its scope.
fn is_wrong(value: Value<'_>, compiler: Compiler) -> bool {
    if !value.is_atomic() {
        return false;
    }
    let scope = Scope::of(value);
    match value.opcode() {
        LLVMOpcode::LLVMAtomicRMW => {
            value.ordering() != MONOTONIC || scope != Ok(Scope::Device) && word(value).is_some()
        }
        LLVMOpcode::LLVMFence if compiler == Compiler::Nvptx => scope == Ok(Scope::Thread),
        LLVMOpcode::LLVMAtomicCmpXchg if compiler == Compiler::LibNvvm => {
            value.cmpxchg_orderings() != (MONOTONIC, MONOTONIC)
                || scope != Ok(Scope::Device)
                || matches!(value.operand(1).ty().shape(), Shape::Pointer(_))
        }
        // What remains is left to libNVVM, which refuses it.
        LLVMOpcode::LLVMLoad => compiler == Compiler::LibNvvm && is_single(value, value.ty()),
        LLVMOpcode::LLVMStore => {
            compiler == Compiler::LibNvvm && is_single(value, value.operand(0).ty())
        }
        _ => compiler == Compiler::LibNvvm,
    }
}

/// Whether a volatile access is a single one: of a type that PTX has, aligned to its size.
fn is_single(access: Value<'_>, ty: Type<'_>) -> bool {
    let size = match ty.shape() {
        Shape::Int(8) => 1,
        Shape::Int(16) | Shape::Half => 2,
        Shape::Int(32) | Shape::Float => 4,
        Shape::Int(64) | Shape::Double | Shape::Pointer(_) => 8,
        _ => return false,
    };
    access.alignment() >= size
}

/// The operation and the letter of an `atomicrmw` in `atom.sys`, if PTX has it on its type.
fn word(value: Value<'_>) -> Option<(&'static str, char)> {
    let rmw = value.rmw_operation();
    let (is_float, is_whole) = match value.ty().shape() {
        Shape::Float | Shape::Double => (true, false),
        Shape::Int(32 | 64) => (false, true),
        Shape::Pointer(_) => (false, false),
        _ => return None,
    };
    match rmw {
        Rmw::LLVMAtomicRMWBinOpFAdd | Rmw::LLVMAtomicRMWBinOpFSub if is_float => Some(("add", 'f')),
        Rmw::LLVMAtomicRMWBinOpSub => atomic_ptx(Rmw::LLVMAtomicRMWBinOpAdd),
        Rmw::LLVMAtomicRMWBinOpXchg => atomic_ptx(rmw),
        _ if is_whole => atomic_ptx(rmw),
        _ => None,
    }
}

fn is_shared(pointer: Type<'_>) -> bool {
    pointer.shape() == Shape::Pointer(SHARED)
}

struct Rewriter<'a, 'ctx> {
    module: &'a Module<'ctx>,
    builder: &'a Builder<'ctx>,
}

fn building(_: BuilderError) -> Error {
    bug()
}

impl<'ctx> Rewriter<'_, 'ctx> {
    fn rewrite(&self, instruction: InstructionValue<'ctx>) -> Result<()> {
        let value = Value::of(&instruction);
        let scope = Scope::of(value).map_err(|name| {
            Error::Invalid(format!(
                "NVPTX has no synchronisation scope `{name}`; {}",
                Scope::INSTEAD
            ))
        })?;
        self.builder.position_before(&instruction);
        let raw = value.raw();
        match value.opcode() {
            LLVMOpcode::LLVMFence => {
                self.fence(scope)?;
                replace(instruction, None);
                Ok(())
            }
            LLVMOpcode::LLVMAtomicRMW => {
                let ordering = value.ordering();
                let asm = word(value).filter(|_| is_wide(scope, value.operand(0)));
                self.around(instruction, scope, fences(ordering, true), || match asm {
                    Some((name, letter)) => self.operation(value, name, letter).map(Some),
                    None => {
                        // SAFETY: an `atomicrmw`, which has an order.
                        unsafe { LLVMSetOrdering(raw, MONOTONIC) };
                        Ok(None)
                    }
                })
            }
            LLVMOpcode::LLVMAtomicCmpXchg => {
                let (success, failure) = value.cmpxchg_orderings();
                let ordering = stronger(success, failure);
                let is_wide = is_wide(scope, value.operand(0));
                let is_pointer = matches!(value.operand(1).ty().shape(), Shape::Pointer(_));
                let is_word = matches!(value.operand(1).ty().shape(), Shape::Int(32 | 64));
                self.around(instruction, scope, fences(ordering, true), || {
                    if is_pointer || is_wide && is_word {
                        return self.exchange(value, is_wide).map(Some);
                    }
                    // SAFETY: a `cmpxchg`, which has two orders.
                    unsafe {
                        LLVMSetCmpXchgFailureOrdering(raw, MONOTONIC);
                        LLVMSetCmpXchgSuccessOrdering(raw, MONOTONIC);
                    }
                    Ok(None)
                })
            }
            opcode => {
                let ordering = value.ordering();
                let reads = opcode == LLVMOpcode::LLVMLoad;
                self.around(instruction, scope, fences(ordering, reads), || {
                    // SAFETY: a load or a store, which has these properties.
                    unsafe {
                        LLVMSetOrdering(raw, Ordering::LLVMAtomicOrderingNotAtomic);
                        LLVMSetVolatile(raw, 1);
                    }
                    Ok(None)
                })
            }
        }
    }

    /// Changes an instruction, or gives a value for its place, between the fences that it needs.
    fn around(
        &self,
        instruction: InstructionValue<'ctx>,
        scope: Scope,
        (before, after): (bool, bool),
        change: impl FnOnce() -> Result<Option<BasicValueEnum<'ctx>>>,
    ) -> Result<()> {
        let is_ordered = scope != Scope::Thread;
        if before && is_ordered {
            self.fence(scope)?;
        }
        let value = change()?;
        if value.is_none() {
            let next = instruction.get_next_instruction().ok_or_else(bug)?;
            self.builder.position_before(&next);
        }
        if after && is_ordered {
            self.fence(scope)?;
        }
        if value.is_some() {
            replace(instruction, value);
        }
        Ok(())
    }

    fn fence(&self, scope: Scope) -> Result<()> {
        let ty = self.module.get_context().void_type().fn_type(&[], false);
        if scope == Scope::Thread {
            // For the compiler only.
            let text = (String::new(), "~{memory}".to_owned());
            let assembly = self
                .module
                .get_context()
                .create_inline_asm(ty, text.0, text.1, true, false, None, false);
            self.builder.build_indirect_call(ty, assembly, &[], "").map_err(building)?;
            return Ok(());
        }
        let name = format!("llvm.nvvm.membar.{}", scope.membar());
        let known = self.module.get_function(&name);
        let function = known.unwrap_or_else(|| self.module.add_function(&name, ty, None));
        self.builder.build_call(function, &[], "").map_err(building)?;
        Ok(())
    }

    /// An `atomicrmw` at system scope.
    fn operation(
        &self,
        value: Value<'_>,
        name: &str,
        letter: char,
    ) -> Result<BasicValueEnum<'ctx>> {
        let operand = self.value(value.operand(1));
        let operand = match (value.rmw_operation(), operand) {
            (Rmw::LLVMAtomicRMWBinOpSub, BasicValueEnum::IntValue(number)) => {
                self.builder.build_int_neg(number, "").map_err(building)?.into()
            }
            (Rmw::LLVMAtomicRMWBinOpFSub, BasicValueEnum::FloatValue(number)) => {
                self.builder.build_float_neg(number, "").map_err(building)?.into()
            }
            _ => operand,
        };
        let ty = operand.get_type();
        let operand = if letter == 'f' { operand } else { self.to_word(operand)? };
        let (bits, register) = register(operand.get_type()).ok_or_else(bug)?;
        let text = format!("atom.sys.{name}.{letter}{bits} $0, [$1], $2;");
        let constraints = format!("={register},l,{register},~{{memory}}");
        let address = self.address(value)?;
        let old =
            self.assembly(text, constraints, operand.get_type(), &[address.into(), operand])?;
        self.typed(old, ty)
    }

    /// A `cmpxchg` of words, at system scope if `is_wide`. Its result is the pair.
    fn exchange(&self, value: Value<'_>, is_wide: bool) -> Result<BasicValueEnum<'ctx>> {
        let ty = self.value(value.operand(1)).get_type();
        let [expected, new] = [1, 2].map(|at| self.to_word(self.value(value.operand(at))));
        let (expected, new) = (expected?, new?);
        let (BasicValueEnum::IntValue(wanted), BasicValueEnum::IntValue(other)) = (expected, new)
        else {
            return Err(bug());
        };
        let old = if is_wide {
            let (bits, register) = register(wanted.get_type().into()).ok_or_else(bug)?;
            let text = format!("atom.sys.cas.b{bits} $0, [$1], $2, $3;");
            let constraints = format!("={register},l,{register},{register},~{{memory}}");
            let address = self.address(value)?;
            let ty = wanted.get_type().into();
            self.assembly(text, constraints, ty, &[address.into(), expected, new])?
        } else {
            let BasicValueEnum::PointerValue(address) = self.value(value.operand(0)) else {
                return Err(bug());
            };
            let relaxed = inkwell::AtomicOrdering::Monotonic;
            let pair = self.builder.build_cmpxchg(address, wanted, other, relaxed, relaxed);
            self.builder.build_extract_value(pair.map_err(building)?, 0, "").map_err(building)?
        };
        let BasicValueEnum::IntValue(word) = old else { return Err(bug()) };
        let equal = inkwell::IntPredicate::EQ;
        let equal = self.builder.build_int_compare(equal, word, wanted, "").map_err(building)?;
        let pair = self.module.get_context();
        let pair = pair.struct_type(&[ty, pair.bool_type().into()], false).get_undef();
        let old = self.typed(old, ty)?;
        let pair = self.builder.build_insert_value(pair, old, 0, "").map_err(building)?;
        let pair = self.builder.build_insert_value(pair, equal, 1, "").map_err(building)?;
        BasicValueEnum::try_from(pair.as_any_value_enum()).map_err(|()| bug())
    }

    fn assembly(
        &self,
        text: String,
        constraints: String,
        result: BasicTypeEnum<'ctx>,
        arguments: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        use inkwell::types::BasicType as _;
        let types: Vec<_> = arguments.iter().map(|argument| argument.get_type().into()).collect();
        let ty = result.fn_type(&types, false);
        let context = self.module.get_context();
        let assembly = context.create_inline_asm(ty, text, constraints, true, false, None, false);
        let arguments: Vec<BasicMetadataValueEnum<'ctx>> =
            arguments.iter().map(|&argument| argument.into()).collect();
        let made = self.builder.build_indirect_call(ty, assembly, &arguments, "");
        BasicValueEnum::try_from(made.map_err(building)?.as_any_value_enum()).map_err(|()| bug())
    }

    /// The address of an atomic operation as a generic pointer.
    fn address(&self, value: Value<'_>) -> Result<PointerValue<'ctx>> {
        let BasicValueEnum::PointerValue(address) = self.value(value.operand(0)) else {
            return Err(bug());
        };
        if address.get_type().get_address_space() == AddressSpace::default() {
            return Ok(address);
        }
        let generic = self.module.get_context().ptr_type(AddressSpace::default());
        self.builder.build_address_space_cast(address, generic, "").map_err(building)
    }

    fn value(&self, value: Value<'_>) -> BasicValueEnum<'ctx> {
        // SAFETY: an operand of an instruction of the module, which is not a label.
        unsafe { BasicValueEnum::new(value.raw()) }
    }

    /// A number or pointer of 32 or 64 bits as an integer.
    fn to_word(&self, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let context = self.module.get_context();
        Ok(match value {
            BasicValueEnum::FloatValue(float) => {
                let bits = float.get_type().get_bit_width();
                let word = if bits == 32 { context.i32_type() } else { context.i64_type() };
                self.builder.build_bit_cast(float, word, "").map_err(building)?
            }
            BasicValueEnum::PointerValue(pointer) => {
                let word = context.i64_type();
                self.builder.build_ptr_to_int(pointer, word, "").map_err(building)?.into()
            }
            other => other,
        })
    }

    fn typed(
        &self,
        value: BasicValueEnum<'ctx>,
        ty: BasicTypeEnum<'ctx>,
    ) -> Result<BasicValueEnum<'ctx>> {
        Ok(match (value, ty) {
            (BasicValueEnum::IntValue(word), BasicTypeEnum::FloatType(float)) => {
                self.builder.build_bit_cast(word, float, "").map_err(building)?
            }
            (BasicValueEnum::IntValue(word), BasicTypeEnum::PointerType(pointer)) => {
                self.builder.build_int_to_ptr(word, pointer, "").map_err(building)?.into()
            }
            _ => value,
        })
    }
}

/// Whether an operation of this scope must reach beyond the device.
fn is_wide(scope: Scope, address: Value<'_>) -> bool {
    scope == Scope::System && !is_shared(address.ty())
}

/// The size and the constraint letter of a word or float.
fn register(ty: BasicTypeEnum<'_>) -> Option<(u32, char)> {
    match ty {
        BasicTypeEnum::IntType(ty) => match ty.get_bit_width() {
            32 => Some((32, 'r')),
            64 => Some((64, 'l')),
            _ => None,
        },
        BasicTypeEnum::FloatType(ty) => match ty.get_bit_width() {
            32 => Some((32, 'f')),
            64 => Some((64, 'd')),
            _ => None,
        },
        _ => None,
    }
}
