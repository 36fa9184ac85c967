//! A read-only view of an LLVM module, for everything that inkwell does not expose: opcodes, flags,
//! the source type of a `getelementptr`, attributes, metadata and constants.
//!
//! Every handle borrows its module (`'m`), and no call here changes the module. The safety comments
//! below rely on this when they say "alive": LLVM keeps a value as long as its module is neither
//! changed nor disposed of, and inkwell's borrow rules out both.

use std::ffi::{CStr, c_char};
use std::marker::PhantomData;

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::*;
use inkwell::llvm_sys::{LLVMAttributeIndex, LLVMOpcode};

mod globals;
mod instruction;
mod metadata;
mod types;

pub(crate) use metadata::{Meta, Position, builder_position};

/// The module.
#[derive(Clone, Copy)]
pub(crate) struct Module<'m>(LLVMModuleRef, PhantomData<&'m ()>);

/// A constant, a parameter, an instruction, a function or a global.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Value<'m>(LLVMValueRef, PhantomData<&'m ()>);

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Block<'m>(LLVMBasicBlockRef, PhantomData<&'m ()>);

/// A type.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Type<'m>(LLVMTypeRef, PhantomData<&'m ()>);

/// The structure of a type.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum Shape<'m> {
    Void,
    Half,
    Float,
    Double,
    /// Its width in bits.
    Int(u32),
    /// Its address space.
    Pointer(u32),
    Array(Type<'m>, u64),
    Vector(Type<'m>, u32),
    Struct,
    Function,
    Metadata,
    /// A type that LLVM 7 for NVPTX lacks, in LLVM 22's spelling.
    Foreign(String),
}

/// The kind of a value.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Kind {
    Parameter,
    Instruction,
    Function,
    Variable,
    Alias,
    Int,
    Real,
    Null,
    Undefined,
    Zero,
    /// An array, a vector or a structure whose elements are listed.
    Aggregate,
    Expression,
    Asm,
    Metadata,
    Block,
    /// A constant without use on NVPTX (`blockaddress`, `token none`, `ptrauth`).
    Foreign,
}

/// An attribute of a function, a parameter or a result.
#[derive(Clone)]
pub(crate) enum Attribute<'m> {
    /// Kind and value (0 for those without one).
    Enum(u32, u64),
    Type(u32, Type<'m>),
    Text(String, String),
    /// One with a range or a list of ranges.
    Range(u32),
}

impl Attribute<'_> {
    /// LLVM's number for it; `None` for a string attribute.
    pub(crate) fn kind(&self) -> Option<u32> {
        match self {
            Attribute::Enum(kind, _) | Attribute::Type(kind, _) | Attribute::Range(kind) => {
                Some(*kind)
            }
            Attribute::Text(..) => None,
        }
    }
}

/// The position of attributes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Function,
    Result,
    /// Counted from 0.
    Parameter(u32),
}

impl Place {
    fn index(self) -> LLVMAttributeIndex {
        match self {
            Place::Function => inkwell::llvm_sys::LLVMAttributeFunctionIndex,
            Place::Result => inkwell::llvm_sys::LLVMAttributeReturnIndex,
            Place::Parameter(parameter) => parameter + 1,
        }
    }
}

/// The text at a pointer with a length; invalid UTF-8 is replaced.
fn text(data: *const c_char, length: usize) -> String {
    String::from_utf8_lossy(bytes(data, length)).into_owned()
}

fn bytes<'a>(data: *const c_char, length: usize) -> &'a [u8] {
    if data.is_null() {
        return &[];
    }
    // SAFETY: LLVM returned `data` together with its length, and it belongs to a module that is alive.
    unsafe { std::slice::from_raw_parts(data.cast(), length) }
}

/// An LLVM-owned C string; `None` for null.
fn c_string(data: *const c_char) -> Option<String> {
    if data.is_null() {
        return None;
    }
    // SAFETY: LLVM returns names, triples and layouts as C strings that live as long as the object
    // they name.
    Some(unsafe { CStr::from_ptr(data) }.to_string_lossy().into_owned())
}

/// Takes ownership of a message that LLVM allocated.
fn message(data: *mut c_char) -> String {
    if data.is_null() {
        return String::new();
    }
    // SAFETY: LLVM's print functions return a C string that the caller owns.
    let text = unsafe { CStr::from_ptr(data) }.to_string_lossy().into_owned();
    // SAFETY: as above; it is not used afterwards.
    unsafe { LLVMDisposeMessage(data) };
    text
}

