//! Signed division of at most 32 bits on GPUs.
//!
//! In LLVM, the smallest number divided by -1 is undefined, so the IR divides by 1 instead and chooses the negated dividend
//! afterwards. The GPU's division of 32 bits divides magnitudes and sets the sign, and needs no such guard: the quotient
//! is the smallest number, the remainder 0. As assembly, LLVM cannot assume otherwise.
//!
//! But assembly hides a constant divisor, which LLVM would replace by a multiplication. So only divisors that are surely no
//! constants lose the guard: [`runtime_values`]. 64-bit divisions keep it, because LLVM tries them with 32 bits first. Shorter ones
//! are computed in another way (`narrow_division.rs`), which needs no guard either.

use inkwell::values::BasicValueEnum;

use super::function::FunctionEmitter;
use crate::error::Result;
use gridlet_lang::ir::{BinaryOp, Const, Function, InstKind, Operand, Role, UnaryOp};
use gridlet_lang::types::Type;

impl<'ctx> FunctionEmitter<'_, 'ctx, '_> {
    /// A division whose divisor the IR guards against -1; `None` for others.
    pub(super) fn unguarded_division(
        &self,
        op: BinaryOp,
        left: &Operand,
        right: &Operand,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let text = match op {
            BinaryOp::Div => "div.s32 $0, $1, $2;",
            BinaryOp::Rem => "rem.s32 $0, $1, $2;",
            _ => return Ok(None),
        };
        if self.type_of(left) != Type::I32 {
            return Ok(None);
        }
        let Some((_, divisor)) = self.guarded_divisor(right) else { return Ok(None) };
        let arguments = [self.operand(left)?, self.operand(divisor)?];
        self.pure_assembly(text, 32, &arguments).map(Some)
    }

    /// The quotient, if a `select` replaces it by the negated dividend for a divisor of -1.
    pub(super) fn unguarded_quotient(
        &self,
        condition: &Operand,
        then: &Operand,
        otherwise: &Operand,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        let Some(InstKind::Binary(BinaryOp::Div, dividend, divisor)) = self.kind(otherwise) else {
            return Ok(None);
        };
        let Some((guard, _)) = self.guarded_divisor(divisor) else { return Ok(None) };
        match self.kind(then) {
            Some(InstKind::Unary(UnaryOp::Neg, negated))
                if negated == dividend && guard == condition =>
            {
                self.operand(otherwise).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The condition and the divisor `d` of `select(d == -1, 1, d)`, an integer of at most 32 bits on a GPU that is no constant.
    pub(super) fn guarded_divisor(&self, divisor: &Operand) -> Option<(&Operand, &Operand)> {
        let scalar = self.type_of(divisor).as_scalar()?;
        if self.cx.cpu().is_some() || scalar.bits() > 32 {
            return None;
        }
        let InstKind::Select(condition, one, divisor) = self.kind(divisor)? else { return None };
        let InstKind::Binary(BinaryOp::Eq, tested, minus_one) = self.kind(condition)? else {
            return None;
        };
        let is = |operand: &Operand, number: i128| matches!(operand, Operand::Const(Const::Int(ty, value)) if *ty == scalar && *value == number);
        let is_guard = tested == divisor && is(one, 1) && is(minus_one, -1);
        (is_guard && self.is_runtime(divisor)).then_some((condition, divisor))
    }

    pub(super) fn is_runtime(&self, operand: &Operand) -> bool {
        let values = self.runtime.get_or_init(|| runtime_values(self.function));
        is_runtime(self.function, values, operand)
    }
}

/// Whether an operand surely is no constant, given the values of instructions.
fn is_runtime(function: &Function, values: &[bool], operand: &Operand) -> bool {
    match operand {
        Operand::Inst(id) => values.get(id.index()).copied().unwrap_or(false),
        // Callers may pass constants to other functions.
        Operand::Parameter(at) => {
            let parameter = function.parameters.get(*at as usize);
            matches!(function.role, Role::Body(_))
                || parameter.is_some_and(|parameter| parameter.ty == Type::GEOMETRY)
        }
        _ => false,
    }
}

/// How often the values of a function are computed before its variables count as constants.
const MOST_ROUNDS: usize = 8;

/// Which instructions surely give no constant: they depend on memory, on a kernel's parameter or on the thread. Values that
/// pass through variables count if all that is stored there does.
fn runtime_values(function: &Function) -> Vec<bool> {
    let count = function.instructions.len();
    let mut slots = vec![true; function.slots.len()];
    for _ in 0..MOST_ROUNDS {
        let (values, next) = round(function, &slots);
        if next == slots {
            return values;
        }
        slots = next;
    }
    vec![false; count]
}

/// The values with an assumption about variables, and what then follows for these.
fn round(function: &Function, slots: &[bool]) -> (Vec<bool>, Vec<bool>) {
    let mut values: Vec<bool> = Vec::with_capacity(function.instructions.len());
    // Variables without a store in one piece are unknown.
    let mut stored: Vec<Option<bool>> = vec![None; slots.len()];
    // Addresses within variables and globals, which may hold constants.
    let mut is_inner: Vec<bool> = Vec::with_capacity(values.capacity());
    for inst in &function.instructions {
        let is = |operand: &Operand| is_runtime(function, &values, operand);
        let is_inside = |operand: &Operand| match operand {
            Operand::Slot(_) | Operand::Global(_) => true,
            Operand::Inst(id) => is_inner.get(id.index()).copied().unwrap_or(true),
            _ => false,
        };
        let mut inner = false;
        let value = match &inst.kind {
            InstKind::Load(Operand::Slot(slot)) => {
                slots.get(slot.index()).copied().unwrap_or(false)
            }
            InstKind::Load(address) => !is_inside(address),
            InstKind::Store { pointer: Operand::Slot(slot), value } => {
                let value = is(value);
                if let Some(stored) = stored.get_mut(slot.index()) {
                    *stored = Some(stored.unwrap_or(true) && value);
                }
                false
            }
            InstKind::Binary(_, left, right) | InstKind::Advance(left, right) => {
                is(left) || is(right)
            }
            InstKind::Unary(_, value)
            | InstKind::Cast(value)
            | InstKind::Extract { base: value, .. } => is(value),
            InstKind::Select(_, then, otherwise) => is(then) && is(otherwise),
            InstKind::FieldAddress { base, .. }
            | InstKind::ElementAddress { base, .. }
            | InstKind::ByteOffset { base, .. } => {
                inner = is_inside(base);
                false
            }
            _ => false,
        };
        values.push(value);
        is_inner.push(inner);
    }
    let next = stored.into_iter().zip(slots).map(|(stored, &was)| was && stored == Some(true));
    (values, next.collect())
}
