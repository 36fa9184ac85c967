//! Tests the CPU device with an image in C that follows the ABI.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod c_image;

use std::io::Write;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use c_image::image;
use gridlet_cpu::{CpuConfig, CpuDevice, CpuImage, CpuStream, Error, FaultKind, LEVEL_VARIABLE};

fn bytes() -> Option<&'static [u8]> {
    static IMAGE: OnceLock<Option<Vec<u8>>> = OnceLock::new();
    IMAGE.get_or_init(|| image(&[])).as_deref()
}

/// A device with the image loaded and a stream.
struct Rig {
    device: CpuDevice,
    image: Arc<CpuImage>,
    stream: CpuStream,
}

impl Rig {
    fn new(config: CpuConfig) -> Option<Rig> {
        let bytes = bytes()?;
        let device = CpuDevice::new(config).unwrap();
        let image = device.load_with_sources(bytes, &["kernels.c".to_string()]).unwrap();
        let stream = device.stream();
        Some(Rig { device, image, stream })
    }

    fn launch(
        &self,
        kernel: &str,
        grid: [u32; 3],
        block: [u32; 3],
        shared: u32,
        parameters: &[u8],
    ) {
        let kernel = self.image.kernel(kernel).unwrap();
        self.stream.launch(&kernel, grid, block, shared, parameters).unwrap();
    }

    fn wait(&self) -> Result<(), Error> {
        self.stream.wait(Duration::from_secs(60))
    }

    fn run(&self, kernel: &str, grid: u32, block: u32, shared: u32, parameters: &[u8]) {
        self.launch(kernel, [grid, 1, 1], [block, 1, 1], shared, parameters);
        self.wait().unwrap();
    }

    /// Zeroed words in device memory.
    fn words(&self, count: usize) -> Words<'_> {
        let first = self.device.alloc(count * 4).unwrap().cast::<u32>();
        // SAFETY: the allocation has this many bytes.
        unsafe { first.write_bytes(0, count) };
        Words { device: &self.device, first, count }
    }

    fn failure(&self) -> String {
        self.wait().unwrap_err().to_string()
    }
}

struct Words<'a> {
    device: &'a CpuDevice,
    first: *mut u32,
    count: usize,
}

impl Words<'_> {
    fn address(&self) -> [u8; 8] {
        (self.first as u64).to_le_bytes()
    }

    fn read(&self) -> Vec<u32> {
        // SAFETY: the allocation has this many words, and no kernel is running.
        unsafe { std::slice::from_raw_parts(self.first, self.count) }.to_vec()
    }
}

impl Drop for Words<'_> {
    fn drop(&mut self) {
        assert!(self.device.free(self.first.cast()));
    }
}

/// Packs fields into a parameter buffer.
fn pack(fields: &[&[u8]]) -> Vec<u8> {
    fields.concat()
}

fn u32s(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn threads(threads: usize) -> CpuConfig {
    CpuConfig { threads: Some(threads), ..CpuConfig::default() }
}

/// Configurations with one worker, with several, and with seeds.
fn configs() -> Vec<CpuConfig> {
    let mut configs = vec![threads(1), threads(4)];
    configs.extend(
        (0..4).map(|seed| CpuConfig { seed: Some(seed), ..threads(1 + seed as usize % 2) }),
    );
    configs
}

#[test]
fn every_thread_runs_once() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        let out = rig.words(3 * 1000 * 7 + 5);
        rig.run("iota", 3000, 7, 0, &pack(&[&out.address(), &u32s(&[21_000])]));
        let read = out.read();
        assert!((0..21_000).all(|i| read[i] == i as u32 + 1));
        assert_eq!(read[21_000..], [0; 5]);
    }
}

#[test]
fn threads_know_where_they_are() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        let out = rig.words(2 * 3 * 4 * 5 * 3 * 4);
        let parameters = pack(&[&out.address(), &u32s(&[0])]);
        rig.launch("numbers", [2, 3, 4], [5, 3, 4], 200, &parameters);
        rig.wait().unwrap();
        assert!(out.read().iter().all(|right| *right == 1));
    }
}

