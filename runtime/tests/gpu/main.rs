//! Tests that need an NVIDIA GPU. Without one each test says so and passes; with `GRIDLET_REQUIRE_GPU=1` it fails.
//! A separate test program, because `cargo xtask bundle` takes it to a machine with a GPU.
//!
//! The kernels are PTX, embedded in this program, so that it runs on machines without a compiler.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers panic, and a child process reports by printing"
)]

#[path = "../suite/asleep.rs"]
mod asleep;
#[path = "../suite/common.rs"]
mod common;
mod green;
mod interop;
mod launch;
mod queue;
mod unified;

use std::fs::File;
use std::io::Write;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use gridlet_runtime::artifact::describe_image;
use gridlet_runtime::manifest::ImageKind;
use gridlet_runtime::{
    Arg, Artifact, Buffer, Device, Error, Event, GreenContext, LaunchConfig, Limit, Program, Stream,
};

/// Set in processes that run a test which destroys their context.
const CHILD: &str = "GRIDLET_GPU_CHILD";

/// No GPU has an SM with this number or a higher one.
const MAX_SMS: usize = 4096;

/// Opens the device and locks it for one test at a time: any wait reports lost launches.
fn gpu(name: &str) -> Option<(MutexGuard<'static, ()>, Device)> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    match Device::open(0) {
        Ok(device) => Some((alone, device)),
        Err(error)
            if error.is_absent_gpu()
                && std::env::var_os("GRIDLET_REQUIRE_GPU").is_none_or(|v| v != "1") =>
        {
            note(format!("SKIPPED: {name} needs an NVIDIA GPU: {error}"));
            None
        }
        Err(error) => panic!("{name}: {error}"),
    }
}

/// Whether the tests run under memcheck (`run-tests --memcheck` of the bundle), where this test cannot run; prints
/// the reason.
fn under_memcheck(name: &str, why: &str) -> bool {
    let under = std::env::var_os("GRIDLET_MEMCHECK").is_some();
    if under {
        note(format!("SKIPPED: {name} under memcheck: {why}"));
    }
    under
}

/// Writes to standard error directly, which the test harness does not capture.
fn note(line: String) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

fn load(device: &Device) -> Program {
    Program::load(device, &common::artifact().unwrap()).unwrap()
}

/// The number of SMs that ran blocks of a grid large enough for all of them.
fn sms_used(device: &Device, program: &Program, stream: &Stream) -> usize {
    let mut seen = Buffer::<u32>::alloc_zeroed(device, MAX_SMS).unwrap();
    let blocks = 64 * device.info().sm_count;
    let kernel = program.kernel("mark_sms").unwrap();
    stream.launch(&kernel, &LaunchConfig::new(blocks, 128), &[Arg::from(&mut seen)]).unwrap();
    stream.synchronize_default().unwrap();
    let seen = seen.to_vec().unwrap();
    assert_eq!(seen.iter().sum::<u32>(), blocks * 128);
    seen.iter().filter(|count| **count > 0).count()
}

#[test]
fn device_tells_what_it_is() {
    let Some((_alone, device)) = gpu("device_tells_what_it_is") else { return };
    let info = device.info();
    note(format!("{} with driver {}: {:?}", info.name, info.driver_version, info.sm_granularity));
    assert!(info.sm_count > 0 && info.memory_bytes > 0 && info.warp_size == 32, "{info:?}");
    assert_eq!(&Device::list().unwrap()[0], info);
    assert!(device.free_memory().unwrap() <= info.memory_bytes);
    let count = Device::list().unwrap().len() as u32;
    assert_eq!(Device::open(count).unwrap_err(), Error::NoDevice { ordinal: count, found: count });
}

#[test]
fn vectors_add_up() {
    let Some((_alone, device)) = gpu("vectors_add_up") else { return };
    let n = 1_000_003u32;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let y: Vec<f32> = (0..n).map(|i| 0.5 * i as f32).collect();
    let program = load(&device);
    let kernel = program.kernel("vector_add").unwrap();
    let stream = device.stream().unwrap();
    let (x_buffer, y_buffer) =
        (Buffer::from_slice(&device, &x).unwrap(), Buffer::from_slice(&device, &y).unwrap());
    let mut out = Buffer::<f32>::alloc_zeroed(&device, n as usize).unwrap();
    let (start, end) = (Event::new(&device).unwrap(), Event::new(&device).unwrap());
    stream.record(&start).unwrap();
    let args = [Arg::from(&x_buffer), Arg::from(&y_buffer), Arg::from(&mut out), Arg::from(n)];
    stream.launch(&kernel, &LaunchConfig::new(n.div_ceil(256), 256), &args).unwrap();
    stream.record(&end).unwrap();
    // No synchronization: the copy waits for the launch.
    let sums = out.to_vec().unwrap();
    for i in 0..n as usize {
        assert_eq!(sums[i], x[i] + y[i], "element {i}");
    }
    let milliseconds = start.elapsed_ms(&end).unwrap();
    assert!(milliseconds > 0.0 && milliseconds < 1000.0, "{milliseconds} ms");
    out.fill(2.5).unwrap();
    assert!(out.to_vec().unwrap().iter().all(|value| *value == 2.5));
}

