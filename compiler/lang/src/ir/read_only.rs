//! Loads from `static` variables that a program only reads.

use super::graph::CallGraph;
use super::{Function, Global, GlobalId, InstKind, Module, Operand, Role, Space, Terminator};

/// By function and instruction, whether it loads from a `static` variable that no function of the module writes or gives away, in a
/// function that only kernels with `#[noalias]` call: these promise that nothing else writes it while their grid runs (docs/language.md,
/// "Functions"). Empty if there are none.
pub fn read_only_loads(module: &Module) -> Vec<Vec<bool>> {
    let is_own = |global: &Global| global.space == Space::Device && global.variable.is_some();
    let mut is_read_only: Vec<bool> = module.globals.iter().map(is_own).collect();
    if !is_read_only.contains(&true) || !module.kernels.iter().any(|kernel| kernel.noalias) {
        return vec![];
    }
    let pointers: Vec<Pointers<'_>> = module.functions.iter().map(Pointers::of).collect();
    for pointers in &pointers {
        pointers.mark_written(&mut is_read_only);
    }
    if !is_read_only.contains(&true) {
        return vec![];
    }
    let makes_no_promise = |function: &Function| match function.role {
        Role::Entry(kernel) => !module.kernel(kernel).noalias,
        Role::Body(_) | Role::Device => false,
    };
    let starts: Vec<bool> = module.functions.iter().map(makes_no_promise).collect();
    let others = CallGraph::of(module).reached_from(&starts);
    let loads = |(pointers, is_reached): (&Pointers<'_>, bool)| match is_reached {
        true => vec![false; pointers.function.instructions.len()],
        false => pointers.loads(&is_read_only),
    };
    pointers.iter().zip(others).map(loads).collect()
}

/// What a pointer may point to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Target {
    /// No value was seen yet.
    None,
    /// A part of this variable.
    Global(GlobalId),
    /// Something else, or one of several variables.
    Other,
}

impl Target {
    fn join(self, other: Target) -> Target {
        match (self, other) {
            (Target::None, target) | (target, Target::None) => target,
            (one, other) if one == other => one,
            _ => Target::Other,
        }
    }
}

/// How often the values of a function are computed before all of them count as unknown.
const MOST_ROUNDS: usize = 8;

/// Where the pointers of a function point.
struct Pointers<'m> {
    function: &'m Function,
    /// By instruction.
    values: Vec<Target>,
    /// By local variable.
    slots: Vec<Target>,
}

impl<'m> Pointers<'m> {
    fn of(function: &'m Function) -> Self {
        let mut slots = vec![Target::None; function.slots.len()];
        for inst in &function.instructions {
            // An address of a slot that is not accessed as a whole.
            let accessed = match &inst.kind {
                InstKind::Load(pointer) | InstKind::Store { pointer, .. } => Some(pointer),
                _ => None,
            };
            inst.kind.for_each_operand(|operand| {
                if let Operand::Slot(slot) = operand
                    && accessed != Some(operand)
                {
                    slots[slot.index()] = Target::Other;
                }
            });
            if let InstKind::Store { value: Operand::Slot(slot), .. } = &inst.kind {
                slots[slot.index()] = Target::Other;
            }
        }
        let values = vec![Target::None; function.instructions.len()];
        let mut pointers = Pointers { function, values, slots };
        for _ in 0..MOST_ROUNDS {
            if !pointers.round() {
                return pointers;
            }
        }
        pointers.slots.fill(Target::Other);
        pointers.values.fill(Target::Other);
        pointers
    }

    /// Computes all values. Whether one of them, or a local variable, may be more than was known.
    fn round(&mut self) -> bool {
        let function = self.function;
        let mut is_changed = false;
        for (at, inst) in function.instructions.iter().enumerate() {
            let value = self.result(&inst.kind);
            is_changed |= std::mem::replace(&mut self.values[at], value) != value;
            if let InstKind::Store { pointer: Operand::Slot(slot), value } = &inst.kind {
                let known = self.slots[slot.index()];
                let joined = known.join(self.target(value));
                self.slots[slot.index()] = joined;
                is_changed |= known != joined;
            }
        }
        is_changed
    }

    fn result(&self, kind: &InstKind) -> Target {
        match kind {
            InstKind::Load(Operand::Slot(slot)) => self.slots[slot.index()],
            _ if is_address(kind) => {
                let mut target = Target::Other;
                let mut is_base = true;
                kind.for_each_operand(|operand| {
                    if std::mem::take(&mut is_base) {
                        target = self.target(operand);
                    }
                });
                target
            }
            InstKind::Select(_, yes, no) => self.target(yes).join(self.target(no)),
            _ => Target::Other,
        }
    }

    fn target(&self, operand: &Operand) -> Target {
        match operand {
            Operand::Inst(id) => self.values[id.index()],
            Operand::Global(id) => Target::Global(*id),
            _ => Target::Other,
        }
    }

    /// Takes the variables from `is_read_only` that the function may write, or whose address it gives away.
    fn mark_written(&self, is_read_only: &mut [bool]) {
        let mut gives = |operand: &Operand| {
            if let Target::Global(id) = self.target(operand) {
                is_read_only[id.index()] = false;
            }
        };
        for (at, inst) in self.function.instructions.iter().enumerate() {
            match &inst.kind {
                InstKind::Load(_) | InstKind::PointerDifference(..) => {}
                InstKind::Binary(op, ..) if op.is_comparison() => {}
                InstKind::Store { pointer: Operand::Slot(slot), value }
                    if self.slots[slot.index()] == self.target(value) => {}
                // An address of the same variable, whose uses count.
                kind if self.values[at] != Target::Other && is_pointer_of(kind) => {}
                kind => kind.for_each_operand(&mut gives),
            }
        }
        for block in &self.function.blocks {
            if let Terminator::Return(Some(value)) = &block.terminator {
                gives(value);
            }
        }
    }

