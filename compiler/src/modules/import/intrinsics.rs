//! LLVM's intrinsics and NVIDIA's, as built-ins of the language.

use gridlet_lang::builtins::{BitOp, Builtin, MathOp, Scope, ShuffleMode, VoteMode};
use gridlet_lang::ir::{Const, GEOMETRY_DYNAMIC_SHARED, InstKind, Operand};
use gridlet_lang::operators::BinaryOp;
use gridlet_lang::types::{Scalar, Type};

use super::Step;
use super::arithmetic::to_signed;
use super::body::Body;
use super::calls::math as math_function;
use super::functions::Composed;
use crate::modules::kernels::name as name_of;
use crate::modules::layout::pointer;
use crate::nvvm::lacking;
use crate::nvvm::legacy::llvm::Value;

/// Hints without effect.
const DROPPED: [&str; 10] = [
    "llvm.assume",
    "llvm.dbg.assign",
    "llvm.dbg.declare",
    "llvm.dbg.label",
    "llvm.dbg.value",
    "llvm.donothing",
    "llvm.experimental.noalias.scope.decl",
    "llvm.lifetime.end",
    "llvm.lifetime.start",
    "llvm.prefetch",
];

impl<'m> Body<'_, 'm> {
    /// A call of the intrinsic `name`, given without its overload types.
    pub(super) fn intrinsic(&mut self, value: Value<'m>, name: &str) -> Step<Option<Operand>> {
        if DROPPED.contains(&name) {
            return Ok(None);
        }
        if let Some(special) = name.strip_prefix("llvm.nvvm.read.ptx.sreg.") {
            return self.special_register(special).map(Some);
        }
        let math = |operation| Some(Builtin::Math(operation));
        let unit = Type::Unit;
        let builtin = match name {
            "llvm.sqrt" => math(MathOp::Sqrt),
            "llvm.fabs" => math(MathOp::Abs),
            "llvm.fma" | "llvm.fmuladd" => math(MathOp::Fma),
            "llvm.floor" => math(MathOp::Floor),
            "llvm.ceil" => math(MathOp::Ceil),
            "llvm.trunc" => math(MathOp::Trunc),
            "llvm.minnum" => math(MathOp::Min),
            "llvm.maxnum" => math(MathOp::Max),
            "llvm.round" => math(MathOp::Round),
            "llvm.nvvm.activemask" => Some(Builtin::ActiveMask),
            "llvm.nvvm.bar.warp.sync" => Some(Builtin::SyncWarp),
            "llvm.nvvm.vote.ballot.sync" => Some(Builtin::Vote(VoteMode::Ballot)),
            "llvm.nvvm.vote.any.sync" => Some(Builtin::Vote(VoteMode::Any)),
            "llvm.nvvm.vote.all.sync" => Some(Builtin::Vote(VoteMode::All)),
            _ => None,
        };
        let builtin = builtin.or_else(|| {
            let (function, _) = lacking::libdevice(&name_of(value.callee()))?;
            math_function(function.strip_prefix("__nv_")?).map(Builtin::Math)
        });
        if let Some(builtin) = builtin {
            return self.builtin_of(value, builtin).map(Some);
        }
        let plain = match name {
            "llvm.nvvm.barrier.cta.sync.aligned.all" | "llvm.nvvm.barrier.cta.sync.all" => {
                if value.operand(0).unsigned() != Some(0) {
                    return Err("a named barrier".into());
                }
                Some(Builtin::SyncThreads)
            }
            "llvm.nvvm.membar.cta" => Some(Builtin::Fence(Scope::Block)),
            "llvm.nvvm.membar.gl" => Some(Builtin::Fence(Scope::Device)),
            "llvm.nvvm.membar.sys" => Some(Builtin::Fence(Scope::System)),
            "llvm.trap" | "llvm.debugtrap" | "llvm.ubsantrap" => Some(Builtin::Trap),
            _ => None,
        };
        if let Some(builtin) = plain {
            self.builtin(builtin, vec![], &unit);
            return Ok(None);
        }
        if let Some(result) = self.overflowing(value, name)? {
            return Ok(Some(result));
        }
        match self.composed(value, name)? {
            Some(Composed::Value(result)) => return Ok(Some(result)),
            Some(Composed::Nothing) => return Ok(None),
            None => {}
        }
        match name {
            "llvm.smax" => self.extreme(value, BinaryOp::Gt, true).map(Some),
            "llvm.smin" => self.extreme(value, BinaryOp::Lt, true).map(Some),
            "llvm.umax" => self.extreme(value, BinaryOp::Gt, false).map(Some),
            "llvm.umin" => self.extreme(value, BinaryOp::Lt, false).map(Some),
            "llvm.abs" => self.absolute(value).map(Some),
            "llvm.fshl" => self.funnel(value, true).map(Some),
            "llvm.fshr" => self.funnel(value, false).map(Some),
            "llvm.bswap" => self.swapped_bytes(value).map(Some),
            // The rest says how likely the value is.
            "llvm.expect" | "llvm.expect.with.probability" => {
                self.operand(value.operand(0)).map(Some)
            }
            // Nothing is known before the module runs.
            "llvm.is.constant" => Ok(Some(Operand::Const(Const::Bool(false)))),
            "llvm.ctpop" => self.bits(value, BitOp::Popc).map(Some),
            "llvm.ctlz" => self.bits(value, BitOp::Clz).map(Some),
            "llvm.cttz" => self.bits(value, BitOp::Ctz).map(Some),
            "llvm.bitreverse" => self.bits(value, BitOp::Brev).map(Some),
            "llvm.memcpy" => self.copy(value, false),
            "llvm.memmove" => self.copy(value, true),
            "llvm.memset" => self.fill(value),
            _ => match name.strip_prefix("llvm.nvvm.shfl.sync.") {
                Some(mode) => self.shuffle(value, mode).map(Some),
                None => Err(format!("`{name}`")),
            },
        }
    }

    fn special_register(&mut self, name: &str) -> Step<Operand> {
        let word = Type::U32;
        let (register, axis) = name.split_once('.').unwrap_or((name, ""));
        let field = match register {
            "tid" => 0,
            "ctaid" => 1,
            "ntid" => 2,
            "nctaid" => 3,
            "warpsize" => return Ok(Body::number(Scalar::U32, 32)),
            "laneid" => return Ok(self.builtin(Builtin::LaneId, vec![], &word)),
            "smid" => return Ok(self.builtin(Builtin::SmId, vec![], &word)),
            "clock64" => return Ok(self.builtin(Builtin::Clock64, vec![], &Type::U64)),
            "globaltimer" => return Ok(self.builtin(Builtin::GlobalTimer, vec![], &Type::U64)),
            _ => return Err(format!("the special register `%{name}`")),
        };
        let axis = ["x", "y", "z"].iter().position(|known| *known == axis);
        let index = axis.ok_or_else(|| format!("the special register `%{name}`"))? as u32;
        let geometry = Operand::Parameter(0);
        let base = self.emit(InstKind::Extract { base: geometry, index: field }, Type::DIM3);
        Ok(self.emit(InstKind::Extract { base, index }, word))
    }

    /// The block's dynamic shared memory.
    pub(super) fn dynamic_shared(&mut self) -> Operand {
        let base = Operand::Parameter(0);
        self.emit(InstKind::Extract { base, index: GEOMETRY_DYNAMIC_SHARED }, pointer())
    }

    fn extreme(&mut self, value: Value<'m>, op: BinaryOp, is_signed: bool) -> Step<Operand> {
        let ty = self.type_of(value)?;
        if ty.as_scalar().is_none() {
            return Err("a function of each element of a vector".into());
        }
        let (left, right) = (self.operand(value.operand(0))?, self.operand(value.operand(1))?);
        let to = if is_signed { to_signed(&ty) } else { ty.clone() };
        let (first, second) =
            (self.cast(left.clone(), &ty, &to), self.cast(right.clone(), &ty, &to));
        let is_first = self.emit(InstKind::Binary(op, first, second), Type::BOOL);
        Ok(self.emit(InstKind::Select(is_first, left, right), ty))
    }

    fn compute(&mut self, op: BinaryOp, left: Operand, right: Operand, ty: &Type) -> Operand {
        self.emit(InstKind::Binary(op, left, right), ty.clone())
    }

    /// The scalar of an integer operation.
    fn integer(&mut self, value: Value<'m>) -> Step<(Type, Scalar)> {
        let ty = self.type_of(value)?;
        let scalar = ty.as_scalar().filter(|scalar| scalar.is_integer());
        let scalar = scalar.ok_or_else(|| on_type(value))?;
        Ok((ty, scalar))
    }

    fn absolute(&mut self, value: Value<'m>) -> Step<Operand> {
        let (ty, scalar) = self.integer(value)?;
        let operand = self.operand(value.operand(0))?;
        let signed = to_signed(&ty);
        let as_signed = self.cast(operand.clone(), &ty, &signed);
        let zero = Operand::Const(Const::Zero(signed));
        let is_negative = self.compute(BinaryOp::Lt, as_signed, zero, &Type::BOOL);
        let negated = self.compute(BinaryOp::Sub, Body::number(scalar, 0), operand.clone(), &ty);
        Ok(self.emit(InstKind::Select(is_negative, negated, operand), ty))
    }

    /// The upper or lower half of two joined numbers, after a shift by the third modulo their width.
    fn funnel(&mut self, value: Value<'m>, to_left: bool) -> Step<Operand> {
        let (ty, scalar) = self.integer(value)?;
        let [high, low, by] = [0, 1, 2].map(|at| self.operand(value.operand(at)));
        let (high, low) = (high?, low?);
        let width = Body::number(scalar, scalar.bits().into());
        let by = self.compute(BinaryOp::Rem, by?, width.clone(), &ty);
        let rest = self.compute(BinaryOp::Sub, width, by.clone(), &ty);
        let (left, right) = if to_left { (by.clone(), rest) } else { (rest, by.clone()) };
        let upper = self.compute(BinaryOp::Shl, high.clone(), left, &ty);
        let lower = self.compute(BinaryOp::Shr, low.clone(), right, &ty);
        let joined = self.compute(BinaryOp::Or, upper, lower, &ty);
        let is_whole = self.compute(BinaryOp::Eq, by, Body::number(scalar, 0), &Type::BOOL);
        let whole = if to_left { high } else { low };
        Ok(self.emit(InstKind::Select(is_whole, whole, joined), ty))
    }

    fn swapped_bytes(&mut self, value: Value<'m>) -> Step<Operand> {
        let (ty, scalar) = self.integer(value)?;
        let operand = self.operand(value.operand(0))?;
        let last = scalar.bits() - 8;
        let mut swapped = Body::number(scalar, 0);
        for from in (0..=last).step_by(8) {
            let down = self.compute(
                BinaryOp::Shr,
                operand.clone(),
                Body::number(scalar, from.into()),
                &ty,
            );
            let byte = self.compute(BinaryOp::And, down, Body::number(scalar, 255), &ty);
            let up = Body::number(scalar, (last - from).into());
            let up = self.compute(BinaryOp::Shl, byte, up, &ty);
            swapped = self.compute(BinaryOp::Or, swapped, up, &ty);
        }
        Ok(swapped)
    }

    fn bits(&mut self, value: Value<'m>, operation: BitOp) -> Step<Operand> {
        let ty = self.type_of(value)?;
        let is_word = ty == Type::U32 || ty == Type::U64;
        if !is_word {
            return Err(on_type(value));
        }
        let operand = self.operand(value.operand(0))?;
        let counted = if operation == BitOp::Brev { ty.clone() } else { Type::U32 };
        let result = self.builtin(Builtin::Bit(operation), vec![operand], &counted);
        Ok(self.cast(result, &counted, &ty))
    }

    /// `shfl.sync` of a whole warp: libNVVM and CUDA's headers pass the lane mask and the segment as one word.
    fn shuffle(&mut self, value: Value<'m>, name: &str) -> Step<Operand> {
        let (mode, whole) = match name.split_once('.').map_or(name, |(mode, _)| mode) {
            "idx" => (ShuffleMode::Index, 31),
            "up" => (ShuffleMode::Up, 0),
            "down" => (ShuffleMode::Down, 31),
            "bfly" => (ShuffleMode::Xor, 31),
            _ => return Err(format!("`llvm.nvvm.shfl.sync.{name}`")),
        };
        let ty = self.type_of(value)?;
        if ty.as_scalar().is_none() || value.operand(3).unsigned() != Some(whole) {
            return Err("a shuffle within part of a warp, or with a predicate".into());
        }
        let [mask, own, lane] = [0, 1, 2].map(|at| self.operand(value.operand(at)));
        Ok(self.builtin(Builtin::Shuffle(mode), vec![mask?, own?, lane?], &ty))
    }
}

/// What an intrinsic on a type is called.
fn on_type(value: Value<'_>) -> String {
    format!("`{}` on `{}`", name_of(value.callee()), value.ty().print())
}
