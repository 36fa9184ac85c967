//! Conformance tests, in one program: linking LLVM takes longer than running most of them.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod around_loops;
mod barriers;
mod check_sums;
mod differential;
mod extern_kernels;
mod externs;
mod fast_math;
mod fuzz_corpus;
mod layout_oracles;
mod legacy;
mod libnvvm;
mod lines;
mod masks;
mod mathematics;
mod meeting_ways;
mod narrow_numbers;
mod objects;
mod plain_kernels;
mod programs;
mod same_output;
mod toolkits;
mod trees;
mod unrolled_loops;
mod variables;
