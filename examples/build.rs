//! Compiles the program whose launches Rust checks. Needs nothing of NVIDIA's: PTX is LLVM's own, for the driver to
//! compile.

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
