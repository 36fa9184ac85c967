//! Attributes: which of LLVM 22's attributes LLVM 7 also has, which can be dropped because they
//! only permit optimisations, and which cannot be dropped without changing the program.

use std::collections::BTreeMap;

use super::llvm::{Attribute, Place, Type, Value, attribute_kind};
use super::refusal::{Written, refuse};

/// How the writer treats an attribute.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Fate {
    /// LLVM 7 has it, with the same meaning.
    Kept,
    /// It only permits optimisations, concerns a host or a sanitizer, or is implied.
    Dropped,
    /// It changes the program's meaning or its calling convention.
    Refused,
    /// Handled individually by the code below.
    Special,
}

/// LLVM 22's attributes (llvm/IR/Attributes.td), grouped by fate.
const FATES: [(Fate, &[&str]); 4] = [
    (
        Fate::Kept,
        &[
            "alwaysinline",
            "cold",
            "convergent",
            "inlinehint",
            "inreg",
            "minsize",
            "noalias",
            "noduplicate",
            "noinline",
            "noreturn",
            "nounwind",
            "optnone",
            "optsize",
            "readnone",
            "readonly",
            "signext",
            "strictfp",
            "zeroext",
        ],
    ),
    (Fate::Special, &["align", "byval", "captures", "memory", "null_pointer_is_valid", "sret"]),
    (
        Fate::Refused,
        &[
            "alignstack",
            "byref",
            "inalloca",
            "naked",
            "nest",
            "preallocated",
            "presplitcoroutine",
            "returns_twice",
            "swiftasync",
            "swifterror",
            "swiftself",
        ],
    ),
    (
        Fate::Dropped,
        &[
            "allocalign",
            "allockind",
            "allocptr",
            "allocsize",
            "allow_direct_access_in_hot_patch_function",
            "builtin",
            "coro_elide_safe",
            "coro_only_destroy_when_complete",
            "dead_on_return",
            "dead_on_unwind",
            "denormal_fpenv",
            "dereferenceable",
            "dereferenceable_or_null",
            "disable_sanitizer_instrumentation",
            "elementtype",
            "flatten",
            "fn_ret_thunk_extern",
            "hot",
            "hybrid_patchable",
            "immarg",
            "initializes",
            "jumptable",
            "marked_for_windows_hot_patching",
            "mustprogress",
            "nobuiltin",
            "nocallback",
            "nocf_check",
            "nocreateundeforpoison",
            "nodivergencesource",
            "noext",
            "nofpclass",
            "nofree",
            "noimplicitfloat",
            "nomerge",
            "nonlazybind",
            "nonnull",
            "nooutline",
            "noprofile",
            "norecurse",
            "noredzone",
            "nosanitize_bounds",
            "nosanitize_coverage",
            "nosync",
            "noundef",
            "optdebug",
            "optforfuzzing",
            "range",
            "returned",
            "safestack",
            "sanitize_address",
            "sanitize_alloc_token",
            "sanitize_hwaddress",
            "sanitize_memory",
            "sanitize_memtag",
            "sanitize_numerical_stability",
            "sanitize_realtime",
            "sanitize_realtime_blocking",
            "sanitize_thread",
            "sanitize_type",
            "shadowcallstack",
            "skipprofile",
            "speculatable",
            "speculative_load_hardening",
            "ssp",
            "sspreq",
            "sspstrong",
            "uwtable",
            "vscale_range",
            "willreturn",
            "writable",
            "writeonly",
        ],
    ),
];

/// The fates, indexed by LLVM's numbers for the attributes.
pub(super) struct Attributes {
    fates: BTreeMap<u32, (&'static str, Fate)>,
}

/// A parameter's translated attributes.
#[derive(Default)]
pub(super) struct ParameterAttributes<'m> {
    /// The attributes after the type, in order.
    pub(super) words: Vec<String>,
    /// The type of a `byval` parameter.
    pub(super) byval: Option<Type<'m>>,
}

impl Attributes {
    pub(super) fn new() -> Self {
        let mut fates = BTreeMap::new();
        for (fate, names) in FATES {
            for &name in names {
                if let Some(kind) = attribute_kind(name) {
                    fates.insert(kind, (name, fate));
                }
            }
        }
        Attributes { fates }
    }

    fn fate(&self, kind: u32) -> Written<(&'static str, Fate)> {
        match self.fates.get(&kind) {
            Some(&(name, Fate::Refused)) => refuse(
                format!("libNVVM's legacy dialect cannot express the attribute `{name}`"),
                "remove the attribute",
            ),
            Some(&known) => Ok(known),
            None => refuse(
                format!(
                    "it has an attribute (LLVM's number {kind}) whose meaning this writer does not know"
                ),
                "remove the attribute",
            ),
        }
    }

