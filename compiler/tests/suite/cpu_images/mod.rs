//! Images for the CPU device: their exports, and their code.

mod blocks;
mod code;
mod host;

use gridlet::compile::CpuOptions;
use gridlet_runtime::cpu::abi;
use gridlet_runtime::manifest::LostLaunchRecord;
use host::{Image, Mode, Parameters};

const PROGRAMS: [&str; 4] = ["launch_cost", "mandelbrot", "quicksort", "segment_sum"];

fn options(optimize: bool) -> CpuOptions {
    CpuOptions::default().with_optimize(optimize)
}

fn program(name: &str) -> String {
    read(&format!("../examples/programs/{name}.grid"))
}

/// Quicksort whose grids have one thread.
fn quicksort() -> String {
    read("tests/in/ok/quicksort_by_one_thread.grid")
}

fn read(path: &str) -> String {
    let path = format!("{}/{path}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}"))
}

fn image(name: &str) -> Image {
    Image::of(&program(name), &CpuOptions::default())
}

#[test]
fn the_example_programs_export_the_abi() {
    let mut text = String::new();
    for name in PROGRAMS {
        let image = image(name);
        text.push_str(&format!("{name}: {:?}\n", image.names()));
        for kernel in image.kernels() {
            text.push_str(&format!(
                "  parameters {:2}, shared {}, flags {}, blocks {}\n",
                kernel.parameter_bytes,
                kernel.static_shared_bytes,
                kernel.flags,
                kernel.blocks.is_some(),
            ));
        }
    }
    insta::assert_snapshot!(text);
}

/// An image exports only the ABI and the lost-launch record, and imports only C functions.
#[test]
fn symbols() {
    use object::{Object, ObjectSymbol};
    let image = image("segment_sum");
    let file = object::File::parse(image.bytes.as_slice()).unwrap();
    let mut defined = Vec::new();
    let mut undefined = Vec::new();
    for symbol in file.dynamic_symbols() {
        let name = symbol.name().unwrap().to_owned();
        if symbol.is_undefined() { undefined.push(name) } else { defined.push(name) }
    }
    defined.sort();
    let expected = [
        "__gridlet_lost_launches",
        abi::TABLE_SYMBOL,
        abi::VERSION_SYMBOL,
        abi::KERNEL_COUNT_SYMBOL,
        abi::KERNELS_SYMBOL,
    ];
    let mut expected = expected.map(str::to_owned);
    expected.sort();
    assert_eq!(defined, expected);
    undefined.retain(|name| !["memcpy", "memset", "memmove"].contains(&name.as_str()));
    assert_eq!(undefined, Vec::<String>::new());
}

#[test]
fn quicksort_sorts_a_leaf() {
    for optimize in [false, true] {
        let image = Image::of(&quicksort(), &options(optimize));
        let mut data: Vec<u32> =
            (0..32_u32).map(|at| at.wrapping_mul(2_654_435_761) % 97).collect();
        let mut sorted = data.clone();
        sorted.sort();
        let parameters = |data: &mut [u32]| {
            let last = data.len() as i32 - 1;
            let words = Parameters::default().pointer(data).with(0_i32.to_le_bytes());
            words.with(last.to_le_bytes()).with(0_u32.to_le_bytes()).0
        };
        for mode in [Mode::Serial, Mode::Threads] {
            let mut copy = data.clone();
            let heard = image.run("quicksort", mode, [1; 3], &parameters(&mut copy));
            assert_eq!(copy, sorted, "{mode:?}");
            assert_eq!(heard, Default::default());
        }
        // A longer array is partitioned, and its halves are sorted by launches.
        data = (0..200).rev().collect();
        let heard = image.run("quicksort", Mode::Serial, [1; 3], &parameters(&mut data));
        let [left, right] = heard.launches.as_slice() else { panic!("{heard:?}") };
        for half in [left, right] {
            assert_eq!(
                (half.kernel.as_str(), half.grid, half.block),
                ("quicksort", [1; 3], [1; 3])
            );
            assert_eq!((half.stream, half.shared, half.parameters.len()), (4, 0, 20));
            assert_eq!(half.parameters[..8], (data.as_ptr() as u64).to_le_bytes());
            assert_eq!(half.parameters[16..], 1_u32.to_le_bytes());
        }
        assert_eq!(left.parameters[8..12], 0_i32.to_le_bytes());
        assert_eq!(right.parameters[12..16], 199_i32.to_le_bytes());
        assert!(left.line < right.line && left.line > 40, "{heard:?}");
    }
}

#[test]
fn mandelbrot_computes_dwells_and_shares_memory() {
    let image = image("mandelbrot");
    let (width, side) = (64_u32, 64_u32);
    let dwell = |x: u32, y: u32| {
        let (re, im) = (-2.0 + x as f32 / 64.0 * 2.5, -1.25 + y as f32 / 64.0 * 2.5);
        let (mut zr, mut zi, mut n) = (re, im, 0);
        while n < 512 && zr * zr + zi * zi < 4.0 {
            (zr, zi) = (zr * zr - zi * zi + re, 2.0 * zr * zi + im);
            n += 1;
        }
        n
    };
    let mut out = vec![0_u32; (width * width) as usize];
    let words = |out: &mut [u32], last: &[u32]| {
        let mut parameters = Parameters::default().pointer(out);
        for part in [-2.0_f32, -1.25, 0.5, 1.25] {
            parameters = parameters.with(part.to_le_bytes());
        }
        [width, width]
            .iter()
            .chain(last)
            .fold(parameters, |all, word| all.with(word.to_le_bytes()))
            .0
    };
    for mode in [Mode::Serial, Mode::Threads] {
        out.fill(0);
        let parameters = words(&mut out, &[0, 0, side]);
        image.run("pixels", mode, [128, 1, 1], &parameters);
        for (at, &value) in out.iter().enumerate() {
            let at = at as u32;
            assert_eq!(value, dwell(at % width, at / width), "pixel {at}");
        }
    }
    // The border of the whole picture has mixed values, which the threads determine together.
    let parameters = words(&mut out, &[0, 0, side, 0]);
    let heard = image.run("squares", Mode::Threads, [128, 1, 1], &parameters);
    assert_eq!(heard.barrier_lines.len(), 2 * 128);
    let [launch] = heard.launches.as_slice() else { panic!("{heard:?}") };
    assert_eq!((launch.kernel.as_str(), launch.grid), ("pixels", [32, 1, 1]));
    assert_eq!(launch.parameters[..36], parameters[..36]);
    let squares = image.kernel("squares");
    assert_eq!(
        (squares.static_shared_bytes, squares.flags),
        (8, abi::NEEDS_THREADS | abi::BLOCK_BY_BLOCK)
    );
}

#[test]
fn a_lost_launch_is_recorded() {
    let mut image = Image::of(&quicksort(), &CpuOptions::default());
    image.refuse_launches = true;
    let mut data: Vec<u32> = (0..200).rev().collect();
    let parameters = Parameters::default().pointer(&mut data).with(0_i32.to_le_bytes());
    let parameters = parameters.with(199_i32.to_le_bytes()).with(0_u32.to_le_bytes()).0;
    image.run("quicksort", Mode::Serial, [1; 3], &parameters);
    // SAFETY: the symbol has this type.
    let record = unsafe { **image.symbol::<LostLaunchRecord>("__gridlet_lost_launches") };
    let source = quicksort();
    let line = source.lines().position(|line| line.contains("launch quick")).unwrap() + 1;
    assert_eq!(record, LostLaunchRecord { count: 2, error: 69, file: 0, line: line as u32 });
}
