//! Local variables that are set before every read of them.

use super::{Function, InstKind, Operand, SlotId};

/// By slot, whether each load of it as a whole comes after a store to it as a whole, on every path. Accesses of its parts, or
/// through pointers, do not count.
pub fn set_before_reads(function: &Function) -> Vec<bool> {
    let words = function.slots.len().div_ceil(64);
    let all = vec![u64::MAX; words];
    let next = |at: usize| function.blocks[at].terminator.successors();
    // What is surely set at the start of each block; of one that is never reached, everything.
    let mut before = vec![all; function.blocks.len()];
    if let Some(entry) = before.first_mut() {
        entry.fill(0);
    }
    let mut open = vec![0];
    let mut is_seen = vec![false; function.blocks.len()];
    while let Some(at) = open.pop().filter(|_| !function.blocks.is_empty()) {
        is_seen[at] = true;
        let mut set = before[at].clone();
        walk(function, at, &mut set, |_| {});
        for to in next(at).map(|to| to.index()) {
            let mut is_changed = !is_seen[to];
            for (known, now) in before[to].iter_mut().zip(&set) {
                is_changed |= *known & !now != 0;
                *known &= now;
            }
            if is_changed {
                open.push(to);
            }
        }
    }
    let mut is_set = vec![true; function.slots.len()];
    for (at, set) in before.iter_mut().enumerate() {
        walk(function, at, set, |slot| is_set[slot.index()] = false);
    }
    is_set
}

/// Adds what a block sets to `set`, and calls `unset` for each slot that it may read too early.
fn walk(function: &Function, block: usize, set: &mut [u64], mut unset: impl FnMut(SlotId)) {
    for id in &function.blocks[block].instructions {
        match &function.instructions[id.index()].kind {
            InstKind::Load(Operand::Slot(slot)) => {
                let (word, bit) = place(*slot);
                if set[word] & bit == 0 {
                    unset(*slot);
                }
            }
            InstKind::Store { pointer: Operand::Slot(slot), .. } => {
                let (word, bit) = place(*slot);
                set[word] |= bit;
            }
            _ => {}
        }
    }
}

fn place(slot: SlotId) -> (usize, u64) {
    (slot.index() / 64, 1 << (slot.index() % 64))
}

#[cfg(test)]
mod tests {
    use super::set_before_reads;
    use crate::ir::parse::parse;

    /// By slot of a function with these slots and blocks.
    fn found(text: &str) -> Vec<bool> {
        let text = format!("launches symbolic\n\nfn @f(%c: bool) {{\n{text}}}\n");
        set_before_reads(&parse(&text).unwrap().functions[0])
    }

    #[test]
    fn every_path_must_set_a_variable() {
        // `$a` is set on both ways, `$b` on one, `$c` never, `$d` behind the read, and `$e` is not read.
        let text = "\
  slot $a: i32, unset
  slot $b: i32, unset
  slot $c: i32, unset
  slot $d: i32, unset
  slot $e: i32, unset
entry:
  branch %c, then, else
then:
  store $a, 1i32
  store $b, 1i32
  jump end
else:
  store $a, 2i32
  jump end
end:
  %0: i32 = load $a
  %1: i32 = load $b
  %2: i32 = load $c
  %3: i32 = load $d
  store $d, 1i32
  return
";
        assert_eq!(found(text), [true, false, false, false, true]);
    }

    #[test]
    fn loops_count_from_their_first_round() {
        // `$a` is set before the loop, `$b` behind its read in the loop, `$c` before the read there, and `$d` in the loop, which may
        // have no round, and read behind it. The last block is never reached.
        let text = "\
  slot $a: i32, unset
  slot $b: i32, unset
  slot $c: i32, unset
  slot $d: i32, unset
  slot $e: i32, unset
entry:
  store $a, 1i32
  jump head
head:
  branch %c, body, end
body:
  %0: i32 = load $a
  %1: i32 = load $b
  store $b, 1i32
  store $c, 1i32
  %2: i32 = load $c
  store $d, 1i32
  jump head
end:
  %3: i32 = load $d
  return
never:
  %4: i32 = load $e
  return
";
        assert_eq!(found(text), [true, false, true, false, true]);
    }
}
