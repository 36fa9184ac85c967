//! Checks the types of each instruction's operands and result.

use super::{Checked, FunctionVerifier, missing, require};
use crate::check::counted_arguments;
use crate::check::tree::{BinaryOp, UnaryOp};
use crate::ir::{
    Function, Inst, InstKind, Launch, Operand, Parameter, Role, Stream, same_type, symbol,
};
use crate::types::{Scalar, Type};

/// The name of an instruction in messages.
pub(crate) fn name(kind: &InstKind) -> &'static str {
    match kind {
        InstKind::Load(_) => "load",
        InstKind::Store { .. } => "store",
        InstKind::Unary(..) => "unary",
        InstKind::Binary(..) => "binary",
        InstKind::Advance(..) => "advance",
        InstKind::Cast(_) => "cast",
        InstKind::Select(..) => "select",
        InstKind::FieldAddress { .. } => "field_address",
        InstKind::ElementAddress { .. } => "element_address",
        InstKind::PointerDifference(..) => "pointer_difference",
        InstKind::ByteOffset { .. } => "byte_offset",
        InstKind::Extract { .. } => "extract",
        InstKind::Aggregate(_) => "aggregate",
        InstKind::Call { .. } => "call",
        InstKind::CallExtern { .. } => "call extern",
        InstKind::Builtin { .. } => "builtin",
        InstKind::HardwareGeometry => "hardware_geometry",
        InstKind::Launch(_) => "launch",
    }
}

