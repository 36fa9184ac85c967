//! `--check` on the CPU device: each program in `in/wrong` marks its expected findings, and
//! programs in `in/right` and the examples have none.
//!
//! `//@ grid=2 block=64 shared=16 n=64 data=100` gives the launch of kernel `k` and its parameters:
//! integers by name, pointers by their number of 4-byte words (default 64). Memory of `raw…` is
//! uninitialised, memory of `gone…` is freed before the launch, all other memory is zero.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use crate::settings::{WORDS, settings};
use gridlet::compile::{self, Checked, CpuOptions, Session};
use gridlet::ir::{InstId, InstKind, Operand};
use gridlet::layout::ParamLayout;
use gridlet::source::SourceMap;
use gridlet::types::Type;
use gridlet_runtime::cpu::check::{Checker, Options, Report, render_all};
use gridlet_runtime::cpu::{CpuConfig, CpuDevice, Error, FaultKind};

const TIMEOUT: Duration = Duration::from_secs(120);

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

/// A program and its launch.
struct Case {
    stem: String,
    text: String,
    checked: Checked,
    image: Vec<u8>,
}

impl Case {
    fn new(path: &Path) -> Case {
        let text = std::fs::read_to_string(path).unwrap();
        Case::of(&path.file_name().unwrap().to_string_lossy(), &text)
    }

    fn of(name: &str, text: &str) -> Case {
        let sources = SourceMap::single(name, text);
        let checked = compile::check(sources).unwrap_or_else(|error| panic!("{name}: {error}"));
        let options = CpuOptions::default().with_check(true);
        let image = Session::new().cpu_image(&checked, &options).unwrap().0;
        let stem = name.trim_end_matches(".grid").to_owned();
        Case { stem, text: text.to_owned(), checked, image }
    }

    fn parameters(&self, kernel: &str) -> &ParamLayout {
        self.checked.parameter_buffers().find(|layout| layout.kernel == kernel).unwrap()
    }

    /// Runs kernel `k` and returns the findings.
    fn run(&self, seed: Option<u64>, threads: usize) -> Vec<Report> {
        let values = settings(&self.text);
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

    /// Stores little-endian bytes, cut to the parameter's size.
    fn put(&mut self, name: &str, bytes: &[u8]) {
        let slot = self.layout.slots.iter().find(|slot| slot.name == name).unwrap();
        let (offset, size) = (slot.offset as usize, slot.size as usize);
        self.bytes[offset..offset + size].copy_from_slice(&bytes[..size]);
    }
}

/// A device that runs checked images.
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
            // SAFETY: the allocation has this size, and nothing else uses it yet.
            unsafe { address.copy_from_nonoverlapping(initial.as_ptr(), bytes) };
            self.device.host_wrote(address, bytes);
        }
        address
    }

    /// Launches, waits, and returns the findings.
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
            Err(Error::Fault(fault)) => {
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

/// The line and kind of each expectation: `//~ kind kind`.
fn expected(text: &str) -> Vec<(u32, &str)> {
    let lines = (1..).zip(text.lines());
    lines
        .filter_map(|(line, text)| Some((line, text.split_once("//~")?.1)))
        .flat_map(|(line, kinds)| kinds.split_whitespace().map(move |kind| (line, kind)))
        .collect()
}

/// The lines named by a report.
fn lines(report: &Report) -> impl Iterator<Item = u32> {
    let other = report.other.as_ref().map(|other| other.place.line);
    std::iter::once(report.place.line).chain(other)
}

/// Missing and unexpected findings; empty if the reports match the program's marks.
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
            snapshot_path => "../out/check",
        }, { insta::assert_snapshot!(case.stem.clone(), text(&reports, &case.text)) });
    }
    assert!(differing.is_empty(), "{differing}");
    assert!(wrong().len() >= 30);
    let few: Vec<_> = kinds.iter().filter(|(_, count)| **count < 2).collect();
    assert!(kinds.len() == 10 && few.is_empty(), "{kinds:?}");
}

/// The numbers of workers and the seeds with which every verdict must be the same.
fn schedules() -> impl Iterator<Item = (usize, u64)> {
    [1, 2, 8].into_iter().flat_map(|threads| (0..20).map(move |seed| (threads, seed)))
}

#[test]
fn verdicts_do_not_depend_on_workers_or_seeds() {
    let mut differing = String::new();
    for case in wrong() {
        let runs = schedules()
            .map(|(threads, seed)| differences(case, &case.run(Some(seed), threads), Some(seed)));
        // One difference per program is enough to read.
        differing += &runs.into_iter().find(|found| !found.is_empty()).unwrap_or_default();
    }
    assert!(differing.is_empty(), "{differing}");
}

