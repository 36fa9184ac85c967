#![allow(unused_variables)]

use gridlet_runtime::{Buffer, LaunchConfig, Result, Stream};

mod kinds {
    include!("../kinds.rs");
}

fn launch(
    program: &kinds::Program,
    stream: &Stream,
    config: LaunchConfig,
    x: &Buffer<f32>,
    y: &mut Buffer<f32>,
    wrong: &Buffer<u32>,
) -> Result<()> {
    program.saxpy(stream, &config, 1, 2.0, &[1.0f32][..], y)
}

fn main() {}