#[test]
fn structs_arrive_whole() {
    let Some((_alone, device)) = gpu("structs_arrive_whole") else { return };
    let program = load(&device);
    let kernel = program.kernel("unpack").unwrap();
    let stream = device.stream().unwrap();
    let mut view = Vec::new();
    for value in [1.0f32, 2.0, 3.0, 4.0] {
        view.extend(value.to_le_bytes());
    }
    view.extend([5, 0, 0, 0, 0, 0, 0, 0]);
    let pair = |x: f32, y: f32| Arg::Fields(vec![Arg::from(x), Arg::from(y)]);
    let by_field = Arg::Fields(vec![pair(1.0, 2.0), pair(3.0, 4.0), Arg::from(5u32)]);
    for view in [Arg::Bytes(&view), by_field] {
        let mut out = Buffer::<f32>::alloc_zeroed(&device, 6).unwrap();
        stream
            .launch(
                &kernel,
                &LaunchConfig::new(1, 1),
                &[view, Arg::from(&mut out), Arg::from(200u8)],
            )
            .unwrap();
        stream.synchronize_default().unwrap();
        assert_eq!(out.to_vec().unwrap(), [1.0, 2.0, 3.0, 4.0, 5.0, 200.0]);
    }
}

#[test]
fn wrong_launches_are_refused() {
    let Some((_alone, device)) = gpu("wrong_launches_are_refused") else { return };
    let program = load(&device);
    let kernel = program.kernel("poke").unwrap();
    let stream = device.stream().unwrap();
    let mut right = Buffer::<u32>::alloc_zeroed(&device, 1).unwrap();
    let mut wrong = Buffer::<f32>::alloc_zeroed(&device, 1).unwrap();
    let one = LaunchConfig::new(1, 1);
    let refused =
        |config: &LaunchConfig, args: &[Arg<'_>]| stream.launch(&kernel, config, args).unwrap_err();
    assert!(matches!(refused(&one, &[]), Error::ArgumentCount { expected: 1, given: 0, .. }));
    assert!(matches!(refused(&one, &[Arg::from(&mut wrong)]), Error::Argument { index: 0, .. }));
    assert!(matches!(refused(&one, &[Arg::from(&right)]), Error::Argument { index: 0, .. }));
    assert!(matches!(refused(&LaunchConfig::new(0, 1), &[]), Error::Launch { .. }));
    assert!(matches!(refused(&LaunchConfig::new(1, 4096), &[]), Error::Launch { .. }));
    assert!(matches!(refused(&one.with_shared(u32::MAX), &[]), Error::Launch { .. }));
    assert!(matches!(program.kernel("none").unwrap_err(), Error::UnknownKernel { .. }));
    assert!(matches!(
        right.copy_from_host(&[1, 2]).unwrap_err(),
        Error::Length { expected: 4, given: 8 }
    ));
    // None of the launches took effect, and the stream still works.
    stream.synchronize_default().unwrap();
    assert_eq!(right.to_vec().unwrap(), [0]);
    stream.launch(&kernel, &one, &[Arg::from(&mut right)]).unwrap();
    assert_eq!(right.to_vec().unwrap(), [1]);
}

#[test]
fn large_dynamic_shared_memory_works() {
    let Some((_alone, device)) = gpu("large_dynamic_shared_memory_works") else { return };
    let program = load(&device);
    let kernel = program.kernel("through_shared").unwrap();
    let stream = device.stream().unwrap();
    for bytes in [1024, 49_152, device.info().limits.shared_bytes_per_block_optin] {
        let mut out = Buffer::<u32>::alloc_zeroed(&device, 1).unwrap();
        let config = LaunchConfig::new(1, 1).with_shared(bytes);
        stream.launch(&kernel, &config, &[Arg::from(&mut out), Arg::from(bytes)]).unwrap();
        assert_eq!(out.to_vec().unwrap(), [7], "{bytes} bytes");
    }
}

#[test]
fn the_pool_of_pending_launches_is_sized_first() {
    let Some((_alone, device)) = gpu("the_pool_of_pending_launches_is_sized_first") else { return };
    note(format!("pending launches: {} by default", device.pending_launch_limit().unwrap()));
    device.set_pending_launch_limit(4096).unwrap();
    assert_eq!(device.pending_launch_limit().unwrap(), 4096);
    let mut to = Buffer::<u32>::alloc_zeroed(&device, 1).unwrap();
    let kernel = load(&device).kernel("poke").unwrap();
    let stream = device.stream().unwrap();
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &[Arg::from(&mut to)]).unwrap();
    assert!(matches!(
        device.set_pending_launch_limit(8192).unwrap_err(),
        Error::LimitTooLate { .. }
    ));
    stream.synchronize_default().unwrap();
}

