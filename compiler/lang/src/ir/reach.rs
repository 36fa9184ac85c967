//! Reachability in graphs whose nodes are numbers.

/// By node, whether it is a seed or has a path to one. Takes linear time.
pub(crate) fn leading_to(
    nodes: usize,
    edges: impl Iterator<Item = (usize, usize)>,
    seeds: impl Iterator<Item = usize>,
) -> Vec<bool> {
    let mut before = vec![Vec::new(); nodes];
    for (from, to) in edges {
        before[to].push(from as u32);
    }
    let mut leads = vec![false; nodes];
    let mut open: Vec<usize> = seeds.collect();
    while let Some(node) = open.pop() {
        if !std::mem::replace(&mut leads[node], true) {
            open.extend(before[node].iter().map(|&from| from as usize));
        }
    }
    leads
}

/// The nodes in the order in which a depth-first search leaves them: each after those that it has paths to, cycles aside.
/// Takes linear time, without recursion.
pub(crate) fn post_order(next: &[Vec<usize>]) -> Vec<usize> {
    let mut finished = Vec::with_capacity(next.len());
    let mut seen = vec![false; next.len()];
    for start in 0..next.len() {
        let mut path = vec![(start, 0)];
        while let Some((node, at)) = path.pop() {
            if at == 0 && std::mem::replace(&mut seen[node], true) {
                continue;
            }
            match next[node].get(at) {
                Some(&to) => path.extend([(node, at + 1), (to, 0)]),
                None => finished.push(node),
            }
        }
    }
    finished
}

/// By node, whether it lies on a cycle; `next` has the successors of each node. Takes linear time, without
/// recursion.
pub(crate) fn on_cycles(next: &[Vec<usize>]) -> Vec<bool> {
    // Kosaraju's algorithm: a component consists of the unnumbered nodes that reach the node finished last.
    let finished = post_order(next);
    let mut before = vec![Vec::new(); next.len()];
    for (from, ends) in next.iter().enumerate() {
        ends.iter().for_each(|&to| before[to].push(from));
    }
    let mut is_on_cycle = vec![false; next.len()];
    let mut is_placed = vec![false; next.len()];
    for &root in finished.iter().rev() {
        let mut component = Vec::new();
        let mut open = vec![root];
        while let Some(node) = open.pop() {
            if !std::mem::replace(&mut is_placed[node], true) {
                component.push(node);
                open.extend(&before[node]);
            }
        }
        let is_cycle = component.len() > 1 || next[root].contains(&root);
        component.iter().for_each(|&node| is_on_cycle[node] = is_cycle);
    }
    is_on_cycle
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 → 1 → 2 → 1, 2 → 3, 4 → 4, 5 → 3.
    fn graph() -> Vec<Vec<usize>> {
        vec![vec![1], vec![2], vec![1, 3], vec![], vec![4], vec![3]]
    }

    #[test]
    fn seeds_are_found_from_afar() {
        let next = graph();
        let found = |seed: usize| {
            let edges = next.iter().enumerate();
            let edges = edges.flat_map(|(from, ends)| ends.iter().map(move |&to| (from, to)));
            leading_to(next.len(), edges, [seed].into_iter())
        };
        assert_eq!(found(3), [true, true, true, true, false, true]);
        assert_eq!(found(1), [true, true, true, false, false, false]);
        assert_eq!(found(0), [true, false, false, false, false, false]);
    }

    #[test]
    fn cycles_are_found() {
        assert_eq!(on_cycles(&graph()), [false, true, true, false, true, false]);
        assert_eq!(on_cycles(&[vec![], vec![0], vec![1, 0]]), [false; 3]);
        let ring: Vec<Vec<usize>> = (0..100_000).map(|at| vec![(at + 1) % 100_000]).collect();
        assert!(on_cycles(&ring).into_iter().all(|is_on_cycle| is_on_cycle));
    }
}
