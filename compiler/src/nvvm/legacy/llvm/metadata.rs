//! Accessors for metadata.

use std::ffi::{CString, c_uint};
use std::marker::PhantomData;

use inkwell::llvm_sys::LLVMDbgRecordKind;
use inkwell::llvm_sys::core::*;
use inkwell::llvm_sys::debuginfo::{
    LLVMDIFileGetDirectory, LLVMDIFileGetFilename, LLVMDILocationGetColumn,
    LLVMDILocationGetInlinedAt, LLVMDILocationGetLine, LLVMDILocationGetScope, LLVMDIScopeGetFile,
    LLVMDISubprogramGetLine, LLVMGetMetadataKind, LLVMGetSubprogram, LLVMInstructionGetDebugLoc,
    LLVMMetadataKind,
};
use inkwell::llvm_sys::prelude::*;

use super::{Module, Value, message, text};

/// A list at the end of a module: `!name = !{…}`.
pub(crate) struct NamedMetadata<'m> {
    pub(crate) name: String,
    pub(crate) nodes: Vec<Value<'m>>,
}

/// An operand of a metadata node.
#[derive(Clone, Copy)]
pub(crate) enum Meta<'m> {
    Null,
    Text(&'m [u8]),
    Node(Value<'m>),
    Constant(Value<'m>),
}

impl<'m> Module<'m> {
    /// Its text, as LLVM 22 prints it.
    pub(crate) fn print(self) -> String {
        // SAFETY: the module is alive.
        message(unsafe { LLVMPrintModuleToString(self.0) })
    }

    pub(crate) fn named_metadata(self) -> Vec<NamedMetadata<'m>> {
        let mut found = Vec::new();
        // SAFETY: the module is alive, and LLVM returns the next list or null.
        let mut list = unsafe { LLVMGetFirstNamedMetadata(self.0) };
        while !list.is_null() {
            let mut length = 0;
            // SAFETY: the list is alive.
            let name = unsafe { text(LLVMGetNamedMetadataName(list, &mut length), length) };
            found.push(NamedMetadata { nodes: self.nodes(&name), name });
            // SAFETY: the list is alive.
            list = unsafe { LLVMGetNextNamedMetadata(list) };
        }
        found
    }

    fn nodes(self, name: &str) -> Vec<Value<'m>> {
        let Ok(name) = CString::new(name) else { return Vec::new() };
        // SAFETY: the module is alive and the name a C string.
        let count = unsafe { LLVMGetNamedMetadataNumOperands(self.0, name.as_ptr()) };
        let mut nodes = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: there is room for as many nodes as LLVM counted.
        unsafe { LLVMGetNamedMetadataOperands(self.0, name.as_ptr(), nodes.as_mut_ptr()) };
        nodes.into_iter().map(|node| Value(node, PhantomData)).collect()
    }

    /// LLVM's number for a kind of metadata on instructions, like `range`.
    pub(crate) fn metadata_kind(self, name: &str) -> u32 {
        // SAFETY: the module is alive, and the names asked for are LLVM's own.
        unsafe {
            LLVMGetMDKindIDInContext(
                LLVMGetModuleContext(self.0),
                name.as_ptr().cast(),
                name.len() as c_uint,
            )
        }
    }
}

impl<'m> Value<'m> {
    /// The metadata of `kind` on an instruction.
    pub(crate) fn metadata(self, kind: u32) -> Option<Value<'m>> {
        // SAFETY: only called for instructions; LLVM returns null if there is none.
        let node = unsafe { LLVMGetMetadata(self.0, kind) };
        (!node.is_null()).then_some(Value(node, PhantomData))
    }

    /// The operands of a metadata node.
    pub(crate) fn meta_operands(self) -> Vec<Meta<'m>> {
        // SAFETY: only called for metadata nodes.
        let count = unsafe { LLVMGetMDNodeNumOperands(self.0) };
        let mut operands: Vec<LLVMValueRef> = vec![std::ptr::null_mut(); count as usize];
        // SAFETY: there is room for as many operands as LLVM counted.
        unsafe { LLVMGetMDNodeOperands(self.0, operands.as_mut_ptr()) };
        operands.into_iter().map(meta).collect()
    }

    /// Whether a function has a subprogram, and so debug information.
    pub(crate) fn has_subprogram(self) -> bool {
        // SAFETY: only called for functions.
        unsafe { !LLVMGetSubprogram(self.0).is_null() }
    }
}

/// A position in a source file.
pub(crate) struct Position {
    pub(crate) file: String,
    pub(crate) folder: String,
    pub(crate) line: u32,
    /// 0 if unknown.
    pub(crate) column: u32,
}

impl<'m> Value<'m> {
    /// For each debug record before an instruction, the address that it declares for a variable; `None` for other records.
    pub(crate) fn declared_values(self) -> Vec<Option<Value<'m>>> {
        let mut values = vec![];
        // SAFETY: only called for instructions; LLVM returns the next record or null, and null for a value that is gone.
        unsafe {
            let mut record = LLVMGetFirstDbgRecord(self.0);
            while !record.is_null() {
                values.push(match LLVMDbgRecordGetKind(record) {
                    LLVMDbgRecordKind::LLVMDbgRecordDeclare => {
                        let value = LLVMDbgVariableRecordGetValue(record, 0);
                        (!value.is_null()).then_some(Value(value, PhantomData))
                    }
                    _ => None,
                });
                record = LLVMGetNextDbgRecord(record);
            }
        }
        values
    }
}

