//! What a host's compiler makes of a generated module: what it takes, what it refuses, and how that reads.
//!
//! A program of its own, because it runs cargo: for minutes, and with output that belongs to no other test.
//!
//! `typed/kinds.rs` is the module of `typed/kinds.grid`; the compiler's tests keep it equal.

#[test]
fn hosts_are_compiled_or_refused() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/typed/pass/*.rs");
    cases.compile_fail("tests/typed/fail/*.rs");
}