impl FunctionVerifier<'_> {
    pub(super) fn check_instruction(&self, inst: &Inst, place: (usize, usize)) -> Checked {
        let value = |operand: &Operand| self.operand(operand, place);
        let result = |ty: &Type| self.expect("its value", ty, &inst.ty);
        match &inst.kind {
            InstKind::Load(pointer) => result(&self.pointee(&value(pointer)?)?),
            InstKind::Store { pointer, value: stored } => {
                let target = self.pointee(&value(pointer)?)?;
                self.expect("the stored value", &target, &value(stored)?)?;
                result(&Type::Unit)
            }
            InstKind::Unary(op, operand) => {
                let ty = value(operand)?;
                let allowed = ty.as_scalar().is_some_and(|scalar| match op {
                    UnaryOp::Neg => scalar.is_integer() || scalar.is_float(),
                    UnaryOp::Not => scalar.is_integer() || scalar == Scalar::Bool,
                });
                require!(allowed, "its operand has type `{}`", self.show(&ty));
                result(&ty)
            }
            InstKind::Binary(op, left, right) => {
                result(&self.binary(*op, &value(left)?, &value(right)?, right)?)
            }
            InstKind::Advance(counter, step) => {
                let ty = value(counter)?;
                let is_integer = ty.as_scalar().is_some_and(|scalar| scalar.is_integer());
                require!(is_integer, "the counter has type `{}`", self.show(&ty));
                self.expect("the step", &ty, &value(step)?)?;
                result(&ty)
            }
            InstKind::Cast(operand) => {
                let from = value(operand)?;
                let (shown, to) = (self.show(&from), self.show(&inst.ty));
                let instead = if to == "bool" { "; compare with zero" } else { "" };
                require!(
                    can_cast(&from, &inst.ty),
                    "there is no cast from `{shown}` to `{to}`{instead}"
                );
                Ok(())
            }
            InstKind::Select(condition, yes, no) => {
                self.expect("the condition", &Type::BOOL, &value(condition)?)?;
                let ty = value(yes)?;
                self.expect("the third operand", &ty, &value(no)?)?;
                result(&ty)
            }
            InstKind::FieldAddress { base, index } => {
                let base = self.pointee(&value(base)?)?;
                require!(!matches!(base, Type::Array(..)), "its base points to an array");
                result(&Type::pointer_mut(self.part(&base, *index)?))
            }
            InstKind::ElementAddress { base, index } => {
                let base = value(base)?;
                let index = value(index)?;
                let is_integer = index.as_scalar().is_some_and(|scalar| scalar.is_integer());
                require!(is_integer, "the index has type `{}`", self.show(&index));
                match self.pointee(&base)? {
                    Type::Array(element, _) if !same_type(&inst.ty, &base) => {
                        result(&Type::pointer_mut(*element))
                    }
                    _ => result(&base),
                }
            }
            InstKind::PointerDifference(left, right) => {
                let left = value(left)?;
                self.pointee(&left)?;
                self.expect("the right operand", &left, &value(right)?)?;
                result(&Type::I64)
            }
            InstKind::ByteOffset { base, .. } => {
                self.pointee(&value(base)?)?;
                require!(inst.ty.is_pointer(), "its value is not a pointer");
                Ok(())
            }
            InstKind::Extract { base, index } => result(&self.part(&value(base)?, *index)?),
            InstKind::Aggregate(parts) => {
                let count = self.part_count(&inst.ty)?;
                require!(
                    parts.len() as u64 == count,
                    "{} parts for a type of {count}",
                    parts.len()
                );
                for (at, part) in parts.iter().enumerate() {
                    let wanted = self.part(&inst.ty, at as u32)?;
                    let found = value(part)?;
                    if !same_type(&wanted, &found) {
                        self.expect(&self.part_name(&inst.ty, at, place), &wanted, &found)?;
                    }
                }
                Ok(())
            }
            InstKind::Call { function, arguments } => {
                let Some(callee) = self.module.functions.get(function.index()) else {
                    return Err(missing("function", function.0));
                };
                self.check_callee(callee)?;
                self.check_call(callee, arguments, place)?;
                result(&callee.result)
            }
            InstKind::CallExtern { function, arguments } => {
                let Some(callee) = self.module.externs.get(function.index()) else {
                    return Err(missing("declared function", function.0));
                };
                let types = callee.parameters.iter().map(|ty| (None, ty));
                self.check_arguments(&callee.name, arguments, types, place)?;
                result(&callee.result)
            }
            InstKind::Builtin { builtin, arguments, format } => {
                let types = arguments.iter().map(value).collect::<Checked<Vec<Type>>>()?;
                self.check_builtin(*builtin, &types, *format, &inst.ty)
            }
            InstKind::HardwareGeometry => {
                let may_read = match self.function.role {
                    Role::Entry(_) => true,
                    Role::Device => self.module.lowered && !self.function.takes_geometry,
                    Role::Body(_) => false,
                };
                require!(may_read, "only entries read the geometry from the hardware");
                result(&Type::GEOMETRY)
            }
            InstKind::Launch(launch) => self.check_launch(launch, inst, place),
        }
    }

    /// The name of a part of the aggregate at a place.
    fn part_name(&self, ty: &Type, at: usize, (block, place): (usize, usize)) -> String {
        let Type::Struct(id) = ty else { return format!("part {at}") };
        let item = self.module.structs.get(*id);
        let of = Operand::Inst(self.function.blocks[block].instructions[place]);
        let extents = self.function.instructions.iter().find_map(|inst| match &inst.kind {
            InstKind::Launch(launch) if launch.grid == of => Some("the grid"),
            InstKind::Launch(launch) if launch.block == of => Some("the block"),
            _ => None,
        });
        let name = &item.fields[at].name;
        match extents {
            Some(extents) => format!("`{name}` of {extents} of a launch"),
            None => format!("field `{name}` of `{}`", item.name),
        }
    }

    fn check_callee(&self, callee: &Function) -> Checked {
        match callee.role {
            Role::Device => Ok(()),
            Role::Entry(_) => {
                Err(format!("`{}` is an entry: it can only be launched", callee.name))
            }
            Role::Body(_) => {
                // A launch strategy may add wrappers that are device functions.
                let is_wrapper =
                    matches!(self.function.role, Role::Entry(_)) || self.module.lowered;
                require!(is_wrapper, "`{}` is a body: only entries may call it", callee.name);
                Ok(())
            }
        }
    }

    /// Checks the arguments for parameters, whose names are unknown in functions that are only declared.
    fn check_arguments<'t>(
        &self,
        callee: &str,
        arguments: &[Operand],
        parameters: impl ExactSizeIterator<Item = (Option<&'t str>, &'t Type)>,
        place: (usize, usize),
    ) -> Checked {
        let (given, wanted) = (arguments.len(), parameters.len());
        require!(given == wanted, "`{callee}` takes {}, not {given}", counted_arguments(wanted));
        for (at, (argument, (name, ty))) in (1..).zip(arguments.iter().zip(parameters)) {
            let name = name.map_or_else(|| at.to_string(), |name| format!("`{name}`"));
            let what = format!("argument {name} of `{callee}`");
            self.expect(&what, ty, &self.operand(argument, place)?)?;
        }
        Ok(())
    }

    fn check_call(
        &self,
        callee: &Function,
        arguments: &[Operand],
        place: (usize, usize),
    ) -> Checked {
        let name = callee.name.strip_prefix(symbol::OWN).unwrap_or(&callee.name);
        let (mut arguments, mut parameters) = (arguments, callee.parameters.as_slice());
        // The source does not know this argument, so it does not count in messages.
        if callee.takes_geometry {
            let first = arguments.first().map(|first| self.operand(first, place)).transpose()?;
            let is_given = first.is_some_and(|first| first == Type::GEOMETRY);
            require!(is_given, "`{name}` takes the geometry, which is not the first argument");
            (arguments, parameters) = (&arguments[1..], &parameters[1..]);
        }
        self.check_arguments(name, arguments, parameters.iter().map(named), place)
    }

    fn check_launch(&self, launch: &Launch, inst: &Inst, place: (usize, usize)) -> Checked {
        require!(!self.module.lowered, "it is still there after the launch stage");
        let Some(kernel) = self.module.kernels.get(launch.kernel.index()) else {
            return Err(missing("kernel", launch.kernel.0));
        };
        let has_source = (inst.span.file.0 as usize) < self.module.sources.files().len();
        require!(has_source, "it has no position in the source");
        self.expect("the grid", &Type::DIM3, &self.operand(&launch.grid, place)?)?;
        self.expect("the block", &Type::DIM3, &self.operand(&launch.block, place)?)?;
        let shared = self.operand(&launch.shared, place)?;
        self.expect("the shared memory", &Type::U32, &shared)?;
        if let Stream::Value(stream) = &launch.stream {
            self.expect("the stream", &Type::Stream, &self.operand(stream, place)?)?;
        }
        let parameters = kernel.parameters.iter().map(named);
        self.check_arguments(&kernel.name, &launch.arguments, parameters, place)?;
        let status = if launch.is_try { Type::I32 } else { Type::Unit };
        self.expect("its value", &status, &inst.ty)
    }

    /// The type of `left op right`.
    fn binary(
        &self,
        op: BinaryOp,
        left: &Type,
        right: &Type,
        right_operand: &Operand,
    ) -> Checked<Type> {
        if op.is_comparison() && left.is_pointer() {
            self.expect("the right operand", left, right)?;
            return Ok(Type::BOOL);
        }
        let Some(scalar) = left.as_scalar() else {
            return Err(format!("its left operand has type `{}`", self.show(left)));
        };
        let is_shift = matches!(op, BinaryOp::Shl | BinaryOp::Shr);
        if is_shift {
            let is_integer = right.as_scalar().is_some_and(|scalar| scalar.is_integer());
            require!(is_integer, "the count has type `{}`", self.show(right));
        } else {
            self.expect("the right operand", left, right)?;
        }
        let allowed = match op {
            BinaryOp::Add | BinaryOp::Sub | BinaryOp::Mul | BinaryOp::Div | BinaryOp::Rem => {
                scalar.is_integer() || scalar.is_float()
            }
            BinaryOp::And | BinaryOp::Or | BinaryOp::Xor => !scalar.is_float(),
            BinaryOp::Shl | BinaryOp::Shr => scalar.is_integer(),
            _ => true,
        };
        require!(allowed, "`{}` has no such operator", scalar.name());
        let constant = match right_operand {
            Operand::Const(constant) => constant.integer(),
            _ => None,
        };
        if let Some(value) = constant {
            let is_division = matches!(op, BinaryOp::Div | BinaryOp::Rem);
            require!(!(is_division && value == 0), "the divisor is the constant 0");
            let all_ones = value == -1 || value == (1 << scalar.bits()) - 1;
            require!(
                !(is_division && scalar.is_signed() && all_ones),
                "the divisor is the constant -1"
            );
            let in_range = (0..i128::from(scalar.bits())).contains(&value);
            require!(!is_shift || in_range, "the count is the constant {value}");
        }
        Ok(if op.is_comparison() { Type::BOOL } else { left.clone() })
    }

    fn pointee(&self, ty: &Type) -> Checked<Type> {
        match ty.pointee() {
            Some(pointee) => Ok(pointee.clone()),
            None => Err(format!("expected a pointer, found `{}`", self.show(ty))),
        }
    }

    /// The type of a field of a struct, or of an element of a vector or array.
    fn part(&self, ty: &Type, index: u32) -> Checked<Type> {
        let count = self.part_count(ty)?;
        let shown = self.show(ty);
        require!(u64::from(index) < count, "part {index} of `{shown}`, which has {count}");
        Ok(match ty {
            Type::Struct(id) => self.module.structs.get(*id).fields[index as usize].ty.clone(),
            Type::Array(element, _) => (**element).clone(),
            Type::Vector(scalar, _) => Type::Scalar(*scalar),
            _ => Type::Unit,
        })
    }

    fn part_count(&self, ty: &Type) -> Checked<u64> {
        match ty {
            Type::Struct(id) => Ok(self.module.structs.get(*id).fields.len() as u64),
            Type::Vector(_, count) => Ok(u64::from(*count)),
            Type::Array(_, count) => Ok(*count),
            _ => Err(format!("`{}` has no parts", self.show(ty))),
        }
    }

    pub(super) fn show(&self, ty: &Type) -> String {
        ty.display(&self.module.structs).to_string()
    }
}

/// A parameter as [`FunctionVerifier::check_arguments`] takes it.
fn named(parameter: &Parameter) -> (Option<&str>, &Type) {
    (Some(&parameter.name), &parameter.ty)
}

/// Whether a cast exists: between scalars, except from a float to `bool`, between pointers, between pointers and 64-bit
/// integers, and between a stream and its handle's number.
fn can_cast(from: &Type, to: &Type) -> bool {
    let is_address = |ty: &Type| matches!(ty, Type::Scalar(Scalar::I64 | Scalar::U64));
    match (from, to) {
        (Type::Scalar(from), Type::Scalar(Scalar::Bool)) => !from.is_float(),
        (Type::Scalar(_), Type::Scalar(_)) => true,
        (Type::Pointer { .. }, Type::Pointer { .. }) => true,
        (Type::Pointer { .. }, to) if is_address(to) => true,
        (from, Type::Pointer { .. }) if is_address(from) => true,
        (Type::Scalar(Scalar::U64), Type::Stream) | (Type::Stream, Type::Scalar(Scalar::U64)) => {
            true
        }
        _ => false,
    }
}
