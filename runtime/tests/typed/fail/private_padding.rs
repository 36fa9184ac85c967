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
    { let _ = kinds::Node::default()._padding_17; Ok(()) }
}

fn main() {}