#[test]
fn a_wait_for_a_later_block_is_found_in_every_order_that_starts_it_later() {
    let source = "//@ grid=2 block=1
kernel k(flag: *mut u32) {
    if block_idx.x == 0 {
        while atomic_load(flag, acquire) == 0 {}
    } else {
        atomic_store(flag, 1, release);
    }
}
";
    let case = Case::of("p.grid", source);
    let found = |seed: u64, threads: usize| !case.run(Some(seed), threads).is_empty();
    let alone: Vec<bool> = (0..20).map(|seed| found(seed, 1)).collect();
    assert!(alone.contains(&true) && alone.contains(&false), "{alone:?}");
    for threads in [2, 8] {
        let together: Vec<bool> = (0..20).map(|seed| found(seed, threads)).collect();
        assert_eq!(alone, together, "{threads} workers");
    }
}

#[test]
fn one_worker_and_one_seed_give_one_text() {
    for case in wrong() {
        let once = || text(&case.run(Some(7), 1), &case.text);
        assert_eq!(once(), once(), "{}", case.stem);
    }
}

#[test]
fn right_kernels_have_no_findings() {
    for path in programs("tests/in/right") {
        let case = Case::new(&path);
        assert_eq!(expected(&case.text), []);
        let seeded = schedules().map(|(threads, seed)| (threads, Some(seed)));
        for (threads, seed) in std::iter::once((1, None)).chain(seeded) {
            let reports = case.run(seed, threads);
            let found = text(&reports, &case.text);
            assert!(reports.is_empty(), "{}, seed {seed:?}:\n{found}", case.stem);
        }
    }
}

/// The program without the code that stores one argument of the first launch in kernel `k`: that of
/// the parameter at `offset`.
fn without_argument(source: &str, offset: u32) -> Case {
    let options = CpuOptions::default().with_check(true);
    let sources = SourceMap::single("p.grid", source);
    let checked = compile::check(sources).unwrap();
    let mut module = compile::lower_for_cpu(&checked, &options).unwrap();
    let body = module.functions.iter_mut().find(|function| function.name == "k.body").unwrap();
    let is_at = |operand: &Operand| match operand {
        Operand::Inst(id) => {
            matches!(body.instructions[id.index()].kind, InstKind::ByteOffset { bytes, .. } if bytes == offset)
        }
        _ => false,
    };
    let store = body
        .instructions
        .iter()
        .position(|inst| matches!(&inst.kind, InstKind::Store { pointer, .. } if is_at(pointer)));
    let store = InstId(store.unwrap() as u32);
    for block in &mut body.blocks {
        block.instructions.retain(|id| *id != store);
    }
    let object = gridlet::cpu::object(&module, &options, &[]).unwrap();
    let image = gridlet::cpu::link(&object, &[]).unwrap().0;
    Case { stem: "p".into(), text: source.into(), checked, image }
}

#[test]
fn a_launch_without_all_its_parameters_is_found() {
    let source = "struct View { first: u8, data: *mut u32 }

kernel child(view: View, n: u32, scale: f32x2) {
    view.data[thread_idx.x] = n + scale.x as u32;
}

kernel k(data: *mut u32) {
    launch child<<<1, 32>>>(View { first: 1, data: data }, 7, f32x2(1.0, 2.0));
}
";
    let reports = |offset| {
        let case = without_argument(source, offset);
        text(&case.run(None, 1), source)
    };
    insta::assert_snapshot!(reports(16));
    for (offset, names) in [(0, "`view.first`, `view.data`"), (24, "`scale.x`, `scale.y`")] {
        let found = reports(offset);
        assert!(found.contains(names) && found.contains("p.grid:8"), "{found}");
    }
    let whole = Case::of("p.grid", source);
    assert_eq!(text(&whole.run(None, 1), source), "");
}

