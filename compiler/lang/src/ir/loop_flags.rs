//! Variables that decide how lanes leave a loop, and where they go on behind it.

use std::collections::{BTreeMap, HashMap};

use super::loops::Order;
use super::{BlockId, Const, Function, FunctionId, InstKind, Operand, SlotId, Terminator};

/// By variable, whether it ends a loop in which several blocks store the same constant to it, and which a branch on the variable leaves.
pub fn ending_flags(function: &Function) -> Vec<bool> {
    let mut ends = vec![false; function.slots.len()];
    for this in Order::of(function).loops() {
        // By variable and constant, the first block with such a store.
        let mut stores: HashMap<(SlotId, bool), BlockId> = HashMap::new();
        let mut often = vec![false; function.slots.len()];
        let mut left_by = Vec::new();
        for id in &this.blocks {
            let block = &function.blocks[id.index()];
            for inst in &block.instructions {
                if let InstKind::Store {
                    pointer: Operand::Slot(slot),
                    value: Operand::Const(Const::Bool(value)),
                } = &function.instructions[inst.index()].kind
                {
                    often[slot.index()] |= *stores.entry((*slot, *value)).or_insert(*id) != *id;
                }
            }
            if let Terminator::Branch { condition, then, otherwise } = &block.terminator
                && !(this.has(*then) && this.has(*otherwise))
            {
                left_by.extend(tested(function, condition));
            }
        }
        for slot in left_by {
            ends[slot.index()] |= often[slot.index()];
        }
    }
    ends
}

/// By block, whether ways out of a loop meet there, several of them, of which one stores a constant to a variable that the block branches on.
/// Only of loops without others inside or around them. `has_loops`: whether a function has any, or one that it calls.
pub fn flagged_exits(function: &Function, has_loops: &dyn Fn(FunctionId) -> bool) -> Vec<bool> {
    let mut found = vec![false; function.blocks.len()];
    let loops = Order::of(function).loops();
    // By block, how many loops have it, and whether one begins there.
    let mut around = vec![0_u32; function.blocks.len()];
    let mut is_head = vec![false; function.blocks.len()];
    for this in &loops {
        is_head[this.head.index()] = true;
        this.blocks.iter().for_each(|block| around[block.index()] += 1);
    }
    for this in &loops {
        let is_inner = around[this.head.index()] > 1;
        let has_inner = this.blocks.iter().any(|id| *id != this.head && is_head[id.index()]);
        let is_alone = !is_inner && !has_inner;
        let mut calls = this.instructions(function);
        let calls_loop = calls.any(|id| {
            let kind = &function.instructions[id.index()].kind;
            matches!(kind, InstKind::Call { function, .. } if has_loops(*function))
        });
        if !is_alone || calls_loop {
            continue;
        }
        // By block behind the loop, how many ways lead there, and what they store constants to.
        let mut ways: BTreeMap<BlockId, (usize, Vec<SlotId>)> = BTreeMap::new();
        for from in &this.blocks {
            let targets = function.blocks[from.index()].terminator.successors();
            for target in targets.filter(|to| !this.has(*to)) {
                let (mut to, mut stored) = (target, Vec::new());
                // A way has no more blocks than the function.
                for _ in 0..function.blocks.len() {
                    let block = &function.blocks[to.index()];
                    let Terminator::Jump(next) = block.terminator else { break };
                    for id in &block.instructions {
                        if let InstKind::Store {
                            pointer: Operand::Slot(slot),
                            value: Operand::Const(_),
                        } = &function.instructions[id.index()].kind
                        {
                            stored.push(*slot);
                        }
                    }
                    to = next;
                }
                let way = ways.entry(to).or_default();
                way.0 += 1;
                way.1.extend(stored);
            }
        }
        for (to, (count, stored)) in ways {
            let Terminator::Branch { condition, .. } = &function.blocks[to.index()].terminator
            else {
                continue;
            };
            found[to.index()] |=
                count > 1 && tested(function, condition).is_some_and(|slot| stored.contains(&slot));
        }
    }
    found
}

/// The variable that a condition is, or the opposite of.
fn tested(function: &Function, condition: &Operand) -> Option<SlotId> {
    let inst = |operand: &Operand| match operand {
        Operand::Inst(id) => Some(&function.instructions[id.index()].kind),
        _ => None,
    };
    let value = match inst(condition)? {
        InstKind::Unary(_, operand) => inst(operand)?,
        value => value,
    };
    match value {
        InstKind::Load(Operand::Slot(slot)) => Some(*slot),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::program::check;
    use crate::source::SourceMap;

    #[test]
    fn flags_that_several_blocks_set_end_loops() {
        let ends = |body: &str| {
            let text = format!(
                "kernel k(p: *mut u32, n: u32) {{
                    let mut good = true;
                    for i in 0..n {{ {body} }}
                    if good {{ p[0] = 1; }}
                }}"
            );
            let module = check(SourceMap::single("a.grid", text)).unwrap().module;
            let function = module.function(module.kernels[0].body);
            let bools = function.slots.iter().zip(ending_flags(function));
            bools.filter(|(slot, _)| slot.name == "good").map(|(_, ends)| ends).collect::<Vec<_>>()
        };
        let both = "if p[i] == 1 { good = false; } else if p[i] == 2 { p[i] = 0; good = false; }";
        assert_eq!(ends(&format!("{both} if !good {{ break; }}")), [true]);
        assert_eq!(ends(both), [false]);
        assert_eq!(ends("if p[i] == 1 { good = false; } if !good { break; }"), [false]);
        let different = "if p[i] == 1 { good = false; } else if p[i] == 2 { good = true; }";
        assert_eq!(ends(&format!("{different} if !good {{ break; }}")), [false]);
    }

    #[test]
    fn ways_out_of_a_loop_meet_where_a_flag_of_one_of_them_is_tested() {
        let count = |body: &str, after: &str| {
            let text = format!(
                "kernel k(p: *mut u32, n: u32) {{
                    let mut out = false;
                    for i in 0..n {{ {body} }}
                    p[n] = n;
                    {after}
                }}"
            );
            let module = check(SourceMap::single("a.grid", text)).unwrap().module;
            let function = module.function(module.kernels[0].body);
            flagged_exits(function, &|_| false).into_iter().filter(|is| *is).count()
        };
        let leaves = "if p[i] == 7 { out = true; break; }";
        assert_eq!(count(leaves, "if out { p[0] = 1; }"), 1);
        assert_eq!(count(leaves, "if !out { p[0] = 1; }"), 1);
        assert_eq!(count(leaves, "if p[0] == 1 { p[0] = 2; }"), 0);
        assert_eq!(count("if p[i] == 7 { out = p[0] == 1; break; }", "if out { p[0] = 1; }"), 0);
        assert_eq!(count("out = p[i] == 1;", "if out { p[0] = 1; }"), 0);
        let nested = format!("for k in 0..i {{ p[k] = i; }} {leaves}");
        assert_eq!(count(&nested, "if out { p[0] = 1; }"), 0);
    }
}
