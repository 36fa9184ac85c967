//! A read-only view of an LLVM module, for what inkwell does not show: opcodes, flags, the source type of a
//! `getelementptr`, attributes, metadata and constants.
//!
//! Every handle borrows the module it came from (`'m`), and no call here changes the module. That is what
//! the safety comments below mean by "alive": LLVM keeps a value as long as its module is neither changed
//! nor disposed of, and inkwell's borrow rules out both.

use std::ffi::{CStr, c_char, c_uint};
use std::marker::PhantomData;

use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::*;
use inkwell::llvm_sys::{LLVMAttributeIndex, LLVMLinkage, LLVMOpcode, LLVMTypeKind};

mod instruction;
mod metadata;

pub(super) use metadata::Meta;

/// The module.
#[derive(Clone, Copy)]
pub(super) struct Module<'m>(LLVMModuleRef, PhantomData<&'m ()>);

/// A constant, a parameter, an instruction, a function or a global.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Value<'m>(LLVMValueRef, PhantomData<&'m ()>);

/// A basic block.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Block<'m>(LLVMBasicBlockRef, PhantomData<&'m ()>);

/// A type.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Type<'m>(LLVMTypeRef, PhantomData<&'m ()>);

/// What a type is made of.
#[derive(Clone, PartialEq, Eq)]
pub(super) enum Shape<'m> {
    Void,
    Half,
    Float,
    Double,
    /// Width in bits.
    Int(u32),
    /// Address space.
    Pointer(u32),
    Array(Type<'m>, u64),
    Vector(Type<'m>, u32),
    Struct,
    Function,
    Metadata,
    /// A type that LLVM 7 for NVPTX has not, as LLVM 22 writes it.
    Foreign(String),
}

/// What a value is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
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
    /// A constant that NVPTX has no use for (`blockaddress`, `token none`, `ptrauth`).
    Foreign,
}

/// An attribute of a function, a parameter or a result.
#[derive(Clone)]
pub(super) enum Attribute<'m> {
    /// Kind and value (0 for those without one).
    Enum(u32, u64),
    Type(u32, Type<'m>),
    Text(String, String),
    /// One that holds a range or a list of ranges.
    Range(u32),
}

impl Attribute<'_> {
    /// The number that LLVM gives it, or `None` for one that is a string.
    pub(super) fn kind(&self) -> Option<u32> {
        match self {
            Attribute::Enum(kind, _) | Attribute::Type(kind, _) | Attribute::Range(kind) => {
                Some(*kind)
            }
            Attribute::Text(..) => None,
        }
    }
}

/// Where attributes stand.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Place {
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

/// The text behind a pointer and a length, bytes that are not UTF-8 replaced.
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

/// Takes a message that LLVM allocated.
fn message(data: *mut c_char) -> String {
    if data.is_null() {
        return String::new();
    }
    // SAFETY: LLVM's print functions return a C string that the caller owns.
    let text = unsafe { CStr::from_ptr(data) }.to_string_lossy().into_owned();
    // SAFETY: as above; it is used no more.
    unsafe { LLVMDisposeMessage(data) };
    text
}

/// The number that LLVM gave the attribute `name`, or `None` if it knows none.
pub(super) fn attribute_kind(name: &str) -> Option<u32> {
    // SAFETY: the name is given with its length.
    let kind = unsafe { LLVMGetEnumAttributeKindForName(name.as_ptr().cast(), name.len()) };
    (kind != 0).then_some(kind)
}

impl<'m> Module<'m> {
    pub(super) fn new(module: &'m inkwell::module::Module<'_>) -> Self {
        Module(module.as_mut_ptr(), PhantomData)
    }

    pub(super) fn triple(self) -> String {
        // SAFETY: the module is alive.
        let data = unsafe { LLVMGetTarget(self.0) };
        // SAFETY: LLVM's target triple is a C string, possibly empty.
        if data.is_null() {
            String::new()
        } else {
            unsafe { CStr::from_ptr(data) }.to_string_lossy().into_owned()
        }
    }

    pub(super) fn data_layout(self) -> String {
        // SAFETY: the module is alive.
        let data = unsafe { LLVMGetDataLayoutStr(self.0) };
        // SAFETY: LLVM's data layout is a C string, possibly empty.
        if data.is_null() {
            String::new()
        } else {
            unsafe { CStr::from_ptr(data) }.to_string_lossy().into_owned()
        }
    }

