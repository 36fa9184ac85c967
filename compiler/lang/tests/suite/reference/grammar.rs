//! A grammar in W3C's EBNF: parsed, rewritten to plain rules, used to recognise sentences (J. Earley, "An
//! Efficient Context-Free Parsing Algorithm") and to generate them.

use std::collections::{BTreeMap, BTreeSet};

/// A symbol on the right side of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Symbol {
    /// Index into [`Grammar::terminals`].
    Terminal(usize),
    /// Index into [`Grammar::rules`].
    Name(usize),
}

/// An intermediate form of a right side.
#[derive(Clone, Debug)]
enum Part {
    Terminal(String),
    Name(String),
    Sequence(Vec<Part>),
    Choice(Vec<Part>),
    Optional(Box<Part>),
    Any(Box<Part>),
    /// The first, unless it starts with one of the terminals.
    Except(Box<Part>, Vec<String>),
}

/// A grammar in plain rules.
#[derive(Default)]
pub(crate) struct Grammar {
    /// Literal terminals and classes of tokens.
    pub(crate) terminals: Vec<String>,
    /// The alternatives of each name.
    pub(crate) rules: Vec<Vec<Vec<Symbol>>>,
    names: BTreeMap<String, usize>,
    /// By name, terminals that its sentences must not start with, although its rule would allow it.
    excluded: BTreeMap<usize, BTreeSet<usize>>,
    nullable: Vec<bool>,
    /// By name, the minimum depth of a parse tree.
    depths: Vec<usize>,
}

