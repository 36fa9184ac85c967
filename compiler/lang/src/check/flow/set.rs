//! Sets of numbers with structural sharing.
//!
//! An analysis keeps a set for each path through a function. If each branch copied its set, time would be
//! proportional to branches times variables. Here a copy takes constant time, and combining two sets takes
//! time proportional to their difference.

use std::rc::Rc;

/// The number of words in a leaf, and of children in any other node.
const WORDS: usize = 8;
const CHILDREN: usize = 16;
const LEAF: usize = WORDS * 64;

/// `None` is an empty subtree.
type Link = Option<Rc<Node>>;

#[derive(Clone)]
enum Node {
    Leaf([u64; WORDS]),
    Inner([Link; CHILDREN]),
}

/// A set of numbers below a bound.
#[derive(Clone, Default)]
pub(super) struct Set {
    root: Link,
    /// The capacity of the root: [`LEAF`] times a power of [`CHILDREN`].
    room: usize,
}

#[derive(Clone, Copy, PartialEq)]
enum Op {
    Unite,
    Intersect,
    Subtract,
}

impl Set {
    /// The empty set of numbers below `count`.
    pub(super) fn below(count: usize) -> Self {
        let mut room = LEAF;
        while room < count {
            room *= CHILDREN;
        }
        Set { root: None, room }
    }

    pub(super) fn has(&self, at: usize) -> bool {
        let (mut link, mut room, mut at) = (&self.root, self.room, at);
        loop {
            match link.as_deref() {
                None => return false,
                Some(Node::Leaf(words)) => return words[at / 64] >> (at % 64) & 1 != 0,
                Some(Node::Inner(children)) => {
                    room /= CHILDREN;
                    (link, at) = (&children[at / room], at % room);
                }
            }
        }
    }

    pub(super) fn insert(&mut self, at: usize) {
        if self.has(at) {
            return;
        }
        let (mut link, mut room, mut at) = (&mut self.root, self.room, at);
        loop {
            let node = link.get_or_insert_with(|| {
                let is_leaf = room == LEAF;
                Rc::new(if is_leaf {
                    Node::Leaf([0; WORDS])
                } else {
                    Node::Inner(Default::default())
                })
            });
            match Rc::make_mut(node) {
                Node::Leaf(words) => {
                    words[at / 64] |= 1 << (at % 64);
                    return;
                }
                Node::Inner(children) => {
                    room /= CHILDREN;
                    (link, at) = (&mut children[at / room], at % room);
                }
            }
        }
    }

    /// Adds the members of `other`, a set with the same bound.
    pub(super) fn unite(&mut self, other: &Set) {
        self.room = self.room.max(other.room);
        self.root = combine(&self.root, &other.root, Op::Unite);
    }

    /// Keeps only members of `other`.
    pub(super) fn intersect(&mut self, other: &Set) {
        self.root = combine(&self.root, &other.root, Op::Intersect);
    }

    /// The members that are not in `other`, in ascending order.
    pub(super) fn without(&self, other: &Set) -> Vec<usize> {
        let mut members = Vec::new();
        list(&combine(&self.root, &other.root, Op::Subtract), 0, self.room, &mut members);
        members
    }
}

fn is_same(left: &Link, right: &Link) -> bool {
    match (left, right) {
        (Some(left), Some(right)) => Rc::ptr_eq(left, right),
        (left, right) => left.is_none() && right.is_none(),
    }
}

/// Combines two trees of equal height, reusing subtrees of either.
fn combine(left: &Link, right: &Link, op: Op) -> Link {
    let (Some(a), Some(b)) = (left, right) else {
        return match op {
            Op::Unite => left.clone().or_else(|| right.clone()),
            Op::Intersect => None,
            Op::Subtract => left.clone(),
        };
    };
    if Rc::ptr_eq(a, b) {
        return if op == Op::Subtract { None } else { left.clone() };
    }
    match (&**a, &**b) {
        (Node::Leaf(a), Node::Leaf(b)) => {
            let words = std::array::from_fn(|at| match op {
                Op::Unite => a[at] | b[at],
                Op::Intersect => a[at] & b[at],
                Op::Subtract => a[at] & !b[at],
            });
            match words {
                [0, 0, 0, 0, 0, 0, 0, 0] => None,
                _ if words == *a => left.clone(),
                _ if words == *b => right.clone(),
                _ => Some(Rc::new(Node::Leaf(words))),
            }
        }
        (Node::Inner(a), Node::Inner(b)) => {
            let children: [Link; CHILDREN] = std::array::from_fn(|at| combine(&a[at], &b[at], op));
            let is = |known: &[Link; CHILDREN]| {
                children.iter().zip(known).all(|(child, known)| is_same(child, known))
            };
            match () {
                () if children.iter().all(Option::is_none) => None,
                () if is(a) => left.clone(),
                () if is(b) => right.clone(),
                () => Some(Rc::new(Node::Inner(children))),
            }
        }
        // Sets with the same bound have the same height.
        _ => left.clone(),
    }
}

fn list(link: &Link, first: usize, room: usize, members: &mut Vec<usize>) {
    match link.as_deref() {
        None => {}
        Some(Node::Leaf(words)) => {
            for (at, mut word) in words.iter().copied().enumerate() {
                while word != 0 {
                    members.push(first + at * 64 + word.trailing_zeros() as usize);
                    word &= word - 1;
                }
            }
        }
        Some(Node::Inner(children)) => {
            let room = room / CHILDREN;
            for (at, child) in children.iter().enumerate() {
                list(child, first + at * room, room, members);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    fn set(count: usize, members: &BTreeSet<usize>) -> Set {
        let mut set = Set::below(count);
        members.iter().for_each(|at| set.insert(*at));
        set
    }

    proptest! {
        #[test]
        fn sets_are_those_of_the_standard_library(
            count in prop::sample::select(vec![1_usize, 64, 512, 513, 8192, 8193, 140_000]),
            common in prop::collection::btree_set(0_usize..140_000, 0..40),
            left in prop::collection::btree_set(0_usize..140_000, 0..40),
            right in prop::collection::btree_set(0_usize..140_000, 0..40),
        ) {
            let below = |members: BTreeSet<usize>| -> BTreeSet<usize> {
                members.into_iter().map(|at| at % count).collect()
            };
            let (common, left, right) = (below(common), below(left), below(right));
            // Both start from the same set, like the branches of a function.
            let start = set(count, &common);
            let (mut a, mut b) = (start.clone(), start.clone());
            left.iter().for_each(|at| a.insert(*at));
            right.iter().for_each(|at| b.insert(*at));
            let (left, right) = (&left | &common, &right | &common);
            let members = |set: &Set| set.without(&Set::below(count));
            let sorted = |set: BTreeSet<usize>| set.into_iter().collect::<Vec<_>>();
            prop_assert_eq!(members(&a), sorted(left.clone()));
            prop_assert_eq!(a.without(&b), sorted(&left - &right));
            let mut both = a.clone();
            both.intersect(&b);
            prop_assert_eq!(members(&both), sorted(&left & &right));
            a.unite(&b);
            prop_assert_eq!(members(&a), sorted(&left | &right));
            prop_assert_eq!(members(&start), sorted(common));
            prop_assert!(right.iter().all(|at| a.has(*at)));
        }
    }
}
