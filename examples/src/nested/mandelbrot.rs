//! The Mandelbrot set by adaptive subdivision.

use gridlet_runtime::{Arg, Buffer, Kernel, LaunchConfig};

use super::{Case, Input, Nested, Place, Size, Version, Work, equal, in_parallel};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "mandelbrot",
    what: "the Mandelbrot set by adaptive subdivision (Mariani–Silver)",
    source: include_str!("../../nested/mandelbrot/mandelbrot.grid"),
    cuda: [
        include_str!("../../nested/mandelbrot/nested.cu"),
        include_str!("../../nested/mandelbrot/flat.cu"),
    ],
    headers: &[("dwell.h", include_str!("../../nested/mandelbrot/dwell.h"))],
    pending_launches: 32_768,
    cases,
    load,
    check,
};

/// Constants of the program.
const THREADS: u32 = 128;
const SPLIT: u32 = 4;
const SMALLEST: u32 = 16;
/// Rows between those of a flat result that are compared with the host's.
const ROWS: u32 = 16;

fn cases(size: Size) -> Vec<Case> {
    let (width, max_dwell, side): (u32, u32, u32) =
        if size == Size::Small { (256, 32, 128) } else { (8_192, 512, 256) };
    let [re, im, step] = [-2f32, -1.25, 2.5 / width as f32].map(f32::to_bits);
    vec![Case {
        name: format!("{width} × {width}, dwell up to {max_dwell}"),
        input: Input {
            numbers: [width, max_dwell, re, im, step, side].map(u64::from).to_vec(),
            arrays: vec![],
        },
        launches: None,
        versions: &Version::ALL,
    }]
}

/// `View` of the program.
#[derive(Clone, Copy)]
struct View {
    re: f32,
    im: f32,
    step: f32,
    width: u32,
    max_dwell: u32,
}

impl View {
    fn of(input: &Input) -> anyhow::Result<View> {
        let float = |at| Ok::<f32, anyhow::Error>(f32::from_bits(input.number(at)?));
        Ok(View {
            re: float(2)?,
            im: float(3)?,
            step: float(4)?,
            width: input.number(0)?,
            max_dwell: input.number(1)?,
        })
    }

    /// As in the program, with the same roundings.
    fn dwell(&self, x: u32, y: u32) -> u32 {
        let re = (x as f32).mul_add(self.step, self.re);
        let im = (y as f32).mul_add(self.step, self.im);
        let (mut a, mut b) = (re, im);
        let mut n = 0;
        while n < self.max_dwell && a.mul_add(a, b * b) < 4.0 {
            (a, b) = (a.mul_add(a, (-b).mul_add(b, re)), (a + a).mul_add(b, im));
            n += 1;
        }
        n
    }

    /// Does what the kernel `squares` does for one square of a band that starts at row `y0`.
    fn square(&self, band: &mut [u32], y0: u32, x: u32, y: u32, side: u32) {
        let width = self.width as usize;
        let mut row = |py: u32, dwell: &dyn Fn(u32) -> u32| {
            let start = (py - y0) as usize * width + x as usize;
            for (px, pixel) in (x..).zip(&mut band[start..start + side as usize]) {
                *pixel = dwell(px);
            }
        };
        if side <= SMALLEST {
            (y..y + side).for_each(|py| row(py, &|px| self.dwell(px, py)));
            return;
        }
        let corner = self.dwell(x, y);
        let last = side - 1;
        let same = (0..side).all(|at| {
            [(at, 0), (at, last), (0, at), (last, at)]
                .into_iter()
                .all(|(px, py)| self.dwell(x + px, y + py) == corner)
        });
        if same {
            (y..y + side).for_each(|py| row(py, &|_| corner));
            return;
        }
        let side = side / SPLIT;
        for i in 0..SPLIT * SPLIT {
            self.square(band, y0, x + i % SPLIT * side, y + i / SPLIT * side, side);
        }
    }
}

struct Mandelbrot {
    place: Place,
    kernel: Kernel,
    view: View,
    side: u32,
    out: Buffer<u32>,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    let view = View::of(input)?;
    Ok(Box::new(Mandelbrot {
        place: place.clone(),
        kernel: place.kernel("squares")?,
        view,
        side: input.number(5)?,
        out: Buffer::alloc(&place.device, view.width as usize * view.width as usize)?,
    }))
}

impl Work for Mandelbrot {
    fn reset(&mut self) -> anyhow::Result<()> {
        // Poisoned, so that the check notices a pixel that no kernel wrote.
        Ok(self.out.fill(u32::MAX)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let View { re, im, step, width, max_dwell } = self.view;
        let across = width / self.side;
        let view = [re, im, step].map(Arg::from).into_iter();
        let view = Arg::Fields(view.chain([width, max_dwell].map(Arg::from)).collect());
        let [x0, y0, side] = [0, 0, self.side].map(Arg::from);
        let config = LaunchConfig::new((across, across), THREADS);
        self.place.run(&self.kernel, &config, &[Arg::from(&mut self.out), view, x0, y0, side])
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        Ok(self.out.to_vec()?)
    }
}

fn check(input: &Input, version: Version, result: &[u32]) -> anyhow::Result<String> {
    let view = View::of(input)?;
    if version == Version::CudaFlat {
        return check_flat(&view, result);
    }
    let side = input.number(5)?;
    let mut expected = vec![0; view.width as usize * view.width as usize];
    let rows: Vec<_> = expected.chunks_mut((view.width * side) as usize).enumerate().collect();
    in_parallel(rows, |(band, pixels)| {
        let y = band as u32 * side;
        for x in (0..view.width).step_by(side as usize) {
            view.square(pixels, y, x, y, side);
        }
    });
    equal(result, &expected)?;
    Ok(format!("{} pixels equal the host's", result.len()))
}

/// Every [`ROWS`]th row, each pixel by itself.
fn check_flat(view: &View, result: &[u32]) -> anyhow::Result<String> {
    let rows = view.width.div_ceil(ROWS) as usize;
    let mut expected = vec![0; rows * view.width as usize];
    let work: Vec<_> = expected.chunks_mut(view.width as usize).enumerate().collect();
    in_parallel(work, |(row, pixels)| {
        for (x, pixel) in (0..).zip(pixels) {
            *pixel = view.dwell(x, row as u32 * ROWS);
        }
    });
    let found = result.chunks(view.width as usize).step_by(ROWS as usize);
    equal(&found.flatten().copied().collect::<Vec<_>>(), &expected)?;
    Ok(format!("{} pixels equal the host's", expected.len()))
}
