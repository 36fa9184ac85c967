//! Calls of functions.

use std::rc::Rc;

use super::body::{Body, Meaning};
use super::expressions::typed;
use super::mismatch::Why;
use super::tree::{Expr, ExprKind, FunctionId};
use super::types::{builtin_type, foreign_type};
use super::{Signature, ValueName};
use crate::builtins::Builtin;
use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;
use crate::syntax::ast;
use crate::types::Type;

impl<'a> Body<'_, 'a> {
    /// `callee(arguments)`
    pub(super) fn call(
        &mut self,
        callee: ast::Name,
        generics: Option<&'a ast::Generics>,
        arguments: &'a [ast::Expr],
        span: Span,
        hint: Option<&Type>,
    ) -> Option<Expr> {
        let name = self.cx.text(callee);
        match self.cx.value(name, callee.span.file) {
            // In the initial value of a `static` variable.
            Some((ValueName::Function(_), _)) if self.constant => {
                self.not_constant(span);
                return None;
            }
            Some((ValueName::Function(id), _)) => {
                return self.function_call(id, callee, generics, arguments, span);
            }
            Some((ValueName::Opaque, _)) => {
                self.check_all(arguments);
                return None;
            }
            Some((ValueName::Const(_), declared)) => {
                self.not_callable(callee, "a constant", Some(declared));
                self.check_all(arguments);
                return None;
            }
            Some((ValueName::Static(_), declared)) => {
                self.not_callable(callee, "a variable", Some(declared));
                self.check_all(arguments);
                return None;
            }
            None => {}
        }
        if let Some(variable) = self.lookup(name) {
            let declared = variable.span;
            if !matches!(variable.meaning, Meaning::Opaque) {
                self.not_callable(callee, "a variable", Some(declared));
            }
            self.check_all(arguments);
            return None;
        }
        if name == "dim3" {
            return self.constructor(Type::DIM3, name, arguments, span);
        }
        if let Some(ty) = builtin_type(name) {
            return self.type_call(ty, callee, arguments, span);
        }
        match self.cx.builtins.get(name).copied() {
            Some(builtin) => self.builtin(builtin, callee, generics, arguments, span, hint),
            None => {
                self.unknown_function(callee, name);
                self.check_all(arguments);
                None
            }
        }
    }

    /// Checks the arguments of an erroneous call for errors of their own. Accepts strings.
    pub(super) fn check_all(&mut self, arguments: &'a [ast::Expr]) {
        for argument in arguments {
            if !matches!(argument.kind, ast::ExprKind::Str(_)) {
                self.infer(argument, None);
            }
        }
    }

    fn type_call(
        &mut self,
        ty: Type,
        callee: ast::Name,
        arguments: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        let name = self.cx.text(callee);
        if let Type::Vector(..) = ty {
            return self.constructor(ty, name, arguments, span);
        }
        let message = format!("`{name}` is a type, not a function");
        let error = Diagnostic::error(ids::NOT_CALLABLE, callee.span, message);
        self.cx.report(match ty {
            Type::Scalar(_) => error.hint(format!("convert with `as`: `x as {name}`")),
            _ => error,
        });
        self.check_all(arguments);
        None
    }

    fn not_callable(&mut self, callee: ast::Name, what: &str, declared: Option<Span>) {
        let message = format!("`{}` is {what}, not a function", self.cx.text(callee));
        let mut error = Diagnostic::error(ids::NOT_CALLABLE, callee.span, message);
        if let Some(declared) = declared {
            error = error.label(declared, "declared here");
        }
        self.cx.report(error);
    }

    fn unknown_function(&mut self, callee: ast::Name, name: &'a str) {
        let named = self.cx.struct_named(name, callee.span.file);
        if let Some(Some(_)) = named {
            let message = format!("`{name}` is a struct, not a function");
            let error = Diagnostic::error(ids::NOT_CALLABLE, callee.span, message);
            self.cx.report(error.hint(format!("write `{name} {{ field: value, … }}`")));
            return;
        }
        if named.is_some() || !self.cx.is_new(name, callee.span.file, ids::UNKNOWN_NAME) {
            return;
        }
        self.cx.report_unknown(name, callee.span.file, |cx| {
            let message = format!("there is no function `{name}`");
            let error = Diagnostic::error(ids::UNKNOWN_NAME, callee.span, message);
            let vector = name.strip_prefix("make_").and_then(foreign_type);
            if let Some(hint) = foreign_habit(name) {
                return error.hint(hint);
            }
            match foreign_function(name).or(vector) {
                Some(own) => error.hint(format!("it is called `{own}` here")),
                None => cx.suggest(error, name, |cx| {
                    let builtins = Builtin::ALL.iter().map(|builtin| builtin.name());
                    cx.function_names(false).into_iter().chain(builtins).collect()
                }),
            }
        });
    }

    fn function_call(
        &mut self,
        function: usize,
        callee: ast::Name,
        generics: Option<&'a ast::Generics>,
        arguments: &'a [ast::Expr],
        span: Span,
    ) -> Option<Expr> {
        let (id, signature) = self.named_instance(function, callee, generics)?;
        if signature.item.is_kernel {
            let name = self.cx.text(callee);
            let message = format!("`{name}` is a kernel; it is launched, not called");
            let error = Diagnostic::error(ids::CALL_KERNEL, callee.span, message);
            let error = error.label(signature.item.name.span, "declared here");
            let hint = format!("`launch {name}<<<grid, block>>>(…)`");
            self.cx.report(error.hint(hint));
            self.check_all(arguments);
            return None;
        }
        if arguments.len() != signature.parameters.len() {
            let message = self.arity_message(&signature, arguments.len());
            let error = Diagnostic::error(ids::CALL_ARITY, span, message);
            self.cx.report(error.label(signature.item.name.span, "declared here"));
            self.check_all(arguments);
            return None;
        }
        let arguments: Vec<Option<Expr>> = arguments
            .iter()
            .zip(&signature.parameters)
            .map(|(argument, parameter)| match &parameter.ty {
                Some(ty) => self.need(argument, ty, Why::Parameter(parameter.span)),
                None => self.infer(argument, None),
            })
            .collect();
        let arguments = arguments.into_iter().collect::<Option<Vec<_>>>()?;
        let result = signature.result.clone()?;
        let kind = match self.cx.extern_ids.get(&function) {
            Some(id) => ExprKind::CallExtern { function: (*id)?, arguments },
            None => ExprKind::Call { function: id?, arguments },
        };
        Some(typed(kind, result, span))
    }

    /// The instance of a function that is called or launched, and its signature. While const parameters have
    /// no values, the signature is the generic one and the instance is a placeholder.
    pub(super) fn named_instance(
        &mut self,
        function: usize,
        callee: ast::Name,
        generics: Option<&'a ast::Generics>,
    ) -> Option<(Option<FunctionId>, Rc<Signature<'a>>)> {
        let arguments = self.cx.const_arguments(function, generics, callee);
        let item = self.cx.functions.get(function)?;
        let (is_generic, common) =
            (!item.item.const_parameters.is_empty(), Rc::clone(&item.signature));
        if is_generic && self.cx.environment.is_open() {
            return Some((Some(FunctionId(u32::MAX)), common));
        }
        // After an error in the callee, the arguments are checked against the generic signature.
        let id = arguments.and_then(|list| self.cx.instance(function, list, Some(callee.span)));
        match id.and_then(|id| self.cx.instances.get(id.0 as usize)) {
            Some(instance) => Some((id, Rc::clone(&instance.signature))),
            None => Some((None, common)),
        }
    }

    /// A message about a wrong number of arguments.
    pub(super) fn arity_message(&self, signature: &Signature<'a>, given: usize) -> String {
        let name = self.cx.text(signature.item.name);
        let takes = counted_arguments(signature.parameters.len());
        format!("`{name}` takes {takes}, not {given}")
    }
}

