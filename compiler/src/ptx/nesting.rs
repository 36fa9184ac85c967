//! Calls that make ptxas keep the lanes that wait in deep nests of branches.
//!
//! Where a branch of diverging lanes ends, they wait for each other in one of 12 convergence barriers; a function that is not inlined
//! often has only 6. In a nest that needs more, ptxas (CUDA 13.0, all architectures) keeps other barriers in registers, but swaps them
//! where lanes already wait, which are then lost (`link/barriers.rs` finds that in machine code).
//! ptxas does save a barrier before lanes wait in it if a call within its region changes the barrier. So the innermost
//! branches of such nests get a call of a function that uses 6 barriers. It never happens, because no lane has an empty mask:
//!
//! ```text
//!     mov.u32 %deep_lane, %lanemask_eq;
//!     setp.eq.u32 %deep, %deep_lane, 0;
//!     @%deep call gridlet$deep;
//! ```
//!
//! The regions are those between a branch and its immediate post-dominator; branches with the same one share a barrier.
//!
//! It does not help where a jump leaves many regions at once: ptxas keeps the barrier of each region that a jump leaves in place.

mod regions;

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::ops::Range;

use super::Ptx;
use regions::{Graph, Regions};

/// Regions at a place that may lack a call: fewer than the barriers of a function, less those that ptxas adds for warp operations and
/// chains of conditions.
const MAX_WITHOUT_CALL: usize = 2;

/// A function's code.
struct Function {
    graph: Graph,
    /// By block, the line before which instructions can be inserted.
    places: Vec<Option<usize>>,
}

/// Adds the calls; `None` if no branches are nested.
pub(crate) fn with_calls(ptx: &Ptx) -> Option<Ptx> {
    let lines: Vec<&str> = ptx.0.split_inclusive('\n').collect();
    let mut places = vec![];
    for body in bodies(&lines) {
        let Function { graph, places: lines } = Function::read(&lines, body);
        places.extend(Regions::of(&graph).calls(MAX_WITHOUT_CALL, &lines));
    }
    if places.is_empty() {
        return None;
    }
    places.sort_unstable();
    let mut text = String::with_capacity(ptx.0.len() + 4096);
    let mut places = places.into_iter().peekable();
    for (at, line) in lines.iter().enumerate() {
        if places.next_if_eq(&at).is_some() {
            text += CALL;
        }
        text += line;
        if line.starts_with(".address_size") {
            text += &deep_function();
        }
    }
    Some(Ptx(text))
}

/// Whether a function has more nested regions than a kernel has barriers.
pub(crate) fn is_deep(ptx: &Ptx) -> bool {
    const BARRIERS: usize = 12;
    let lines: Vec<&str> = ptx.0.split_inclusive('\n').collect();
    let depth = |body| Regions::of(&Function::read(&lines, body).graph).deepest();
    bodies(&lines).into_iter().any(|body| depth(body) > BARRIERS)
}

const CALL: &str = "\
\t{
\t.reg .b32 %deep_lane;
\t.reg .pred %deep;
\tmov.u32 \t%deep_lane, %lanemask_eq;
\tsetp.eq.u32 \t%deep, %deep_lane, 0;
\t@%deep call gridlet$deep;
\t}
";

/// The function that is called. ptxas can neither inline its branches nor replace them by conditional instructions.
fn deep_function() -> String {
    const LEVELS: usize = 6;
    let mut text = String::from(
        "\n.func gridlet$deep()\n{\n\t.reg .b32 %r<2>;\n\t.reg .pred %p<1>;\n\tmov.u32 \t%r0, %laneid;\n",
    );
    for level in 0..LEVELS {
        let _ = writeln!(
            text,
            "\tmov.u32 \t%r1, %clock;\n\tsetp.eq.u32 \t%p0, %r1, %r0;\n\t@%p0 bra \t$L__deep_{level};"
        );
    }
    for level in (0..LEVELS).rev() {
        let _ =
            writeln!(text, "\tmov.u32 \t%r1, %clock;\n\tnanosleep.u32 \t%r1;\n$L__deep_{level}:");
    }
    text + "\tret;\n}\n"
}

/// The lines of each function, from its `{` to its `}`.
fn bodies(lines: &[&str]) -> Vec<Range<usize>> {
    let mut found = vec![];
    let mut first = None;
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with('{') {
            first = Some(at);
        } else if line.starts_with('}')
            && let Some(first) = first.take()
        {
            found.push(first..at);
        }
    }
    found
}

impl Function {
    /// Reads the function with that body.
    fn read(lines: &[&str], body: Range<usize>) -> Function {
        let places = vec![Some(body.start + 1)];
        let mut function = Function { graph: Graph::default(), places };
        function.read_blocks(lines, body);
        function
    }

