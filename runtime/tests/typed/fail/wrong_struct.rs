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
    program.values(stream, &config, kinds::whole::new(1, 2), kinds::whole::new(1, 2), Default::default(), Default::default(), [0; 3], Default::default(), 0)
}

fn main() {}
