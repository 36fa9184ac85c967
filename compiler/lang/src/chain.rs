//! Chains of operators. `a + b + c + …` is a tree that leans to the left, and generated programs have chains
//! of thousands. So a left operand does not count towards the height of a tree
//! ([`MAX_HEIGHT`](crate::syntax::ast::MAX_HEIGHT)), and every walk of a tree follows left operands in a loop
//! instead of recursing. This module replaces the derived `Drop` and `Clone`, which would recurse.

use std::ops::Deref;

/// An expression that may have an operator and a left operand.
pub trait Chained: Clone {
    /// Takes out its left operand. The expression is unusable afterwards and can only be dropped.
    fn take_left(&mut self) -> Option<Left<Self>>;

    /// Its left operand.
    fn left(&self) -> Option<&Self>;

    /// A copy with another left operand.
    fn with_left(&self, left: Left<Self>) -> Self;
}

/// The left operand of an operator.
#[derive(Debug)]
pub struct Left<E: Chained>(Box<E>);

impl<E: Chained> Left<E> {
    /// Boxes an operand.
    pub fn new(operand: E) -> Self {
        Left(Box::new(operand))
    }
}

impl<E: Chained> Deref for Left<E> {
    type Target = E;

    fn deref(&self) -> &E {
        &self.0
    }
}

impl<E: Chained> Drop for Left<E> {
    fn drop(&mut self) {
        let mut next = self.0.take_left();
        while let Some(mut left) = next {
            next = left.0.take_left();
        }
    }
}

impl<E: Chained> Clone for Left<E> {
    fn clone(&self) -> Self {
        let mut chain = vec![];
        let mut innermost: &E = &self.0;
        while let Some(left) = innermost.left() {
            chain.push(innermost);
            innermost = left;
        }
        let first = Left::new(innermost.clone());
        chain.into_iter().rev().fold(first, |left, node| Left::new(node.with_left(left)))
    }
}
