//! Functions: their types, their declarations, and kernels with their annotations.

use std::rc::Rc;

use inkwell::llvm_sys::{LLVMCallConv, LLVMLinkage as Linkage};

use crate::error::{Error, Result};

use super::attributes::{parameter_has, text};
use super::body::Body;
use super::globals::linkage_word;
use super::llvm::{Attribute, Place, Shape, Type, Value};
use super::refusal::{Refusal, Written, refuse};
use super::types::ERASED;
use super::writer::{Writer, heading};
use super::{HintPlace, PointeeHint};

/// The type of a function in the text.
pub(super) struct Signature {
    pub(super) result: Slot,
    pub(super) parameters: Vec<Slot>,
}

/// A parameter or a result.
pub(super) struct Slot {
    /// Its type.
    pub(super) text: String,
    /// Its pointee, if that is not [`ERASED`].
    pub(super) pointee: Option<String>,
    /// The attributes after the type.
    pub(super) words: Vec<String>,
}

impl Slot {
    /// The type with its attributes.
    pub(super) fn worded(&self) -> String {
        std::iter::once(self.text.as_str())
            .chain(self.words.iter().map(String::as_str))
            .collect::<Vec<_>>()
            .join(" ")
    }
}

impl Signature {
    /// The pointee of a pointer to the function: `void (i8*, i32)`.
    pub(super) fn pointee(&self) -> String {
        let parameters: Vec<&str> = self.parameters.iter().map(|slot| slot.text.as_str()).collect();
        format!("{} ({})", self.result.text, parameters.join(", "))
    }
}

/// The launch bounds of LLVM 22 and libNVVM's annotations for them, one per number (LLVM 22 User
/// Guide for NVPTX, "Function Attributes"; NVVM IR Specification, "Supported Properties").
const BOUNDS: [(&str, &[&str]); 6] = [
    ("nvvm.maxntid", &["maxntidx", "maxntidy", "maxntidz"]),
    ("nvvm.reqntid", &["reqntidx", "reqntidy", "reqntidz"]),
    ("nvvm.minctasm", &["minctasm"]),
    ("nvvm.maxnreg", &["maxnreg"]),
    ("nvvm.cluster_dim", &["cluster_dim_x", "cluster_dim_y", "cluster_dim_z"]),
    ("nvvm.maxclusterrank", &["cluster_max_blocks"]),
];