impl Grammar {
    /// Parses the rules of a text; the first is the start rule.
    pub(crate) fn read(text: &str) -> Self {
        let mut productions: Vec<(String, String)> = vec![];
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match line.split_once("::=") {
                Some((name, right)) => productions.push((name.trim().into(), right.into())),
                None => productions.last_mut().expect("a rule before its rest").1 += line,
            }
        }
        let mut grammar = Grammar::default();
        for (name, right) in productions {
            let variants: &[&str] = if name.ends_with("[s]") { &["any", "head"] } else { &[""] };
            for variant in variants {
                let name = name.replace("[s]", &format!("[{variant}]"));
                let right = right.replace("[s]", &format!("[{variant}]"));
                let mut words = words(&right);
                words.reverse();
                let part = choice(&mut words);
                assert!(words.is_empty(), "{name}: left over: {words:?}");
                let id = grammar.name(&name);
                assert!(grammar.rules[id].is_empty(), "two rules for {name}");
                grammar.rules[id] = grammar.alternatives(&part);
            }
        }
        for (name, id) in &grammar.names {
            assert!(!grammar.rules[*id].is_empty(), "no rule for {name}");
        }
        grammar.measure();
        grammar
    }

    fn name(&mut self, name: &str) -> usize {
        if let Some(id) = self.names.get(name) {
            return *id;
        }
        self.rules.push(vec![]);
        self.names.insert(name.to_owned(), self.rules.len() - 1);
        self.rules.len() - 1
    }

    fn terminal(&mut self, text: &str) -> usize {
        self.terminals.iter().position(|known| known == text).unwrap_or_else(|| {
            self.terminals.push(text.to_owned());
            self.terminals.len() - 1
        })
    }

    /// Adds a name for a part in the middle of a rule.
    fn helper(
        &mut self,
        alternatives: impl FnOnce(&mut Self, usize) -> Vec<Vec<Symbol>>,
    ) -> Symbol {
        self.rules.push(vec![]);
        let id = self.rules.len() - 1;
        self.rules[id] = alternatives(self, id);
        Symbol::Name(id)
    }

    fn alternatives(&mut self, part: &Part) -> Vec<Vec<Symbol>> {
        match part {
            Part::Choice(parts) => parts.iter().flat_map(|part| self.alternatives(part)).collect(),
            Part::Sequence(parts) => vec![parts.iter().map(|part| self.symbol(part)).collect()],
            other => vec![vec![self.symbol(other)]],
        }
    }

    fn symbol(&mut self, part: &Part) -> Symbol {
        match part {
            // Token classes are in capitals.
            Part::Name(name) if name.chars().all(|c| c.is_ascii_uppercase()) => {
                Symbol::Terminal(self.terminal(name))
            }
            Part::Name(name) => Symbol::Name(self.name(name)),
            Part::Terminal(text) => Symbol::Terminal(self.terminal(text)),
            Part::Optional(part) => self.helper(|grammar, _| {
                let mut alternatives = grammar.alternatives(part);
                alternatives.push(vec![]);
                alternatives
            }),
            Part::Any(part) => self.helper(|grammar, id| {
                let one = grammar.symbol(part);
                vec![vec![], vec![Symbol::Name(id), one]]
            }),
            Part::Except(part, starts) => {
                let symbol = self.helper(|grammar, _| grammar.alternatives(part));
                let starts = starts.iter().map(|start| self.terminal(start)).collect();
                if let Symbol::Name(id) = symbol {
                    self.excluded.insert(id, starts);
                }
                symbol
            }
            Part::Sequence(_) | Part::Choice(_) => {
                self.helper(|grammar, _| grammar.alternatives(part))
            }
        }
    }

    fn measure(&mut self) {
        let never = usize::MAX;
        self.nullable = vec![false; self.rules.len()];
        self.depths = vec![never; self.rules.len()];
        loop {
            let mut changed = false;
            for (id, alternatives) in self.rules.iter().enumerate() {
                for alternative in alternatives {
                    let depth = alternative.iter().map(|symbol| match symbol {
                        Symbol::Terminal(_) => 0,
                        Symbol::Name(name) => self.depths[*name],
                    });
                    let depth = depth.max().unwrap_or(0).saturating_add(1);
                    let nullable = alternative
                        .iter()
                        .all(|symbol| matches!(symbol, Symbol::Name(name) if self.nullable[*name]));
                    changed |= depth < self.depths[id] || nullable && !self.nullable[id];
                    self.depths[id] = self.depths[id].min(depth);
                    self.nullable[id] |= nullable;
                }
            }
            if !changed {
                break;
            }
        }
        assert!(!self.depths.contains(&never), "a name has no sentence");
    }

    /// Whether the grammar derives this sequence of terminals.
    pub(crate) fn derives(&self, sentence: &[usize]) -> bool {
        // An item: name, alternative, position in it, start.
        type Item = (usize, usize, usize, usize);
        let mut sets: Vec<(Vec<Item>, BTreeSet<Item>)> =
            vec![Default::default(); sentence.len() + 1];
        let start = 0;
        // For each set and name, the items that wait for it.
        let mut waiting: Vec<BTreeMap<usize, Vec<Item>>> =
            vec![BTreeMap::new(); sentence.len() + 1];
        let add = |set: &mut (Vec<Item>, BTreeSet<Item>), item: Item| {
            if set.1.insert(item) {
                set.0.push(item);
            }
        };
        for alternative in 0..self.rules[start].len() {
            add(&mut sets[0], (start, alternative, 0, 0));
        }
        for at in 0..=sentence.len() {
            let next = sentence.get(at).copied();
            let mut predicted = BTreeSet::new();
            let mut index = 0;
            while let Some(item) = sets[at].0.get(index).copied() {
                index += 1;
                let (name, alternative, seen, origin) = item;
                let seen_one = (name, alternative, seen + 1, origin);
                match self.rules[name][alternative].get(seen) {
                    Some(Symbol::Terminal(terminal)) if next == Some(*terminal) => {
                        add(&mut sets[at + 1], seen_one);
                    }
                    Some(Symbol::Terminal(_)) => {}
                    Some(Symbol::Name(wanted)) => {
                        waiting[at].entry(*wanted).or_default().push(item);
                        // A nullable name is also skipped (J. Aycock and R. N. Horspool).
                        if self.nullable[*wanted] {
                            add(&mut sets[at], seen_one);
                        }
                        let is_excluded = self
                            .excluded
                            .get(wanted)
                            .is_some_and(|starts| next.is_some_and(|next| starts.contains(&next)));
                        if predicted.insert(*wanted) && !is_excluded {
                            for alternative in 0..self.rules[*wanted].len() {
                                add(&mut sets[at], (*wanted, alternative, 0, at));
                            }
                        }
                    }
                    // Empty items were skipped where they were predicted.
                    None if origin < at => {
                        let waiters = waiting[origin].get(&name).cloned().unwrap_or_default();
                        for (name, alternative, seen, origin) in waiters {
                            add(&mut sets[at], (name, alternative, seen + 1, origin));
                        }
                    }
                    None => {}
                }
            }
            if at < sentence.len() && sets[at + 1].0.is_empty() {
                return false;
            }
        }
        let ends = |item: &Item| {
            item.0 == start && item.3 == 0 && item.2 == self.rules[start][item.1].len()
        };
        sets[sentence.len()].0.iter().any(ends)
    }

    /// A sentence of a name, selected by choices; names deeper than `depth` get their lowest tree.
    pub(crate) fn sentence(
        &self,
        name: &str,
        choices: &mut impl FnMut(usize) -> usize,
        depth: usize,
    ) -> Vec<usize> {
        let mut sentence = vec![];
        self.expand(Symbol::Name(self.names[name]), choices, depth, &mut sentence);
        sentence
    }

    fn expand(
        &self,
        symbol: Symbol,
        choices: &mut impl FnMut(usize) -> usize,
        depth: usize,
        sentence: &mut Vec<usize>,
    ) {
        let name = match symbol {
            Symbol::Terminal(terminal) => return sentence.push(terminal),
            Symbol::Name(name) => name,
        };
        let start = sentence.len();
        let excluded = self.excluded.get(&name);
        for attempt in 0.. {
            let alternatives = &self.rules[name];
            let fits = |alternative: &Vec<Symbol>| {
                let deepest = alternative.iter().map(|symbol| match symbol {
                    Symbol::Terminal(_) => 0,
                    Symbol::Name(name) => self.depths[*name],
                });
                deepest.max().unwrap_or(0) < depth.max(self.depths[name])
            };
            let fitting: Vec<&Vec<Symbol>> = alternatives.iter().filter(|a| fits(a)).collect();
            let chosen = fitting[choices(fitting.len())];
            for symbol in chosen {
                self.expand(*symbol, choices, depth.saturating_sub(1), sentence);
            }
            let starts_wrong = excluded.is_some_and(|starts| {
                sentence.get(start).is_some_and(|first| starts.contains(first))
            });
            assert!(attempt < 1000, "only excluded sentences");
            if !starts_wrong {
                return;
            }
            sentence.truncate(start);
        }
    }
}

