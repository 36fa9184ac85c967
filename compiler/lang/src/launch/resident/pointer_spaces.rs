//! Pointers that certainly point to global or to shared memory.
//!
//! Back ends have instructions for it. For the parameters of an entry and for shared variables they find out by themselves, but not
//! for the parameters that the resident kernel reads from memory, nor where they access memory by assembly.

use super::instructions;
use crate::builtins::Builtin;
use crate::ir::{Const, Function, FunctionId, InstKind, Module, Operand, Role, Space, Terminator};
use crate::types::Type;

/// Where the pointers in a value point to, all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// There are none except null, or nothing is known yet.
    Nothing,
    /// To global memory.
    Global,
    /// To the shared memory of the block.
    Shared,
    /// Maybe to other memory.
    Anything,
}

impl Target {
    fn or(self, other: Target) -> Target {
        match (self, other) {
            (Target::Nothing, target) | (target, Target::Nothing) => target,
            (one, other) if one == other => one,
            _ => Target::Anything,
        }
    }
}

/// The address spaces of the pointers in a module's values.
#[derive(Clone, Debug)]
pub struct PointerSpaces {
    /// By function.
    functions: Vec<Targets>,
}

impl PointerSpaces {
    /// Looks at all functions.
    ///
    /// A kernel's parameters are such values: a grid can use no pointer to the local or shared memory of whoever launches it
    /// (CUDA C++ Programming Guide, "Passing Pointers to Child Grids"). Pointers in memory, and numbers that become pointers, are
    /// not known.
    pub fn of(module: &Module) -> PointerSpaces {
        let functions = module.functions.iter().map(Targets::new).collect();
        let mut known = PointerSpaces { functions };
        while known.learn(module) {}
        known
    }

    /// Whether a pointer of a function points to global memory.
    pub fn is_global(&self, module: &Module, function: FunctionId, pointer: &Operand) -> bool {
        self.target(module, function, pointer) == Target::Global
    }

    /// Whether a pointer of a function points to the shared memory of the block.
    pub fn is_shared(&self, module: &Module, function: FunctionId, pointer: &Operand) -> bool {
        self.target(module, function, pointer) == Target::Shared
    }

    fn target(&self, module: &Module, function: FunctionId, pointer: &Operand) -> Target {
        let targets = self.functions.get(function.index());
        targets.map_or(Target::Anything, |targets| targets.of(module, pointer))
    }

    /// Goes through all functions once. Gives whether anything changed.
    fn learn(&mut self, module: &Module) -> bool {
        let mut changed = false;
        let mut add = |target: &mut Target, other: Target| {
            let new = target.or(other);
            changed |= new != *target;
            *target = new;
        };
        for (at, function) in module.functions.iter().enumerate() {
            for (index, inst) in function.instructions.iter().enumerate() {
                let targets = &self.functions[at];
                match &inst.kind {
                    InstKind::Store { pointer, value } => {
                        let target = targets.of(module, value);
                        if let Some(slot) = slot_of(function, pointer) {
                            add(&mut self.functions[at].slots[slot], target);
                        }
                    }
                    // Those of bodies are known, and those of entries come from the host.
                    InstKind::Call { function: callee, arguments }
                        if module.function(*callee).role == Role::Device =>
                    {
                        let given: Vec<Target> =
                            arguments.iter().map(|argument| targets.of(module, argument)).collect();
                        let parameters = &mut self.functions[callee.index()].parameters;
                        parameters.iter_mut().zip(given).for_each(|(known, new)| add(known, new));
                    }
                    _ => {}
                }
                if has_pointers(&inst.ty) {
                    let target = self.result(module, at, &inst.kind);
                    add(&mut self.functions[at].instructions[index], target);
                }
            }
            for block in &function.blocks {
                if let Terminator::Return(Some(value)) = &block.terminator {
                    let target = self.functions[at].of(module, value);
                    add(&mut self.functions[at].result, target);
                }
            }
        }
        changed
    }

