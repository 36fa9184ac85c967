//! Programs of the language on each device: on the CPU device here, and on a GPU where there is one. Bundles for GPU
//! machines carry this program.

mod built_ins;
mod corpus;
mod edge_values;
mod gpu;
mod language;
mod settings;
