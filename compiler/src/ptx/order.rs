//! The order of a module's variables in PTX.
//!
//! PTX has a variable behind those whose addresses it contains. libNVVM 13.0 and LLVM 22 look for these in a set whose order follows
//! from the addresses that the variables have in the compiler's memory, so it changes from run to run. `llvm.used`, which lists
//! whatever the host sees, is such a variable: libNVVM writes the listed ones in any order at `-opt=0` from compute_100 on.
//! So they are put into the module's order.

use std::collections::{BTreeMap, BTreeSet};

use super::Ptx;
use super::reader::{Kind, Module};
use gridlet_lang::ir::symbol;

/// Puts the variables into the order of `names`, which are those of the LLVM module, but each behind those that it mentions.
pub(crate) fn by_names(ptx: Ptx, names: impl Iterator<Item = String>) -> Ptx {
    // Text that only ptxas understands stays as it is.
    let Ok(module) = Module::read_to_code(&ptx.0) else { return ptx };
    let slots: Vec<usize> =
        (0..module.items.len()).filter(|at| module.items[*at].kind == Kind::Variable).collect();
    let numbers: BTreeMap<String, usize> =
        names.map(|name| symbol::in_ptx(&name)).zip(0..).collect();
    let mut wanted = slots.clone();
    wanted.sort_by_key(|at| {
        let name = module.items[*at].name;
        (numbers.get(name).copied().unwrap_or(usize::MAX), name)
    });
    let order = behind_mentioned(&module, &wanted);
    if order == slots {
        return ptx;
    }
    let mut text = String::with_capacity(ptx.0.len());
    let mut order = order.into_iter();
    for item in &module.items {
        let put = if item.kind == Kind::Variable { order.next() } else { None };
        let put = put.map_or(item, |at| &module.items[at]);
        text += item.parts().0;
        text += put.parts().1;
    }
    Ptx(text + module.rest)
}

/// The variables in an order, but each behind those that it mentions.
fn behind_mentioned(module: &Module<'_>, wanted: &[usize]) -> Vec<usize> {
    let ranks: BTreeMap<usize, usize> = wanted.iter().copied().zip(0..).collect();
    let mut order = Vec::with_capacity(wanted.len());
    let mut seen = BTreeSet::new();
    for &first in wanted {
        // By variable, whether those that it mentions have been written.
        let mut open = vec![(first, false)];
        while let Some((at, is_ready)) = open.pop() {
            if is_ready {
                order.push(at);
            } else if seen.insert(at) {
                open.push((at, true));
                let mut needed: Vec<usize> =
                    module.uses(at).into_iter().filter(|at| ranks.contains_key(at)).collect();
                needed.sort_by_key(|at| std::cmp::Reverse(ranks[at]));
                open.extend(needed.into_iter().map(|at| (at, false)));
            }
        }
    }
    order
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ordered(variables: &[&str], names: &[&str]) -> Vec<String> {
        let head = ".version 9.0\n.target sm_100\n.address_size 64\n\n\t// .globl\tk\n.visible .entry other\n(\n)\n;\n";
        let text = variables.join("\n");
        let ptx = format!("{head}{text}\n\n.visible .entry k(\n)\n{{\n\tret;\n}}\n");
        let names = names.iter().map(|name| (*name).to_owned());
        let Ptx(text) = by_names(Ptx(ptx), names);
        let lines = text.strip_prefix(head).unwrap().lines();
        lines.take_while(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    const A: &str = ".visible .global .align 4 .u32 a = 1;";
    const B: &str = ".global .align 1 .b8 own_$_b[2] = {97, 98};";
    const C: &str = ".shared .align 16 .b8 c[64];";
    const T: &str = ".visible .global .align 8 .u64 t[2] = {generic(a), generic(own_$_b)};";

    #[test]
    fn variables_come_in_the_order_of_the_module() {
        assert_eq!(ordered(&[C, B, A], &["a", "own.b", "c"]), [A, B, C]);
        assert_eq!(ordered(&[A, B, C], &["c", "own.b", "a"]), [C, B, A]);
        // Those that the back end added come last.
        assert_eq!(ordered(&[C, B, A], &["c"]), [C, A, B]);
    }

    #[test]
    fn a_variable_follows_those_that_it_mentions() {
        assert_eq!(ordered(&[B, A, T, C], &["t", "a", "c", "own.b"]), [A, B, T, C]);
        let text = ".visible .global .align 8 .u64 text = \"a\";";
        assert_eq!(ordered(&[A, text], &["text", "a"]), [text, A]);
    }
}