/// A number of arguments, in words.
pub(crate) fn counted_arguments(count: usize) -> String {
    match count {
        0 => "no arguments".to_string(),
        1 => "one argument".to_string(),
        _ => format!("{count} arguments"),
    }
}

/// A hint for a CUDA function without an equivalent built-in.
fn foreign_habit(name: &str) -> Option<&'static str> {
    Some(match name {
        "cudaDeviceSynchronize" | "cudaStreamSynchronize" | "cudaEventSynchronize" => {
            "a kernel does not wait for its children: launch the code that follows with `stream = tail`"
        }
        "cudaMalloc" => "`malloc(bytes)` returns the address",
        "cudaFree" => "`free(p)` takes a pointer from `malloc`",
        "cudaGetParameterBufferV2" | "cudaLaunchDeviceV2" | "cudaLaunchKernel" => {
            "write `launch kernel<<<grid, block>>>(…)`"
        }
        _ => return None,
    })
}

/// The built-in that corresponds to a function of CUDA or C.
fn foreign_function(name: &str) -> Option<&'static str> {
    Some(match name {
        "__syncthreads" | "syncthreads" => "sync_threads",
        "__syncwarp" => "sync_warp",
        "__shfl_sync" => "shfl",
        "__shfl_down_sync" => "shfl_down",
        "__shfl_up_sync" => "shfl_up",
        "__shfl_xor_sync" => "shfl_xor",
        "__ballot_sync" => "ballot",
        "__any_sync" => "any",
        "__all_sync" => "all",
        "__activemask" => "active_mask",
        "__threadfence" => "fence_device",
        "__threadfence_block" => "fence_block",
        "__threadfence_system" => "fence_system",
        "__popc" => "popc",
        "__clz" => "clz",
        "__brev" => "brev",
        "atomicAdd" => "atomic_add",
        "atomicSub" => "atomic_sub",
        "atomicMin" => "atomic_min",
        "atomicMax" => "atomic_max",
        "atomicAnd" => "atomic_and",
        "atomicOr" => "atomic_or",
        "atomicXor" => "atomic_xor",
        "atomicExch" => "atomic_exch",
        "atomicCAS" => "atomic_cas",
        "sqrtf" => "sqrt",
        "fabs" | "fabsf" => "abs",
        "fmin" | "fminf" => "min",
        "fmax" | "fmaxf" => "max",
        "fmaf" => "fma",
        "powf" => "pow",
        "expf" => "exp",
        "logf" => "log",
        "__syncthreads_count" => "sync_threads_count",
        "__syncthreads_and" => "sync_threads_and",
        "__syncthreads_or" => "sync_threads_or",
        "__match_any_sync" => "match_any",
        "__reduce_add_sync" => "reduce_add",
        "__reduce_min_sync" => "reduce_min",
        "__reduce_max_sync" => "reduce_max",
        "__reduce_and_sync" => "reduce_and",
        "__reduce_or_sync" => "reduce_or",
        "__reduce_xor_sync" => "reduce_xor",
        "__mulhi" => "mul_hi",
        "__umulhi" => "mul_hi",
        "__saturatef" => "saturate",
        "sizeof" => "size_of",
        "alignof" => "align_of",
        "cudaMemcpyAsync" => "memcpy_async",
        "cudaMemsetAsync" => "memset_async",
        "cudaGetLastError" => "device_last_error",
        _ => return None,
    })
}
