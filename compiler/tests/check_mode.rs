//! `--check` on the CPU device: each program under `in/wrong` says on its lines what is found there, each under
//! `in/right` and each example has nothing found.
//!
//! `//@ grid=2 block=64 shared=16 n=64 data=100` says how kernel `k` is launched and what its parameters are:
//! integers by name, pointers by their number of 4-byte words (64 unless given). Memory of `raw…` is not
//! initialised, that of `gone…` is freed before the launch, other memory is zero.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use gridlet::compile::{self, Checked, CpuOptions, Session};
use gridlet::layout::ParamLayout;
use gridlet::source::SourceMap;
use gridlet::types::Type;
use gridlet_runtime::Error;
use gridlet_runtime::cpu::check::{Checker, Options, Report, render_all};
use gridlet_runtime::cpu::{CpuConfig, CpuDevice, FaultKind};

const TIMEOUT: Duration = Duration::from_secs(20);
const WORDS: usize = 64;

fn programs(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
    let mut files: Vec<PathBuf> = walkdir::WalkDir::new(&folder)
        .into_iter()
        .map(|entry| entry.unwrap().into_path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "grid"))
        .collect();
    files.sort();
    assert!(!files.is_empty(), "no programs in {}", folder.display());
    files
}

/// A program and how it is run.
struct Case {
    stem: String,
    text: String,
    checked: Checked,
    image: Vec<u8>,
}

impl Case {
    fn new(path: &Path) -> Case {
        let text = std::fs::read_to_string(path).unwrap();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        let sources = SourceMap::single(name.clone(), text.clone());
        let checked = compile::check(sources).unwrap_or_else(|error| panic!("{name}: {error}"));
        let options = CpuOptions { check: true, ..CpuOptions::default() };
        let image = Session::new().cpu_image(&checked, &options).unwrap().0;
        let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
        Case { stem, text, checked, image }
    }

    /// The `//@` values.
    fn values(&self) -> BTreeMap<&str, u32> {
        let lines = self.text.lines().filter_map(|line| line.strip_prefix("//@"));
        let pairs = lines.flat_map(|line| line.split_whitespace());
        pairs
            .map(|pair| {
                let (name, value) = pair.split_once('=').unwrap();
                (name, value.parse().unwrap())
            })
            .collect()
    }

    fn parameters(&self, kernel: &str) -> &ParamLayout {
        self.checked.parameter_buffers().find(|layout| layout.kernel == kernel).unwrap()
    }

    /// Runs kernel `k` and gives what was found.
    fn run(&self, seed: Option<u64>, threads: usize) -> Vec<Report> {
        let values = self.values();
        let value = |name: &str, default: u32| values.get(name).copied().unwrap_or(default);
        let bench = Bench::new(seed, threads);
        let mut packed = Packed::new(self.parameters("k"));
        for slot in packed.layout.slots.clone() {
            if let Type::Pointer { .. } = slot.ty {
                let words = value(&slot.name, WORDS as u32) as usize;
                let initial = (!slot.name.starts_with("raw")).then(|| vec![0_u8; 4 * words]);
                let address = bench.buffer(4 * words, initial.as_deref());
                packed.put(&slot.name, &(address as u64).to_le_bytes());
                if slot.name.starts_with("gone") {
                    assert!(bench.device.free(address));
                }
            } else {
                packed.put(&slot.name, &u64::from(values[slot.name.as_str()]).to_le_bytes());
            }
        }
        let grid = [value("grid", 1), 1, 1];
        let block = [value("block", WORDS as u32), 1, 1];
        bench.run(self, "k", grid, block, value("shared", 0), &packed.bytes)
    }
}

/// The wrong programs, compiled once.
fn wrong() -> &'static [Case] {
    static CASES: OnceLock<Vec<Case>> = OnceLock::new();
    CASES.get_or_init(|| programs("tests/in/wrong").iter().map(|path| Case::new(path)).collect())
}

/// A parameter buffer.
struct Packed {
    layout: ParamLayout,
    bytes: Vec<u8>,
}

impl Packed {
    fn new(layout: &ParamLayout) -> Packed {
        Packed { layout: layout.clone(), bytes: vec![0; layout.size as usize] }
    }

    /// Little-endian bytes, of which the parameter takes as many as it has.
    fn put(&mut self, name: &str, bytes: &[u8]) {
        let slot = self.layout.slots.iter().find(|slot| slot.name == name).unwrap();
        let (offset, size) = (slot.offset as usize, slot.size as usize);
        self.bytes[offset..offset + size].copy_from_slice(&bytes[..size]);
    }
}

