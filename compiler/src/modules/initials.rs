//! Initial values of variables that PTX cannot express.

use std::collections::{HashMap, HashSet};

use super::check::Finding;
use super::kernels::name;
use crate::nvvm::legacy::llvm::{Kind, Module, Shape, Value};

/// The address space of shared memory.
const SHARED: u32 = 3;

/// Initial values with addresses that are not known before a kernel runs, or that need each other.
pub(super) fn check(module: Module<'_>) -> Vec<Finding<'_>> {
    let variables = module.variables().into_iter();
    let values: Vec<_> = variables
        .filter_map(|variable| Some((variable, addresses(variable.initializer()?))))
        .collect();
    let shared = values.iter().filter_map(|(variable, addresses)| {
        let is_shared = |one: &&Value<'_>| one.ty().shape() == Shape::Pointer(SHARED);
        let address = name(*addresses.iter().find(is_shared)?);
        let message = format!(
            "the initial value of `{}` has the address of `{address}` in shared memory, which each block has for itself; store it in a \
             kernel",
            name(*variable)
        );
        Some(Finding { at: Some(*variable), message })
    });
    let mut findings: Vec<_> = shared.collect();
    findings.extend(cycle(&values).map(|cycle| {
        let names: Vec<String> = cycle.iter().map(|one| format!("`{}`", name(*one))).collect();
        let what = match &names[..] {
            [one] => format!("the initial value of {one} has its own address"),
            _ => format!("the initial values of {} have each other's addresses", names.join(", ")),
        };
        let message =
            format!("{what}, but PTX has only those of variables before it; store one in a kernel");
        Finding { at: cycle.first().copied(), message }
    }));
    findings
}

/// The variables whose addresses are in a constant.
fn addresses(constant: Value<'_>) -> Vec<Value<'_>> {
    let (mut seen, mut open, mut found) = (HashSet::new(), vec![constant], vec![]);
    while let Some(value) = open.pop() {
        match value.kind() {
            Kind::Variable => found.push(value),
            Kind::Aggregate | Kind::Expression if value.string().is_none() => {
                open.extend(value.operands().into_iter().rev().filter(|one| seen.insert(*one)));
            }
            _ => {}
        }
    }
    found
}

/// The first variables whose initial values need each other, in a circle.
fn cycle<'m>(values: &[(Value<'m>, Vec<Value<'m>>)]) -> Option<Vec<Value<'m>>> {
    let known: HashMap<_, _> = values.iter().map(|(variable, of)| (*variable, of)).collect();
    // Where in the path a variable is; `None` for those that are done.
    let mut places = HashMap::new();
    for (start, _) in values {
        if places.contains_key(start) {
            continue;
        }
        // The path to the variable, each with the number of its addresses that have been followed.
        let mut path = vec![(*start, 0)];
        places.insert(*start, Some(0));
        while let Some((variable, next)) = path.last_mut() {
            let address = known.get(variable).and_then(|of| of.get(*next)).copied();
            *next += 1;
            match address.map(|address| (address, places.get(&address))) {
                None => {
                    places.insert(*variable, None);
                    path.pop();
                }
                Some((_, Some(None))) => {}
                Some((_, Some(Some(at)))) => {
                    return Some(path[*at..].iter().map(|(one, _)| *one).collect());
                }
                Some((address, None)) => {
                    places.insert(address, Some(path.len()));
                    path.push((address, 0));
                }
            }
        }
    }
    None
}