#[test]
fn barriers_and_shared_memory() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        for block in [1, 32, 64, 1024] {
            let out = rig.words(100);
            rig.run("reduce", 100, block, block * 4, &pack(&[&out.address(), &u32s(&[0])]));
            assert_eq!(out.read(), vec![block * (block + 1) / 2 + block; 100], "{block}");
        }
    }
}

#[test]
fn shuffles_move_values() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        let out = rig.words(64 * 4);
        rig.run("shuffles", 1, 64, 0, &pack(&[&out.address(), &u32s(&[u32::MAX])]));
        let read = out.read();
        for thread in 0..64u32 {
            let (warp, lane) = (thread / 32 * 32, thread % 32);
            let from = [31 - lane, lane.max(1) - 1, (lane + 1).min(31), lane ^ 1];
            let expected: Vec<u32> = from.iter().map(|lane| 100 + warp + lane).collect();
            assert_eq!(read[thread as usize * 4..][..4], expected, "{thread}");
        }
    }
}

#[test]
fn votes_count_lanes() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        let out = rig.words(40 * 5);
        rig.run("votes", 1, 40, 0, &pack(&[&out.address(), &u32s(&[0])]));
        let read = out.read();
        for thread in 0..40usize {
            let lanes = if thread < 32 { u32::MAX } else { 0xff };
            let half = match thread {
                0..16 => 0xffff,
                16..32 => 0x000f_0000,
                _ => 0xff,
            };
            let expected = [0xaaaa_aaaa & lanes, 0, 1, lanes, half];
            assert_eq!(read[thread * 5..][..5], expected, "{thread}");
        }
    }
}

#[test]
fn ended_threads_are_not_waited_for() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        let out = rig.words(128);
        rig.run("early", 1, 128, 0, &pack(&[&out.address(), &u32s(&[0])]));
        let read = out.read();
        for (thread, value) in read.iter().enumerate() {
            let expected = if thread >= 64 || thread % 32 == 0 { 0 } else { 0xffff_fffe };
            assert_eq!(*value, expected, "{thread}");
        }
    }
}

/// The log of a launcher and its children.
fn log(rig: &Rig, count: u32, mode: u32) -> Vec<u32> {
    let (log, next) = (rig.words(64), rig.words(1));
    let parameters = pack(&[&log.address(), &next.address(), &u32s(&[count, mode])]);
    rig.run("launcher", 1, 1, 0, &parameters);
    log.read()[..next.read()[0] as usize].to_vec()
}

#[test]
fn a_blocks_default_stream_is_in_order() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        let order: Vec<u32> = log(&rig, 20, 0).into_iter().filter(|value| *value != 1).collect();
        assert_eq!(order, (10..30).collect::<Vec<_>>());
    }
}

#[test]
fn tails_come_last_and_in_order() {
    for mode in [1, 3] {
        for config in configs() {
            let Some(rig) = Rig::new(config) else { return };
            let order = log(&rig, 5, mode);
            assert_eq!(order.len(), 8, "{order:?}");
            assert_eq!(order[6..], [20, 21], "{order:?}");
        }
    }
}

#[test]
fn polling_threads_let_other_grids_run() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        let out = rig.words(3);
        rig.run("waiter", 1, 2, 0, &pack(&[&out.address(), &u32s(&[0])]));
        assert_eq!(out.read(), [5, 1, 7]);
    }
}

#[test]
fn a_seed_permutes_unordered_grids() {
    let orders: Vec<Vec<u32>> = (0..4)
        .filter_map(|seed| Rig::new(CpuConfig { seed: Some(seed), ..threads(1) }))
        .map(|rig| log(&rig, 8, 2))
        .collect();
    if orders.is_empty() {
        return;
    }
    assert!(orders.iter().any(|order| *order != orders[0]), "{orders:?}");
    let again = Rig::new(CpuConfig { seed: Some(0), ..threads(1) }).unwrap();
    assert_eq!(log(&again, 8, 2), orders[0]);
}