    /// The target of an instruction's result.
    fn result(&self, module: &Module, at: usize, kind: &InstKind) -> Target {
        let function = &module.functions[at];
        let targets = &self.functions[at];
        let of = |operand: &Operand| targets.of(module, operand);
        match kind {
            InstKind::Cast(Operand::Const(Const::Int(_, 0))) => Target::Nothing,
            InstKind::Cast(value) if module.operand_type(function, value).is_pointer() => of(value),
            InstKind::Select(_, yes, no) => of(yes).or(of(no)),
            InstKind::FieldAddress { base, .. }
            | InstKind::ElementAddress { base, .. }
            | InstKind::ByteOffset { base, .. }
            | InstKind::Extract { base, .. } => of(base),
            InstKind::Aggregate(parts) => parts.iter().map(of).fold(Target::Nothing, Target::or),
            InstKind::Load(from) => match slot_of(function, from) {
                Some(slot) => targets.slots[slot],
                None => Target::Anything,
            },
            InstKind::Call { function: callee, .. } => self.functions[callee.index()].result,
            InstKind::CallExtern { function: callee, .. } => {
                match module.externs[callee.index()].name.as_str() {
                    instructions::GLOBAL => Target::Global,
                    instructions::SHARED => Target::Shared,
                    _ => Target::Anything,
                }
            }
            InstKind::Builtin { builtin: Builtin::Malloc, .. } => Target::Global,
            _ => Target::Anything,
        }
    }
}

/// The targets of a function's values.
#[derive(Clone, Debug)]
struct Targets {
    parameters: Vec<Target>,
    instructions: Vec<Target>,
    /// What the slots hold.
    slots: Vec<Target>,
    result: Target,
}

impl Targets {
    fn new(function: &Function) -> Targets {
        let is_body = matches!(function.role, Role::Body(_));
        let parameter = |(at, ty): (usize, &Type)| match ty {
            _ if function.takes_geometry && at == 0 => Target::Anything,
            ty if is_body && has_pointers(ty) => Target::Global,
            _ => Target::Nothing,
        };
        let slot = |escapes| if escapes { Target::Anything } else { Target::Nothing };
        let types = function.parameters.iter().map(|parameter| &parameter.ty);
        Targets {
            parameters: types.enumerate().map(parameter).collect(),
            instructions: vec![Target::Nothing; function.instructions.len()],
            slots: escaping(function).into_iter().map(slot).collect(),
            result: Target::Nothing,
        }
    }

    fn of(&self, module: &Module, operand: &Operand) -> Target {
        match operand {
            Operand::Inst(id) => self.instructions[id.index()],
            Operand::Parameter(at) => self.parameters[*at as usize],
            Operand::Global(id) => match module.globals[id.index()].space {
                Space::Shared => Target::Shared,
                Space::Device => Target::Global,
                // Some are in constant memory.
                Space::Constant => Target::Anything,
            },
            Operand::Const(_) => Target::Nothing,
            Operand::Slot(_) | Operand::Kernel(_) => Target::Anything,
        }
    }
}

/// Whether a type is a pointer, or may contain one.
fn has_pointers(ty: &Type) -> bool {
    matches!(ty, Type::Pointer { .. } | Type::Struct(_) | Type::Array(..))
}

/// The slot that an address is in.
fn slot_of(function: &Function, address: &Operand) -> Option<usize> {
    match address {
        Operand::Slot(slot) => Some(slot.index()),
        Operand::Inst(id) => match &function.instructions[id.index()].kind {
            InstKind::FieldAddress { base, .. } | InstKind::ElementAddress { base, .. } => {
                slot_of(function, base)
            }
            _ => None,
        },
        _ => None,
    }
}