#[test]
fn lost_launches_are_reported_once() {
    let Some((_alone, device)) = gpu("lost_launches_are_reported_once") else { return };
    let program = load(&device);
    let kernel = program.kernel("lose").unwrap();
    let green = GreenContext::with_sms(&device, 8).unwrap();
    for stream in [device.stream().unwrap(), green.stream().unwrap()] {
        for lost in [32, 5] {
            let args = [Arg::from(69), Arg::from(1u32), Arg::from(42u32)];
            stream.launch(&kernel, &LaunchConfig::new(1, lost), &args).unwrap();
            let Error::LostLaunches(report) = stream.synchronize_default().unwrap_err() else {
                panic!("not the lost launches")
            };
            assert_eq!((report.count, report.error, report.line), (lost, 69, 42));
            assert_eq!(
                (report.file.as_str(), report.name.as_str()),
                ("more.grid", "cudaErrorLaunchPendingCountExceeded")
            );
            stream.synchronize_default().unwrap();
        }
    }
}

#[test]
fn images_of_another_program_are_refused() {
    let Some((_alone, device)) = gpu("images_of_another_program_are_refused") else { return };
    let artifact = |change: &dyn Fn(&mut gridlet_runtime::manifest::Manifest), ptx: &str| {
        let mut manifest = common::manifest();
        change(&mut manifest);
        manifest.images =
            vec![describe_image(ImageKind::Ptx, "compute_75", "changed.ptx", ptx.as_bytes())];
        Artifact::new(manifest, vec![ptx.into()]).unwrap()
    };
    let moved = artifact(
        &|manifest| {
            manifest.kernels[0].parameter_bytes = 32;
            manifest.kernels[0].parameters[3].offset = 28;
        },
        common::PTX,
    );
    let error = Program::load(&device, &moved).unwrap().kernel("vector_add").unwrap_err();
    assert!(matches!(error, Error::ParameterMismatch { index: 3, .. }), "{error}");

    let shorter = artifact(&|manifest| drop(manifest.kernels[0].parameters.pop()), common::PTX);
    let error = Program::load(&device, &shorter).unwrap().kernel("vector_add").unwrap_err();
    assert!(matches!(error, Error::ParameterMismatch { index: 3, .. }), "{error}");

    let renamed = artifact(&|manifest| manifest.kernels[0].name = "vector_sub".into(), common::PTX);
    let error = Program::load(&device, &renamed).unwrap().kernel("vector_sub").unwrap_err();
    assert!(error.to_string().contains("vector_sub"), "{error}");

    let nonsense = artifact(&|_| {}, &common::PTX.replace("add.f32", "amalgamate.f32"));
    let error = Program::load(&device, &nonsense)
        .and_then(|program| program.kernel("vector_add"))
        .unwrap_err();
    note(format!("an image that does not compile: {error}"));
    assert!(error.to_string().contains("amalgamate"), "the driver's log is missing: {error}");
}

#[test]
fn handles_may_go_in_any_order() {
    let Some((_alone, device)) = gpu("handles_may_go_in_any_order") else { return };
    let program = load(&device);
    let kernel = program.kernel("mark_sms").unwrap();
    let mut seen = Buffer::<u32>::alloc_zeroed(&device, MAX_SMS).unwrap();
    let green = GreenContext::with_sms(&device, 8).unwrap();
    let stream = green.stream().unwrap();
    // The grid still runs when its memory, code and context are dropped.
    stream.launch(&kernel, &LaunchConfig::new(20_000, 128), &[Arg::from(&mut seen)]).unwrap();
    drop((device, program, kernel, green));
    drop(seen);
    stream.synchronize_default().unwrap();
}

