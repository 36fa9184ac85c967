//! Tests of the model of a GPU.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

mod corpus;
mod failures;
mod indices;
mod lanes;
mod resident;
mod waits;

use gridlet_lang::arch::CudaArch;
use gridlet_lang::launch::{LaunchOptions, LaunchStrategy};
use gridlet_lang::program;
use gridlet_lang::source::SourceMap;
use gridlet_simulate::Program;

/// A program without launches.
fn compile(source: &str) -> Program {
    let checked = program::check(SourceMap::single("test.grid", source)).unwrap();
    let options = LaunchOptions::for_arch(LaunchStrategy::Cdp, CudaArch::DEFAULT);
    Program::new(&checked.lower(&options).unwrap()).unwrap()
}
