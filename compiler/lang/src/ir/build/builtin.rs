//! Built-in operations; some are composed of others.

use super::function::FunctionBuilder;
use crate::builtins::{Builtin, MathOp};
use crate::check::tree::Expr;
use crate::error::Result;
use crate::ir::{Const, InstKind, Operand, Terminator};
use crate::source::Span;
use crate::types::{Scalar, Type};

impl FunctionBuilder<'_, '_> {
    /// A built-in operation; `text` is `printf`'s format or the message of an `assert`.
    pub(super) fn builtin(
        &mut self,
        expr: &Expr,
        builtin: Builtin,
        arguments: &[Expr],
        text: Option<&str>,
    ) -> Result<Option<Operand>> {
        let mut arguments = self.values(arguments)?;
        let (ty, span) = (&expr.ty, expr.span);
        match (builtin, arguments.as_slice()) {
            (Builtin::Math(MathOp::Clamp), [value, low, high]) => {
                let raised = self.math(MathOp::Max, value, low, ty, span);
                return Ok(Some(self.math(MathOp::Min, &raised, high, ty, span)));
            }
            // NaN becomes 0, because `max` returns the other operand.
            (Builtin::Math(MathOp::Saturate), [value]) => {
                let scalar = self.scalar(ty)?;
                let number = |value| Operand::Const(Const::Float(scalar, value));
                let raised = self.math(MathOp::Max, value, &number(0.0), ty, span);
                return Ok(Some(self.math(MathOp::Min, &raised, &number(1.0), ty, span)));
            }
            (Builtin::Assert, _) => arguments = self.assert_arguments(text, span),
            _ => {}
        }
        let format = match text {
            Some(text) if builtin == Builtin::Printf && self.body.is_live() => {
                Some(self.program.string(text))
            }
            _ => None,
        };
        let kind = InstKind::Builtin { builtin, arguments, format };
        let value = self.body.emit(kind, ty.clone(), span);
        if builtin.ends() {
            self.body.terminate(Terminator::Unreachable);
        }
        Ok((*ty != Type::Unit).then_some(value))
    }

    fn math(
        &mut self,
        op: MathOp,
        left: &Operand,
        right: &Operand,
        ty: &Type,
        span: Span,
    ) -> Operand {
        let arguments = vec![left.clone(), right.clone()];
        let kind = InstKind::Builtin { builtin: Builtin::Math(op), arguments, format: None };
        self.body.emit(kind, ty.clone(), span)
    }

    /// The arguments of an assertion failure: message, file, line and function.
    fn assert_arguments(&mut self, message: Option<&str>, span: Span) -> Vec<Operand> {
        if !self.body.is_live() {
            return vec![];
        }
        let sources = self.program.sources.clone();
        let file = sources.name(span).to_owned();
        let line = Operand::Const(Const::Int(Scalar::U32, sources.line(span).into()));
        let message = self.string_address(message.unwrap_or_default(), span);
        let file = self.string_address(&file, span);
        let function = self.string_address(&self.source.name, span);
        vec![message, file, line, function]
    }

    /// The address of a NUL-terminated string in constant memory.
    pub(super) fn string_address(&mut self, text: &str, span: Span) -> Operand {
        let string = Operand::Global(self.program.string(text));
        let bytes = Type::pointer_const(Type::Scalar(Scalar::U8));
        self.body.emit(InstKind::Cast(string), bytes, span)
    }
}
