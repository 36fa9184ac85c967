//! Nested-launch programs with their host sides.
//!
//! Each module is one program: its source, its input, how its first kernel is launched, and a check of the
//! result against plain Rust. [`EXAMPLES`] lists them; `demo` and `bench` walk the list. [`samples`] has more programs,
//! which show more of the language and take longer.

mod example;
pub mod kernels;
pub mod mandelbrot;
pub mod nested;
pub mod quicksort;
pub mod samples;
pub mod segment_sum;

pub mod particles {
    //! The module that the build script generated from `typed/particles.grid`: Rust's compiler checks the arguments of
    //! its launches.

    gridlet_runtime::include_program!("particles");
}

pub use example::{Example, Finding, PENDING_LAUNCHES, Run, TIME_OUT};

/// Every example, in the order of the demo.
pub const EXAMPLES: [Example; 3] = [quicksort::EXAMPLE, mandelbrot::EXAMPLE, segment_sum::EXAMPLE];
