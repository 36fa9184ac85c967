//! gridlet
fn main() {}
