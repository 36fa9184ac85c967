//! Global variables and aliases.

use inkwell::llvm_sys::LLVMLinkage as Linkage;

use super::llvm::{Kind, Shape, Value};
use super::names::escape;
use super::refusal::{Written, refuse};
use super::writer::Writer;

/// PTX's state spaces that can hold a module's variables: generic means global.
const SPACES: [u32; 4] = [0, 1, 3, 4];
const SHARED: u32 = 3;

impl<'m> Writer<'m, '_> {
    /// The line of a global variable; `None` for lists that libNVVM does not need.
    pub(super) fn variable(&mut self, variable: Value<'m>) -> Written<Option<String>> {
        let name = variable.name().unwrap_or_default();
        let listed = matches!(&name[..], b"llvm.used" | b"llvm.compiler.used");
        let linkage = variable.linkage();
        if linkage == Linkage::LLVMAppendingLinkage && !listed {
            let empty = variable.initializer().is_none_or(|list| list.kind() == Kind::Zero);
            return if empty {
                Ok(None)
            } else {
                refuse(
                    "libNVVM runs no constructors and does not support such lists",
                    "call the functions from a kernel",
                )
            };
        }
        let space = match variable.ty().shape() {
            Shape::Pointer(space) => space,
            _ => 0,
        };
        if !SPACES.contains(&space) {
            return refuse(
                format!("libNVVM has no variables in address space {space}"),
                "use global (1), shared (3) or constant (4) memory",
            );
        }
        if variable.is_thread_local() {
            return refuse("libNVVM accepts `thread_local` but ignores it", "use an `alloca`");
        }
        let section = variable.section();
        if !(section.is_empty() || section == "llvm.metadata") {
            return refuse(
                format!("libNVVM does not support sections (`{section}`)"),
                "remove the section",
            );
        }
        // `available_externally`: another module defines the variable, and this one may only inline
        // its value.
        let borrowed = linkage == Linkage::LLVMAvailableExternallyLinkage;
        let initializer = variable.initializer().filter(|_| !borrowed);
        if space == SHARED && initializer.is_some_and(|value| value.kind() != Kind::Undefined) {
            return refuse(
                "shared memory has no initial value",
                "initialise it with `undef` and store to it in the kernel",
            );
        }
        let mut line = format!("{} =", self.global_name(variable));
        line.push_str(match initializer {
            None => " external",
            Some(_) => linkage_word(linkage)?,
        });
        line.push_str(variable.unnamed_address());
        if space != 0 {
            line.push_str(&format!(" addrspace({space})"));
        }
        if variable.is_externally_initialized() {
            line.push_str(" externally_initialized");
        }
        line.push_str(if variable.is_global_constant() { " constant " } else { " global " });
        line.push_str(&self.types.text(variable.value_type())?);
        if let Some(value) = initializer {
            line.push_str(&format!(" {}", self.constant(value)?));
        }
        if !section.is_empty() {
            line.push_str(&format!(", section \"{}\"", escape(section.as_bytes())));
        }
        if variable.alignment() > 0 {
            line.push_str(&format!(", align {}", variable.alignment()));
        }
        Ok(Some(line))
    }
}

/// The linkage of a definition, preceded by a space.
pub(super) fn linkage_word(linkage: Linkage) -> Written<&'static str> {
    Ok(match linkage {
        Linkage::LLVMExternalLinkage => "",
        Linkage::LLVMInternalLinkage => " internal",
        Linkage::LLVMPrivateLinkage => " private",
        Linkage::LLVMLinkOnceAnyLinkage => " linkonce",
        Linkage::LLVMLinkOnceODRLinkage => " linkonce_odr",
        Linkage::LLVMWeakAnyLinkage => " weak",
        Linkage::LLVMWeakODRLinkage => " weak_odr",
        Linkage::LLVMCommonLinkage => " common",
        Linkage::LLVMAppendingLinkage => " appending",
        _ => {
            return refuse(
                "libNVVM has no such linkage",
                "use external, internal, weak or linkonce linkage",
            );
        }
    })
}
