//! Arguments that point to memory that a child grid cannot reach. In the language, the checker finds most of them with the positions
//! of its expressions; here are those that it cannot see, such as an address that was a number, and those of other front ends.

use super::held::Held;
use super::{
    BinaryOp, Function, GEOMETRY_DYNAMIC_SHARED, InstKind, Kernel, Module, Operand, Space,
};
use crate::builtins::Memory;
use crate::diagnostics::{Diagnostic, ids};
use crate::types::layout::{array_stride, field_offset};
use crate::types::{Scalar, Type};

/// Arguments of launches, and of copies and fills in streams, that certainly point to a local variable or to shared memory.
/// The module must be sound.
pub(crate) fn unreachable_arguments(module: &Module) -> Vec<Diagnostic> {
    let mut functions: Vec<_> = module.functions.iter().collect();
    functions.retain(|function| function.instructions.iter().any(|inst| passes(&inst.kind)));
    functions.into_iter().flat_map(|function| Roots::of(module, function).unreachable()).collect()
}

/// Whether other threads get the arguments of an instruction.
fn passes(kind: &InstKind) -> bool {
    match kind {
        InstKind::Launch(_) => true,
        InstKind::Builtin { builtin, .. } => builtin.properties().memory == Memory::Stream,
        _ => false,
    }
}

/// The variables that the values of a function point to.
struct Roots<'m> {
    module: &'m Module,
    function: &'m Function,
    /// By instruction: the address of the local or shared variable that its value points into or contains a pointer into, or
    /// the geometry for dynamic shared memory. `None` if that is not certain.
    found: Vec<Option<Operand>>,
}

impl<'m> Roots<'m> {
    fn of(module: &'m Module, function: &'m Function) -> Self {
        let mut roots = Roots { module, function, found: vec![None; function.instructions.len()] };
        let held = Held::of(module, function);
        // Most blocks come after those that dominate them; in others, pointers count as unknown.
        for id in function.blocks.iter().flat_map(|block| &block.instructions) {
            roots.found[id.index()] = roots.result(*id, &held);
        }
        roots
    }

