//! Tables of constants of which all lanes of a warp read the same element at a time, like the coefficients of a filter.
//!
//! A GPU's constant memory serves such a read like a register, but reads of several elements one after another. So what matters is the
//! element that lanes read *together*; they may have different numbers of iterations.

use super::counters::{Counter, counters};
use super::graph::CallGraph;
use super::guards::THREAD_IDX;
use super::loops::stored_values;
use super::{
    Function, FunctionId, Global, GlobalId, InstKind, Module, Operand, Role, Space, Terminator,
};
use crate::builtins::Varies;
use crate::types::Type;

/// The index of the thread in its block, and its last field.
const OF_THREAD: InstKind = InstKind::Extract { base: Operand::Parameter(0), index: THREAD_IDX };
const Z: u32 = 2;

/// By global, whether it is such a table, and is used in no other way.
pub fn read_together(module: &Module) -> Vec<bool> {
    let is_table = |global: &Global| {
        global.space == Space::Constant
            && global.variable.is_some()
            && !global.exported
            && matches!(global.ty, Type::Array(..))
    };
    let mut found: Vec<bool> = module.globals.iter().map(is_table).collect();
    if !found.contains(&true) {
        return found;
    }
    let mut values = Values::of(module);
    let calls = CallGraph::of(module);
    // Callers first: they know the arguments.
    for at in calls.callees_first().into_iter().rev() {
        values.pass_arguments(at);
        values.check_uses(at, &mut found);
    }
    found
}

/// Which values are the same in all lanes that compute them together.
struct Values<'m> {
    module: &'m Module,
    /// By function and slot.
    counters: Vec<Vec<Option<Counter>>>,
    /// By function and slot, what is stored to it; `None` if that is not known.
    stored: Vec<Vec<Option<Vec<Operand>>>>,
    /// By function and parameter.
    parameters: Vec<Vec<bool>>,
    /// By function and instruction, what is known so far.
    results: Vec<Vec<Option<bool>>>,
}

impl<'m> Values<'m> {
    fn of(module: &'m Module) -> Self {
        let recursive = CallGraph::of(module).recursive();
        let functions = || module.functions.iter();
        let parameters = |(function, is_recursive): (&Function, bool)| {
            let is_known = !matches!(function.role, Role::Device) || !is_recursive;
            vec![is_known; function.parameters.len()]
        };
        Values {
            module,
            counters: functions().map(counters).collect(),
            stored: functions().map(stored_values).collect(),
            parameters: functions().zip(recursive).map(parameters).collect(),
            results: functions().map(|one| vec![None; one.instructions.len()]).collect(),
        }
    }

    /// Notes which arguments of a function's calls differ.
    fn pass_arguments(&mut self, at: usize) {
        let module = self.module;
        for inst in &module.functions[at].instructions {
            let InstKind::Call { function, arguments } = &inst.kind else { continue };
            if !matches!(module.function(*function).role, Role::Device) {
                continue;
            }
            for (place, argument) in arguments.iter().enumerate() {
                let is_same = self.is_same(at, argument);
                self.parameters[function.index()][place] &= is_same;
            }
        }
    }

    /// Clears `found` for tables that a function reads at indices that differ, or uses in other ways.
    fn check_uses(&mut self, at: usize, found: &mut [bool]) {
        let function = &self.module.functions[at];
        // By instruction, the table that it points into.
        let mut tables: Vec<Option<GlobalId>> = vec![None; function.instructions.len()];
        let table_of = |tables: &[Option<GlobalId>], operand: &Operand| match operand {
            Operand::Global(id) => Some(*id),
            Operand::Inst(id) => tables[id.index()],
            _ => None,
        };
        for block in &function.blocks {
            for id in &block.instructions {
                let inst = &function.instructions[id.index()];
                let (pointer, is_good) = match &inst.kind {
                    InstKind::ElementAddress { base, index } => {
                        (Some(base), self.is_same(at, index))
                    }
                    InstKind::FieldAddress { base, .. } => (Some(base), true),
                    InstKind::Load(pointer) => (Some(pointer), !matches!(inst.ty, Type::Array(..))),
                    _ => (None, true),
                };
                if let Some(table) = pointer.and_then(|pointer| table_of(&tables, pointer)) {
                    found[table.index()] &= is_good;
                    if !matches!(inst.kind, InstKind::Load(_)) {
                        tables[id.index()] = Some(table);
                    }
                }
                inst.kind.for_each_operand(|operand| {
                    if Some(operand) != pointer
                        && let Some(table) = table_of(&tables, operand)
                    {
                        found[table.index()] = false;
                    }
                });
            }
            if let Terminator::Return(Some(value)) = &block.terminator
                && let Some(table) = table_of(&tables, value)
            {
                found[table.index()] = false;
            }
        }
    }

