//! Shrinks a failing program while it still fails.

/// Removes lines, and whole blocks, from a program as long as `fails` holds for the rest.
/// Calls `fails` at most `most` times. The result fails if the program did.
pub fn reduce(source: &str, most: usize, mut fails: impl FnMut(&str) -> bool) -> String {
    let mut lines: Vec<String> = source.lines().map(str::to_owned).collect();
    let mut asked = 0;
    loop {
        let before = lines.len();
        // From the end, because definitions stand before their uses.
        let mut at = lines.len();
        while at > 0 {
            at -= 1;
            for range in candidates(&lines, at) {
                if asked == most {
                    return text(&lines);
                }
                let mut shorter = lines.clone();
                for line in range.into_iter().rev() {
                    shorter.remove(line);
                }
                asked += 1;
                if fails(&text(&shorter)) {
                    lines = shorter;
                    break;
                }
            }
            at = at.min(lines.len());
        }
        if lines.len() == before {
            return text(&lines);
        }
    }
}

/// The lines to remove together with line `at`: the whole block that it opens, then only the lines that open and close
/// the block; an `else` with its block; or the line alone.
fn candidates(lines: &[String], at: usize) -> Vec<Vec<usize>> {
    let closes = is_end(&lines[at]);
    let opens = lines[at].trim_end().ends_with('{');
    if !closes && depth(&lines[at]) <= 0 {
        return vec![vec![at]];
    }
    let mut level = i64::from(closes);
    for (end, line) in lines.iter().enumerate().skip(at) {
        level += depth(line);
        let ends = end > at && is_end(line);
        match (closes, opens) {
            (true, true) if ends && level - depth(line) == 1 => {
                return vec![(at..end).collect()];
            }
            (false, _) if level <= 0 => return vec![(at..=end).collect(), vec![at, end]],
            _ => {}
        }
    }
    vec![]
}

/// Blocks that a line opens, minus blocks that it closes.
fn depth(line: &str) -> i64 {
    line.matches('{').count() as i64 - line.matches('}').count() as i64
}

fn is_end(line: &str) -> bool {
    line.trim_start().starts_with('}')
}

fn text(lines: &[String]) -> String {
    let mut text = lines.join("\n");
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_matter_goes() {
        let source = "\
fn f() {
    a;
}
kernel k() {
    if x {
        b;
        bug;
    } else {
        c;
    }
    d;
}
";
        let is_whole = |text: &str| {
            let ends = text.lines().map(depth);
            let levels = ends.scan(0, |level, more| {
                *level += more;
                Some(*level)
            });
            let levels: Vec<i64> = levels.collect();
            let has_if = text.contains("if x") || !text.contains("else");
            has_if && levels.iter().all(|&level| level >= 0) && levels.last() == Some(&0)
        };
        let fails = |text: &str| text.contains("bug") && is_whole(text);
        assert_eq!(reduce(source, 1000, fails), "        bug;\n");
        let fails = |text: &str| text.contains("c;") && is_whole(text) && text.contains("x");
        assert_eq!(reduce(source, 1000, fails), "    if x {\n    } else {\n        c;\n    }\n");
        assert_eq!(reduce(source, 0, |_| true), source);
    }
}