/// By slot, whether its address is used in another way than to read and write it.
fn escaping(function: &Function) -> Vec<bool> {
    let mut escapes = vec![false; function.slots.len()];
    let mut note = |operand: &Operand| {
        if let Some(slot) = slot_of(function, operand) {
            escapes[slot] = true;
        }
    };
    for inst in &function.instructions {
        match &inst.kind {
            InstKind::Load(_) => {}
            InstKind::Store { value, .. } => note(value),
            InstKind::FieldAddress { .. } => {}
            InstKind::ElementAddress { index, .. } => note(index),
            kind => kind.for_each_operand(&mut note),
        }
    }
    for block in &function.blocks {
        if let Terminator::Return(Some(value)) = &block.terminator {
            note(value);
        }
    }
    escapes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::check;
    use crate::source::SourceMap;

    /// Where the accesses of the last function of a program go: `g` for global memory, `s` for shared memory, `-` for others.
    fn targets(source: &str) -> String {
        let program = check(SourceMap::single("test.grid", source));
        let module = program.unwrap_or_else(|error| panic!("{error}\n{source}")).module;
        let known = PointerSpaces::of(&module);
        let is_body = |function: &Function| matches!(function.role, Role::Body(_));
        let at = module.functions.iter().position(is_body).expect("a kernel");
        let function = &module.functions[at];
        let mut text = String::new();
        let instructions = function.blocks.iter().flat_map(|block| &block.instructions);
        for inst in instructions.map(|id| &function.instructions[id.index()]) {
            let address = match &inst.kind {
                InstKind::Load(address) | InstKind::Store { pointer: address, .. } => address,
                InstKind::Builtin { builtin: Builtin::Atomic(..), arguments, .. } => &arguments[0],
                _ => continue,
            };
            if slot_of(function, address).is_none() {
                let at = FunctionId(at as u32);
                text.push(match known.is_global(&module, at, address) {
                    true => 'g',
                    false if known.is_shared(&module, at, address) => 's',
                    false => '-',
                });
            }
        }
        text
    }

    #[test]
    fn pointers_keep_the_place_of_what_they_come_from() {
        let cases = [
            ("kernel k(p: *mut u32) { p[1] = p[2]; atomic_add(p + 3, 1); }", "ggg"),
            (
                "kernel k(p: *mut u32) { let q = p + 1; *q = 0; let r = q as *mut u64; *r = 1; }",
                "gg",
            ),
            ("static x: [u32; 4] = [0, 0, 0, 0]; kernel k() { x[thread_idx.x] = 1; }", "g"),
            ("kernel k() { shared x: [u32; 4]; x[thread_idx.x] = 1; atomic_add(&x[0], 1); }", "ss"),
            ("kernel k() { let p = malloc(4) as *mut u32; *p = 1; }", "g"),
            // Numbers and what memory holds.
            ("kernel k(p: u64) { *(p as *mut u32) = 1; }", "-"),
            ("kernel k(p: *mut *mut u32) { **p = 1; }", "g-"),
            // Structs, whole and in parts.
            (
                "struct S { p: *mut u32, n: u32 } kernel k(s: S) { let t = s; t.p[1] = t.n; *s.p = 1; }",
                "gg",
            ),
            (
                "struct S { p: *mut u32 } kernel k(q: *mut u32) { let mut s = S { p: q }; *s.p = 1; }",
                "g",
            ),
            // Several values.
            (
                "kernel k(p: *mut u32, q: *mut u32) { let mut r = p; if *q == 0 { r = q; } *r = 1; }",
                "gg",
            ),
            (
                "kernel k(p: *mut u32) { shared x: [u32; 2]; let mut r = p; if *p == 0 { r = &x[0]; } *r = 1; }",
                "g-",
            ),
            (
                "kernel k(p: *mut u32) { let mut r = 0 as *mut u32; if *p == 0 { r = p; } *r = 1; }",
                "gg",
            ),
            // A local variable whose address something else may use.
            (
                "fn f(q: *mut *mut u32) {} kernel k(p: *mut u32) { let mut r = p; f(&r); *r = 1; }",
                "-",
            ),
            ("kernel k() { let mut x = 1u32; let p = &x; *p = 2; }", "-"),
        ];
        for (source, expected) in cases {
            assert_eq!(targets(source), expected, "{source}");
        }
    }

    #[test]
    fn functions_have_what_all_calls_give() {
        let with = |calls: &str| {
            let kernel = format!("kernel k(p: *mut u32) {{ shared x: [u32; 2]; {calls} }}");
            targets(&format!("{kernel} fn f(q: *mut u32) -> *mut u32 {{ return q + 1; }}"))
        };
        assert_eq!(with("*f(p) = 1;"), "g");
        assert_eq!(with("*f(&x[0]) = 1;"), "s");
        assert_eq!(with("*f(&x[0]) = 1; *f(p) = 1;"), "--");
        assert_eq!(with("*f(f(p)) = 1;"), "g");
    }
}