#[test]
fn streams_of_the_host_are_in_order() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        let (log, next) = (rig.words(128), rig.words(1));
        for value in 0..100 {
            let work = 50_000 / (value + 1);
            let parameters = pack(&[&log.address(), &next.address(), &u32s(&[value, work])]);
            rig.launch("logger", [2, 1, 1], [32, 1, 1], 0, &parameters);
        }
        rig.wait().unwrap();
        assert!(rig.stream.is_done());
        assert_eq!(log.read()[..100], (0..100).collect::<Vec<u32>>());
    }
}

fn chain(counter: &Words<'_>, left: u64, stream: u64) -> Vec<u8> {
    pack(&[&counter.address(), &left.to_le_bytes(), &stream.to_le_bytes()])
}

/// Runs launches from kernels; returns the numbers of grids and of lost launches, and the last error.
fn count(rig: &Rig, kernel: &str, left: u64, stream: u64) -> [u32; 3] {
    let counter = rig.words(3);
    rig.run(kernel, 1, 1, 0, &chain(&counter, left, stream));
    let read = counter.read();
    [read[0], read[1], read[2]]
}

#[test]
fn chains_and_trees_of_launches() {
    for config in configs() {
        let Some(rig) = Rig::new(CpuConfig { pending_limit: 0, ..config }) else { return };
        for stream in [0, 3, 4] {
            assert_eq!(count(&rig, "chain", 1000, stream)[..2], [1001, 0], "{stream}");
            assert_eq!(count(&rig, "tree", 9, stream)[..2], [1023, 0], "{stream}");
        }
    }
}

#[test]
fn a_chain_of_any_length_takes_little_room() {
    let Some(rig) = Rig::new(CpuConfig { pending_limit: 0, ..threads(2) }) else { return };
    for stream in [0, 3, 4] {
        assert_eq!(count(&rig, "chain", 50_000, stream)[..2], [50_001, 0], "{stream}");
        let (grids, streams) = rig.device.high_water();
        assert!(grids < 100 && streams < 100, "{stream}: {grids} grids, {streams} streams");
    }
}

#[test]
fn an_unbounded_pool_does_not_grow() {
    let Some(rig) = Rig::new(CpuConfig { pending_limit: 0, ..threads(2) }) else { return };
    assert_eq!(count(&rig, "many", 100_000, 4), [1, 0, 0]);
    let (grids, _) = rig.device.high_water();
    assert!(grids < 5000, "{grids} grids");
}

#[test]
fn a_full_pool_loses_launches() {
    let Some(rig) = Rig::new(CpuConfig { pending_limit: 100, ..threads(1) }) else { return };
    // The only worker runs the launching thread, so nothing leaves the pool in the meantime.
    assert_eq!(count(&rig, "many", 250, 4), [1, 150, 69]);
    assert_eq!(count(&rig, "many", 250, 3), [1, 150, 69]);
    rig.device.set_pending_limit(250);
    assert_eq!(count(&rig, "many", 250, 0), [1, 0, 0]);
}

#[test]
fn invalid_launches_are_refused() {
    let Some(rig) = Rig::new(CpuConfig { pending_limit: 1, ..threads(1) }) else { return };
    let out = rig.words(8);
    rig.run("refused", 1, 1, 0, &pack(&[&out.address(), &u32s(&[0])]));
    assert_eq!(out.read(), [9, 9, 701, 400, 98, 1, 9, 0]);
    // Even the buffer that was never launched was returned.
    assert_eq!(count(&rig, "chain", 5, 4)[..2], [6, 0]);
}

#[test]
fn host_launches_over_a_limit_are_refused() {
    let Some(rig) = Rig::new(threads(1)) else { return };
    let [kernel, bounded] = ["empty", "bounded"].map(|name| rig.image.kernel(name).unwrap());
    let launch = |grid, block, shared, parameters: &[u8]| {
        rig.stream.launch(&kernel, grid, block, shared, parameters).unwrap_err().to_string()
    };
    insta::assert_snapshot!(
        [
            launch([0, 1, 1], [1, 1, 1], 0, &[]),
            launch([1, 1, 1], [2048, 1, 1], 0, &[]),
            launch([1, 1, 1], [1, 1, 1], 300_000, &[]),
            launch([1, 1, 1], [1, 1, 1], 0, &[1, 2]),
            rig.stream.launch(&bounded, [1; 3], [13, 5, 1], 0, &[]).unwrap_err().to_string(),
        ]
        .join("\n")
    );
    assert!(rig.image.kernel("nothing").is_none());
    assert!(rig.image.symbol("nothing").is_none());
    assert!(rig.image.symbol("counters").is_some());
}

