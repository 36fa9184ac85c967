//! Bézier curves with as many points as their curvature asks for.

use gridlet_runtime::{Arg, Buffer, DeviceMemory, Kernel, LaunchConfig};

use super::graph::mix;
use super::{Case, Input, Nested, Place, Size, Version, Work, equal, words};

/// The program.
pub const PROGRAM: Nested = Nested {
    name: "bezier",
    what: "Bézier curves with as many points as their curvature asks for, a grid for each",
    source: include_str!("../../nested/bezier/bezier.grid"),
    cuda: [
        include_str!("../../nested/bezier/nested.cu"),
        include_str!("../../nested/bezier/flat.cu"),
    ],
    headers: &[("curve.h", include_str!("../../nested/bezier/curve.h"))],
    pending_launches: 131_072,
    cases,
    load,
    check,
};

/// Constants of the program, and words of a curve.
const CURVES: u32 = 128;
const MIN_POINTS: u32 = 4;
const MAX_POINTS: u32 = 256;
const SCALE: f32 = 64.0;
const WORDS: usize = 6;

/// The array of an input has the coordinates of three control points for each curve.
fn cases(size: Size) -> Vec<Case> {
    let curves: u64 = if size == Size::Small { 200 } else { 65_536 };
    // Numbers from 0 to 1.
    let coordinate = |at| ((mix(at) >> 40) as f32 / (1 << 24) as f32).to_bits();
    vec![Case {
        name: format!("{curves} curves of 4 to 256 points"),
        input: Input {
            numbers: vec![],
            arrays: vec![(0..curves * WORDS as u64).map(coordinate).collect()],
        },
        launches: None,
        versions: &Version::ALL,
    }]
}

struct Bezier {
    place: Place,
    kernel: Kernel,
    count: u32,
    curves: DeviceMemory,
    counts: Buffer<u32>,
    points: DeviceMemory,
}

fn load(place: &Place, input: &Input) -> anyhow::Result<Box<dyn Work>> {
    let device = &place.device;
    let coordinates = input.array(0)?;
    let count = coordinates.len() / WORDS;
    let mut curves = DeviceMemory::alloc(device, coordinates.len() as u64 * 4)?;
    let bytes: Vec<u8> = coordinates.iter().flat_map(|word| word.to_le_bytes()).collect();
    curves.copy_from_host(&bytes)?;
    Ok(Box::new(Bezier {
        place: place.clone(),
        kernel: place.kernel("bezier")?,
        count: u32::try_from(count)?,
        curves,
        counts: Buffer::alloc(device, count)?,
        points: DeviceMemory::alloc(device, count as u64 * u64::from(MAX_POINTS) * 8)?,
    }))
}

impl Work for Bezier {
    fn reset(&mut self) -> anyhow::Result<()> {
        self.counts.fill(0)?;
        // Poisoned, so that the check notices a point that no kernel computed.
        Ok(self.points.fill(0xff)?)
    }

    fn run(&mut self) -> anyhow::Result<()> {
        let arguments = [
            Arg::from(&self.curves),
            Arg::from(self.count),
            Arg::from(&mut self.counts),
            Arg::from(&mut self.points),
        ];
        let config = LaunchConfig::new(self.count.div_ceil(CURVES), CURVES);
        self.place.run(&self.kernel, &config, &arguments)
    }

    fn result(&self) -> anyhow::Result<Vec<u32>> {
        let mut bytes = vec![0; usize::try_from(self.points.len())?];
        self.points.copy_to_host(&mut bytes)?;
        let mut result = self.counts.to_vec()?;
        result.extend(words(&bytes));
        Ok(result)
    }
}

/// With the program's roundings.
fn check(input: &Input, _: Version, result: &[u32]) -> anyhow::Result<String> {
    let coordinates: Vec<f32> = input.array(0)?.iter().map(|bits| f32::from_bits(*bits)).collect();
    let (curves, _) = coordinates.as_chunks::<WORDS>();
    let length = |x: f32, y: f32| x.mul_add(x, y * y).sqrt();
    let (mut counts, mut points) = (Vec::new(), Vec::new());
    for &[ax, ay, bx, by, cx, cy] in curves {
        let (x, y) = ((-0.5f32).mul_add(ax + cx, bx), (-0.5f32).mul_add(ay + cy, by));
        let curvature = length(x, y) / length(cx - ax, cy - ay);
        let count = ((curvature * SCALE) as u32).clamp(MIN_POINTS, MAX_POINTS);
        counts.push(count);
        for i in 0..MAX_POINTS {
            if i >= count {
                points.extend([u32::MAX; 2]);
                continue;
            }
            let t = i as f32 / (count - 1) as f32;
            let s = 1.0 - t;
            let (a, b, c) = (s * s, 2.0 * s * t, t * t);
            points.push(a.mul_add(ax, b.mul_add(bx, c * cx)).to_bits());
            points.push(a.mul_add(ay, b.mul_add(by, c * cy)).to_bits());
        }
    }
    let total: u32 = counts.iter().sum();
    counts.extend(points);
    equal(result, &counts)?;
    Ok(format!("{total} points equal the host's"))
}
