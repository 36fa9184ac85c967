//! Suggestions for unknown names.

/// The candidate that the user most likely meant, if one is close enough: by the optimal string
/// alignment distance, which counts inserted, deleted, replaced and swapped letters.
pub(crate) fn nearest<'n>(
    name: &str,
    candidates: impl Iterator<Item = &'n str>,
) -> Option<&'n str> {
    // A third of the letters may differ; one or two letters may differ only in case.
    let limit = name.len() / 3;
    let mut best: Option<(usize, &str)> = None;
    for candidate in candidates {
        if candidate.len().abs_diff(name.len()) > limit || candidate == name {
            continue;
        }
        let distance = if candidate.eq_ignore_ascii_case(name) {
            0
        } else {
            strsim::osa_distance(name, candidate)
        };
        if distance <= limit && best.is_none_or(|(least, _)| distance < least) {
            best = Some((distance, candidate));
        }
    }
    best.map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_close_names_are_suggested() {
        let known = ["thread_idx", "block_idx", "n", "COUNT", "exp"];
        let near = |name| nearest(name, known.into_iter());
        assert_eq!(near("thread_id"), Some("thread_idx"));
        assert_eq!(near("blockidx"), Some("block_idx"));
        assert_eq!(near("count"), Some("COUNT"));
        assert_eq!(near("epx"), Some("exp"));
        assert_eq!(near("m"), None);
        assert_eq!(near("something"), None);
    }
}