    /// By instruction, whether it loads from a variable of `is_read_only`.
    fn loads(&self, is_read_only: &[bool]) -> Vec<bool> {
        let is_load = |kind: &InstKind| match kind {
            InstKind::Load(pointer) => match self.target(pointer) {
                Target::Global(id) => is_read_only[id.index()],
                Target::None | Target::Other => false,
            },
            _ => false,
        };
        self.function.instructions.iter().map(|inst| is_load(&inst.kind)).collect()
    }
}

/// Whether an instruction computes an address within the variable of its first operand.
fn is_address(kind: &InstKind) -> bool {
    matches!(
        kind,
        InstKind::FieldAddress { .. }
            | InstKind::ElementAddress { .. }
            | InstKind::ByteOffset { .. }
    )
}

/// Whether an instruction's value points where its operands point.
fn is_pointer_of(kind: &InstKind) -> bool {
    is_address(kind) || matches!(kind, InstKind::Select(..))
}

#[cfg(test)]
mod tests {
    use super::read_only_loads;
    use crate::arch::CudaArch;
    use crate::launch::LaunchOptions;
    use crate::launch::LaunchStrategy::{self, Cdp, Resident};
    use crate::program::check;
    use crate::source::SourceMap;

    /// How many loads of a program with these kernels read a variable that nothing changes.
    fn found(strategy: LaunchStrategy, text: &str) -> usize {
        let variables = "struct P { x: u32, y: u32 }\n\
            static a: [u32; 4] = [1, 2, 3, 4];\n\
            static b: [P; 2] = [P { x: 1, y: 2 }; 2];\n";
        let program = check(SourceMap::single("a.grid", format!("{variables}{text}"))).unwrap();
        let options = LaunchOptions::for_arch(strategy, CudaArch::DEFAULT);
        let module = program.lower(&options).unwrap();
        read_only_loads(&module).iter().flatten().filter(|is_load| **is_load).count()
    }

    #[test]
    fn variables_that_a_program_only_reads_do_not_change() {
        let own = "#[noalias] kernel k(i: u32, p: *mut u32) { p[i] = a[i] + b[i].y; }";
        assert_eq!(found(Cdp, own), 2);
        let called = "fn at(i: u32) -> u32 { return a[i]; } #[noalias] kernel k(i: u32, p: *mut u32) { p[i] = at(i); }";
        assert_eq!(found(Cdp, called), 1);
        let pointer = "#[noalias] kernel k(i: u32, p: *mut u32) { let row = &a[i & 1]; let item = &b[i];\n\
            if row == &a[0] { p[i] = row[1] + item.x; } }";
        assert_eq!(found(Cdp, pointer), 2);
        let chosen = "#[noalias] kernel k(i: u32, p: *mut u32) {\n\
            let mut row = &a[0]; if i > 4 { row = &a[2]; } while *row < i { row = &row[1]; } p[i] = row[0]; }";
        assert_eq!(found(Cdp, chosen), 2);
    }

    #[test]
    fn a_kernel_that_promises_nothing_may_read_what_the_host_lets_others_write() {
        let plain = "kernel k(i: u32, p: *mut u32) { p[i] = a[i]; }";
        assert_eq!(found(Cdp, plain), 0);
        let shared = "fn at(i: u32) -> u32 { return a[i]; }\n\
            #[noalias] kernel k(i: u32, p: *mut u32) { p[i] = at(i) + b[i].x; }\n\
            kernel other(i: u32, p: *mut u32) { p[i] = at(i); }";
        assert_eq!(found(Cdp, shared), 1);
        // `k` runs in resident grids, `root` as a grid of the GPU that starts them.
        let nested = "#[noalias] kernel k(i: u32, p: *mut u32) { p[i] = a[i]; }\n\
            #[noalias] kernel root(p: *mut u32) { launch k<<<1, 32>>>(0, p); }";
        assert_eq!(found(Cdp, nested), 1);
        assert_eq!(found(Resident, nested), 0);
    }

    #[test]
    fn what_a_program_writes_or_gives_away_may_change() {
        let items = "fn set(p: *mut u32) { *p = 1; }\n\
            struct Q { p: *mut u32 }\n\
            kernel child(p: *mut u32) { *p = 1; }\n";
        let kernel = |text: &str| {
            let kernel =
                format!("#[noalias] kernel k(i: u32, p: *mut u32) {{ p[i] = a[i]; {text} }}");
            found(Cdp, &format!("{items}{kernel}"))
        };
        assert_eq!(kernel(""), 1);
        assert_eq!(kernel("b[i].x = 1;"), 1);
        for text in [
            "a[i] = 1;",
            "set(&a[i]);",
            "} fn part() -> *mut u32 { return &a[1];",
            "atomic_add(&a[i], 1);",
            "let row = &a[1]; row[1] = 1;",
            "let mut row = &a[1]; row = p; row[1] = 1;",
            "let row = if i > 1 { &a[1] } else { p }; row[1] = 1;",
            "let q = Q { p: &a[1] }; *q.p = 1;",
            "let number = &a[1] as u64; *(number as *mut u32) = 1;",
            "let mut row = &a[1]; let rows = &row; **rows = 1;",
            "let mut row = &a[1]; let bytes = row as *mut u8; *bytes = 1;",
            "launch child<<<1, 1>>>(&a[0]);",
        ] {
            assert_eq!(kernel(text), 0, "{text}");
        }
    }
}
