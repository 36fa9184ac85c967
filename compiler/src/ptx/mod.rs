//! PTX generation: through libNVVM or through LLVM's NVPTX back end.

#[cfg(feature = "llvm")]
mod absolute;
#[cfg(feature = "llvm")]
mod barriers;
#[cfg(feature = "llvm")]
mod bit_fields;
mod blocks;
mod byte_fields;
#[cfg(feature = "llvm")]
mod byte_products;
#[cfg(feature = "llvm")]
pub(crate) mod check_sums;
#[cfg(feature = "llvm")]
mod contraction;
#[cfg(feature = "llvm")]
mod counters;
#[cfg(feature = "llvm")]
pub(crate) mod culprits;
mod differences;
#[cfg(feature = "llvm")]
mod disjoint;
mod division_traps;
mod dot_products;
#[cfg(feature = "llvm")]
mod early_copies;
mod early_loads;
#[cfg(feature = "llvm")]
mod fall_through;
#[cfg(feature = "llvm")]
mod fast_math;
#[cfg(feature = "llvm")]
mod geometry;
mod graph;
pub(crate) mod guard;
mod half_selects;
#[cfg(feature = "llvm")]
mod half_tests;
#[cfg(feature = "llvm")]
mod invariant_loads;
mod lane_reads;
#[cfg(feature = "llvm")]
mod latches;
#[cfg(feature = "llvm")]
mod late_motion;
pub mod libnvvm;
#[cfg(feature = "llvm")]
mod local_arrays;
mod loop_invariants;
#[cfg(feature = "llvm")]
mod loops;
mod magnitudes;
mod masks;
#[cfg(feature = "llvm")]
mod meeting_points;
#[cfg(feature = "llvm")]
mod minimum;
mod narrow_differences;
#[cfg(feature = "llvm")]
mod narrow_quotients;
mod negations;
#[cfg(feature = "llvm")]
pub(crate) mod nesting;
#[cfg(feature = "llvm")]
pub mod nvptx;
#[cfg(feature = "llvm")]
pub(crate) mod order;
mod quotients;
#[cfg(feature = "llvm")]
mod reader;
mod reductions;
#[cfg(feature = "llvm")]
mod reflect;
#[cfg(feature = "llvm")]
mod remainders;
#[cfg(feature = "llvm")]
mod selections;
mod shared_atomics;
mod shared_heads;
#[cfg(feature = "llvm")]
pub(crate) mod shift_counts;
#[cfg(feature = "llvm")]
mod sinking;
#[cfg(feature = "llvm")]
pub(crate) mod splice;
#[cfg(feature = "llvm")]
mod stack;
mod steady_reads;
#[cfg(feature = "llvm")]
mod strength;
#[cfg(feature = "llvm")]
mod subprogram_types;
#[cfg(feature = "llvm")]
mod switches;
#[cfg(feature = "llvm")]
pub(crate) mod table_loops;
#[cfg(feature = "llvm")]
mod trailing_zeros;
#[cfg(feature = "llvm")]
pub(crate) mod turns;
#[cfg(feature = "llvm")]
mod unrolling;
#[cfg(feature = "llvm")]
mod vector_loads;
#[cfg(feature = "llvm")]
mod wide_absolutes;
mod wide_registers;
mod workarounds;

/// PTX text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ptx(pub String);

impl Ptx {
    /// Whether it describes variables: ptxas then needs `-g`, and does not optimise.
    #[cfg(feature = "llvm")]
    pub(crate) fn has_variables(&self) -> bool {
        let target = self.0.lines().find(|line| line.starts_with(".target"));
        target.is_some_and(|line| line.split([',', ' ']).any(|word| word == "debug"))
    }
}

/// Options for compiling to PTX.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PtxOptions {
    /// Optimisation level: 0 or 3.
    pub opt_level: u8,
    /// Keep source lines, for profilers; does not change the code.
    pub line_info: bool,
    /// Keep full debug information. Only with `opt_level` 0.
    pub debug: bool,
    /// Compute with `f32` as nvcc's `-use_fast_math` does: subnormal numbers are zero, divisions and square roots approximate.
    pub fast_math: bool,
}

impl Default for PtxOptions {
    fn default() -> Self {
        PtxOptions { opt_level: 3, line_info: false, debug: false, fast_math: false }
    }
}

impl PtxOptions {
    gridlet_artifact::setters! {
        with_opt_level: opt_level: u8,
        with_line_info: line_info: bool,
        with_debug: debug: bool,
        with_fast_math: fast_math: bool,
    }
}
