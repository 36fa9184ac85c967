//! Joins two compilations of one program: the code of some of its kernels comes from the second one.
//!
//! libNVVM flushes subnormal numbers, and chooses libdevice's variants for that, in a whole module or not at all; its legacy
//! dialect ignores what a function's attributes say. So a program of which some kernels are `#[fast_math]` is compiled twice,
//! and their code is taken from the compilation with fast mathematics, with the functions that it calls.
//! Each kernel then has the code that it would have in a program of its own kind.

use std::collections::{BTreeMap, BTreeSet};

use super::Ptx;
use super::reader::{Item, Kind, Module, renamed};
use crate::error::{Error, Result};

/// `base` with the functions called `names` as they are in `other`. Both must come from the same program; names that neither
/// defines are ignored.
///
/// The functions and variables that they use are shared if they are the same in both. Otherwise those of `other` are added,
/// under new names if need be.
///
/// # Errors
/// [`Error::Internal`] if the compilations do not fit together.
pub(crate) fn splice(base: &Ptx, other: &Ptx, names: &[String]) -> Result<Ptx> {
    let (base, other) = (Module::read(&base.0)?, Module::read(&other.0)?);
    let mut replaced = BTreeMap::new();
    for name in names {
        match (base.find(name), other.find(name)) {
            // The callers of a function are those of `base`.
            (Some(old), Some(new)) if base.items[old].head() == other.items[new].head() => {
                replaced.insert(old, new);
            }
            (None, None) => {}
            _ => return Err(bug(format!("`{name}` has another signature"))),
        }
    }
    let added = added(&base, &other, &replaced.values().copied().collect())?;
    Ok(Ptx(join(&base, &other, &replaced, &added)))
}

/// The items of `other` that code of `roots` uses and that `base` lacks, each with its new name.
fn added(
    base: &Module<'_>,
    other: &Module<'_>,
    roots: &BTreeSet<usize>,
) -> Result<BTreeMap<usize, String>> {
    // A kernel is used by its address only, which is that in `base`.
    let stays = |at: &usize| roots.contains(at) || other.items[*at].kind == Kind::Entry;
    let mut users: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut open: Vec<usize> = roots.iter().copied().collect();
    while let Some(at) = open.pop() {
        if seen.insert(at) {
            for used in other.uses(at).into_iter().filter(|used| !stays(used)) {
                users.entry(used).or_default().push(at);
                open.push(used);
            }
        }
    }
    let twin = |item: &Item<'_>| base.find(item.name).map(|at| &base.items[at]);
    let mut copied = BTreeSet::new();
    let differs = |at: &usize| {
        let item = &other.items[*at];
        !twin(item).is_some_and(|twin| twin.is_same_as(item))
    };
    let mut open: Vec<usize> = users.keys().copied().filter(differs).collect();
    while let Some(at) = open.pop() {
        // What uses a copy must be a copy too.
        if !stays(&at) && copied.insert(at) {
            open.extend(users.get(&at).into_iter().flatten());
        }
    }
    let name = |at: usize| {
        let item = &other.items[at];
        if twin(item).is_none() {
            return Ok((at, item.name.to_owned()));
        }
        // There can be only one of a variable that the program writes, or that others see.
        if !item.can_be_copied() {
            return Err(bug(format!("`{}` differs", item.name)));
        }
        let name = format!("{}$fast", item.name);
        match base.find(&name).or(other.find(&name)) {
            None => Ok((at, name)),
            Some(_) => Err(bug(format!("`{name}` exists already"))),
        }
    };
    copied.into_iter().map(name).collect()
}

fn join(
    base: &Module<'_>,
    other: &Module<'_>,
    replaced: &BTreeMap<usize, usize>,
    added: &BTreeMap<usize, String>,
) -> String {
    let names: BTreeMap<&str, &str> =
        added.iter().map(|(at, name)| (other.items[*at].name, name.as_str())).collect();
    // In the result, a function must be declared before its use.
    let mut declared: BTreeSet<&str> = base.declarations().map(|item| item.name).collect();
    let (mut before, mut after) = (String::new(), String::new());
    for at in added.keys() {
        let item = &other.items[*at];
        if item.kind != Kind::Function {
            before += &renamed(item.text, &names);
            continue;
        }
        let [head, text] = item.copied(&names);
        before += &format!("\n{head}\n;");
        after += &text;
    }
    for (old, new) in replaced {
        for item in other.uses(*new).into_iter().map(|used| &other.items[used]) {
            let follows = base.find(item.name).is_some_and(|shared| shared > *old);
            if follows && item.kind == Kind::Function && declared.insert(item.name) {
                before += &format!("\n{}\n;", item.head());
            }
        }
    }
    let first = base.items.iter().position(Item::is_code);
    let last = base.items.iter().rposition(Item::is_code);
    let mut text = String::new();
    for (at, item) in base.items.iter().enumerate() {
        if Some(at) == first {
            text += &before;
        }
        match replaced.get(&at) {
            Some(new) => text += &renamed(other.items[*new].text, &names),
            None => text += item.text,
        }
        if Some(at) == last {
            text += &after;
        }
    }
    text + base.rest
}

fn bug(message: String) -> Error {
    Error::internal("ptx", format!("two compilations of one program: {message}"))
}

#[cfg(test)]
mod tests;
