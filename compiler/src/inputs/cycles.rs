//! Debug information whose locations and scopes lie in themselves. LLVM's verifier follows them for ever.

use std::collections::HashMap;

/// What is wrong with debug information that has a cycle.
pub(crate) const CYCLE: &str = "this debug location or scope lies in itself: follow its `scope` and `inlinedAt`, and end them in a function";

/// A node of metadata with the line of its text, and the nodes around it.
type Node = (usize, Vec<u64>);

/// The line of the first location or scope that lies in itself, if there is one.
pub(crate) fn line_of_cycle(text: &str) -> Option<usize> {
    if !text.contains("inlinedAt:") && !text.contains("!DILexicalBlock") {
        return None;
    }
    let lines = (1..).zip(text.lines());
    let nodes: HashMap<u64, Node> = lines
        .filter_map(|(at, line)| node(line).map(|(name, around)| (name, (at, around))))
        .collect();
    let mut is_done = HashMap::new();
    let mut found: Option<usize> = None;
    let mut starts: Vec<(usize, u64)> =
        nodes.iter().map(|(name, (line, _))| (*line, *name)).collect();
    starts.sort_unstable();
    for (_, start) in starts {
        let mut open = vec![(start, false)];
        while let Some((name, leaves)) = open.pop() {
            let Some((line, around)) = nodes.get(&name) else { continue };
            match is_done.get(&name) {
                _ if leaves => _ = is_done.insert(name, true),
                Some(true) => {}
                // Reached again before it was left.
                Some(false) => found = Some(found.map_or(*line, |first| first.min(*line))),
                None => {
                    is_done.insert(name, false);
                    open.push((name, true));
                    open.extend(around.iter().map(|name| (*name, false)));
                }
            }
        }
    }
    found
}

/// A numbered node, and the numbers of its scope and of the location at which it is inlined.
fn node(line: &str) -> Option<(u64, Vec<u64>)> {
    let (name, value) = line.strip_prefix('!')?.split_once('=')?;
    let name = name.trim().parse().ok()?;
    let code = value.split('"').step_by(2);
    let words: Vec<&str> = code.flat_map(|part| part.split(['(', ',', ')'])).collect();
    let around = words.iter().filter_map(|word| {
        let (key, node) = word.trim().split_once(": !")?;
        ["scope", "inlinedAt"].contains(&key).then(|| node.trim().parse().ok())?
    });
    Some((name, around.collect()))
}

#[cfg(test)]
mod tests {
    use super::line_of_cycle;

    #[test]
    fn only_cycles_are_found() {
        let text = "\
!3 = distinct !DISubprogram(name: \"inlinedAt: !4\", scope: !1, unit: !0)
!4 = distinct !DILexicalBlock(scope: !3, file: !1, line: 3)
!5 = distinct !DILocation(line: 7, scope: !4, inlinedAt: !6)
!6 = !DILocation(line: 7, scope: !4)
!7 = !DILocation(line: 7, scope: !4, inlinedAt: !6)
";
        assert_eq!(line_of_cycle(text), None);
        assert_eq!(line_of_cycle(&text.replace("scope: !3,", "scope: !4,")), Some(2));
        let inlined =
            text.replace("!6 = !DILocation(", "!6 = distinct !DILocation(inlinedAt: !5, ");
        assert_eq!(line_of_cycle(&inlined), Some(3));
    }
}
