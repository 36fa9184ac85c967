//! The subset of TextMate grammars that ours needs: rules with one pattern, rules with begin and end,
//! captures, and includes. At each position the rule with the earliest match wins; among equals, the one
//! listed first.

use std::collections::BTreeMap;

use regex::Regex;
use serde_json::Value;

/// A rule.
struct Rule {
    scope: String,
    /// The pattern of the match, or of the begin.
    pattern: Regex,
    /// The scopes of the pattern's groups.
    captures: BTreeMap<usize, String>,
    /// For a begin: the end, and the rules inside.
    inside: Option<(Regex, Vec<String>, Vec<usize>)>,
}

/// A grammar.
pub(crate) struct Grammar {
    rules: Vec<Rule>,
    /// The rules of each entry of the repository.
    repository: BTreeMap<String, Vec<usize>>,
    top: Vec<usize>,
}

fn regex(value: &Value) -> Regex {
    let text = value.as_str().expect("a pattern is text");
    Regex::new(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

impl Grammar {
    /// Parses a grammar.
    pub(crate) fn new(json: &Value) -> Self {
        let mut grammar = Grammar { rules: vec![], repository: BTreeMap::new(), top: vec![] };
        let entries = json["repository"].as_object().expect("a repository");
        for (name, entry) in entries {
            let rules = grammar.read(entry);
            grammar.repository.insert(name.clone(), rules);
        }
        for pattern in json["patterns"].as_array().expect("patterns") {
            let rules = grammar.repository[included(pattern).expect("an include")].clone();
            grammar.top.extend(rules);
        }
        grammar
    }

    fn read(&mut self, entry: &Value) -> Vec<usize> {
        let scope = entry["name"].as_str().unwrap_or_default().to_owned();
        let (pattern, inside) = if entry.get("match").is_some() {
            (regex(&entry["match"]), None)
        } else if entry.get("begin").is_some() {
            let mut includes = vec![];
            let mut rules = vec![];
            for pattern in entry["patterns"].as_array().into_iter().flatten() {
                match included(pattern) {
                    Some(name) => includes.push(name.to_owned()),
                    None => rules.extend(self.read(pattern)),
                }
            }
            (regex(&entry["begin"]), Some((regex(&entry["end"]), includes, rules)))
        } else {
            let patterns = entry["patterns"].as_array().expect("a match, a begin or patterns");
            return patterns.iter().flat_map(|pattern| self.read(pattern)).collect();
        };
        let captures =
            entry["captures"].as_object().into_iter().flatten().map(|(group, capture)| {
                let scope = capture["name"].as_str().expect("a capture has a name");
                (group.parse().expect("the number of a group"), scope.to_owned())
            });
        let captures = captures.collect();
        self.rules.push(Rule { scope, pattern, captures, inside });
        vec![self.rules.len() - 1]
    }

    /// The parts of a line with their innermost scopes, without surrounding space. `open` holds the rules
    /// still open; it is carried to the next line.
    pub(crate) fn line<'t>(&self, line: &'t str, open: &mut Vec<usize>) -> Vec<(&'t str, String)> {
        let mut parts: Vec<(&'t str, String)> = vec![];
        let mut push = |text: &'t str, scope: &str| {
            if !text.trim().is_empty() {
                parts.push((text.trim(), scope.to_owned()));
            }
        };
        let mut at = 0;
        loop {
            let scope = open.last().map_or("", |rule| &self.rules[*rule].scope);
            let mut known: Vec<usize> = vec![];
            let mut end = None;
            match open.last().map(|rule| self.rules[*rule].inside.as_ref().expect("it has an end"))
            {
                None => known.extend(&self.top),
                Some((pattern, includes, rules)) => {
                    end = pattern.find_at(line, at);
                    known.extend(rules);
                    known.extend(includes.iter().flat_map(|name| &self.repository[name]));
                }
            }
            let matches = known
                .iter()
                .filter_map(|rule| Some((*rule, self.rules[*rule].pattern.captures_at(line, at)?)));
            let first = matches
                .min_by_key(|(_, captures)| captures.get(0).map(|whole| whole.start()))
                .filter(|(_, captures)| {
                    let start = captures.get(0).map_or(0, |whole| whole.start());
                    // At the same position, the end wins.
                    end.is_none_or(|end| start < end.start())
                });
            if let Some((rule, captures)) = first {
                let whole = captures.get(0).expect("a match");
                push(&line[at..whole.start()], scope);
                let rule_scope = &self.rules[rule].scope;
                let mut done = whole.start();
                for (group, capture) in &self.rules[rule].captures {
                    let Some(part) = captures.get(*group) else { continue };
                    push(&line[done..part.start()], rule_scope);
                    push(part.as_str(), capture);
                    done = part.end();
                }
                push(&line[done..whole.end()], rule_scope);
                assert!(whole.end() > at || whole.start() > at, "an empty match in {line:?}");
                at = whole.end();
                if self.rules[rule].inside.is_some() {
                    open.push(rule);
                }
            } else if let Some(end) = end {
                push(&line[at..end.end()], scope);
                at = end.end();
                open.pop();
            } else {
                push(&line[at..], scope);
                return parts;
            }
        }
    }
}

fn included(pattern: &Value) -> Option<&str> {
    pattern["include"].as_str().map(|name| name.trim_start_matches('#'))
}