    fn is_same(&mut self, at: usize, operand: &Operand) -> bool {
        match operand {
            Operand::Const(_) | Operand::Global(_) => true,
            Operand::Parameter(place) => {
                let is_geometry = *place == 0 && self.module.functions[at].takes_geometry;
                !is_geometry && self.parameters[at][*place as usize]
            }
            Operand::Inst(id) => {
                let id = id.index();
                if let Some(known) = self.results[at][id] {
                    return known;
                }
                // Of a value that depends on itself.
                self.results[at][id] = Some(false);
                let result = self.is_same_result(FunctionId(at as u32), id);
                self.results[at][id] = Some(result);
                result
            }
            _ => false,
        }
    }

    fn is_same_result(&mut self, of: FunctionId, id: usize) -> bool {
        let at = of.index();
        let function = self.module.function(of);
        match &function.instructions[id].kind {
            InstKind::Load(Operand::Slot(slot)) => {
                if let Some(counter) = self.counters[at][slot.index()].clone() {
                    return self.is_same(at, &counter.first) && self.is_same(at, &counter.step);
                }
                // Lanes that went different ways read no more elements than there are stores.
                let stored = self.stored[at][slot.index()].clone();
                stored.is_some_and(|values| values.iter().all(|value| self.is_same(at, value)))
            }
            InstKind::Extract { base: Operand::Parameter(0), index } if function.takes_geometry => {
                *index != THREAD_IDX
            }
            // A warp has several of these only if a layer has less than 32 threads.
            InstKind::Extract { base: Operand::Inst(base), index: Z }
                if function.takes_geometry
                    && function.instructions[base.index()].kind == OF_THREAD =>
            {
                true
            }
            InstKind::Builtin { builtin, .. }
                if builtin.properties().varies == Varies::WithThread =>
            {
                false
            }
            kind @ (InstKind::Load(Operand::Inst(_))
            | InstKind::ElementAddress { .. }
            | InstKind::FieldAddress { .. }
            | InstKind::ByteOffset { .. }
            | InstKind::Unary(..)
            | InstKind::Binary(..)
            | InstKind::Advance(..)
            | InstKind::Cast(_)
            | InstKind::Select(..)
            | InstKind::Extract { .. }
            | InstKind::Builtin { .. }) => {
                let mut is_same = true;
                kind.for_each_operand(|operand| is_same &= self.is_same(at, operand));
                is_same
            }
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::read_together;
    use crate::program::check;
    use crate::source::SourceMap;

    /// Whether a kernel with this body reads its table together.
    fn is_together(body: &str) -> bool {
        let text = format!(
            "const T: [u32; 8] = [3, 1, 4, 1, 5, 9, 2, 6];
            fn at(k: u32) -> u32 {{ return T[k & 7]; }}
            kernel k(n: u32, p: *mut u32) {{ let i = thread_idx.x; {body} }}"
        );
        let module = check(SourceMap::single("a.grid", text)).unwrap().module;
        let tables = module.globals.iter().zip(read_together(&module));
        tables.filter(|(global, _)| global.name == "T").all(|(_, is_together)| is_together)
    }

    #[test]
    fn lanes_read_together_what_they_count_together() {
        assert!(is_together("for k in 0..n { p[i] += T[k]; }"));
        assert!(is_together("if i < n { for k in 0..p[i] { p[i] += T[2 * k + 1]; } }"));
        assert!(is_together("let mut k: u32 = 0; while p[i] > k { p[i] -= T[k]; k += 1; }"));
        assert!(is_together("for k in block_idx.x..n { p[i] += at(k); }"));
        assert!(is_together("p[i] = T[p[block_idx.x + thread_idx.z] & 7];"));
        assert!(is_together("let mut k = n; if i > 3 { k = 2; } p[i] = T[k];"));
        assert!(!is_together("p[i] = T[i];"));
        assert!(!is_together("for k in i..n { p[i] += T[k & 7]; }"));
        assert!(!is_together("p[i] = at(i);"));
        assert!(!is_together("p[i] = at(n) + at(p[i]);"));
        assert!(!is_together("p[i] = T[thread_idx.y];"));
        // Counted by some lanes only, and behind a loop that they leave at different times.
        assert!(!is_together(
            "let mut k: u32 = 0; while p[k] > i { if p[i] > k { k += 1; } p[i] = T[k]; }"
        ));
        assert!(!is_together("let mut k: u32 = 0; while p[i] > k { k += 1; } p[i] = T[k & 7];"));
    }

    #[test]
    fn tables_that_are_used_as_a_whole_are_not_read_together() {
        assert!(!is_together("let t = T; for k in 0..n { p[i] += t[k]; }"));
        assert!(!is_together("let t = &T[1]; for k in 0..n { p[i] += t[k]; }"));
    }
}
