//! Codegen and the NVPTX back end, with LLVM alone: the text of whole modules, the results of
//! generated code, and the PTX of every built-in.

mod arithmetic;
mod builtins;
mod ir;
mod loops;
mod narrow_division;
mod pairs;
mod resident;
mod semantics;
mod small_arrays;
mod symbols;
mod text;