impl Value<'_> {
    /// The position of an instruction, if it has one with a line.
    pub(crate) fn position(self) -> Option<Position> {
        // SAFETY: only called for instructions; LLVM returns null if there is none.
        unsafe {
            let at = LLVMInstructionGetDebugLoc(self.0);
            if at.is_null() { None } else { location(at) }
        }
    }

    /// The position of a function, if it has a subprogram.
    pub(crate) fn subprogram(self) -> Option<Position> {
        // SAFETY: only called for functions; LLVM returns null if there is none.
        unsafe {
            let subprogram = LLVMGetSubprogram(self.0);
            if subprogram.is_null() {
                return None;
            }
            place(subprogram, LLVMDISubprogramGetLine(subprogram), 0)
        }
    }
}

/// The subprogram of a function, only to be compared.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) struct Subprogram(LLVMMetadataRef);

impl Value<'_> {
    /// The subprogram of a function.
    pub(crate) fn own_subprogram(self) -> Option<Subprogram> {
        // SAFETY: only called for functions; LLVM returns null if there is none.
        let found = unsafe { LLVMGetSubprogram(self.0) };
        (!found.is_null()).then_some(Subprogram(found))
    }

    /// The subprogram in which the debug location of an instruction is; of inlined code, that in which it was inlined.
    pub(crate) fn located_in(self) -> Option<Subprogram> {
        /// Scopes of a module that LLVM refuses may nest in themselves.
        const MAX_SCOPES: usize = 10_000;
        // SAFETY: only called for instructions; LLVM returns null where there is no location. Locations have scopes, and the
        // second operand of a block is its scope.
        unsafe {
            let mut at = LLVMInstructionGetDebugLoc(self.0);
            if at.is_null() {
                return None;
            }
            for _ in 0..MAX_SCOPES {
                let outer = LLVMDILocationGetInlinedAt(at);
                if outer.is_null() {
                    break;
                }
                at = outer;
            }
            let context = LLVMGetTypeContext(LLVMTypeOf(self.0));
            let mut scope = LLVMDILocationGetScope(at);
            for _ in 0..MAX_SCOPES {
                match LLVMGetMetadataKind(scope) {
                    LLVMMetadataKind::LLVMDISubprogramMetadataKind => {
                        return Some(Subprogram(scope));
                    }
                    LLVMMetadataKind::LLVMDILexicalBlockMetadataKind
                    | LLVMMetadataKind::LLVMDILexicalBlockFileMetadataKind => {
                        let node = Value(LLVMMetadataAsValue(context, scope), PhantomData);
                        let Some(Meta::Node(outer)) = node.meta_operands().get(1).copied() else {
                            return None;
                        };
                        scope = LLVMValueAsMetadata(outer.0);
                    }
                    _ => return None,
                }
            }
            None
        }
    }
}

/// The position that a builder gives to its instructions, if it has a line.
pub(crate) fn builder_position(builder: &inkwell::builder::Builder<'_>) -> Option<Position> {
    // SAFETY: the builder is alive; LLVM returns null if there is none.
    unsafe {
        let at = LLVMGetCurrentDebugLocation2(builder.as_mut_ptr());
        if at.is_null() { None } else { location(at) }
    }
}

/// The position of a location.
///
/// # Safety
/// The location must be alive.
unsafe fn location(at: LLVMMetadataRef) -> Option<Position> {
    // SAFETY: the location is alive, and so is its scope.
    unsafe {
        let (line, column) = (LLVMDILocationGetLine(at), LLVMDILocationGetColumn(at));
        place(LLVMDILocationGetScope(at), line, column).filter(|_| line > 0)
    }
}

/// A position in the file of a scope.
///
/// # Safety
/// The scope must be alive.
unsafe fn place(scope: LLVMMetadataRef, line: u32, column: u32) -> Option<Position> {
    // SAFETY: the scope is alive, and so is its file; LLVM sets the lengths of both strings.
    unsafe {
        let file = LLVMDIScopeGetFile(scope);
        if file.is_null() {
            return None;
        }
        let mut length: c_uint = 0;
        let name = LLVMDIFileGetFilename(file, &mut length);
        let name = shown(text(name, length as usize));
        let folder = LLVMDIFileGetDirectory(file, &mut length);
        let folder = text(folder, length as usize);
        Some(Position { file: name, folder, line, column })
    }
}

/// A file's name without control characters: messages are about lines, which a line break would end.
fn shown(name: String) -> String {
    if name.contains(char::is_control) { name.replace(char::is_control, "?") } else { name }
}

fn meta<'m>(operand: LLVMValueRef) -> Meta<'m> {
    if operand.is_null() {
        return Meta::Null;
    }
    // SAFETY: the operand is alive, and the casting functions take every value.
    unsafe {
        if !LLVMIsAMDString(operand).is_null() {
            let mut length: c_uint = 0;
            let data = LLVMGetMDString(operand, &mut length);
            Meta::Text(super::bytes(data, length as usize))
        } else if !LLVMIsAMDNode(operand).is_null() {
            Meta::Node(Value(operand, PhantomData))
        } else {
            Meta::Constant(Value(operand, PhantomData))
        }
    }
}