impl<'m> Writer<'m, '_> {
    /// The type of a function, with its hints and `byval` parameters applied.
    pub(super) fn signature(&mut self, function: Value<'m>) -> Written<Rc<Signature>> {
        if let Some(known) = self.signatures.get(&function) {
            return Ok(Rc::clone(known));
        }
        let ty = function.value_type();
        if ty.is_variadic() {
            return refuse(
                "libNVVM does not pass variable arguments the way PTX expects them",
                "store the arguments and pass a pointer, as for `vprintf`",
            );
        }
        let name = function.text_name();
        let result = self.slot(
            ty.result(),
            &function.attributes(Place::Result),
            self.hint(&name, HintPlace::Result),
        )?;
        let mut parameters = Vec::new();
        for (index, parameter) in (0..).zip(ty.parameters()) {
            let hint = self.hint(&name, HintPlace::Parameter(index));
            parameters.push(self.slot(
                parameter,
                &function.attributes(Place::Parameter(index)),
                hint,
            )?);
        }
        let signature = Rc::new(Signature { result, parameters });
        self.signatures.insert(function, Rc::clone(&signature));
        Ok(signature)
    }

    /// The type of a call through a pointer, from its own arguments and attributes.
    pub(super) fn call_signature(&mut self, call: Value<'m>) -> Written<Signature> {
        let ty = call.call_type();
        if ty.is_variadic() {
            return refuse(
                "libNVVM does not pass variable arguments the way PTX expects them",
                "store the arguments and pass a pointer, as for `vprintf`",
            );
        }
        let result = self.slot(ty.result(), &call.call_attributes(Place::Result), None)?;
        let mut parameters = Vec::new();
        for (index, parameter) in (0..).zip(ty.parameters()) {
            parameters.push(self.slot(
                parameter,
                &call.call_attributes(Place::Parameter(index)),
                None,
            )?);
        }
        Ok(Signature { result, parameters })
    }

    fn hint(&self, function: &str, place: HintPlace) -> Option<String> {
        let fits = |hint: &&PointeeHint| hint.function == function && hint.place == place;
        self.options.pointees.iter().find(fits).map(|hint| hint.structure.clone())
    }

    fn slot(
        &mut self,
        ty: Type<'m>,
        attributes: &[Attribute<'m>],
        hint: Option<String>,
    ) -> Written<Slot> {
        let attributes = self.attributes.parameter(attributes, true)?;
        let pointee = match (attributes.byval, hint) {
            (Some(copied), _) => Some(self.types.text(copied)?),
            (None, Some(_)) if !matches!(ty.shape(), Shape::Pointer(_)) => {
                return refuse(
                    "a hint gives its pointee, but it is not a pointer",
                    "correct `LegacyOptions::pointees`",
                );
            }
            (None, Some(hint)) => Some(self.types.hinted(&hint)),
            (None, None) => None,
        };
        let text = match &pointee {
            Some(pointee) => self.types.pointer(ty, pointee)?,
            None => self.types.text(ty)?,
        };
        Ok(Slot {
            text,
            pointee: pointee.filter(|pointee| pointee != ERASED),
            words: attributes.words,
        })
    }

    /// A function's lines: a declaration, or a definition with its body.
    pub(super) fn function(&mut self, function: Value<'m>) -> Result<Vec<String>> {
        let at = |refusal: Refusal| at_function(refusal, function, &heading(function));
        let name = self.global_name(function);
        let signature = self.signature(function).map_err(at)?;
        let declared = function.is_declaration()
            || function.linkage() == Linkage::LLVMAvailableExternallyLinkage;
        let words = self.checked_words(function, declared).map_err(at)?;
        if declared {
            // libNVVM refuses to launch a declared function that is not marked.
            if function.calling_convention() == KERNEL {
                self.annotate_kernel(function, &signature).map_err(at)?;
            }
            let parameters: Vec<String> = signature.parameters.iter().map(Slot::worded).collect();
            let result = result_text(&signature);
            return Ok(vec![format!("declare {result} {name}({}){words}", parameters.join(", "))]);
        }
        let linkage = linkage_word(function.linkage()).map_err(at)?;
        self.annotate_kernel(function, &signature).map_err(at)?;

        let subprogram = self.subprogram(function);
        let body = Body::new(self, function, &signature)?;
        let parameters: Vec<String> = function
            .parameters()
            .into_iter()
            .zip(&signature.parameters)
            .map(|(parameter, slot)| format!("{} {}", slot.worded(), body.name(parameter)))
            .collect();
        let result = result_text(&signature);
        let address = function.unnamed_address();
        let debug = subprogram.map_or_else(String::new, |own| format!(" !dbg !{}", own.number));
        let mut lines = vec![format!(
            "define{linkage} {result} {name}({}){address}{words}{debug} {{",
            parameters.join(", ")
        )];
        lines.extend(body.write(function, subprogram)?);
        lines.push("}".to_owned());
        Ok(lines)
    }

    /// The words after a function's parameters. Refuses functions with properties that the dialect
    /// lacks.
    fn checked_words(&mut self, function: Value<'m>, declared: bool) -> Written<String> {
        let convention = function.calling_convention();
        if !is_known_convention(convention) {
            return refuse(
                format!("NVPTX does not have calling convention {convention}"),
                "use `ccc`, `fastcc`, `ptx_kernel` or `ptx_device`",
            );
        }
        if let Some(extra) = function.function_extra() {
            return refuse(
                format!("libNVVM does not support `{extra}`"),
                "remove it from the function",
            );
        }
        if !function.section().is_empty() {
            return refuse(
                "libNVVM does not support sections",
                "remove the section from the function",
            );
        }
        if function.linkage() == Linkage::LLVMExternalWeakLinkage {
            return refuse(
                "libNVVM has no `extern_weak` linkage",
                "declare the function as external",
            );
        }
        let words =
            self.attributes.function_words(&function.attributes(Place::Function), declared)?;
        Ok(words.into_iter().map(|word| format!(" {word}")).collect())
    }

    /// Adds a node to `!nvvm.annotations` for a kernel or a function with its own launch bounds.
    fn annotate_kernel(&mut self, function: Value<'m>, signature: &Signature) -> Written<()> {
        let mut properties = String::new();
        if function.calling_convention() == KERNEL {
            properties.push_str(", !\"kernel\", i32 1");
        }
        for (attribute, annotations) in BOUNDS {
            let Some(value) = text(function, attribute) else { continue };
            let numbers: Vec<&str> = value.split(',').map(str::trim).collect();
            if numbers.len() > annotations.len()
                || numbers.iter().any(|number| number.parse::<u32>().is_err())
            {
                return refuse(
                    format!("`\"{attribute}\"=\"{value}\"` has an invalid value"),
                    "give decimal numbers, separated by commas",
                );
            }
            for (annotation, number) in annotations.iter().zip(numbers) {
                properties.push_str(&format!(", !\"{annotation}\", i32 {number}"));
            }
        }
        if text(function, "nvvm.blocksareclusters").is_some() {
            return refuse(
                "libNVVM's legacy dialect ignores `nvvm.blocksareclusters`",
                "give `nvvm.cluster_dim`",
            );
        }
        let constants: Vec<String> = (0..)
            .take(signature.parameters.len())
            .filter(|&parameter| parameter_has(function, parameter, "nvvm.grid_constant"))
            .map(|parameter: u32| format!("i32 {}", parameter + 1))
            .collect();
        if !constants.is_empty() {
            let list = self.nodes.add(format!("!{{{}}}", constants.join(", ")));
            properties.push_str(&format!(", !\"grid_constant\", !{list}"));
        }
        if !properties.is_empty() {
            let name = self.global_name(function);
            let node = self.nodes.add(format!("!{{{}* {name}{properties}}}", signature.pointee()));
            self.annotations.push(node);
        }
        Ok(())
    }
}

/// The calling convention of kernels.
const KERNEL: u32 = LLVMCallConv::LLVMPTXKernelCallConv as u32;

fn result_text(signature: &Signature) -> String {
    // LLVM 7 puts a result's attributes before its type.
    let words: String = signature.result.words.iter().map(|word| format!("{word} ")).collect();
    format!("{words}{}", signature.result.text)
}

/// NVPTX has a single calling convention; those below differ from it only on other targets.
/// `ptx_kernel` becomes an annotation.
pub(crate) fn is_known_convention(convention: u32) -> bool {
    [
        LLVMCallConv::LLVMCCallConv,
        LLVMCallConv::LLVMFastCallConv,
        LLVMCallConv::LLVMColdCallConv,
        LLVMCallConv::LLVMPTXKernelCallConv,
        LLVMCallConv::LLVMPTXDeviceCallConv,
    ]
    .into_iter()
    .any(|known| known as u32 == convention)
}

/// The error for a refusal in `function`, at the instruction `text`.
pub(super) fn at_function(refusal: Refusal, function: Value<'_>, text: &str) -> Error {
    let name = function.name().unwrap_or_default();
    refusal.at(&format!("function `{}`", String::from_utf8_lossy(&name)), text)
}
