//! `extern fn` and `extern kernel`: functions and kernels that a linked module defines.
//!
//! Such a function has the symbol and the calling convention that CUDA C++ gives an `extern "C" __device__`
//! function: numbers, `bool` and pointers directly, integers below 32 bits sign- or zero-extended; structs
//! and vectors as a copy of their bytes, in their usual layout (PTX ISA, "Parameter State Space"; CUDA's
//! vectors are structs with their own alignment). On the CPU, it is C's convention for the same types. Types
//! that C lacks, or that compilers pass in different ways, are rejected. The parameters of kernels have any type: their
//! layout is that of C++.

use super::Context;
use super::tree::{Extern, ExternId};
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::types::{Scalar, Type};

impl Context<'_> {
    /// Registers a function that another module defines. A kernel is an instance like any other.
    pub(super) fn add_extern(&mut self, function: usize, wrong: bool) {
        let before = self.diagnostics.len();
        let (item, signature) = {
            let function = &self.functions[function];
            (function.item, std::rc::Rc::clone(&function.signature))
        };
        if let Some(first) = item.const_parameters.first() {
            let item = if item.is_kernel { "kernel" } else { "fn" };
            let message = format!(
                "an `extern {item}` has no const parameters: its module is compiled already"
            );
            let error = Diagnostic::error(ids::EXTERN_SIGNATURE, first.name.span, message);
            self.report(error.hint("make it a parameter"));
            self.functions[function].wrong = true;
        }
        if item.is_kernel {
            return;
        }
        for (parameter, source) in signature.parameters.iter().zip(&item.parameters) {
            if let Some(ty) = &parameter.ty {
                self.check_extern_type(ty, source.ty.span, "take");
            }
        }
        if let (Some(ty), Some(source)) = (&signature.result, &item.result) {
            self.check_extern_type(ty, source.span, "return");
        }
        let types = signature.parameters.iter().map(|parameter| parameter.ty.clone());
        let types = types.collect::<Option<Vec<Type>>>();
        let right = !wrong && self.diagnostics.len() == before;
        let id = match (types, signature.result.clone()) {
            (Some(parameters), Some(result)) if right => {
                let name = signature.name.clone();
                self.externs.push(Extern { name, parameters, result, span: item.name.span });
                Some(ExternId(self.externs.len() as u32 - 1))
            }
            _ => None,
        };
        self.extern_ids.insert(function, id);
    }

    fn check_extern_type(&mut self, ty: &Type, span: Span, what: &str) {
        let (why, hint) = match ty {
            Type::Array(..) => (
                "C cannot pass arrays by value",
                "pass a pointer to the first element, or a struct that contains the array",
            ),
            Type::Scalar(Scalar::F16 | Scalar::Bf16) => (
                "compilers differ in how they pass it",
                "pass a pointer to it, an `f32`, or a struct that contains it",
            ),
            _ => return,
        };
        let message = format!("an `extern fn` cannot {what} {}", self.show(ty));
        let error = Diagnostic::error(ids::EXTERN_SIGNATURE, span, message);
        self.report(error.note(why).hint(hint));
    }
}
