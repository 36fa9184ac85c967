//! Chains of operators: `a + b + c + …` is a tree that leans to the left, and programs that are written by
//! programs have chains of thousands. So the left operand of an operator does not count in the height of a tree
//! ([`MAX_HEIGHT`](crate::syntax::ast::MAX_HEIGHT)), and whoever walks a tree goes down its left side in a loop, never by
//! recursion. What the compiler would write by itself, dropping and cloning, is here.

use std::ops::Deref;

/// An expression that may have an operator and a left operand.
pub trait Chained: Clone {
    /// Its left operand, which it loses: it is fit for nothing then but to be dropped.
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
    /// Puts an operand into a box of its own.
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