    /// Assembly that stands in the module outside every function.
    pub(super) fn inline_asm(self) -> String {
        let mut length = 0;
        // SAFETY: the module is alive.
        let data = unsafe { LLVMGetModuleInlineAsm(self.0, &mut length) };
        text(data, length)
    }

    pub(super) fn functions(self) -> Vec<Value<'m>> {
        // SAFETY: the module is alive, and LLVM gives the next function or null.
        unsafe { list(LLVMGetFirstFunction(self.0), |value| LLVMGetNextFunction(value)) }
    }

    pub(super) fn variables(self) -> Vec<Value<'m>> {
        // SAFETY: the module is alive, and LLVM gives the next global or null.
        unsafe { list(LLVMGetFirstGlobal(self.0), |value| LLVMGetNextGlobal(value)) }
    }

    pub(super) fn aliases(self) -> Vec<Value<'m>> {
        // SAFETY: the module is alive, and LLVM gives the next alias or null.
        unsafe { list(LLVMGetFirstGlobalAlias(self.0), |value| LLVMGetNextGlobalAlias(value)) }
    }

    pub(super) fn resolvers(self) -> Vec<Value<'m>> {
        // SAFETY: the module is alive, and LLVM gives the next ifunc or null.
        unsafe { list(LLVMGetFirstGlobalIFunc(self.0), |value| LLVMGetNextGlobalIFunc(value)) }
    }
}

/// Follows a list of LLVM's to its end.
///
/// # Safety
///
/// `next` must be fit for `first` and for all that it returns, other than null.
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

impl<'m> Type<'m> {
    pub(super) fn shape(self) -> Shape<'m> {
        // SAFETY: the type is alive.
        match unsafe { LLVMGetTypeKind(self.0) } {
            LLVMTypeKind::LLVMVoidTypeKind => Shape::Void,
            LLVMTypeKind::LLVMHalfTypeKind => Shape::Half,
            LLVMTypeKind::LLVMFloatTypeKind => Shape::Float,
            LLVMTypeKind::LLVMDoubleTypeKind => Shape::Double,
            // SAFETY: it is an integer type.
            LLVMTypeKind::LLVMIntegerTypeKind => Shape::Int(unsafe { LLVMGetIntTypeWidth(self.0) }),
            // SAFETY: it is a pointer type.
            LLVMTypeKind::LLVMPointerTypeKind => {
                Shape::Pointer(unsafe { LLVMGetPointerAddressSpace(self.0) })
            }
            // SAFETY: it is an array type.
            LLVMTypeKind::LLVMArrayTypeKind => {
                Shape::Array(self.element(), unsafe { LLVMGetArrayLength2(self.0) })
            }
            // SAFETY: it is a vector type.
            LLVMTypeKind::LLVMVectorTypeKind => {
                Shape::Vector(self.element(), unsafe { LLVMGetVectorSize(self.0) })
            }
            LLVMTypeKind::LLVMStructTypeKind => Shape::Struct,
            LLVMTypeKind::LLVMFunctionTypeKind => Shape::Function,
            LLVMTypeKind::LLVMMetadataTypeKind => Shape::Metadata,
            _ => Shape::Foreign(self.print()),
        }
    }

    /// As LLVM 22 writes it.
    pub(super) fn print(self) -> String {
        // SAFETY: the type is alive.
        message(unsafe { LLVMPrintTypeToString(self.0) })
    }

    /// The element of an array or vector.
    fn element(self) -> Type<'m> {
        // SAFETY: only called for array and vector types.
        Type(unsafe { LLVMGetElementType(self.0) }, PhantomData)
    }

    /// The name of a structure type, or `None` if it is literal or has none.
    pub(super) fn struct_name(self) -> Option<String> {
        // SAFETY: only called for structure types.
        let data = unsafe { LLVMGetStructName(self.0) };
        // SAFETY: a structure's name is a C string.
        (!data.is_null()).then(|| unsafe { CStr::from_ptr(data) }.to_string_lossy().into_owned())
    }

    pub(super) fn is_literal(self) -> bool {
        // SAFETY: only called for structure types.
        unsafe { LLVMIsLiteralStruct(self.0) != 0 }
    }

    pub(super) fn is_opaque(self) -> bool {
        // SAFETY: only called for structure types.
        unsafe { LLVMIsOpaqueStruct(self.0) != 0 }
    }

    pub(super) fn is_packed(self) -> bool {
        // SAFETY: only called for structure types.
        unsafe { LLVMIsPackedStruct(self.0) != 0 }
    }

    /// The fields of a structure type that is not opaque.
    pub(super) fn fields(self) -> Vec<Type<'m>> {
        // SAFETY: only called for structure types.
        let count = unsafe { LLVMCountStructElementTypes(self.0) };
        let mut fields = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: there is room for as many types as LLVM counted.
        unsafe { LLVMGetStructElementTypes(self.0, fields.as_mut_ptr()) };
        fields.into_iter().map(|field| Type(field, PhantomData)).collect()
    }

    /// The result of a function type.
    pub(super) fn result(self) -> Type<'m> {
        // SAFETY: only called for function types.
        Type(unsafe { LLVMGetReturnType(self.0) }, PhantomData)
    }

    /// The parameters of a function type.
    pub(super) fn parameters(self) -> Vec<Type<'m>> {
        // SAFETY: only called for function types.
        let count = unsafe { LLVMCountParamTypes(self.0) };
        let mut parameters = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: there is room for as many types as LLVM counted.
        unsafe { LLVMGetParamTypes(self.0, parameters.as_mut_ptr()) };
        parameters.into_iter().map(|parameter| Type(parameter, PhantomData)).collect()
    }

    /// Whether a function type takes a variable number of arguments.
    pub(super) fn is_variadic(self) -> bool {
        // SAFETY: only called for function types.
        unsafe { LLVMIsFunctionVarArg(self.0) != 0 }
    }
}