/// LLVM's number for the attribute `name`; `None` if it is unknown.
pub(crate) fn attribute_kind(name: &str) -> Option<u32> {
    // SAFETY: the name is given with its length.
    let kind = unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) };
    (kind != 0).then_some(kind)
}

impl<'m> Module<'m> {
    pub(crate) fn new(module: &'m inkwell::module::Module<'_>) -> Self {
        Module(module.as_mut_ptr(), PhantomData)
    }

    pub(crate) fn triple(self) -> String {
        // SAFETY: the module is alive.
        c_string(unsafe { LLVMGetTarget(self.0) }).unwrap_or_default()
    }

    pub(crate) fn data_layout(self) -> String {
        // SAFETY: the module is alive.
        c_string(unsafe { LLVMGetDataLayoutStr(self.0) }).unwrap_or_default()
    }

    /// Module-level inline assembly.
    pub(crate) fn inline_asm(self) -> String {
        let mut length = 0;
        // SAFETY: the module is alive.
        let data = unsafe { LLVMGetModuleInlineAsm(self.0, &mut length) };
        text(data, length)
    }

    pub(crate) fn functions(self) -> Vec<Value<'m>> {
        // SAFETY: the module is alive, and LLVM gives the next function or null.
        unsafe { list(LLVMGetFirstFunction(self.0), |value| LLVMGetNextFunction(value)) }
    }

    pub(crate) fn variables(self) -> Vec<Value<'m>> {
        // SAFETY: the module is alive, and LLVM gives the next global or null.
        unsafe { list(LLVMGetFirstGlobal(self.0), |value| LLVMGetNextGlobal(value)) }
    }

    pub(crate) fn aliases(self) -> Vec<Value<'m>> {
        // SAFETY: the module is alive, and LLVM gives the next alias or null.
        unsafe { list(LLVMGetFirstGlobalAlias(self.0), |value| LLVMGetNextGlobalAlias(value)) }
    }

    pub(crate) fn resolvers(self) -> Vec<Value<'m>> {
        // SAFETY: the module is alive, and LLVM gives the next ifunc or null.
        unsafe { list(LLVMGetFirstGlobalIFunc(self.0), |value| LLVMGetNextGlobalIFunc(value)) }
    }
}

/// Follows one of LLVM's linked lists to its end.
///
/// # Safety
///
/// `next` must accept `first` and every non-null value that it returns.
unsafe fn list<'m>(
    first: LLVMValueRef,
    next: impl Fn(LLVMValueRef) -> LLVMValueRef,
) -> Vec<Value<'m>> {
    let mut values = Vec::new();
    let mut value = first;
    while !value.is_null() {
        values.push(Value(value, PhantomData));
        value = next(value);
    }
    values
}

impl<'m> Value<'m> {
    /// A value of inkwell.
    pub(crate) fn of(value: &'m impl inkwell::values::AsValueRef) -> Value<'m> {
        Value(value.as_value_ref(), PhantomData)
    }

    pub(crate) fn kind(self) -> Kind {
        /// LLVM's casting functions with their kinds; the first match wins.
        const CASTS: [(unsafe extern "C" fn(LLVMValueRef) -> LLVMValueRef, Kind); 18] = [
            (LLVMIsAInstruction, Kind::Instruction),
            (LLVMIsAArgument, Kind::Parameter),
            (LLVMIsAConstantInt, Kind::Int),
            (LLVMIsAConstantFP, Kind::Real),
            (LLVMIsAConstantPointerNull, Kind::Null),
            (LLVMIsAUndefValue, Kind::Undefined),
            (LLVMIsAConstantAggregateZero, Kind::Zero),
            (LLVMIsAConstantDataSequential, Kind::Aggregate),
            (LLVMIsAConstantArray, Kind::Aggregate),
            (LLVMIsAConstantStruct, Kind::Aggregate),
            (LLVMIsAConstantVector, Kind::Aggregate),
            (LLVMIsAFunction, Kind::Function),
            (LLVMIsAGlobalVariable, Kind::Variable),
            (LLVMIsAGlobalAlias, Kind::Alias),
            (LLVMIsAConstantExpr, Kind::Expression),
            (LLVMIsAInlineAsm, Kind::Asm),
            (LLVMIsABasicBlock, Kind::Block),
            (LLVMIsAMDNode, Kind::Metadata),
        ];
        // SAFETY: the casting functions take every value and return null for one of another kind.
        let fits = |cast: unsafe extern "C" fn(LLVMValueRef) -> LLVMValueRef| unsafe {
            !cast(self.0).is_null()
        };
        CASTS.iter().find(|(cast, _)| fits(*cast)).map_or(Kind::Foreign, |&(_, kind)| kind)
    }

    /// LLVM's own handle, for reading.
    pub(crate) fn raw(self) -> LLVMValueRef {
        self.0
    }

    /// Whether it is a constant whose bytes are zero.
    pub(crate) fn is_zero(self) -> bool {
        // SAFETY: the value is alive.
        unsafe { LLVMIsNull(self.0) != 0 }
    }

    pub(crate) fn is_constant(self) -> bool {
        // SAFETY: the value is alive.
        unsafe { LLVMIsConstant(self.0) != 0 }
    }

    pub(crate) fn ty(self) -> Type<'m> {
        // SAFETY: the value is alive.
        Type(unsafe { LLVMTypeOf(self.0) }, PhantomData)
    }

