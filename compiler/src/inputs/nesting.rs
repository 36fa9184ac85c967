//! Named types in text that nest too deep for LLVM, which recurses over types when it reads a module.

use std::collections::HashMap;

/// The line of the first named type that has more than `max` others inside each other. Behind a pointer, nothing counts.
pub(super) fn deep_type(text: &str, max: usize) -> Option<usize> {
    let lines = (1..).zip(text.lines());
    let types: Vec<_> = lines.filter_map(|(line, code)| Some((line, definition(code)?))).collect();
    let named = types.iter().enumerate().map(|(at, (_, (name, _)))| (*name, at));
    let named: HashMap<&str, usize> = named.collect();
    let inner = |at: usize| names(types[at].1.1).filter_map(|name| named.get(name).copied());
    // 0 while it is unknown. A list rather than recursion.
    let mut heights = vec![0_usize; types.len()];
    let mut is_open = vec![false; types.len()];
    for start in 0..types.len() {
        let mut open = vec![start];
        while let Some(&at) = open.last() {
            if !is_open[at] {
                is_open[at] = true;
                open.extend(inner(at).filter(|inner| !is_open[*inner]));
                continue;
            }
            open.pop();
            // One that contains itself is LLVM's to refuse.
            heights[at] = 1 + inner(at).map(|inner| heights[inner]).max().unwrap_or_default();
        }
        if heights[start] > max {
            return Some(types[start].0);
        }
    }
    None
}

/// The name and the rest of a line that defines a type, `%name = type { i32 }`.
fn definition(line: &str) -> Option<(&str, &str)> {
    let (name, body) = line.trim_start().strip_prefix('%')?.split_once(" = type ")?;
    Some((name, body.split(';').next().unwrap_or_default()))
}

/// The names of types in code, except those behind pointers.
fn names(code: &str) -> impl Iterator<Item = &str> {
    let is_end = |c: char| matches!(c, ',' | ' ' | '}' | ']' | '>' | ')' | '*');
    code.split('%').skip(1).filter_map(move |part| {
        // A name in quotes may have any characters.
        let end = match part.strip_prefix('"') {
            Some(quoted) => quoted.find('"')? + 2,
            None => part.find(is_end).unwrap_or(part.len()),
        };
        let (name, rest) = part.split_at(end);
        (!rest.trim_start().starts_with('*')).then_some(name)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_inside_each_other_are_counted() {
        let text = "%a = type { %\"b c\", [2 x %d] } ; %a\n%\"b c\" = type { %d }\n%d = type { i32, %a* }\n";
        assert_eq!(deep_type(text, 3), None);
        assert_eq!(deep_type(text, 2), Some(1));
        assert_eq!(deep_type("%a = type { %a }\n", 5), None);
        let mut chain = "%s0 = type { i32 }\n".to_owned();
        (1..50_000).for_each(|at| chain += &format!("%s{at} = type {{ %s{} }}\n", at - 1));
        assert_eq!(deep_type(&chain, 500), Some(501));
    }
}
