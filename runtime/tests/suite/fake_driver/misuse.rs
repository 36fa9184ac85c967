//! Misuse of a device by safe code: from several threads, in any order, and after a fault. Nothing is used after
//! the driver destroyed it, and nothing is destroyed while in use.

use std::time::Duration;
use std::{env, mem, thread};

use gridlet_runtime::unified::{HostBuffer, HostFlags, ManagedBuffer};
use gridlet_runtime::{
    Arg, Buffer, CpuConfig, Device, Event, GreenContext, Kernel, LaunchConfig, Program, Result,
    Stream,
};

use super::{common, driven, say, scenario};
use crate::asleep::spawn_until_asleep;

fn kernel(device: &Device) -> Result<Kernel> {
    Program::load(device, &common::artifact()?)?.kernel("lose")
}

fn launch(stream: &Stream, kernel: &Kernel) -> Result<()> {
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    stream.launch(kernel, &LaunchConfig::new(1, 1), &args)
}

/// Makes every further call fail with this code.
fn all_calls_fail(code: i32) {
    // SAFETY: the scenario has only one thread here.
    unsafe { env::set_var("FAKE_GONE", format!("0:{code}")) };
}

// Dropping a stream waits for its work, and other threads must wait for that work too.
#[test]
fn memory_outlives_a_stream_that_another_thread_drops() {
    let name = concat!(module_path!(), "::memory_outlives_a_stream_that_another_thread_drops");
    let seen = driven(name, "full", &[("FAKE_TAKES", "1")], || {
        let device = Device::open(0)?;
        let buffer = Buffer::<u8>::alloc(&device, 4)?;
        let kernel = kernel(&device)?;
        let stream = device.stream()?;
        launch(&stream, &kernel)?;
        thread::scope(|scope| {
            spawn_until_asleep(scope, || drop(stream));
            drop(buffer);
        });
        Ok(())
    });
    let Some(seen) = seen else { return };
    let at = |call: &str| seen.lines().position(|line| line.starts_with(call)).unwrap();
    assert!(at("cuStreamQuery: all launches are done") < at("cuMemFree"), "{seen}");
}

scenario!(a_wait_for_a_stream_that_another_thread_drops_ends, "full", ["FAKE_TAKES" = "1"], || {
    let device = Device::open(0)?;
    let stream = device.stream()?;
    let kernel = kernel(&device)?;
    launch(&stream, &kernel)?;
    thread::scope(|scope| {
        let dropped = spawn_until_asleep(scope, || drop(stream));
        say(device.synchronize(Duration::from_millis(20)).unwrap_err());
        say(device.stream().unwrap_err());
        dropped.join().unwrap();
    });
    Ok(())
});

scenario!(contexts_are_let_go_in_any_order, "full", ["FAKE_CONTEXTS" = "1"], || {
    let device = Device::open(0)?;
    let green = GreenContext::with_sms(&device, 16)?;
    // Another thread gets the green context as soon as this thread releases it, and not before.
    let elsewhere = || {
        thread::scope(|scope| {
            let other = spawn_until_asleep(scope, || drop(green.make_current()));
            say(if other.is_finished() { "another thread had it" } else { "another thread waits" });
        });
    };
    say("green, primary");
    let (first, second) = (green.make_current()?, device.make_current()?);
    say("green goes");
    drop(first);
    elsewhere();
    say("primary goes");
    drop(second);
    say("twice green");
    let (first, second) = (green.make_current()?, green.make_current()?);
    drop(first);
    say("green inside");
    green.stream()?;
    thread::scope(|scope| {
        let other = spawn_until_asleep(scope, || drop(green.make_current()));
        say(if other.is_finished() { "another thread had it" } else { "another thread waits" });
        drop(second);
    });
    Ok(())
});

scenario!(a_green_context_that_a_thread_forgot_is_nobody_elses, "full", [], || {
    let device = Device::open(0)?;
    let green = GreenContext::with_sms(&device, 16)?;
    mem::forget(green.make_current()?);
    drop(green);
    say("another with the same SMs");
    GreenContext::with_sms(&device, 16).map(drop)
});

scenario!(
    a_device_is_reset_when_no_thread_is_in_a_call,
    "full",
    ["FAKE_QUERY" = "700", "FAKE_SLOW_STREAM" = "514"],
    || {
        let device = Device::open(0)?;
        let kernel = kernel(&device)?;
        let (stream, slow) = (device.stream()?, device.stream()?);
        say(format!("{:?} is slow", slow.raw()?));
        launch(&stream, &kernel)?;
        launch(&slow, &kernel)?;
        thread::scope(|scope| {
            spawn_until_asleep(scope, || drop(slow.synchronize_default()));
            say(stream.synchronize_default().unwrap_err());
            device.recover()
        })
        .map(drop)
    }
);