/// A checked device.
struct Bench {
    device: CpuDevice,
    checker: Arc<Checker>,
}

impl Bench {
    fn new(seed: Option<u64>, threads: usize) -> Bench {
        let checker = Checker::new(Options { idle_polls: 1 << 14, ..Options::default() });
        let config =
            CpuConfig { threads: Some(threads), seed, check: true, ..CpuConfig::default() };
        let device = CpuDevice::with_checker(config, Arc::clone(&checker)).unwrap();
        Bench { device, checker }
    }

    fn buffer(&self, bytes: usize, initial: Option<&[u8]>) -> *mut u8 {
        let address = self.device.alloc(bytes).unwrap();
        if let Some(initial) = initial {
            assert_eq!(initial.len(), bytes);
            // SAFETY: the allocation has so many bytes, and nothing else uses it yet.
            unsafe { address.copy_from_nonoverlapping(initial.as_ptr(), bytes) };
            self.device.host_wrote(address, bytes);
        }
        address
    }

    /// Launches, waits, and gives what was found.
    fn run(
        &self,
        case: &Case,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        parameters: &[u8],
    ) -> Vec<Report> {
        let sources = [format!("{}.grid", case.stem)];
        let image = self.device.load_with_sources(&case.image, &sources).unwrap();
        let stream = self.device.stream();
        stream.launch(&image.kernel(kernel).unwrap(), grid, block, shared, parameters).unwrap();
        let result = stream.wait(TIMEOUT);
        let (reports, _) = self.checker.take_reports();
        match result {
            Ok(()) => {}
            Err(Error::CpuFault(fault)) => {
                let explained = matches!(
                    fault.kind,
                    FaultKind::Checked
                        | FaultKind::Deadlock
                        | FaultKind::Trap
                        | FaultKind::Division
                );
                assert!(explained && !reports.is_empty(), "{}: {fault}", case.stem);
            }
            Err(error) => panic!("{}: {error}\n{}", case.stem, text(&reports, &case.text)),
        }
        reports
    }
}

fn text(reports: &[Report], source: &str) -> String {
    let line = |_: &str, line: u32| {
        let index = usize::try_from(line).unwrap().checked_sub(1)?;
        source.lines().nth(index).map(str::to_string)
    };
    render_all(reports, 0, &line)
}

/// Line and kind of each expectation: `//~ kind kind`.
fn expected(text: &str) -> Vec<(u32, &str)> {
    let lines = (1..).zip(text.lines());
    lines
        .filter_map(|(line, text)| Some((line, text.split_once("//~")?.1)))
        .flat_map(|(line, kinds)| kinds.split_whitespace().map(move |kind| (line, kind)))
        .collect()
}

/// The lines that a report names.
fn lines(report: &Report) -> impl Iterator<Item = u32> {
    let other = report.other.as_ref().map(|other| other.place.line);
    std::iter::once(report.place.line).chain(other)
}

/// What is missing in the reports or too much; empty if they are as the program says.
fn differences(case: &Case, reports: &[Report], seed: Option<u64>) -> String {
    let expected = expected(&case.text);
    let is_named = |line: u32, kind: &str| {
        let of_kind = reports.iter().filter(|report| report.kind.id() == kind);
        of_kind.flat_map(lines).any(|named| named == line)
    };
    let mut wrong: Vec<String> = expected
        .iter()
        .filter(|(line, kind)| !is_named(*line, kind))
        .map(|(line, kind)| format!("line {line} has no {kind}"))
        .collect();
    let surplus = |report: &&Report| !expected.contains(&(report.place.line, report.kind.id()));
    wrong.extend(
        reports.iter().filter(surplus).map(|report| {
            format!("line {} should have no {}", report.place.line, report.kind.id())
        }),
    );
    if wrong.is_empty() && !expected.is_empty() {
        return String::new();
    }
    let found = text(reports, &case.text);
    format!("{}, seed {seed:?}: {}\n{found}\n", case.stem, wrong.join("; "))
}

#[test]
fn wrong_kernels_are_explained() {
    let mut differing = String::new();
    let mut kinds: BTreeMap<String, u32> = BTreeMap::new();
    for case in wrong() {
        for (_, kind) in expected(&case.text).iter().take(1) {
            *kinds.entry(kind.to_string()).or_default() += 1;
        }
        let reports = case.run(None, 1);
        differing += &differences(case, &reports, None);
        insta::with_settings!({
            description => case.text.clone(), omit_expression => true, prepend_module_to_snapshot => false,
            snapshot_path => "out/check",
        }, { insta::assert_snapshot!(case.stem.clone(), text(&reports, &case.text)) });
    }
    assert!(differing.is_empty(), "{differing}");
    assert!(wrong().len() >= 30);
    let few: Vec<_> = kinds.iter().filter(|(_, count)| **count < 2).collect();
    assert!(kinds.len() == 8 && few.is_empty(), "{kinds:?}");
}

