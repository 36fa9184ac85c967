//! The checker.
pub mod tree;
