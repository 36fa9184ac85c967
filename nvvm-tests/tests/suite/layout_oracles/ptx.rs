//! The parameters of kernels as PTX declares them. PTX places each after the one before it, at its own alignment (PTX ISA,
//! "Kernel Function Parameters").

use std::collections::BTreeMap;

use gridlet::ir::symbol;
use gridlet::layout::ParamLayout;

/// The place of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Place {
    offset: u32,
    size: u32,
    alignment: u32,
}

/// The parameters of each kernel of a module, by its symbol.
pub(crate) fn kernels(ptx: &str) -> BTreeMap<&str, Vec<Place>> {
    let mut all = BTreeMap::new();
    for rest in ptx.split(".entry ").skip(1) {
        let (name, rest) = rest.split_once('(').unwrap();
        let (list, _) = rest.split_once(')').unwrap();
        let (mut places, mut end) = (vec![], 0_u32);
        for declaration in list.split(".param").skip(1) {
            let (size, alignment) = extent(declaration);
            let offset = end.next_multiple_of(alignment);
            end = offset + size;
            places.push(Place { offset, size, alignment });
        }
        all.insert(name.trim(), places);
    }
    all
}

/// Size and alignment of `.align 16 .b8 name[32]`, `.u64 .ptr .align 1 name` or `.b32 name`.
fn extent(declaration: &str) -> (u32, u32) {
    let mut words = declaration.trim().trim_end_matches(',').split_whitespace();
    let (mut size, mut alignment, mut count) = (0, None, 1);
    let mut is_pointer = false;
    while let Some(word) = words.next() {
        match word {
            // The alignment after it is that of the memory.
            ".ptr" => is_pointer = true,
            ".align" => {
                let bytes: u32 = words.next().unwrap().parse().unwrap();
                alignment = alignment.or((!is_pointer).then_some(bytes));
            }
            ".global" | ".shared" | ".const" | ".local" => {}
            word => match word.strip_prefix('.') {
                Some(ty) => size = ty[1..].parse::<u32>().unwrap() / 8,
                None => {
                    if let Some((_, elements)) = word.split_once('[') {
                        count = elements.trim_end_matches(']').parse().unwrap();
                    }
                }
            },
        }
    }
    (size * count, alignment.unwrap_or(size))
}

/// The first kernel whose parameters lie elsewhere than in the layout.
pub(crate) fn difference(ptx: &str, layouts: &[ParamLayout]) -> Option<String> {
    let found = kernels(ptx);
    layouts.iter().find_map(|layout| {
        let slot = |slot: &gridlet::layout::ParamSlot| Place {
            offset: slot.offset,
            size: slot.size,
            alignment: slot.alignment,
        };
        let wanted: Vec<Place> = layout.slots.iter().map(slot).collect();
        let given = found.get(symbol::external(&layout.kernel).as_str());
        (given != Some(&wanted)).then(|| format!("`{}`: {given:?}, not {wanted:?}", layout.kernel))
    })
}
