//! The nodes of `!nvvm.annotations` and `!nvvmir.version` in text. LLVM reads and upgrades the former without a look at whether they have
//! their form, and the latter says whether the module is NVVM IR that one can know.

use std::collections::HashMap;

use super::lists::elements;

/// What is wrong with such a node.
pub(crate) const WRONG: &str = "wrong node of `!nvvm.annotations`: it must be a function or a variable, and then names with numbers, \
     as in `!{ptr @k, !\"kernel\", i32 1}`";

/// What is wrong with a node of `!nvvmir.version`.
pub(crate) const WRONG_VERSION: &str = "wrong node of `!nvvmir.version`: versions of NVVM IR are 1.0 to 2.0, and of debug information 1.0 \
     to 3.2, as in `!{i32 2, i32 0, i32 3, i32 2}`; leave it out for the version that the compiler needs";

/// The line of the first node of `!nvvmir.version` that is no version of NVVM IR, alone or with one of debug information.
pub(crate) fn wrong_version(text: &str) -> Option<usize> {
    wrong_node(text, "!nvvmir.version", |body| {
        let number = |operand: &str| operand.strip_prefix("i32 ")?.trim().parse::<u32>().ok();
        let numbers: Option<Vec<u32>> = elements(body).into_iter().map(number).collect();
        let is_right = |(major, minor): (u32, u32), (most, last): (u32, u32)| {
            (1..most).contains(&major) || major == most && minor <= last
        };
        match numbers.as_deref() {
            Some([major, minor]) => is_right((*major, *minor), (2, 0)),
            Some([major, minor, debug, debug_minor]) => {
                is_right((*major, *minor), (2, 0)) && is_right((*debug, *debug_minor), (3, 2))
            }
            _ => false,
        }
    })
}

/// The line of the first node that does not have the form of an annotation: a function or a variable, then names with numbers or lists
/// of numbers.
pub(crate) fn wrong_line(text: &str) -> Option<usize> {
    wrong_node(text, "!nvvm.annotations", has_form)
}

/// The line of the first node of a list that does not have its form.
fn wrong_node(text: &str, list: &str, has_form: impl Fn(&str) -> bool) -> Option<usize> {
    let list = text.lines().find_map(|line| body(line, list))?;
    let wanted: Vec<&str> = list.split(',').map(str::trim).collect();
    let mut nodes = HashMap::new();
    for (at, line) in (1..).zip(text.lines()).filter(|(_, line)| line.starts_with('!')) {
        let name = line.split([' ', '=']).next().unwrap_or_default();
        if let Some(body) = body(line, name) {
            nodes.insert(name, (at, body));
        }
    }
    let wrong = wanted.iter().filter_map(|name| nodes.get(name));
    wrong.filter(|(_, body)| !has_form(body)).map(|(at, _)| *at).min()
}

/// The operands of a node in a line, `!0 = !{ptr @k, !"kernel", i32 1}`.
fn body<'a>(line: &'a str, name: &str) -> Option<&'a str> {
    let value = line.strip_prefix(name)?.trim_start().strip_prefix('=')?.trim_start();
    let value = value.strip_prefix("distinct ").unwrap_or(value).trim_start();
    value.strip_prefix("!{").map(|rest| rest.rsplit_once('}').map_or(rest, |(body, _)| body))
}

fn has_form(body: &str) -> bool {
    let operands = elements(body);
    let is_name = |operand: &&str| operand.starts_with("!\"");
    // A number, or a list of numbers. LLVM takes any other constant for a number, and reads what is not there.
    let is_number = |operand: &str| {
        let number = operand.strip_prefix('i').and_then(|rest| rest.split_once(' '));
        number.is_some_and(|(width, number)| {
            width.parse::<u32>().is_ok()
                && (number.parse::<i128>().is_ok() || ["true", "false"].contains(&number))
        })
    };
    let is_list = |operand: &str| {
        operand
            .strip_prefix('!')
            .is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit() || c == '{'))
    };
    let is_value = |operand: &&str| is_number(operand) || is_list(operand);
    operands.len() % 2 == 1
        && operands.first().is_some_and(|first| !first.is_empty() && !first.starts_with('!'))
        && operands.iter().skip(1).step_by(2).all(is_name)
        && operands.iter().skip(2).step_by(2).all(is_value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_a_subject_and_pairs() {
        for (node, is_right) in [
            ("ptr @k, !\"kernel\", i32 1", true),
            ("void (i32*, i32)* @\"a,b\", !\"kernel\", i32 1, !\"maxntidx\", i32 5", true),
            ("ptr @k, !\"grid_constant\", !3", true),
            ("ptr @k, !\"maxntidx\", i64 -1", true),
            ("ptr @k, !\"maxntidx\", float 1.0", false),
            ("ptr @k, !\"maxntidx\", i32 undef", false),
            ("ptr @k, !\"kernel\", ptr @k", false),
            ("null, !\"kernel\", i32 1", true),
            ("ptr @k", true),
            ("", false),
            ("ptr @k, !\"kernel\"", false),
            ("ptr @k, !\"kernel\", !\"1\"", false),
            ("ptr @k, i32 1, i32 1", false),
            ("!\"k\", !\"kernel\", i32 1", false),
        ] {
            let text =
                format!("\n!nvvm.annotations = !{{!1, !0}}\n!0 = !{{{node}}}\n!1 = !{{ptr @k}}\n");
            assert_eq!(wrong_line(&text), (!is_right).then_some(3), "{node}");
        }
        assert_eq!(wrong_line("!0 = !{}\n"), None);
    }

    #[test]
    fn versions_are_numbers_that_there_are() {
        for (node, is_right) in [
            ("i32 1, i32 6", true),
            ("i32 2, i32 0", true),
            ("i32 2, i32 0, i32 3, i32 2", true),
            ("i32 2, i32 0, i32 3, i32 3", false),
            ("i32 2, i32 1", false),
            ("i32 0, i32 1", false),
            ("i32 2", false),
            ("!\"2\"", false),
        ] {
            let text = format!("!nvvmir.version = !{{!0}}\n!0 = !{{{node}}}\n");
            assert_eq!(wrong_version(&text), (!is_right).then_some(2), "{node}");
        }
    }
}
