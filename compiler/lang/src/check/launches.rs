//! Launches: the kernel, its configuration and its arguments.

use std::rc::Rc;

use super::body::Body;
use super::expressions::typed;
use super::mismatch::Why;
use super::pointed::{Memory, Pointed};
use super::tree::{Expr, ExprKind, FunctionId, Launch, StreamExpr};
use super::{Signature, ValueName};
use crate::builtins::{Builtin, MathOp};
use crate::diagnostics::{Diagnostic, ids};
use crate::extents;
use crate::source::Span;
use crate::syntax::ast;
use crate::types::{Scalar, Type};

/// The named streams.
pub(super) const NAMED_STREAMS: [&str; 3] = ["default", "fire_and_forget", "tail"];

/// The configuration of a launch.
#[derive(Default)]
struct Config<'a> {
    grid: Option<&'a ast::Expr>,
    block: Option<&'a ast::Expr>,
    shared: Option<(Span, &'a ast::Expr)>,
    stream: Option<(Span, &'a ast::Expr)>,
    wrong: bool,
}

impl<'a> Body<'_, 'a> {
    /// `[try] launch kernel<<<config>>>(arguments)`
    pub(super) fn launch(&mut self, launch: &'a ast::Launch, span: Span) -> Option<Expr> {
        let kernel = self.launched_kernel(launch);
        let config = self.config(launch);
        let grid = config.grid.and_then(|grid| self.dimension(grid, "grid"));
        let block = config.block.and_then(|block| self.dimension(block, "block"));
        if let Some(grid) = &grid {
            self.check_grid(grid);
        }
        if let Some(block) = &block {
            let signature = kernel.as_ref().map(|(_, signature)| Rc::clone(signature));
            self.check_block(block, signature.as_deref());
        }
        let shared = config
            .shared
            .map(|(_, shared)| self.need(shared, &Type::U32, Why::Nothing).map(Box::new));
        if let Some(Some(shared)) = &shared
            && let ExprKind::Int(bytes) = shared.kind
            && let Some(problem) = extents::shared(bytes)
        {
            self.cx.report(problem.at(shared.span));
        }
        let stream = match config.stream {
            Some((_, stream)) => self.stream(stream),
            None => Some(StreamExpr::Default),
        };
        let arguments = self.launch_arguments(launch, kernel.as_ref().map(|(_, s)| &**s), span);
        if config.wrong {
            return None;
        }
        let (id, _) = kernel?;
        let shared = match shared {
            Some(shared) => Some(shared?),
            None => None,
        };
        let launch = Launch {
            kernel: id?,
            grid: Box::new(grid?),
            block: Box::new(block?),
            shared,
            stream: stream?,
            arguments: arguments?,
            is_try: launch.is_try,
        };
        let ty = if launch.is_try { Type::I32 } else { Type::Unit };
        Some(typed(ExprKind::Launch(launch), ty, span))
    }

    fn launched_kernel(
        &mut self,
        launch: &'a ast::Launch,
    ) -> Option<(Option<FunctionId>, Rc<Signature<'a>>)> {
        let name = self.cx.text(launch.kernel);
        let at = launch.kernel.span;
        let found = self.cx.value(name, at.file);
        let error = match found {
            Some((ValueName::Function(function), _)) => {
                let generics = launch.generics.as_ref();
                let (id, signature) = self.named_instance(function, launch.kernel, generics)?;
                if signature.item.is_kernel {
                    return Some((id, signature));
                }
                let message =
                    format!("`{name}` is a device function; only kernels can be launched");
                Diagnostic::error(ids::LAUNCH_NOT_KERNEL, at, message)
                    .label(signature.item.name.span, "declared here")
                    .hint(format!("call it, `{name}(…)`, or declare it `kernel`"))
            }
            Some((ValueName::Opaque, _)) => return None,
            Some((ValueName::Static(_), declared)) => {
                let message = format!("`{name}` is a variable, not a kernel");
                let error = Diagnostic::error(ids::LAUNCH_NOT_KERNEL, at, message);
                error.label(declared, "declared here")
            }
            Some((ValueName::Const(_), declared)) => {
                let message = format!("`{name}` is a constant, not a kernel");
                Diagnostic::error(ids::LAUNCH_NOT_KERNEL, at, message)
                    .label(declared, "declared here")
            }
            None if self.lookup(name).is_some() || self.cx.builtins.contains_key(name) => {
                let message = format!("`{name}` is not a kernel");
                Diagnostic::error(ids::LAUNCH_NOT_KERNEL, at, message)
            }
            None if !self.cx.is_new(name, at.file, ids::UNKNOWN_NAME) => return None,
            None => {
                self.cx.report_unknown(name, at.file, |cx| {
                    let message = format!("there is no kernel `{name}`");
                    let error = Diagnostic::error(ids::UNKNOWN_NAME, at, message);
                    cx.suggest(error, name, |cx| cx.function_names(true))
                });
                return None;
            }
        };
        self.cx.report(error);
        None
    }

    /// Sorts the options between `<<<` and `>>>`.
    fn config(&mut self, launch: &'a ast::Launch) -> Config<'a> {
        let mut config = Config::default();
        for option in &launch.config {
            let Some(name) = option.name else {
                let named_before = config.shared.is_some() || config.stream.is_some();
                if config.grid.is_none() && !named_before {
                    config.grid = Some(&option.value);
                } else if config.block.is_none() && !named_before {
                    config.block = Some(&option.value);
                } else if !config.wrong {
                    config.wrong = true;
                    let message = "launch options after the grid and the block must be named";
                    let error = Diagnostic::error(ids::LAUNCH_CONFIG, option.value.span, message);
                    self.cx.report(error.hint("name it: `shared = bytes` or `stream = tail`"));
                }
                continue;
            };
            let text = self.cx.text(name);
            let slot = match text {
                "shared" => &mut config.shared,
                "stream" => &mut config.stream,
                _ => {
                    config.wrong = true;
                    let message = format!("a launch has no option `{text}`");
                    let error = Diagnostic::error(ids::LAUNCH_CONFIG, name.span, message);
                    let error = self.cx.suggest(error, text, |_| vec!["shared", "stream"]);
                    self.cx.report(error.note("the options are `shared` and `stream`"));
                    continue;
                }
            };
            if let Some((first, _)) = slot.replace((name.span, &option.value)) {
                config.wrong = true;
                let message = format!("the option `{text}` is given twice");
                let error = Diagnostic::error(ids::LAUNCH_CONFIG, name.span, message);
                self.cx.report(error.label(first, "first given here"));
            }
        }
        if config.block.is_none() && !config.wrong {
            config.wrong = true;
            let message = "a launch needs a grid and a block";
            let error = Diagnostic::error(ids::LAUNCH_CONFIG, launch.config_span, message);
            self.cx.report(error.hint("write `<<<blocks, threads>>>`"));
        }
        config
    }

    /// A grid or a block as a `dim3`.
    fn dimension(&mut self, e: &'a ast::Expr, what: &str) -> Option<Expr> {
        let value = self.infer(e, Some(&Type::U32))?;
        let span = value.span;
        let x = match value.ty.as_scalar() {
            Some(Scalar::U32) => value,
            Some(scalar) if scalar.is_integer() => self.dimension_cast(value)?,
            _ if value.ty == Type::DIM3 => return Some(value),
            _ => {
                let message = format!(
                    "a {what} must be an integer or a `dim3`, not {}",
                    self.cx.show(&value.ty)
                );
                self.cx.report(Diagnostic::error(ids::LAUNCH_DIMENSION, span, message));
                return None;
            }
        };
        let one = || typed(ExprKind::Int(1), Type::U32, span);
        Some(typed(ExprKind::Aggregate(vec![x, one(), one()]), Type::DIM3, span))
    }

    /// An integer of another type as a `u32`. An integer that does not fit becomes one that no grid or block can have,
    /// so that the launch fails: a narrower negative number does so when it wraps, a wider number is limited.
    fn dimension_cast(&mut self, value: Expr) -> Option<Expr> {
        let span = value.span;
        if let ExprKind::Int(number) = value.kind {
            if u32::try_from(number).is_ok() {
                return Some(typed(ExprKind::Int(number), Type::U32, span));
            }
            let message = format!("{number} is not a valid size of a grid or a block");
            self.cx.report(Diagnostic::error(ids::LAUNCH_DIMENSION, span, message));
            return None;
        }
        let cast = |value, ty| typed(ExprKind::Cast(Box::new(value)), ty, span);
        if value.ty.as_scalar().is_none_or(|scalar| scalar.size() <= 4) {
            return Some(cast(value, Type::U32));
        }
        let wide = if value.ty == Type::U64 { value } else { cast(value, Type::U64) };
        let most = typed(ExprKind::Int(u32::MAX.into()), Type::U64, span);
        let limited = ExprKind::Builtin {
            builtin: Builtin::Math(MathOp::Min),
            arguments: vec![wide, most],
            format: None,
        };
        Some(cast(typed(limited, Type::U64, span), Type::U32))
    }

    fn check_grid(&mut self, grid: &Expr) {
        let (sizes, spans): (Vec<_>, Vec<_>) = known_sizes(grid).into_iter().unzip();
        for problem in extents::grid(&sizes) {
            let span = problem.axis.map_or(grid.span, |at| spans[at]);
            self.cx.report(problem.at(span));
        }
    }

    fn check_block(&mut self, block: &Expr, kernel: Option<&Signature<'a>>) {
        let (sizes, spans): (Vec<_>, Vec<_>) = known_sizes(block).into_iter().unzip();
        let bounds = kernel.and_then(|kernel| {
            let bounds = kernel.kernel.and_then(|kernel| kernel.launch_bounds)?;
            Some((self.cx.text(kernel.item.name), bounds.max_threads))
        });
        let Some(problem) = extents::block(&sizes, bounds) else { return };
        let span = problem.axis.map_or(block.span, |at| spans[at]);
        let exceeds_bounds = problem.id == ids::LAUNCH_BOUNDS_EXCEEDED;
        let error = problem.at(span);
        let attribute = kernel.filter(|_| exceeds_bounds).and_then(|kernel| {
            let mut attributes = kernel.item.attributes.iter();
            attributes.find(|attribute| self.cx.text(attribute.name) == "launch_bounds")
        });
        self.cx.report(match attribute {
            Some(attribute) => error.label(attribute.span, "the launch bounds"),
            None => error,
        });
    }

    /// The stream of a built-in: `default`, or a value of type `stream`.
    pub(super) fn stream_value(&mut self, e: &'a ast::Expr) -> Option<Expr> {
        match self.stream(e)? {
            StreamExpr::Value(value) => Some(*value),
            StreamExpr::Default => {
                let null = Expr { kind: ExprKind::Int(0), ty: Type::U64, span: e.span };
                let kind = ExprKind::Cast(Box::new(null));
                Some(Expr { kind, ty: Type::Stream, span: e.span })
            }
            StreamExpr::FireAndForget | StreamExpr::Tail => {
                let message = "only launches can use this stream";
                let error = Diagnostic::error(ids::UNKNOWN_STREAM, e.span, message);
                self.cx.report(error.hint("use `default`, or a stream from `stream_create()`"));
                None
            }
        }
    }

    /// A named stream, or a value of type `stream`.
    fn stream(&mut self, e: &'a ast::Expr) -> Option<StreamExpr> {
        if let ast::ExprKind::Name(name) = e.kind {
            let text = self.cx.text(name);
            match text {
                "default" => return Some(StreamExpr::Default),
                "fire_and_forget" => return Some(StreamExpr::FireAndForget),
                "tail" => return Some(StreamExpr::Tail),
                _ => {}
            }
            let is_value = self.cx.value(text, name.span.file).is_some();
            if !is_value && self.lookup(text).is_none() {
                self.cx.report_unknown(text, name.span.file, |cx| {
                    let message = format!("there is no stream `{text}`");
                    let error = Diagnostic::error(ids::UNKNOWN_STREAM, name.span, message);
                    let error = cx.suggest(error, text, |cx| {
                        NAMED_STREAMS.into_iter().chain(cx.scope.iter().copied()).collect()
                    });
                    error.note("the named streams are `default`, `fire_and_forget` and `tail`")
                });
                return None;
            }
        }
        let value = self.need(e, &Type::Stream, Why::Nothing)?;
        Some(StreamExpr::Value(Box::new(value)))
    }

    fn launch_arguments(
        &mut self,
        launch: &'a ast::Launch,
        kernel: Option<&Signature<'a>>,
        span: Span,
    ) -> Option<Vec<Expr>> {
        let Some(kernel) = kernel else {
            for argument in &launch.arguments {
                self.infer(argument, None);
            }
            return None;
        };
        if launch.arguments.len() != kernel.parameters.len() {
            let message = self.arity_message(kernel, launch.arguments.len());
            let at = if launch.arguments.is_empty() { span } else { launch.arguments_span };
            let error = Diagnostic::error(ids::LAUNCH_ARITY, at, message);
            self.cx.report(error.label(kernel.item.name.span, "declared here"));
            for argument in &launch.arguments {
                self.infer(argument, None);
            }
            return None;
        }
        let values: Vec<Option<Expr>> = launch
            .arguments
            .iter()
            .zip(&kernel.parameters)
            .map(|(argument, parameter)| {
                let Some(ty) = &parameter.ty else { return self.infer(argument, None) };
                self.launch_argument(argument, ty, Why::KernelParameter(parameter.span))
            })
            .collect();
        values.into_iter().collect()
    }

    fn launch_argument(&mut self, e: &'a ast::Expr, ty: &Type, why: Why) -> Option<Expr> {
        let value = match &e.kind {
            ast::ExprKind::If { .. } | ast::ExprKind::Block(_) => self.need(e, ty, why)?,
            _ => self.infer(e, Some(ty))?,
        };
        let is_array = matches!(value.ty, Type::Array(..)) && ty.is_pointer();
        let pointed = if is_array { self.memory_of(&value) } else { self.points_to(&value) };
        if let Some(pointed) = pointed {
            let others = "a child grid runs in other blocks";
            let hint = "pass the value itself, or a pointer to device memory";
            self.unreachable_memory(&value, pointed, "the child grid", others, hint);
            return None;
        }
        self.coerce(value, ty, why)
    }

    /// Reports an argument that points to memory that `who` cannot reach; `others` completes the reason.
    pub(super) fn unreachable_memory(
        &mut self,
        value: &Expr,
        pointed: Pointed,
        who: &str,
        others: &str,
        hint: &str,
    ) {
        let (what, why) = match pointed.memory {
            Memory::Local => ("a local variable", "local memory belongs to one thread"),
            Memory::Shared => ("`shared` memory", "`shared` memory belongs to one block"),
        };
        let message = format!("this argument points to {what}, which {who} cannot reach");
        let mut error = Diagnostic::error(ids::LOCAL_POINTER_ARGUMENT, value.span, message);
        if pointed.span != value.span {
            error = error.label(pointed.span, "the address is taken here");
        }
        let note = format!("{why}, and {others}");
        self.cx.report(error.note(note).hint(hint));
    }
}

/// The three sizes of a grid or block, each with its span; `None` where not constant.
fn known_sizes(dimension: &Expr) -> Vec<(Option<i128>, Span)> {
    let ExprKind::Aggregate(parts) = &dimension.kind else { return vec![] };
    let size = |part: &Expr| match part.kind {
        ExprKind::Int(size) => Some(size),
        _ => None,
    };
    parts.iter().map(|part| (size(part), part.span)).collect()
}
