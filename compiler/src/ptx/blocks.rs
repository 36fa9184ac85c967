//! A function as a graph of its basic blocks.

use std::collections::BTreeMap;

/// The blocks of a function. Its end is the block after the last.
pub(super) struct Blocks {
    /// By block, where it may go.
    pub(super) successors: Vec<Vec<usize>>,
    /// By block, its first line.
    pub(super) starts: Vec<usize>,
    /// By block, the line before which instructions can be inserted.
    #[cfg(feature = "llvm")]
    pub(super) places: Vec<Option<usize>>,
}

impl Blocks {
    /// Reads the function with these lines, each with its end.
    pub(super) fn read(lines: &[&str]) -> Blocks {
        let start = lines.iter().position(|line| line.starts_with('{')).unwrap_or(lines.len());
        let end = lines.iter().rposition(|line| line.starts_with('}')).unwrap_or(lines.len());
        let mut labels = BTreeMap::new();
        let mut targets: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        // By block, its first line, and whether instructions can be inserted there.
        let mut starts = vec![(start + 1, true)];
        // By block, where it may go: `None` is the next block.
        let mut exits: Vec<Vec<Option<&str>>> = vec![vec![]];
        let (mut braces, mut at) = (1i32, start + 1);
        while at < end {
            let line = lines[at].split("//").next().unwrap_or_default().trim();
            at += 1;
            braces += line.matches('{').count() as i32 - line.matches('}').count() as i32;
            let label = word(line);
            let behind = line[label.len()..].trim_start();
            if !label.is_empty() && behind.starts_with(':') && !behind.starts_with("::") {
                let behind = behind[1..].trim();
                if let Some(list) = behind.strip_prefix(".branchtargets") {
                    let mut list = vec![list];
                    while !list.last().is_some_and(|line| line.contains(';')) && at < end {
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
                starts.push((at, braces == 1 && behind.is_empty()));
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
            starts.push((at, braces == 1));
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
        Blocks {
            successors: exits.into_iter().enumerate().map(node).collect(),
            #[cfg(feature = "llvm")]
            places: starts.iter().map(|(at, is_place)| is_place.then_some(*at)).collect(),
            starts: starts.into_iter().map(|(at, _)| at).collect(),
        }
    }
}

fn is_of_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || "_$%".contains(c)
}

/// The name at the start of a text.
fn word(text: &str) -> &str {
    &text[..text.find(|c| !is_of_name(c)).unwrap_or(text.len())]
}