#[test]
fn wrong_kernels_are_found_in_any_order() {
    let mut differing = String::new();
    for case in wrong() {
        for (seed, threads) in [(1, 1), (2, 1), (3, 4)] {
            differing += &differences(case, &case.run(Some(seed), threads), Some(seed));
        }
    }
    assert!(differing.is_empty(), "{differing}");
}

#[test]
fn one_worker_and_one_seed_give_one_text() {
    for case in wrong() {
        let once = || text(&case.run(Some(7), 1), &case.text);
        assert_eq!(once(), once(), "{}", case.stem);
    }
}

#[test]
fn right_kernels_are_left_alone() {
    for path in programs("tests/in/right") {
        let case = Case::new(&path);
        assert_eq!(expected(&case.text), []);
        for (seed, threads) in [(None, 1), (Some(1), 1), (Some(2), 4)] {
            let reports = case.run(seed, threads);
            let found = text(&reports, &case.text);
            assert!(reports.is_empty(), "{}, seed {seed:?}:\n{found}", case.stem);
        }
    }
}

fn example(name: &str) -> Case {
    Case::new(&Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../examples/programs/{name}")))
}

#[test]
fn quicksort_is_right() {
    let case = example("quicksort.grid");
    for (seed, threads) in [(None, 1), (Some(5), 4)] {
        let bench = Bench::new(seed, threads);
        let count = 3000_u32;
        let numbers: Vec<u8> =
            (0..count).flat_map(|i| (i.wrapping_mul(2_654_435_761) % 1000).to_le_bytes()).collect();
        let data = bench.buffer(numbers.len(), Some(&numbers));
        let mut packed = Packed::new(case.parameters("quicksort"));
        packed.put("data", &(data as u64).to_le_bytes());
        packed.put("right", &(count - 1).to_le_bytes());
        let reports = bench.run(&case, "quicksort", [1; 3], [1; 3], 0, &packed.bytes);
        assert_eq!(text(&reports, &case.text), "");
    }
}

#[test]
fn mandelbrot_is_right() {
    let case = example("mandelbrot.grid");
    let bench = Bench::new(Some(1), 2);
    let side = 256_u32;
    let out = bench.buffer(4 * (side * side) as usize, None);
    let mut packed = Packed::new(case.parameters("squares"));
    packed.put("out", &(out as u64).to_le_bytes());
    let corners = [-2.0_f32, -1.5, 1.0, 1.5].map(f32::to_le_bytes).concat();
    let sizes = [side, side].map(u32::to_le_bytes).concat();
    packed.put("view", &[corners, sizes].concat());
    packed.put("side", &(side / 4).to_le_bytes());
    let reports = bench.run(&case, "squares", [4, 4, 1], [128, 1, 1], 0, &packed.bytes);
    assert_eq!(text(&reports, &case.text), "");
}

#[test]
fn segment_sum_is_right() {
    let case = example("segment_sum.grid");
    let bench = Bench::new(Some(1), 2);
    let lengths = [0_u32, 5, 300, 63, 64, 1000, 1, 90];
    let mut offsets = vec![0_u32];
    for length in lengths {
        offsets.push(offsets.last().unwrap() + length);
    }
    let values = vec![1.0_f32; *offsets.last().unwrap() as usize];
    let bytes =
        |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<_>>();
    let words: Vec<u32> = values.iter().map(|value| value.to_bits()).collect();
    let values = bench.buffer(4 * words.len(), Some(&bytes(&words)));
    let offsets = bench.buffer(4 * offsets.len(), Some(&bytes(&offsets)));
    let results = bench.buffer(4 * lengths.len(), None);
    let out = bench.buffer(8, None);
    let mut packed = Packed::new(case.parameters("segment_sums"));
    let pointers = [values, offsets].map(|pointer| (pointer as u64).to_le_bytes()).concat();
    let count = u64::from(lengths.len() as u32).to_le_bytes();
    packed.put("segments", &[pointers.as_slice(), count.as_slice()].concat());
    packed.put("results", &(results as u64).to_le_bytes());
    packed.put("out", &(out as u64).to_le_bytes());
    let reports = bench.run(&case, "segment_sums", [2, 1, 1], [4, 1, 1], 0, &packed.bytes);
    assert_eq!(text(&reports, &case.text), "");
}
