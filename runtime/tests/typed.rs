//! The compiler's view of a generated module: accepted and refused uses, with their error messages.
//!
//! A separate test program, because it runs cargo: it takes minutes, and its output must not mix with other
//! tests'.
//!
//! `typed/kinds.rs` is generated from `typed/kinds.grid`; the compiler's tests keep it up to date.

#[test]
fn hosts_are_compiled_or_refused() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/typed/pass/*.rs");
    cases.compile_fail("tests/typed/fail/*.rs");
}