scenario!(a_device_is_not_reset_under_the_hosts_elements, "full", ["FAKE_QUERY" = "700"], || {
    let device = Device::open(0)?;
    let kernel = kernel(&device)?;
    let stream = device.stream()?;
    let host = HostBuffer::<u32>::alloc_zeroed(&device, 1, HostFlags::default())?;
    let mut managed = ManagedBuffer::from_slice(&device, &[1u32])?;
    let elements = managed.host()?;
    launch(&stream, &kernel)?;
    say(stream.synchronize_default().unwrap_err());
    say(device.recover().unwrap_err());
    say(elements[0]);
    drop(managed);
    say(device.recover().unwrap_err());
    drop(host);
    device.recover().map(drop)
});

scenario!(a_fault_that_no_wait_saw_names_the_kernels, "full", [], || {
    let device = Device::open(0)?;
    let stream = device.stream()?;
    let kernel = kernel(&device)?;
    launch(&stream, &kernel)?;
    all_calls_fail(700);
    say(Buffer::<u32>::alloc(&device, 1).unwrap_err());
    say(device.recover().unwrap_err());
    Ok(())
});

scenario!(a_fault_that_was_not_noted_is_recovered_from, "full", [], || {
    let device = Device::open(0)?;
    // SAFETY: the scenario has only one thread here.
    unsafe { env::set_var("FAKE_FAIL", "cuLibraryLoadData:700") };
    say(kernel(&device).unwrap_err());
    all_calls_fail(700);
    say(device.recover().unwrap_err());
    say(device.stream().unwrap_err());
    Ok(())
});

scenario!(a_contained_error_is_a_fault, "full", ["FAKE_QUERY" = "226"], || {
    let device = Device::open(0)?;
    let stream = device.stream()?;
    let kernel = kernel(&device)?;
    launch(&stream, &kernel)?;
    let error = stream.synchronize_default().unwrap_err();
    say(error.hint().unwrap_or_default());
    Err(error)
});

// With a driver that does not report parameters: the fake one knows only those of `lose`.
scenario!(a_fault_names_each_kernel_once, "old", ["FAKE_QUERY" = "719"], || {
    let device = Device::open(0)?;
    let program = Program::load(&device, &common::artifact()?)?;
    let (lose, poke) = (program.kernel("lose")?, program.kernel("poke")?);
    let stream = device.stream()?;
    for _ in 0..2 {
        launch(&stream, &lose)?;
        let one = LaunchConfig::new(1, 1);
        stream.launch(&poke, &one, &[Arg::at_mut::<u32>(&device, 0x1000)])?;
    }
    stream.synchronize_default()
});

scenario!(a_fault_names_no_kernel_that_ended, "old", [], || {
    let device = Device::open(0)?;
    let program = Program::load(&device, &common::artifact()?)?;
    let (lose, poke) = (program.kernel("lose")?, program.kernel("poke")?);
    let stream = device.stream()?;
    launch(&stream, &lose)?;
    stream.synchronize_default()?;
    // SAFETY: the scenario has only one thread here.
    unsafe { env::set_var("FAKE_QUERY", "719") };
    stream.launch(&poke, &LaunchConfig::new(1, 1), &[Arg::at_mut::<u32>(&device, 0x1000)])?;
    stream.synchronize_default()
});

// With the same driver.
scenario!(what_was_before_a_fault_is_not_used_after_it, "old", ["FAKE_QUERY" = "700"], || {
    let device = Device::open(0)?;
    let (mut buffer, event) = (Buffer::<u32>::alloc_zeroed(&device, 1)?, Event::new(&device)?);
    let stream = device.stream()?;
    let kernel = kernel(&device)?;
    launch(&stream, &kernel)?;
    say(stream.synchronize_default().unwrap_err());
    let fresh = device.recover()?;
    let poke = Program::load(&fresh, &common::artifact()?)?.kernel("poke")?;
    let next = fresh.stream()?;
    let one = LaunchConfig::new(1, 1);
    say(next.launch(&poke, &one, &[Arg::from(&mut buffer)]).unwrap_err());
    say(next.launch(&poke, &one, &[Arg::at_mut::<u32>(&device, 0x1000)]).unwrap_err());
    next.launch(&poke, &one, &[Arg::at_mut::<u32>(&fresh, 0x1000)])?;
    let recorded = Event::new(&fresh)?;
    say(recorded.elapsed_ms(&event).unwrap_err());
    say(next.record(&event).unwrap_err());
    let mut copy = Buffer::<u32>::alloc(&fresh, 1)?;
    say(copy.copy_from(&buffer).unwrap_err());
    // Opens a third context while handles of the first two exist.
    drop((next, poke, recorded, copy, fresh));
    let third = Device::open(0)?;
    let poke = Program::load(&third, &common::artifact()?)?.kernel("poke")?;
    say(third.stream()?.launch(&poke, &one, &[Arg::from(&mut buffer)]).unwrap_err());
    Ok(())
});

scenario!(events_of_two_devices_have_no_time_between_them, "full", [], || {
    let (device, cpu) = (Device::open(0)?, Device::open_cpu(CpuConfig::default())?);
    let (here, there) = (Event::new(&device)?, Event::new(&cpu)?);
    say(here.elapsed_ms(&there).unwrap_err());
    say(there.elapsed_ms(&here).unwrap_err());
    Ok(())
});