impl<'m> Value<'m> {
    pub(super) fn kind(self) -> Kind {
        /// LLVM's casting functions with the kind that each stands for; the first that fits holds.
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
        // SAFETY: the casting functions take every value and give null for one of another kind.
        let fits = |cast: unsafe extern "C" fn(LLVMValueRef) -> LLVMValueRef| unsafe {
            !cast(self.0).is_null()
        };
        CASTS.iter().find(|(cast, _)| fits(*cast)).map_or(Kind::Foreign, |&(_, kind)| kind)
    }

    pub(super) fn is_constant(self) -> bool {
        // SAFETY: the value is alive.
        unsafe { LLVMIsConstant(self.0) != 0 }
    }

    pub(super) fn ty(self) -> Type<'m> {
        // SAFETY: the value is alive.
        Type(unsafe { LLVMTypeOf(self.0) }, PhantomData)
    }

    /// Its name, or `None` if it is only numbered.
    pub(super) fn name(self) -> Option<Vec<u8>> {
        let mut length = 0;
        // SAFETY: the value is alive.
        let data = unsafe { LLVMGetValueName2(self.0, &mut length) };
        (length > 0).then(|| bytes(data, length).to_vec())
    }

    /// As LLVM 22 writes it.
    pub(super) fn print(self) -> String {
        // SAFETY: the value is alive.
        message(unsafe { LLVMPrintValueToString(self.0) }).trim().to_owned()
    }

    pub(super) fn operand(self, index: u32) -> Value<'m> {
        // SAFETY: only called with an index below `operand_count`.
        Value(unsafe { LLVMGetOperand(self.0, index) }, PhantomData)
    }

    pub(super) fn operand_count(self) -> u32 {
        // SAFETY: only called for instructions and constants, which are users.
        u32::try_from(unsafe { LLVMGetNumOperands(self.0) }).unwrap_or(0)
    }

    pub(super) fn operands(self) -> Vec<Value<'m>> {
        (0..self.operand_count()).map(|index| self.operand(index)).collect()
    }

    /// The value of an integer constant of at most 64 bits, sign-extended.
    pub(super) fn int(self) -> Option<i64> {
        match (self.kind(), self.ty().shape()) {
            // SAFETY: it is an integer constant that fits.
            (Kind::Int, Shape::Int(width)) if width <= 64 => {
                Some(unsafe { LLVMConstIntGetSExtValue(self.0) })
            }
            _ => None,
        }
    }

    /// The value of an integer constant of at most 64 bits, zero-extended.
    pub(super) fn unsigned(self) -> Option<u64> {
        match (self.kind(), self.ty().shape()) {
            // SAFETY: it is an integer constant that fits.
            (Kind::Int, Shape::Int(width)) if width <= 64 => {
                Some(unsafe { LLVMConstIntGetZExtValue(self.0) })
            }
            _ => None,
        }
    }

    /// The bytes of an `[n x i8]` constant that is stored as such.
    pub(super) fn string(self) -> Option<&'m [u8]> {
        // SAFETY: the casting function takes every value; LLVM answers for what is stored as data.
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
    pub(super) fn element(self, index: u32) -> Option<Value<'m>> {
        // SAFETY: the value is a constant; LLVM gives null for what is not there.
        let element = unsafe { LLVMGetAggregateElement(self.0, index) };
        (!element.is_null()).then_some(Value(element, PhantomData))
    }

    /// The opcode of a constant expression.
    pub(super) fn constant_opcode(self) -> LLVMOpcode {
        // SAFETY: only called for constant expressions.
        unsafe { LLVMGetConstOpcode(self.0) }
    }

    /// The source element type of a `getelementptr`, instruction or constant.
    pub(super) fn gep_source(self) -> Type<'m> {
        // SAFETY: only called for a `getelementptr`.
        Type(unsafe { LLVMGetGEPSourceElementType(self.0) }, PhantomData)
    }

    /// Whether a `getelementptr` is `inbounds`.
    pub(super) fn is_inbounds(self) -> bool {
        // SAFETY: only called for a `getelementptr`.
        unsafe { LLVMIsInBounds(self.0) != 0 }
    }

    /// The type of a global variable's contents, of a function, or of what an alias stands for.
    pub(super) fn value_type(self) -> Type<'m> {
        // SAFETY: only called for functions, global variables and aliases.
        Type(unsafe { LLVMGlobalGetValueType(self.0) }, PhantomData)
    }

    pub(super) fn linkage(self) -> LLVMLinkage {
        // SAFETY: only called for functions, global variables and aliases.
        unsafe { LLVMGetLinkage(self.0) }
    }

    pub(super) fn is_declaration(self) -> bool {
        // SAFETY: only called for functions and global variables.
        unsafe { LLVMIsDeclaration(self.0) != 0 }
    }

    pub(super) fn section(self) -> String {
        // SAFETY: only called for functions and global variables.
        let data = unsafe { LLVMGetSection(self.0) };
        // SAFETY: a section's name is a C string, possibly empty.
        if data.is_null() {
            String::new()
        } else {
            unsafe { CStr::from_ptr(data) }.to_string_lossy().into_owned()
        }
    }

    /// `unnamed_addr`, `local_unnamed_addr` or nothing, with a blank before it.
    pub(super) fn unnamed_address(self) -> &'static str {
        use inkwell::llvm_sys::LLVMUnnamedAddr as Addr;
        // SAFETY: only called for functions and global variables.
        match unsafe { LLVMGetUnnamedAddress(self.0) } {
            Addr::LLVMNoUnnamedAddr => "",
            Addr::LLVMLocalUnnamedAddr => " local_unnamed_addr",
            Addr::LLVMGlobalUnnamedAddr => " unnamed_addr",
        }
    }

    /// In bytes; 0 if none is given. For globals, functions, `alloca`, `load` and `store`.
    pub(super) fn alignment(self) -> u32 {
        // SAFETY: only called for values that have one.
        unsafe { LLVMGetAlignment(self.0) }
    }

    pub(super) fn initializer(self) -> Option<Value<'m>> {
        // SAFETY: only called for global variables; LLVM gives null for a declaration.
        let value = unsafe { LLVMGetInitializer(self.0) };
        (!value.is_null()).then_some(Value(value, PhantomData))
    }

    pub(super) fn is_global_constant(self) -> bool {
        // SAFETY: only called for global variables.
        unsafe { LLVMIsGlobalConstant(self.0) != 0 }
    }

    pub(super) fn is_thread_local(self) -> bool {
        // SAFETY: only called for global variables.
        unsafe { LLVMIsThreadLocal(self.0) != 0 }
    }

    pub(super) fn is_externally_initialized(self) -> bool {
        // SAFETY: only called for global variables.
        unsafe { LLVMIsExternallyInitialized(self.0) != 0 }
    }

    pub(super) fn calling_convention(self) -> u32 {
        // SAFETY: only called for functions.
        unsafe { LLVMGetFunctionCallConv(self.0) }
    }

    pub(super) fn parameters(self) -> Vec<Value<'m>> {
        // SAFETY: only called for functions.
        let count = unsafe { LLVMCountParams(self.0) };
        // SAFETY: the index is below the count.
        (0..count).map(|index| Value(unsafe { LLVMGetParam(self.0, index) }, PhantomData)).collect()
    }

    /// What stands around a function's body and NVPTX has no place for, by its name in LLVM's text.
    pub(super) fn function_extra(self) -> Option<&'static str> {
        // SAFETY: only called for functions.
        unsafe {
            if LLVMHasPersonalityFn(self.0) != 0 {
                Some("personality")
            } else if !LLVMGetGC(self.0).is_null() {
                Some("gc")
            } else if LLVMHasPrefixData(self.0) != 0 {
                Some("prefix")
            } else if LLVMHasPrologueData(self.0) != 0 {
                Some("prologue")
            } else {
                None
            }
        }
    }

    /// The name of the intrinsic without the types it is overloaded on, if the function is one.
    pub(super) fn intrinsic(self) -> Option<String> {
        // SAFETY: only called for functions.
        let id = unsafe { LLVMGetIntrinsicID(self.0) };
        if id == 0 {
            return None;
        }
        let mut length = 0;
        // SAFETY: the number is an intrinsic's.
        let data = unsafe { LLVMIntrinsicGetName(id, &mut length) };
        Some(text(data, length))
    }

    pub(super) fn blocks(self) -> Vec<Block<'m>> {
        let mut blocks = Vec::new();
        // SAFETY: only called for functions; LLVM gives the next block or null.
        let mut block = unsafe { LLVMGetFirstBasicBlock(self.0) };
        while !block.is_null() {
            blocks.push(Block(block, PhantomData));
            // SAFETY: the block is alive.
            block = unsafe { LLVMGetNextBasicBlock(block) };
        }
        blocks
    }

    /// The attributes of a function.
    pub(super) fn attributes(self, place: Place) -> Vec<Attribute<'m>> {
        // SAFETY: only called for functions.
        let count = unsafe { LLVMGetAttributeCountAtIndex(self.0, place.index()) };
        let mut found = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: there is room for as many attributes as LLVM counted.
        unsafe { LLVMGetAttributesAtIndex(self.0, place.index(), found.as_mut_ptr()) };
        found.into_iter().map(attribute).collect()
    }

    /// The attributes of a call.
    pub(super) fn call_attributes(self, place: Place) -> Vec<Attribute<'m>> {
        // SAFETY: only called for calls.
        let count = unsafe { LLVMGetCallSiteAttributeCount(self.0, place.index()) };
        let mut found = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: there is room for as many attributes as LLVM counted.
        unsafe { LLVMGetCallSiteAttributes(self.0, place.index(), found.as_mut_ptr()) };
        found.into_iter().map(attribute).collect()
    }
}

fn attribute<'m>(found: LLVMAttributeRef) -> Attribute<'m> {
    // SAFETY: the attribute belongs to a value that is alive.
    unsafe {
        if LLVMIsStringAttribute(found) != 0 {
            let mut length: c_uint = 0;
            let key = text(LLVMGetStringAttributeKind(found, &mut length), length as usize);
            let value = text(LLVMGetStringAttributeValue(found, &mut length), length as usize);
            Attribute::Text(key, value)
        } else if LLVMIsTypeAttribute(found) != 0 {
            let ty = LLVMGetTypeAttributeValue(found);
            Attribute::Type(LLVMGetEnumAttributeKind(found), Type(ty, PhantomData))
        } else if LLVMIsEnumAttribute(found) != 0 {
            Attribute::Enum(LLVMGetEnumAttributeKind(found), LLVMGetEnumAttributeValue(found))
        } else {
            Attribute::Range(LLVMGetEnumAttributeKind(found))
        }
    }
}
