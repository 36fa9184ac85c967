//! Compiles the program whose launches Rust's compiler checks. It needs no NVIDIA tools: LLVM writes the PTX, and the
//! driver compiles it.

use gridlet::arch::CudaArch;
use gridlet::host::{Build, BuildError};

fn main() -> Result<(), BuildError> {
    Build::new("typed/particles.grid")
        .cpu()
        .ptx(CudaArch::SUPPORTED[0])
        .kernel("coordinates::<0>")
        .kernel("coordinates::<1>")
        .compile()
}
