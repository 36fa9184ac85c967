//! A device that fails or disappears: whichever driver call fails, there is an error, nothing panics, everything
//! that can be destroyed is, and nothing is destroyed twice.

use std::collections::BTreeSet;
use std::time::Duration;

use gridlet_runtime::unified::{
    Advice, HostBuffer, HostFlags, Location, ManagedBuffer, RegisterFlags, RegisteredMemory,
};
use gridlet_runtime::{
    Arg, Buffer, Device, Event, GreenContext, LaunchConfig, Limit, Program, Result,
};

use super::{common, driven};
use crate::resident_artifact::resident_artifact;

/// `CUDA_ERROR_DEVICE_UNAVAILABLE`, after which the context is usable, and `CUDA_ERROR_ECC_UNCORRECTABLE`, after
/// which it is not.
const CODES: [&str; 2] = ["46", "214"];

/// The calls that the fake driver implements.
fn calls() -> BTreeSet<&'static str> {
    let starts = include_str!("fake.c").lines().filter_map(|line| line.strip_prefix("int "));
    starts.filter_map(|line| Some(line.split_once('(')?.0)).collect()
}

/// Uses every part of the runtime.
fn everything() -> Result<()> {
    let device = Device::open(0)?;
    device.set_limit(Limit::HeapBytes, 1 << 20)?;
    let program = Program::load(&device, &common::artifact()?)?;
    let kernel = program.kernel("lose")?;
    device.set_launch_memory(20 << 20);
    let resident = Program::load(&device, &resident_artifact()?)?.kernel("lose")?;
    let green = GreenContext::with_sms(&device, 16)?;
    let streams = [device.stream_with_priority(-1)?, green.stream()?];
    let (start, end) = (Event::new(&device)?, Event::new(&device)?);
    let mut buffer = Buffer::from_slice(&device, &[1u32, 2, 3])?;
    let mut copy = Buffer::<u32>::alloc_zeroed(&device, 3)?;
    copy.copy_from(&buffer)?;
    let mut managed = ManagedBuffer::<u32>::alloc(&device, 4)?;
    managed.whole().advise(Advice::PreferredLocation(Location::Host))?;
    managed.whole().prefetch(Location::from(&device), &streams[0])?;
    managed.whole().is_read_mostly()?;
    managed.whole().attributes(2)?;
    managed.host()?;
    let host = HostBuffer::<u32>::alloc_zeroed(&device, 4, HostFlags::default())?;
    host.is_write_combined()?;
    let registered = RegisteredMemory::new(&device, vec![1u8], RegisterFlags::default())?;
    device.pointer(buffer.address()).info()?;
    device.pointer(buffer.address()).is_managed()?;
    device.pointer(buffer.address()).set_sync_memops(true)?;
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    streams[0].record(&start)?;
    for stream in &streams {
        stream.launch(&kernel, &LaunchConfig::new(1, 1).with_shared(100_000), &args)?;
        stream.try_launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
        stream.wait_event(&start)?;
        stream.is_in_its_green_context()?;
        stream.priority()?;
        stream.launch(&resident, &LaunchConfig::new(1, 1), &args)?;
    }
    let captured = device.stream()?;
    captured.raw()?;
    captured.launch(&resident, &LaunchConfig::new(1, 1).with_shared(100_000), &args)?;
    green.record(&end)?;
    green.wait_event(&end)?;
    green.id()?;
    green.make_current()?;
    device.context_sm_resource()?;
    device.stream_priorities()?;
    streams[0].synchronize_default()?;
    start.elapsed_ms(&end)?;
    buffer.fill(5)?;
    copy.to_vec()?;
    registered.into_vec()?;
    drop(streams);
    device.synchronize(Duration::from_secs(5))
}

/// The outcome of a run of [`everything`].
struct Seen {
    error: String,
    /// The handles left in the driver at the end.
    left: String,
    /// The number of calls made.
    calls: usize,
}

/// Same with the given settings; `None` in the process of the run.
fn seen(name: &str, settings: &[(&str, &str)]) -> Option<Seen> {
    let always = [("FAKE_TALLY", "2"), ("FAKE_QUIET", "1"), ("FAKE_CAPTURE", "1")];
    let settings: Vec<_> = always.into_iter().chain(settings.iter().copied()).collect();
    let text = driven(name, "full", &settings, everything)?;
    let (mut errors, mut seen) =
        (vec![], Seen { error: String::new(), left: "?".into(), calls: 0 });
    for line in text.lines().filter_map(|line| line.strip_prefix("> ")) {
        if let Some(left) = line.strip_prefix("left:") {
            seen.left = left.trim().into();
        } else if let Some(calls) = line.strip_prefix("calls ") {
            seen.calls = calls.parse().unwrap();
        } else {
            errors.push(line);
        }
    }
    seen.error = errors.join("; ");
    Some(seen)
}

#[test]
fn each_call_may_fail() {
    let name = concat!(module_path!(), "::each_call_may_fail");
    let Some(whole) = seen(name, &[]) else { return };
    assert_eq!((whole.error.as_str(), whole.left.as_str()), ("", ""), "without a failure");
    let (mut lines, mut not_made) = (vec![], vec![]);
    for call in calls() {
        let [(plain, after), (fault, after_fault)] = CODES.map(|code| {
            let seen = seen(name, &[("FAKE_FAIL", &format!("{call}:{code}"))]).unwrap();
            assert!(!seen.error.contains("does not live"), "{call}: {}", seen.error);
            (seen.error, seen.left)
        });
        assert!(plain.is_empty() == fault.is_empty(), "{call}: {plain}, {fault}");
        assert!(fault.is_empty() || fault.contains("(214)"), "{call}: {fault}");
        // Once a wait has seen a fault the context is lost, and nothing in it is touched again.
        let lost = if after_fault == after { String::new() } else { format!("; {after_fault}") };
        match (plain.as_str(), after.as_str()) {
            ("", "") => not_made.push(call),
            (error, left) => lines.push(format!("{call}: {error}; left: {left}{lost}")),
        }
    }
    lines.push(format!("no difference: {}", not_made.join(" ")));
    insta::assert_snapshot!(lines.join("\n"));
}

#[test]
fn a_device_may_disappear_at_any_call() {
    let name = concat!(module_path!(), "::a_device_may_disappear_at_any_call");
    let Some(whole) = seen(name, &[]) else { return };
    let (mut first, mut in_drop) = (BTreeSet::new(), 0);
    for calls in 0..whole.calls {
        let Seen { error, .. } = seen(name, &[("FAKE_GONE", &format!("{calls}:46"))]).unwrap();
        assert!(!error.contains("does not live"), "after {calls} calls: {error}");
        match error.split('`').find(|word| word.starts_with("cu")) {
            Some(call) => drop(first.insert(call.to_string())),
            // Only drops remain, which return no errors.
            None => in_drop += usize::from(error.is_empty()),
        }
    }
    assert!(in_drop > 0 && in_drop < whole.calls / 4, "{in_drop} of {}", whole.calls);
    insta::assert_snapshot!(first.into_iter().collect::<Vec<_>>().join("\n"));
}
