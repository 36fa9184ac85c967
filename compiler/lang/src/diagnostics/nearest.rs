//! Suggestions for unknown names.

/// The candidate nearest to a name, if one is near enough to have been meant.
pub(crate) fn nearest<'n>(
    name: &str,
    candidates: impl Iterator<Item = &'n str>,
) -> Option<&'n str> {
    // A third of the letters may differ. Names of one or two letters may differ only in case.
    let limit = name.len() / 3;
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len().abs_diff(name.len()) > limit || candidate == name {
            continue;
        }
        let distance =
            if candidate.eq_ignore_ascii_case(name) { 0 } else { distance(name, candidate) };
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

/// The number of letters to insert, delete, replace or swap with the next to turn `a` into `b` (the optimal
/// string alignment distance).
fn distance(a: &str, b: &str) -> usize {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut before: Vec<usize> = vec![];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for (i, &x) in a.iter().enumerate() {
        let mut row = vec![i + 1; b.len() + 1];
        for (j, &y) in b.iter().enumerate() {
            let replaced = last[j] + usize::from(x != y);
            row[j + 1] = replaced.min(last[j + 1] + 1).min(row[j] + 1);
            if i > 0 && j > 0 && x == b[j - 1] && a[i - 1] == y {
                row[j + 1] = row[j + 1].min(before[j - 1] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits_and_swaps() {
        assert_eq!(distance("kitten", "sitting"), 3);
        assert_eq!(distance("thread_idx", "thraed_idx"), 1);
        assert_eq!(distance("", "abc"), 3);
    }

    #[test]
    fn nearest_takes_only_near_names() {
        let known = ["thread_idx", "block_idx", "n", "COUNT"];
        let near = |name| nearest(name, known.into_iter());
        assert_eq!(near("thread_id"), Some("thread_idx"));
        assert_eq!(near("blockidx"), Some("block_idx"));
        assert_eq!(near("count"), Some("COUNT"));
        assert_eq!(near("m"), None);
        assert_eq!(near("something"), None);
    }
}