    fn read_blocks(&mut self, lines: &[&str], body: Range<usize>) {
        let mut labels = BTreeMap::new();
        let mut targets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        // By block, where it may go: `None` is the next block.
        let mut exits: Vec<Vec<Option<&str>>> = vec![vec![]];
        let (mut braces, mut at) = (1i32, body.start + 1);
        while at < body.end {
            let line = lines[at].split("//").next().unwrap_or_default().trim();
            at += 1;
            braces += line.matches('{').count() as i32 - line.matches('}').count() as i32;
            let label = word(line);
            let behind = line[label.len()..].trim_start();
            if !label.is_empty() && behind.starts_with(':') && !behind.starts_with("::") {
                let behind = behind[1..].trim();
                if let Some(list) = behind.strip_prefix(".branchtargets") {
                    let mut list = vec![list];
                    while !list.last().is_some_and(|line| line.contains(';')) && at < body.end {
                        list.push(lines[at]);
                        at += 1;
                    }
                    let names = list.into_iter().flat_map(|line| line.split([',', ';']));
                    let names = names.map(str::trim).filter(|name| !name.is_empty());
                    targets.insert(label, names.collect());
                    continue;
                }
                // Behind a jump, this is an empty block that nothing reaches.
                if let Some(exits) = exits.last_mut() {
                    exits.push(None);
                }
                labels.insert(label, exits.len());
                exits.push(vec![]);
                self.places.push((braces == 1 && behind.is_empty()).then_some(at));
                continue;
            }
            let is_conditional = line.starts_with('@');
            let instruction = match line.split_once(char::is_whitespace) {
                Some((_, rest)) if is_conditional => rest.trim_start(),
                _ => line,
            };
            let name = instruction.split([' ', '\t', '.', ';']).next().unwrap_or_default();
            let target = || instruction.split_whitespace().nth(1).unwrap_or_default();
            let ways = match name {
                "bra" => vec![target().trim_end_matches(';')],
                "brx" => {
                    let list = instruction.trim_end_matches(';').rsplit(',').next();
                    list.and_then(|name| targets.get(name.trim())).cloned().unwrap_or_default()
                }
                "ret" | "exit" => vec![""],
                _ => continue,
            };
            if let Some(exits) = exits.last_mut() {
                exits.extend(ways.into_iter().map(Some));
                exits.extend(is_conditional.then_some(None));
            }
            exits.push(vec![]);
            self.places.push((braces == 1).then_some(at));
        }
        let end = exits.len();
        let node = |(block, exits): (usize, Vec<Option<&str>>)| {
            let exits = exits.into_iter().map(|exit| match exit {
                None => block + 1,
                Some(label) => labels.get(label).copied().unwrap_or(end),
            });
            let exits: Vec<usize> = exits.collect();
            if exits.is_empty() { vec![(block + 1).min(end)] } else { exits }
        };
        self.graph = Graph { successors: exits.into_iter().enumerate().map(node).collect() };
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_$%".contains(c)
}

/// The name at the start of a text.
fn word(text: &str) -> &str {
    &text[..text.find(|c| !is_of_name(c)).unwrap_or(text.len())]
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Branches in each other, with code behind each.
    fn nest(levels: usize) -> Ptx {
        let mut text = String::from(
            ".version 8.0\n.address_size 64\n\n.visible .entry k(\n)\n{\n\t.reg .pred %p<2>;\n",
        );
        for level in 0..levels {
            text += &format!("\t@%p1 bra \t$L__BB0_{level};\n\tst.global.b32 [%rd1], {level};\n");
        }
        for level in (0..levels).rev() {
            text += &format!("\tbar.warp.sync \t-1;\n$L__BB0_{level}:\n");
        }
        Ptx(text + "\tret;\n}\n")
    }

    #[test]
    fn the_innermost_branch_gets_a_call() {
        let Some(Ptx(text)) = with_calls(&nest(4)) else { panic!("no call") };
        assert_eq!(text.matches("call gridlet$deep;").count(), 1);
        let (before, behind) = text.split_once(CALL).unwrap();
        assert!(before.ends_with("bra \t$L__BB0_3;\n"), "{before}");
        assert!(behind.starts_with("\tst.global.b32 [%rd1], 3;"), "{behind}");
        assert!(before.contains(&deep_function()));
    }

    #[test]
    fn nests_of_more_than_twelve_branches_are_deep() {
        assert!(!is_deep(&nest(12)) && is_deep(&nest(13)));
    }

    #[test]
    fn flat_code_stays() {
        assert_eq!(with_calls(&nest(MAX_WITHOUT_CALL)), None);
        // One branch with several ways, twice.
        let text = ".address_size 64\n.func f(\n)\n{\n\tts: .branchtargets\n\t\t$L_a,\n\t\t$L_b;\n\tbrx.idx %r1, ts;\n\
                    $L_a:\n\tbra.uni $L_c;\n$L_b:\n\tbra.uni $L_c;\n$L_c:\n\tret;\n}\n";
        assert_eq!(with_calls(&Ptx(text.into())), None);
    }
}