#[test]
fn a_trap_says_where_and_the_device_goes_on() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        rig.launch("trapper", [4, 1, 1], [8, 8, 1], 0, &u32s(&[9, 2]));
        rig.launch("stuck", [1, 1, 1], [2, 1, 1], 0, &[]);
        let Error::Fault(fault) = rig.wait().unwrap_err() else { panic!() };
        let found = (fault.kind, &*fault.kernel, fault.block.unwrap().x, fault.thread.unwrap());
        assert_eq!(found, (FaultKind::Trap, "trapper", 2, (1, 1, 0).into()));
        assert_eq!(fault.location.unwrap().file, "kernels.c");
        let out = rig.words(10);
        rig.run("iota", 1, 10, 0, &pack(&[&out.address(), &u32s(&[10])]));
        assert_eq!(out.read()[9], 10);
    }
}

/// Runs `middle` over 200 blocks of 2×3 threads; one thread ends its block.
fn middle(rig: &Rig, block: u32, how: u32) -> (Result<(), Error>, Vec<u32>) {
    let out = rig.words(1200);
    let parameters = pack(&[&out.address(), &u32s(&[4, block, how])]);
    rig.launch("middle", [10, 5, 4], [2, 3, 1], 0, &parameters);
    (rig.wait(), out.read())
}

/// One call of the image runs many blocks: each runs once, in the entry that suits the processor.
#[test]
fn blocks_run_in_a_row() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        let (result, out) = middle(&rig, 999, 0);
        result.unwrap();
        if let Ok(level) = std::env::var(LEVEL_VARIABLE) {
            assert_eq!(rig.device.level(), level);
        }
        let of_entry = match (config.seed, rig.device.level()) {
            (Some(_), _) => 0,
            (None, "x86-64-v3") => 1000,
            (None, _) => 100,
        };
        for (at, &found) in out.iter().enumerate() {
            assert_eq!(found, 1 + if at % 6 == 0 { of_entry } else { 0 }, "thread {at}");
        }
    }
}

/// Runs the test above again with the environment variable set.
#[test]
fn a_variable_chooses_the_entries() {
    let run = |level: &str| {
        let mut again = Command::new(std::env::current_exe().unwrap());
        let again = again.args(["--exact", "blocks_run_in_a_row"]).env(LEVEL_VARIABLE, level);
        let output = again.output().unwrap();
        (output.status.success(), String::from_utf8_lossy(&output.stdout).into_owned())
    };
    let (is_ok, text) = run("baseline");
    assert!(is_ok && text.contains("1 passed"), "{text}");
    if bytes().is_some() {
        let (is_ok, text) = run("fastest");
        assert!(!is_ok && text.contains("GRIDLET_CPU_LEVEL is `fastest`"), "{text}");
    }
}

#[test]
fn a_fault_in_the_middle_of_a_row_names_its_block() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        for (how, kind) in [(1, FaultKind::Trap), (2, FaultKind::Trap), (3, FaultKind::Access)] {
            let (result, out) = middle(&rig, 117, how);
            let Err(Error::Fault(fault)) = result else { panic!("{result:?}") };
            assert_eq!((fault.kind, fault.block), (kind, Some((7, 1, 2).into())), "{how}");
            // A loop over threads knows the thread only if the image reports it.
            let is_known = config.seed.is_some() || how == 1;
            assert_eq!(fault.thread, is_known.then_some((0, 2, 0).into()), "{how}");
            assert_eq!(out[117 * 6 + 4], 0);
            // The device remains usable.
            middle(&rig, 999, 0).0.unwrap();
        }
    }
}

