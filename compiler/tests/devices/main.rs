//! Runs programs of the language on the CPU device and, if there is one, on a GPU. Bundles for GPU
//! machines carry this test program.

mod built_ins;
mod corpus;
mod edge_values;
mod fast_math;
mod gpu;
mod language;
mod many_blocks;
mod modules;
mod settings;