    fn result(&self, id: super::InstId, held: &Held<'_>) -> Option<Operand> {
        let inst = &self.function.instructions[id.index()];
        match &inst.kind {
            InstKind::Cast(value) => {
                let keeps_address = matches!(
                    inst.ty,
                    Type::Pointer { .. } | Type::Scalar(Scalar::I64 | Scalar::U64)
                );
                self.root(value).filter(|_| keeps_address)
            }
            InstKind::FieldAddress { base, .. }
            | InstKind::ElementAddress { base, .. }
            | InstKind::ByteOffset { base, .. } => self.root(base),
            InstKind::Select(_, yes, no) => self.root(yes).filter(|_| self.root(no).is_some()),
            InstKind::Load(pointer) => self.loaded(pointer, 0, &inst.ty, held),
            InstKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), left, right) => {
                // Otherwise the sum may be another address.
                match (self.is_index(left), self.is_index(right)) {
                    (_, true) => self.root(left),
                    (true, _) if *op == BinaryOp::Add => self.root(right),
                    _ => None,
                }
            }
            InstKind::Aggregate(parts) => parts.iter().find_map(|part| self.contained(part)),
            InstKind::Extract { base: Operand::Parameter(0), index: GEOMETRY_DYNAMIC_SHARED }
                if self.function.takes_geometry =>
            {
                Some(Operand::Parameter(0))
            }
            InstKind::Extract { base: Operand::Inst(base), index } => {
                match &self.function.instructions[base.index()].kind {
                    InstKind::Aggregate(parts) => self.root(&parts[*index as usize]),
                    InstKind::Load(pointer) => {
                        let whole = &self.function.instructions[base.index()].ty;
                        let behind = self.part_offset(whole, *index)?;
                        self.loaded(pointer, behind, &inst.ty, held)
                    }
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// The root of what is loaded, a value at a byte behind an address in a local variable.
    fn loaded(
        &self,
        pointer: &Operand,
        behind: u64,
        ty: &Type,
        held: &Held<'_>,
    ) -> Option<Operand> {
        held.find(pointer, behind, ty, &|value: &Operand| match ty {
            Type::Scalar(_) => self.root(value),
            _ => self.contained(value),
        })
    }

    /// Where a part of an aggregate lies in it.
    fn part_offset(&self, whole: &Type, index: u32) -> Option<u64> {
        let structs = &self.module.structs;
        match whole {
            Type::Struct(id) => Some(field_offset(*id, index, structs)),
            Type::Array(element, _) => array_stride(element, structs).checked_mul(u64::from(index)),
            _ => None,
        }
    }

    /// Whether a number certainly is no distance between two addresses.
    fn is_index(&self, operand: &Operand) -> bool {
        match operand {
            Operand::Const(_) => true,
            Operand::Inst(id) => match &self.function.instructions[id.index()].kind {
                InstKind::Binary(BinaryOp::Mul | BinaryOp::Shl, ..) => true,
                InstKind::Cast(from) => {
                    let ty = self.module.operand_type(self.function, from);
                    ty.as_scalar().is_some_and(|scalar| scalar.size() < 8)
                }
                _ => false,
            },
            _ => false,
        }
    }

    fn root(&self, operand: &Operand) -> Option<Operand> {
        match operand {
            Operand::Slot(_) => Some(operand.clone()),
            Operand::Global(id) => {
                let is_shared = self.module.globals[id.index()].space == Space::Shared;
                is_shared.then(|| operand.clone())
            }
            Operand::Inst(id) => self.found[id.index()].clone(),
            _ => None,
        }
    }

    /// Whether a kernel takes a number that it uses as an address.
    fn takes_address(&self, kernel: &Kernel, at: u32) -> bool {
        let body = self.module.function(kernel.body);
        let parameter = Operand::Parameter(at + u32::from(body.takes_geometry));
        body.instructions
            .iter()
            .any(|inst| inst.ty.is_pointer() && inst.kind == InstKind::Cast(parameter.clone()))
    }

    /// As [`Roots::root`]; the number of an address is no pointer.
    fn contained(&self, operand: &Operand) -> Option<Operand> {
        let ty = self.module.operand_type(self.function, operand);
        self.root(operand).filter(|_| !matches!(ty, Type::Scalar(_)))
    }

    fn unreachable(&self) -> Vec<Diagnostic> {
        let mut errors = vec![];
        for inst in &self.function.instructions {
            let mut check = |root, name: &dyn Fn() -> String, who, others, hint| {
                let Some(root) = root else { return };
                let (what, why) = self.describe(&root);
                let message = format!("{} points to {what}, which {who} cannot reach", name());
                let error = Diagnostic::error(ids::LOCAL_POINTER_ARGUMENT, inst.span, message);
                errors.push(error.note(format!("{why}, and {others}")).hint(hint));
            };
            match &inst.kind {
                InstKind::Launch(launch) => {
                    let kernel = self.module.kernel(launch.kernel);
                    let arguments = launch.arguments.iter().zip(&kernel.parameters);
                    for (at, (argument, parameter)) in (0..).zip(arguments) {
                        let number = || {
                            let root = self.root(argument);
                            root.filter(|_| self.takes_address(kernel, at))
                        };
                        let root = self.contained(argument).or_else(number);
                        let name = || format!("argument `{}` of `{}`", parameter.name, kernel.name);
                        let others = "a child grid runs in other blocks";
                        let hint = "pass the value itself, or a pointer to device memory";
                        check(root, &name, "the child grid", others, hint);
                    }
                }
                InstKind::Builtin { builtin, arguments, .. }
                    if builtin.properties().memory == Memory::Stream =>
                {
                    for (at, argument) in (1..).zip(arguments) {
                        let name = || format!("argument {at} of `{}`", builtin.name());
                        let others = "other threads do the work of a stream";
                        let hint = "write a loop, or pass a pointer to device memory";
                        check(self.contained(argument), &name, "the stream", others, hint);
                    }
                }
                _ => {}
            }
        }
        errors
    }

    /// A variable, and who alone can reach it.
    fn describe(&self, root: &Operand) -> (String, &'static str) {
        let shared = "shared memory belongs to one block";
        match root {
            Operand::Slot(id) => {
                let name = &self.function.slots[id.index()].name;
                (format!("the local variable `{name}`"), "local memory belongs to one thread")
            }
            Operand::Global(id) => {
                let global = &self.module.globals[id.index()];
                let name = global.variable.as_ref().map_or(&global.name, |variable| &variable.name);
                (format!("the shared variable `{name}`"), shared)
            }
            _ => ("dynamic shared memory".into(), shared),
        }
    }
}