#[test]
fn faults_are_errors() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        for (kernel, kind) in [
            ("wild", FaultKind::Access),
            ("divide", FaultKind::Arithmetic),
            ("deep", FaultKind::StackOverflow),
            ("stuck", FaultKind::Deadlock),
        ] {
            let parameters: &[u8] = if kernel == "stuck" { &[] } else { &16u64.to_le_bytes() };
            rig.launch(kernel, [1, 1, 1], [2, 1, 1], 0, parameters);
            let Err(Error::Fault(fault)) = rig.wait() else { panic!("{kernel}") };
            assert_eq!((fault.kind, &*fault.kernel), (kind, kernel));
            if kernel == "wild" {
                assert_eq!((fault.address, fault.thread), (Some(16), Some((1, 0, 0).into())));
            }
        }
        assert_eq!(log(&rig, 2, 0).len(), 3);
    }
}

#[test]
fn a_fault_of_a_child_names_its_launch() {
    let Some(rig) = Rig::new(threads(1)) else { return };
    rig.launch("parent", [1, 1, 1], [1, 1, 1], 0, &[]);
    insta::assert_snapshot!(rig.failure());
}

#[test]
fn a_wait_that_times_out_stops_the_kernel() {
    for config in configs() {
        let Some(rig) = Rig::new(config) else { return };
        let flag = rig.words(1);
        rig.launch("spin", [8, 1, 1], [4, 1, 1], 0, &flag.address());
        let error = rig.stream.wait(Duration::from_millis(20)).unwrap_err();
        assert!(matches!(error, Error::TimedOut { .. }), "{error}");
        assert!(rig.stream.is_done());
        assert_eq!(log(&rig, 2, 0).len(), 3);
    }
}

#[test]
fn a_device_that_is_dropped_stops_its_kernels() {
    let Some(rig) = Rig::new(threads(2)) else { return };
    let flag = rig.words(1);
    rig.launch("spin", [8, 1, 1], [4, 1, 1], 0, &flag.address());
    let spins = rig.image.symbol("counters").unwrap().cast::<AtomicU32>().wrapping_add(6);
    // SAFETY: the image is loaded and has eight such counters.
    while unsafe { &*spins }.load(Ordering::Relaxed) == 0 {
        std::thread::yield_now();
    }
}

#[test]
fn partitions_bound_the_workers() {
    let Some(rig) = Rig::new(threads(4)) else { return };
    for (workers, expected) in [(1, 1), (2, 2)] {
        let partition = rig.device.partition(workers);
        let (streams, out) = ([partition.stream(), partition.stream()], rig.words(1));
        let kernel = rig.image.kernel("workers").unwrap();
        // Other programs may delay the workers, so that fewer run concurrently at first; never more than the limit.
        for _ in 0..200 {
            for stream in &streams {
                let parameters = pack(&[&out.address(), &u32s(&[0])]);
                stream.launch(&kernel, [40, 1, 1], [1, 1, 1], 0, &parameters).unwrap();
            }
            for stream in &streams {
                stream.wait(Duration::from_secs(60)).unwrap();
            }
            if out.read() == [expected] {
                break;
            }
        }
        assert_eq!(out.read(), [expected]);
    }
}

#[derive(Clone, Default)]
struct Printed(Arc<Mutex<Vec<u8>>>);

impl Write for Printed {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn kernels_print() {
    let Some(rig) = Rig::new(threads(1)) else { return };
    let printed = Printed::default();
    rig.device.set_output(Box::new(printed.clone()));
    rig.run("printer", 1, 3, 0, &[]);
    let text = String::from_utf8(printed.0.lock().unwrap().clone()).unwrap();
    assert_eq!(text, "thread 0: 0.0\nthread 1: 0.5\nthread 2: 1.0\n");
}

#[test]
fn foreign_images_are_refused() {
    let device = CpuDevice::new(threads(1)).unwrap();
    let error = device.load(b"not an image").unwrap_err();
    assert!(matches!(error, Error::Image { .. }), "{error}");
    let Some(other) = image(&["-DVERSION=99"]) else { return };
    insta::assert_snapshot!(device.load(&other).unwrap_err());
}