/// Splits a right side into words: names, terminals with their opening quote, and signs.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![];
    let mut rest = text.trim_start();
    while let Some(first) = rest.chars().next() {
        let length = match first {
            '\'' => rest[1..].find('\'').expect("a closing quote") + 2,
            _ if first.is_ascii_alphabetic() => rest
                .find(|c: char| !c.is_ascii_alphanumeric() && !"[]".contains(c))
                .unwrap_or(rest.len()),
            _ => first.len_utf8(),
        };
        words.push(rest[..length].to_owned());
        rest = rest[length..].trim_start();
    }
    words
}

/// Parses alternatives from the end of the words.
fn choice(words: &mut Vec<String>) -> Part {
    let mut parts = vec![sequence(words)];
    while words.last().is_some_and(|word| word == "|") {
        words.pop();
        parts.push(sequence(words));
    }
    if parts.len() == 1 { parts.remove(0) } else { Part::Choice(parts) }
}

fn sequence(words: &mut Vec<String>) -> Part {
    let mut parts = vec![];
    while let Some(word) = words.last().filter(|word| !matches!(word.as_str(), "|" | ")")).cloned()
    {
        words.pop();
        let part = match word.as_str() {
            "(" => {
                let part = choice(words);
                assert_eq!(words.pop().as_deref(), Some(")"));
                part
            }
            "-" => {
                let excepted = excepted(words);
                let part = parts.pop().expect("something before `-`");
                parts.push(Part::Except(Box::new(part), excepted));
                continue;
            }
            word if word.starts_with('\'') => Part::Terminal(word.trim_matches('\'').to_owned()),
            word => Part::Name(word.to_owned()),
        };
        parts.push(match words.last().map(String::as_str) {
            Some("?") => {
                words.pop();
                Part::Optional(Box::new(part))
            }
            Some("*") => {
                words.pop();
                Part::Any(Box::new(part))
            }
            Some("+") => {
                words.pop();
                Part::Sequence(vec![part.clone(), Part::Any(Box::new(part))])
            }
            _ => part,
        });
    }
    if parts.len() == 1 { parts.remove(0) } else { Part::Sequence(parts) }
}

/// `( ( 'a' | 'b' ) TOKEN* )`: the only supported form of exception.
fn excepted(words: &mut Vec<String>) -> Vec<String> {
    let Part::Sequence(parts) = ({
        assert_eq!(words.pop().as_deref(), Some("("));
        let part = choice(words);
        assert_eq!(words.pop().as_deref(), Some(")"));
        part
    }) else {
        panic!("an exception is a start and any tokens")
    };
    let [Part::Choice(starts), Part::Any(rest)] = &parts[..] else {
        panic!("an exception is a start and any tokens, not {parts:?}")
    };
    assert!(matches!(&**rest, Part::Name(name) if name == "TOKEN"));
    let terminals = starts.iter().map(|start| match start {
        Part::Terminal(text) => text.clone(),
        other => panic!("an exception starts with tokens, not {other:?}"),
    });
    terminals.collect()
}

#[cfg(test)]
mod tests {
    use super::Grammar;

    #[test]
    fn sentences_are_recognised() {
        let grammar = Grammar::read(
            "Start ::= 'a'? Some* ( 'c' | 'd' Start )+\nSome ::= 'b' - ( ( 'x' | 'a' ) TOKEN* )",
        );
        let derives = |text: &str| {
            let ids =
                text.chars().map(|c| grammar.terminals.iter().position(|t| *t == c.to_string()));
            grammar.derives(&ids.map(|id| id.expect("a terminal")).collect::<Vec<_>>())
        };
        for text in ["c", "ac", "bbc", "abbcc", "dc", "dabdc", "abcdcc"] {
            assert!(derives(text), "{text}");
        }
        for text in ["", "a", "b", "ca", "d", "aac", "dcb"] {
            assert!(!derives(text), "{text}");
        }
    }
}
