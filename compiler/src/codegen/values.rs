//! Downcasts LLVM values to one kind. A mismatch is an internal error, not a panic.

use inkwell::builder::BuilderError;
use inkwell::values::{BasicValueEnum, CallSiteValue, FloatValue, IntValue, PointerValue};

use super::bug;
use crate::error::{Error, Result};

impl From<BuilderError> for Error {
    fn from(error: BuilderError) -> Self {
        bug(format!("LLVM's builder: {error}"))
    }
}

/// The integer, or `bool`, that `value` must be.
pub(super) fn int(value: BasicValueEnum<'_>) -> Result<IntValue<'_>> {
    match value {
        BasicValueEnum::IntValue(value) => Ok(value),
        other => Err(bug(format!("expected an integer, found {other}"))),
    }
}

/// The float that `value` must be.
pub(super) fn float(value: BasicValueEnum<'_>) -> Result<FloatValue<'_>> {
    match value {
        BasicValueEnum::FloatValue(value) => Ok(value),
        other => Err(bug(format!("expected a float, found {other}"))),
    }
}

/// The pointer that `value` must be.
pub(super) fn pointer(value: BasicValueEnum<'_>) -> Result<PointerValue<'_>> {
    match value {
        BasicValueEnum::PointerValue(value) => Ok(value),
        other => Err(bug(format!("expected a pointer, found {other}"))),
    }
}

/// The result of a call that must have one.
pub(super) fn result(call: CallSiteValue<'_>) -> Result<BasicValueEnum<'_>> {
    call.try_as_basic_value().basic().ok_or_else(|| bug("a call without a value"))
}