    /// Translates `attributes` to the words after a function's parameter list, or after a call's.
    /// Writes `memory(…)` only for declarations: libNVVM analyses bodies itself, and if it finds
    /// more effects than the words allow, its verifier rejects the function.
    pub(super) fn function_words(
        &self,
        attributes: &[Attribute<'_>],
        declaration: bool,
    ) -> Written<Vec<String>> {
        let mut words = Vec::new();
        let mut memory = None;
        let mut returns = false;
        for attribute in attributes {
            let Some(kind) = attribute.kind() else { continue };
            match (self.fate(kind)?, attribute) {
                (("memory", _), Attribute::Enum(_, effects)) => memory = Some(*effects),
                (("willreturn", _), _) => returns = true,
                (("null_pointer_is_valid", _), _) => {
                    words.push("\"null-pointer-is-valid\"=\"true\"".to_owned())
                }
                ((name, Fate::Kept), _) => words.push(name.to_owned()),
                _ => {}
            }
        }
        if let (true, Some(effects)) = (declaration, memory) {
            words.extend(memory_words(effects, returns).into_iter().map(str::to_owned));
        }
        words.sort();
        Ok(words)
    }

    /// Translates the attributes of a parameter or result of a function (`definition`) or of a
    /// call's argument; for a call, only those that affect the call itself are written.
    pub(super) fn parameter<'m>(
        &self,
        attributes: &[Attribute<'m>],
        definition: bool,
    ) -> Written<ParameterAttributes<'m>> {
        let mut found = ParameterAttributes::default();
        for attribute in attributes {
            let Some(kind) = attribute.kind() else { continue };
            let (name, fate) = self.fate(kind)?;
            match (name, attribute) {
                ("byval", Attribute::Type(_, ty)) => {
                    found.byval = Some(*ty);
                    found.words.push("byval".to_owned());
                }
                ("sret", _) => found.words.push("sret".to_owned()),
                ("align", Attribute::Enum(_, bytes)) => found.words.push(format!("align {bytes}")),
                // `captures(none)`: neither the pointer nor its address is captured, not even by
                // the result.
                ("captures", Attribute::Enum(_, 0)) if definition => {
                    found.words.push("nocapture".to_owned())
                }
                ("signext" | "zeroext" | "inreg", _) => found.words.push(name.to_owned()),
                _ if fate == Fate::Kept && definition => found.words.push(name.to_owned()),
                _ => {}
            }
        }
        // `byval` before its `align`, as LLVM 7 prints them; the rest sorted by name.
        found.words.sort_by_key(|word| (word.starts_with("align"), word.clone()));
        Ok(found)
    }
}

/// LLVM 7's words for `memory(…)`, which holds two bits per location (1 reads, 2 writes): argument
/// memory, inaccessible memory, `errno`, other, and two of the target's (llvm/Support/ModRef.h).
///
/// Each word promises no more than `memory` did. LLVM 7 deletes a call of a read-only function if
/// its result is unused, even if the function never returns, so `readonly` and `readnone` are
/// written only for functions that return.
fn memory_words(effects: u64, returns: bool) -> Vec<&'static str> {
    const READS: u64 = 0x555;
    const WRITES: u64 = 0xaaa;
    const ARGUMENTS: u64 = 0x3;
    const INACCESSIBLE: u64 = 0xc;
    let mut words = Vec::new();
    if effects & (READS | WRITES) == 0 {
        return if returns { vec!["readnone"] } else { words };
    }
    if effects & WRITES == 0 && returns {
        words.push("readonly");
    }
    if effects & !ARGUMENTS == 0 {
        words.push("argmemonly");
    } else if effects & !INACCESSIBLE == 0 {
        words.push("inaccessiblememonly");
    } else if effects & !(ARGUMENTS | INACCESSIBLE) == 0 {
        words.push("inaccessiblemem_or_argmemonly");
    }
    words
}

/// The value of a function's string attribute.
pub(super) fn text(function: Value<'_>, key: &str) -> Option<String> {
    function.attributes(Place::Function).into_iter().find_map(|attribute| match attribute {
        Attribute::Text(name, value) if name == key => Some(value),
        _ => None,
    })
}

/// Whether a parameter has a string attribute.
pub(super) fn parameter_has(function: Value<'_>, parameter: u32, key: &str) -> bool {
    let named =
        |attribute: &Attribute<'_>| matches!(attribute, Attribute::Text(name, _) if name == key);
    function.attributes(Place::Parameter(parameter)).iter().any(named)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn llvm_knows_every_attribute_that_matters() {
        for (fate, names) in FATES {
            for name in names {
                assert!(fate == Fate::Dropped || attribute_kind(name).is_some(), "{name}");
            }
        }
    }

    #[test]
    fn memory_words_promise_no_more_than_memory() {
        assert_eq!(memory_words(0, true), ["readnone"]);
        assert!(memory_words(0, false).is_empty());
        assert_eq!(memory_words(0x1, true), ["readonly", "argmemonly"]);
        assert_eq!(memory_words(0x3, false), ["argmemonly"]);
        assert_eq!(memory_words(0x555, true), ["readonly"]);
        assert_eq!(memory_words(0xc, true), ["inaccessiblememonly"]);
        assert!(memory_words(0xfff, true).is_empty());
    }
}