    /// Its name; `None` if it is only numbered.
    pub(crate) fn name(self) -> Option<Vec<u8>> {
        let mut length = 0;
        // SAFETY: the value is alive.
        let data = unsafe { LLVMGetValueName2(self.0, &mut length) };
        (length > 0).then(|| bytes(data, length).to_vec())
    }

    /// The name as text; empty if it has none.
    pub(crate) fn text_name(self) -> String {
        String::from_utf8_lossy(&self.name().unwrap_or_default()).into_owned()
    }

    /// Its text, as LLVM 22 prints it.
    pub(crate) fn print(self) -> String {
        // SAFETY: the value is alive.
        message(unsafe { LLVMPrintValueToString(self.0) }).trim().to_owned()
    }

    pub(crate) fn operand(self, index: u32) -> Value<'m> {
        // SAFETY: only called with an index below `operand_count`.
        Value(unsafe { LLVMGetOperand(self.0, index) }, PhantomData)
    }

    pub(crate) fn operand_count(self) -> u32 {
        // SAFETY: only called for instructions and constants, which are users.
        u32::try_from(unsafe { LLVMGetNumOperands(self.0) }).unwrap_or(0)
    }

    pub(crate) fn operands(self) -> Vec<Value<'m>> {
        (0..self.operand_count()).map(|index| self.operand(index)).collect()
    }

    /// The value of an integer constant of at most 64 bits, sign-extended.
    pub(crate) fn int(self) -> Option<i64> {
        // SAFETY: it is an integer constant that fits.
        self.is_word().then(|| unsafe { LLVMConstIntGetSExtValue(self.0) })
    }

    /// The value of an integer constant of at most 64 bits, zero-extended.
    pub(crate) fn unsigned(self) -> Option<u64> {
        // SAFETY: it is an integer constant that fits.
        self.is_word().then(|| unsafe { LLVMConstIntGetZExtValue(self.0) })
    }

    /// Whether the value is an integer constant of at most 64 bits.
    fn is_word(self) -> bool {
        self.kind() == Kind::Int && matches!(self.ty().shape(), Shape::Int(width) if width <= 64)
    }

    /// The bytes of an `[n x i8]` constant that is stored as a string.
    pub(crate) fn string(self) -> Option<&'m [u8]> {
        // SAFETY: the casting function takes every value; LLVM answers only for constants stored as
        // data.
        if unsafe {
            LLVMIsAConstantDataSequential(self.0).is_null() || LLVMIsConstantString(self.0) == 0
        } {
            return None;
        }
        let mut length = 0;
        // SAFETY: it is a string.
        let data = unsafe { LLVMGetAsString(self.0, &mut length) };
        Some(bytes(data, length))
    }

    /// Element `index` of an aggregate constant.
    pub(crate) fn element(self, index: u32) -> Option<Value<'m>> {
        // SAFETY: the value is a constant; LLVM returns null for a missing element.
        let element = unsafe { LLVMGetAggregateElement(self.0, index) };
        (!element.is_null()).then_some(Value(element, PhantomData))
    }

    /// The opcode of a constant expression.
    pub(crate) fn constant_opcode(self) -> LLVMOpcode {
        // SAFETY: only called for constant expressions.
        unsafe { LLVMGetConstOpcode(self.0) }
    }

    /// The source element type of a `getelementptr`, instruction or constant.
    pub(crate) fn gep_source(self) -> Type<'m> {
        // SAFETY: only called for a `getelementptr`.
        Type(unsafe { LLVMGetGEPSourceElementType(self.0) }, PhantomData)
    }

    /// Whether a `getelementptr` is `inbounds`.
    pub(crate) fn is_inbounds(self) -> bool {
        // SAFETY: only called for a `getelementptr`.
        unsafe { LLVMIsInBounds(self.0) != 0 }
    }
}