/// In the child process for this test, runs `body`; otherwise starts that process and returns its output. A
/// process that does not exit soon afterwards is killed.
fn in_a_process(name: &str, body: fn(&Device) -> Vec<String>) -> Option<String> {
    if std::env::var(CHILD).as_deref() == Ok(name) {
        for line in body(&Device::open(0).unwrap()) {
            println!("\n> {line}");
        }
        println!("> done");
        return None;
    }
    // Only checks that a GPU exists; the child process destroys its own context.
    let (alone, device) = gpu(name)?;
    drop(device);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("output");
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(CHILD, name)
        .stdout(Stdio::from(File::create(&path).unwrap()))
        .spawn()
        .unwrap();
    let read = || std::fs::read_to_string(&path).unwrap();
    let start = Instant::now();
    let mut done = None;
    let left = loop {
        if let Some(status) = child.try_wait().unwrap() {
            break Some(status);
        }
        if done.is_none() && read().contains("> done") {
            done = Some(Instant::now());
        }
        let patience = Duration::from_secs(if done.is_some() { 20 } else { 0 });
        if done.is_some_and(|at| at.elapsed() > patience)
            || start.elapsed() > Duration::from_secs(90)
        {
            break None;
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    match left {
        Some(status) => note(format!(
            "{name}: the process left by itself after {:?}: {status}",
            start.elapsed()
        )),
        None => {
            child.kill().unwrap();
            child.wait().unwrap();
            note(format!("{name}: the process had to be ended after {:?}", start.elapsed()));
        }
    }
    drop(alone);
    Some(read())
}

#[test]
fn an_endless_kernel_times_out() {
    let output = in_a_process("an_endless_kernel_times_out", |device| {
        let kernel = load(device).kernel("spin").unwrap();
        let flag = Buffer::<u32>::alloc_zeroed(device, 1).unwrap();
        let stream = device.stream().unwrap();
        stream.launch(&kernel, &LaunchConfig::new(1, 1), &[Arg::from(&flag)]).unwrap();
        let start = Instant::now();
        let error = stream.synchronize(Duration::from_secs(1)).unwrap_err();
        let waited = start.elapsed();
        let mut lines = vec![error.to_string()];
        lines.push(format!(
            "in time: {}",
            waited >= Duration::from_secs(1) && waited < Duration::from_secs(2)
        ));
        lines.push(stream.synchronize(Duration::from_secs(1)).unwrap_err().to_string());
        // None of these drops may wait for the kernel.
        drop((kernel, flag, stream));
        lines.push(format!("dropped in time: {}", start.elapsed() < Duration::from_secs(5)));
        lines
    });
    let Some(output) = output else { return };
    for line in [
        "> not finished after 1 s: a stream with `spin`",
        "> in time: true",
        "> device 0 is unusable in this process: an earlier wait timed out (a stream with `spin`)",
        "> dropped in time: true",
    ] {
        assert!(output.contains(line), "no line {line:?} in:\n{output}");
    }
}

fn fault_of(device: &Device, kernel: &str, args: &[Arg<'_>]) -> Vec<String> {
    let kernel = load(device).kernel(kernel).unwrap();
    let stream = device.stream().unwrap();
    stream.launch(&kernel, &LaunchConfig::new(1, 1), args).unwrap();
    let error = stream.synchronize(Duration::from_secs(10)).unwrap_err();
    let mut lines =
        vec![error.to_string(), format!("a fault: {}", matches!(error, Error::Fault(_)))];
    // The context is lost: every further call fails, and dropping the remaining handles does not hang.
    lines.push(format!("alloc fails: {}", Buffer::<u32>::alloc_zeroed(device, 1).is_err()));
    lines
}

#[test]
fn a_trap_is_a_fault() {
    let output = in_a_process("a_trap_is_a_fault", |device| fault_of(device, "stop", &[]));
    let Some(output) = output else { return };
    note(output.lines().find(|line| line.starts_with("> ")).unwrap_or_default().to_string());
    for text in [
        "stopped itself with a trap",
        "(kernel launched: `stop`)",
        "> a fault: true",
        "> alloc fails: true",
        "> done",
    ] {
        assert!(output.contains(text), "no {text:?} in:\n{output}");
    }
}

/// Breaks the context with a kernel, and then uses the device again.
fn recovered(device: &Device, kernel: &str, args: &[Arg<'_>]) -> Vec<String> {
    let program = load(device);
    let green = GreenContext::with_sms(device, 8).unwrap();
    let (stream, buffer) =
        (green.stream().unwrap(), Buffer::<u32>::alloc_zeroed(device, 1).unwrap());
    let broken = program.kernel(kernel).unwrap();
    stream.launch(&broken, &LaunchConfig::new(1, 1), args).unwrap();
    let mut lines = vec![stream.synchronize(Duration::from_secs(10)).unwrap_err().to_string()];
    lines.push(format!("before: {}", buffer.to_vec().unwrap_err()));
    let fresh = match device.recover() {
        Ok(fresh) => fresh,
        Err(error) => {
            lines.push(format!("not recovered: {error}"));
            return lines;
        }
    };
    let mut flag = Buffer::<u32>::alloc_zeroed(&fresh, 1).unwrap();
    let poke = load(&fresh).kernel("poke").unwrap();
    let green = GreenContext::with_sms(&fresh, 8).unwrap();
    for next in [fresh.stream().unwrap(), green.stream().unwrap()] {
        flag.fill(0).unwrap();
        next.launch(&poke, &LaunchConfig::new(1, 1), &[Arg::from(&mut flag)]).unwrap();
        next.synchronize_default().unwrap();
        lines.push(format!("after: {:?}", flag.to_vec().unwrap()));
    }
    drop((stream, buffer, broken, program));
    lines.push(format!("old handles dropped: {:?}", flag.to_vec().unwrap()));
    lines
}

/// Driver 580.159.04 cannot start a new context in a process that had a fault; other drivers may.
fn recovers_or_says_that_it_does_not(name: &str, body: fn(&Device) -> Vec<String>, kernel: &str) {
    let Some(output) = in_a_process(name, body) else { return };
    note(output.lines().filter(|line| line.starts_with("> ")).collect::<Vec<_>>().join("\n"));
    let named = format!("(kernel launched: `{kernel}`)");
    assert!(output.contains(&named) && output.contains("> done"), "{output}");
    assert!(output.contains("> before: device 0 lost its context to a fault"), "{output}");
    if output.contains("> not recovered") {
        let text = "> not recovered: device 0 cannot be used in this process any more: ";
        assert!(output.contains(text) && !output.contains("> after"), "{output}");
        return;
    }
    assert_eq!(output.matches("> after: [1]").count(), 2, "{output}");
    assert_eq!(output.matches("> old handles dropped: [1]").count(), 1, "{output}");
}

#[test]
fn a_device_recovers_from_a_trap_or_says_that_it_does_not() {
    let name = "a_device_recovers_from_a_trap_or_says_that_it_does_not";
    recovers_or_says_that_it_does_not(name, |device| recovered(device, "stop", &[]), "stop");
}

#[test]
fn a_device_recovers_from_a_wild_address_or_says_that_it_does_not() {
    let name = "a_device_recovers_from_a_wild_address_or_says_that_it_does_not";
    let body = |device: &Device| recovered(device, "poke", &[Arg::address(64)]);
    recovers_or_says_that_it_does_not(name, body, "poke");
}

#[test]
fn limits_are_set_and_told() {
    let output = in_a_process("limits_are_set_and_told", |device| {
        let limits = [
            (Limit::PendingLaunches, 65_536),
            (Limit::StackBytes, 4096),
            (Limit::HeapBytes, 64 << 20),
            (Limit::PrintfBytes, 8 << 20),
        ];
        let mut lines = vec![];
        for (limit, value) in limits {
            let default = device.limit(limit).unwrap();
            let taken = device.set_limit(limit, value).unwrap();
            let now = device.limit(limit).unwrap();
            lines.push(format!("{limit:?}: {default}, then {now}, {taken} bytes taken"));
            assert!(now >= value, "{limit:?}");
        }
        lines
    });
    let Some(output) = output else { return };
    note(output.lines().filter(|line| line.starts_with("> ")).collect::<Vec<_>>().join("\n"));
    assert!(output.contains("> done"), "{output}");
}

#[test]
fn a_wild_address_is_a_fault() {
    let output = in_a_process("a_wild_address_is_a_fault", |device| {
        fault_of(device, "poke", &[Arg::address(64)])
    });
    let Some(output) = output else { return };
    for text in [
        "read or wrote an invalid address (kernel launched: `poke`)",
        "(700)",
        "> a fault: true",
        "> alloc fails: true",
        "> done",
    ] {
        assert!(output.contains(text), "no {text:?} in:\n{output}");
    }
}
