//! Launches, which stay symbolic.

use super::function::FunctionBuilder;
use crate::check::tree::{Expr, Launch as Source, StreamExpr};
use crate::error::Result;
use crate::ir::{Const, InstKind, Launch, Operand, Stream};
use crate::types::{Scalar, Type};

impl FunctionBuilder<'_, '_> {
    /// A launch; a `try launch` has the status as its value.
    pub(super) fn launch(&mut self, expr: &Expr, launch: &Source) -> Result<Option<Operand>> {
        let grid = self.value(&launch.grid)?;
        let block = self.value(&launch.block)?;
        let shared = match &launch.shared {
            Some(bytes) => self.value(bytes)?,
            None => Operand::Const(Const::Int(Scalar::U32, 0)),
        };
        let stream = match &launch.stream {
            StreamExpr::Default => Stream::Default,
            StreamExpr::FireAndForget => Stream::FireAndForget,
            StreamExpr::Tail => Stream::Tail,
            StreamExpr::Value(stream) => Stream::Value(self.value(stream)?),
        };
        let arguments = self.values(&launch.arguments)?;
        let target = self.program.targets.get(launch.kernel.0 as usize);
        let Some(kernel) = target.and_then(|target| target.kernel) else {
            return Err(self.broken("the launch target is not a kernel"));
        };
        let is_try = launch.is_try;
        let kind = InstKind::Launch(Box::new(Launch {
            kernel,
            grid,
            block,
            shared,
            stream,
            arguments,
            is_try,
        }));
        let ty = if is_try { Type::I32 } else { Type::Unit };
        let status = self.body.emit(kind, ty, expr.span);
        Ok(is_try.then_some(status))
    }
}
