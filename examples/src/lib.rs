//! Nested-launch programs with their host sides.
//!
//! Each module is one program: its source, its input, how its first kernel is launched, and a check of the
//! result against plain Rust. [`EXAMPLES`] lists them; `demo` and `bench` walk the list. [`samples`] has more of them,
//! which show what the language can do and take longer.

mod example;
pub mod mandelbrot;
pub mod quicksort;
pub mod samples;
pub mod segment_sum;

pub mod particles {
    //! `typed/particles.grid`, as the build script made it: launches whose arguments Rust's compiler checks.

    gridlet_runtime::include_program!("particles");
}

pub use example::{Example, Finding, PENDING_LAUNCHES, Run, TIME_OUT};

/// Every example, in the order of the demo.
pub const EXAMPLES: [Example; 3] = [quicksort::EXAMPLE, mandelbrot::EXAMPLE, segment_sum::EXAMPLE];
