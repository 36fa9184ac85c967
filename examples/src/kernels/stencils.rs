//! Kernels whose threads read the neighbours of a point.

use super::memory::length;
use super::{Array, Case, Plain, Size, plain, reals};

pub(super) const KERNELS: &[Plain] = &[
    plain!(
        "stencil",
        "7-point stencil, threads that walk along z",
        |size| volume(size, false),
        seven_points
    ),
    plain!(
        "stencil_points",
        "7-point stencil, a point per thread",
        |size| volume(size, true),
        seven_points
    ),
];

fn volume(size: Size, point_per_thread: bool) -> Case {
    let (nx, ny, nz) = (length(size, 40, 512), length(size, 20, 512), length(size, 10, 256));
    let cells = (nx * ny * nz) as usize;
    let planes = if point_per_thread { nz } else { 1 };
    Case::new((nx.div_ceil(32), ny.div_ceil(8), planes), (32, 8))
        .u32(nx)
        .u32(ny)
        .u32(nz)
        .input(reals(cells, 1, -1.0, 1.0))
        .output(vec![0f32; cells])
        .within(1e-6)
}

fn seven_points(case: &Case) -> Vec<Array> {
    let (nx, ny, nz) = (case.number(0), case.number(1), case.number(2));
    let from = case.f32s(3);
    let mut to = case.f32s(4).to_vec();
    for z in 1..nz - 1 {
        for y in 1..ny - 1 {
            for x in 1..nx - 1 {
                let at = (z * ny + y) * nx + x;
                let around = from[at - 1]
                    + from[at + 1]
                    + from[at - nx]
                    + from[at + nx]
                    + from[at - nx * ny]
                    + from[at + nx * ny];
                to[at] = 0.4 * from[at] + 0.1 * around;
            }
        }
    }
    vec![to.into()]
}
