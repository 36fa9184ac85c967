//! Accessors for globals, functions and attributes.

use std::ffi::c_uint;
use std::marker::PhantomData;

use inkwell::llvm_sys::LLVMLinkage;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::prelude::*;

use super::{Attribute, Block, Place, Type, Value, c_string, text};

impl<'m> Value<'m> {
    /// The type of a global variable's contents, of a function, or of an alias's target.
    pub(crate) fn value_type(self) -> Type<'m> {
        // SAFETY: only called for functions, global variables and aliases.
        Type(unsafe { LLVMGlobalGetValueType(self.0) }, PhantomData)
    }

    pub(crate) fn linkage(self) -> LLVMLinkage {
        // SAFETY: only called for functions, global variables and aliases.
        unsafe { LLVMGetLinkage(self.0) }
    }

    pub(crate) fn is_declaration(self) -> bool {
        // SAFETY: only called for functions and global variables.
        unsafe { LLVMIsDeclaration(self.0) != 0 }
    }

    pub(crate) fn section(self) -> String {
        // SAFETY: only called for functions and global variables.
        c_string(unsafe { LLVMGetSection(self.0) }).unwrap_or_default()
    }

    /// `unnamed_addr`, `local_unnamed_addr` or nothing, preceded by a space.
    pub(crate) fn unnamed_address(self) -> &'static str {
        use inkwell::llvm_sys::LLVMUnnamedAddr as Addr;
        // SAFETY: only called for functions and global variables.
        match unsafe { LLVMGetUnnamedAddress(self.0) } {
            Addr::LLVMNoUnnamedAddr => "",
            Addr::LLVMLocalUnnamedAddr => " local_unnamed_addr",
            Addr::LLVMGlobalUnnamedAddr => " unnamed_addr",
        }
    }

    /// In bytes; 0 if none is given. For globals, functions, `alloca`, `load` and `store`.
    pub(crate) fn alignment(self) -> u32 {
        // SAFETY: only called for values that have one.
        unsafe { LLVMGetAlignment(self.0) }
    }

    pub(crate) fn initializer(self) -> Option<Value<'m>> {
        // SAFETY: only called for global variables; LLVM returns null for a declaration.
        let value = unsafe { LLVMGetInitializer(self.0) };
        (!value.is_null()).then_some(Value(value, PhantomData))
    }

    pub(crate) fn is_global_constant(self) -> bool {
        // SAFETY: only called for global variables.
        unsafe { LLVMIsGlobalConstant(self.0) != 0 }
    }

    pub(crate) fn is_thread_local(self) -> bool {
        // SAFETY: only called for global variables.
        unsafe { LLVMIsThreadLocal(self.0) != 0 }
    }

    pub(crate) fn is_externally_initialized(self) -> bool {
        // SAFETY: only called for global variables.
        unsafe { LLVMIsExternallyInitialized(self.0) != 0 }
    }

    pub(crate) fn calling_convention(self) -> u32 {
        // SAFETY: only called for functions.
        unsafe { LLVMGetFunctionCallConv(self.0) }
    }

    pub(crate) fn parameters(self) -> Vec<Value<'m>> {
        // SAFETY: only called for functions.
        let count = unsafe { LLVMCountParams(self.0) };
        // SAFETY: the index is below the count.
        (0..count).map(|index| Value(unsafe { LLVMGetParam(self.0, index) }, PhantomData)).collect()
    }

    /// A part of a function that NVPTX does not support, by its name in LLVM's text.
    pub(crate) fn function_extra(self) -> Option<&'static str> {
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

    /// The name of the intrinsic without its overload types, if the function is one.
    pub(crate) fn intrinsic(self) -> Option<String> {
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

    /// The instructions and constants that use it, once for each use.
    pub(crate) fn users(self) -> Vec<Value<'m>> {
        let mut users = Vec::new();
        // SAFETY: the value is alive; LLVM returns the next use or null, and each has a user.
        unsafe {
            let mut one = LLVMGetFirstUse(self.0);
            while !one.is_null() {
                users.push(Value(LLVMGetUser(one), PhantomData));
                one = LLVMGetNextUse(one);
            }
        }
        users
    }

    pub(crate) fn blocks(self) -> Vec<Block<'m>> {
        let mut blocks = Vec::new();
        // SAFETY: only called for functions; LLVM returns the next block or null.
        let mut block = unsafe { LLVMGetFirstBasicBlock(self.0) };
        while !block.is_null() {
            blocks.push(Block(block, PhantomData));
            // SAFETY: the block is alive.
            block = unsafe { LLVMGetNextBasicBlock(block) };
        }
        blocks
    }

    /// The attributes of a function.
    pub(crate) fn attributes(self, place: Place) -> Vec<Attribute<'m>> {
        // SAFETY: only called for functions.
        let count = unsafe { LLVMGetAttributeCountAtIndex(self.0, place.index()) };
        let mut found = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: there is room for as many attributes as LLVM counted.
        unsafe { LLVMGetAttributesAtIndex(self.0, place.index(), found.as_mut_ptr()) };
        found.into_iter().map(attribute).collect()
    }

    /// The attributes of a call.
    pub(crate) fn call_attributes(self, place: Place) -> Vec<Attribute<'m>> {
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