#[test]
fn memory_that_the_host_frees_while_a_kernel_runs_is_found() {
    let source = "kernel k(gone: *const u32, flag: *mut u32, data: *mut u32) {
    atomic_store(flag, 1, release);
    while atomic_load(flag, acquire) != 2 {
        data[1] += 1;
    }
    data[0] = gone[5];
}
";
    let case = Case::of("p.grid", source);
    let bench = Bench::new(None, 1);
    let [gone, flag, data] =
        [64_usize, 4, 8].map(|bytes| bench.buffer(bytes, Some(&vec![0; bytes])));
    let mut packed = Packed::new(case.parameters("k"));
    for (name, address) in [("gone", gone), ("flag", flag), ("data", data)] {
        packed.put(name, &(address as u64).to_le_bytes());
    }
    let image = bench.device.load_with_sources(&case.image, &["p.grid".into()]).unwrap();
    let stream = bench.device.stream();
    stream.launch(&image.kernel("k").unwrap(), [1; 3], [1; 3], 0, &packed.bytes).unwrap();
    // SAFETY: the device's memory is in this process, and the kernel accesses the flag only with
    // atomics.
    let flag = unsafe { AtomicU32::from_ptr(flag.cast()) };
    while flag.load(Ordering::Acquire) != 1 {
        std::thread::yield_now();
    }
    assert!(bench.device.free(gone));
    flag.store(2, Ordering::Release);
    assert!(matches!(stream.wait(TIMEOUT), Err(Error::Fault(_))));
    insta::assert_snapshot!(text(&bench.checker.take_reports().0, source));
}

#[test]
fn a_wait_that_fails_orders_what_follows() {
    // The second launch follows the failure of the first, of which the host is aware.
    let source = "kernel first(data: *mut u32) { data[0] = 1; trap(); }

kernel second(data: *mut u32) { data[0] += 1; }
";
    let case = Case::of("p.grid", source);
    let bench = Bench::new(None, 1);
    let data = bench.buffer(4, Some(&[0; 4]));
    let image = bench.device.load_with_sources(&case.image, &["p.grid".into()]).unwrap();
    let parameters = (data as u64).to_le_bytes();
    let run = |kernel: &str| {
        let stream = bench.device.stream();
        stream.launch(&image.kernel(kernel).unwrap(), [1; 3], [1; 3], 0, &parameters).unwrap();
        stream.wait(TIMEOUT)
    };
    assert!(run("first").is_err());
    let kinds: Vec<&str> = bench.checker.take_reports().0.iter().map(|r| r.kind.id()).collect();
    assert_eq!(kinds, ["trap"]);
    run("second").unwrap();
    assert_eq!(text(&bench.checker.take_reports().0, source), "");
}

#[test]
fn endless_recursion_is_located() {
    let source = "fn f(n: u32) -> u32 {
    if n == 0xffff_ffff { return 1; }
    return f(n + 1) * 3 + f(n + 2);
}

kernel k(data: *mut u32) { data[0] = f(data[0]); }
";
    let case = Case::of("p.grid", source);
    let bench = Bench::new(None, 1);
    let data = bench.buffer(4, Some(&[0; 4]));
    let image = bench.device.load_with_sources(&case.image, &["p.grid".into()]).unwrap();
    let stream = bench.device.stream();
    let parameters = (data as u64).to_le_bytes();
    stream.launch(&image.kernel("k").unwrap(), [1; 3], [1; 3], 0, &parameters).unwrap();
    let fault = stream.wait(TIMEOUT).unwrap_err().to_string();
    assert!(
        fault.contains("stack") && fault.contains("p.grid:2") && fault.contains("thread (0, 0, 0)"),
        "{fault}"
    );
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
        let values = bench.buffer(numbers.len(), Some(&numbers));
        let scratch = bench.buffer(numbers.len(), None);
        let progress = bench.buffer(48, Some(&[0; 48]));
        let mut packed = Packed::new(case.parameters("quicksort"));
        for (name, address) in [("values", values), ("scratch", scratch), ("progress", progress)] {
            packed.put(name, &(address as u64).to_le_bytes());
        }
        packed.put("count", &count.to_le_bytes());
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
    let results = bench.buffer(8 * lengths.len(), None);
    let partials = bench.buffer(8, None);
    let out = bench.buffer(8, None);
    let mut packed = Packed::new(case.parameters("segment_sums"));
    let pointers = [values, offsets].map(|pointer| (pointer as u64).to_le_bytes()).concat();
    let count = u64::from(lengths.len() as u32).to_le_bytes();
    packed.put("segments", &[pointers.as_slice(), count.as_slice()].concat());
    for (name, address) in [("results", results), ("partials", partials), ("out", out)] {
        packed.put(name, &(address as u64).to_le_bytes());
    }
    let reports = bench.run(&case, "segment_sums", [1; 3], [128, 1, 1], 0, &packed.bytes);
    assert_eq!(text(&reports, &case.text), "");
}
