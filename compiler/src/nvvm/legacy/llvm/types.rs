//! Accessors for types.

use std::marker::PhantomData;

use inkwell::llvm_sys::LLVMTypeKind;
use inkwell::llvm_sys::core::*;

use super::{Shape, Type, c_string, message};

impl<'m> Type<'m> {
    pub(crate) fn shape(self) -> Shape<'m> {
        // SAFETY: the type is alive.
        match unsafe { LLVMGetTypeKind(self.0) } {
            LLVMTypeKind::LLVMVoidTypeKind => Shape::Void,
            LLVMTypeKind::LLVMHalfTypeKind => Shape::Half,
            LLVMTypeKind::LLVMFloatTypeKind => Shape::Float,
            LLVMTypeKind::LLVMDoubleTypeKind => Shape::Double,
            LLVMTypeKind::LLVMIntegerTypeKind => {
                // SAFETY: it is an integer type.
                Shape::Int(unsafe { LLVMGetIntTypeWidth(self.0) })
            }
            LLVMTypeKind::LLVMPointerTypeKind => {
                // SAFETY: it is a pointer type.
                Shape::Pointer(unsafe { LLVMGetPointerAddressSpace(self.0) })
            }
            LLVMTypeKind::LLVMArrayTypeKind => {
                // SAFETY: it is an array type.
                let count = unsafe { LLVMGetArrayLength2(self.0) };
                Shape::Array(self.element(), count)
            }
            LLVMTypeKind::LLVMVectorTypeKind => {
                // SAFETY: it is a vector type.
                let count = unsafe { LLVMGetVectorSize(self.0) };
                Shape::Vector(self.element(), count)
            }
            LLVMTypeKind::LLVMStructTypeKind => Shape::Struct,
            LLVMTypeKind::LLVMFunctionTypeKind => Shape::Function,
            LLVMTypeKind::LLVMMetadataTypeKind => Shape::Metadata,
            _ => Shape::Foreign(self.print()),
        }
    }

    /// Its text, as LLVM 22 prints it.
    pub(crate) fn print(self) -> String {
        // SAFETY: the type is alive.
        message(unsafe { LLVMPrintTypeToString(self.0) })
    }

    /// The element of an array or vector.
    fn element(self) -> Type<'m> {
        // SAFETY: only called for array and vector types.
        Type(unsafe { LLVMGetElementType(self.0) }, PhantomData)
    }

    /// The name of a structure type; `None` if it is literal or unnamed.
    pub(crate) fn struct_name(self) -> Option<String> {
        // SAFETY: only called for structure types.
        c_string(unsafe { LLVMGetStructName(self.0) })
    }

    pub(crate) fn is_literal(self) -> bool {
        // SAFETY: only called for structure types.
        unsafe { LLVMIsLiteralStruct(self.0) != 0 }
    }

    pub(crate) fn is_opaque(self) -> bool {
        // SAFETY: only called for structure types.
        unsafe { LLVMIsOpaqueStruct(self.0) != 0 }
    }

    pub(crate) fn is_packed(self) -> bool {
        // SAFETY: only called for structure types.
        unsafe { LLVMIsPackedStruct(self.0) != 0 }
    }

    /// The fields of a structure type that is not opaque.
    pub(crate) fn fields(self) -> Vec<Type<'m>> {
        // SAFETY: only called for structure types.
        let count = unsafe { LLVMCountStructElementTypes(self.0) };
        let mut fields = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: there is room for as many types as LLVM counted.
        unsafe { LLVMGetStructElementTypes(self.0, fields.as_mut_ptr()) };
        fields.into_iter().map(|field| Type(field, PhantomData)).collect()
    }

    /// The result of a function type.
    pub(crate) fn result(self) -> Type<'m> {
        // SAFETY: only called for function types.
        Type(unsafe { LLVMGetReturnType(self.0) }, PhantomData)
    }

    /// The parameters of a function type.
    pub(crate) fn parameters(self) -> Vec<Type<'m>> {
        // SAFETY: only called for function types.
        let count = unsafe { LLVMCountParamTypes(self.0) };
        let mut parameters = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: there is room for as many types as LLVM counted.
        unsafe { LLVMGetParamTypes(self.0, parameters.as_mut_ptr()) };
        parameters.into_iter().map(|parameter| Type(parameter, PhantomData)).collect()
    }

    /// Whether a function type takes a variable number of arguments.
    pub(crate) fn is_variadic(self) -> bool {
        // SAFETY: only called for function types.
        unsafe { LLVMIsFunctionVarArg(self.0) != 0 }
    }
}
