//! Resident launches: the entry's parameters, and the launch memory of streams.

use gridlet_runtime::{
    Arg, Artifact, Device, GreenContext, Kernel, LaunchConfig, Program, Result, Stream,
};

use super::driver::say;
use super::scenario;
use crate::resident_artifact::resident_artifact;

fn program() -> Result<(Device, Program)> {
    let device = Device::open(0)?;
    let program = Program::load(&device, &resident_artifact()?)?;
    Ok((device, program))
}

fn launch(stream: &Stream, kernel: &Kernel, config: &LaunchConfig) -> Result<()> {
    let args = [Arg::from(-1), Arg::from(2u32), Arg::from(0x0102_0304u32)];
    stream.launch(kernel, config, &args)
}

scenario!(the_entry_gets_the_root_grid, "full", [], || {
    let (device, program) = program()?;
    let (kernel, plain) = (program.kernel("lose")?, program.kernel("plain")?);
    let stream = device.stream()?;
    let config = LaunchConfig::new((2, 3, 4), (5, 6, 7)).with_shared(20).with_priority(-1);
    launch(&stream, &kernel, &config)?;
    say("the same shape");
    launch(&stream, &kernel, &LaunchConfig::new(1, 193).with_shared(25))?;
    say("the children need more than the root");
    launch(&stream, &kernel, &LaunchConfig::new(1, 1))?;
    say("a kernel that launches nothing");
    launch(&stream, &plain, &LaunchConfig::new(7, 33).with_shared(20))?;
    say("large shared memory");
    for shared in [100_000, 60_000] {
        launch(&stream, &kernel, &LaunchConfig::new(1, 1).with_shared(shared))?;
    }
    stream.synchronize_default()
});

scenario!(each_stream_has_its_own_launch_memory, "full", ["FAKE_TALLY" = "1"], || {
    let (device, program) = program()?;
    let kernel = program.kernel("lose")?;
    let config = LaunchConfig::new(1, 1);
    let (first, second) = (device.stream()?, device.stream()?);
    let unused = device.stream()?;
    let green = GreenContext::with_sms(&device, 16)?;
    say(green.confinement(&program));
    let green = green.stream()?;
    for stream in [&first, &second, &first, &green, &green] {
        launch(stream, &kernel, &config)?;
    }
    say("a stream is dropped while others have work");
    drop(first);
    say("the next stream takes its memory");
    let next = device.stream()?;
    launch(&next, &kernel, &config)?;
    say("without other work, memory is freed with its stream");
    device.synchronize(gridlet_runtime::DEFAULT_TIMEOUT)?;
    drop((next, unused));
    say("device and program are dropped before the last streams");
    drop((device, program, kernel));
    drop(second);
    drop(green);
    Ok(())
});

scenario!(the_last_stream_frees_what_no_stream_took, "full", ["FAKE_TALLY" = "1"], || {
    let (device, program) = program()?;
    let kernel = program.kernel("lose")?;
    let (first, second) = (device.stream()?, device.stream()?);
    for stream in [&first, &second] {
        launch(stream, &kernel, &LaunchConfig::new(1, 1))?;
    }
    drop(first);
    say("the last stream");
    drop(second);
    Ok(())
});

scenario!(launch_memory_has_a_size, "full", ["FAKE_TALLY" = "1"], || {
    let (device, program) = program()?;
    let kernel = program.kernel("lose")?;
    let stream = device.stream()?;
    let config = LaunchConfig::new(1, 1);
    say(format!("{} bytes", device.launch_memory()));
    device.set_launch_memory(4095);
    say(launch(&stream, &kernel, &config).unwrap_err());
    // 132 SMs run 21 blocks of 96 threads each: 32,768 slots, and an area and 4 records for each of 2,772 workers.
    let needed = 4096 + 32_768 * 128 + 2772 * (4096 + 4 * 256);
    device.set_launch_memory(needed - 1);
    say(launch(&stream, &kernel, &config).unwrap_err());
    device.set_launch_memory(needed);
    launch(&stream, &kernel, &config)?;
    say("the earlier launch may still use the smaller memory");
    device.set_launch_memory(20 << 20);
    launch(&stream, &kernel, &config)?;
    device.set_launch_memory(needed);
    let other = device.stream()?;
    launch(&other, &kernel, &config)?;
    device.synchronize(gridlet_runtime::DEFAULT_TIMEOUT)?;
    drop(other);
    say("nothing uses it any more");
    device.set_launch_memory(21 << 20);
    launch(&stream, &kernel, &config)?;
    device.set_launch_memory(1);
    launch(&stream, &program.kernel("plain")?, &config)
});

scenario!(no_launch_memory_is_an_error, "full", ["FAKE_FAIL" = "cuMemAlloc_v2:2"], || {
    let (device, program) = program()?;
    let (kernel, stream) = (program.kernel("lose")?, device.stream()?);
    for _ in 0..2 {
        say(launch(&stream, &kernel, &LaunchConfig::new(1, 1)).unwrap_err());
    }
    launch(&stream, &program.kernel("plain")?, &LaunchConfig::new(1, 1))
});

scenario!(a_kernel_that_runs_through_the_entry_has_its_attributes, "full", [], || {
    let (_device, program) = program()?;
    for name in ["plain", "lose"] {
        let kernel = program.kernel(name)?;
        say(format!("{name}: {:?}", kernel.limits()));
        let attributes = kernel.attributes()?;
        say(format!("{} bytes of static shared memory", attributes.static_shared_bytes));
        say(format!("{} blocks for each SM", kernel.max_active_blocks(50, 0)?));
        let largest = LaunchConfig::new(1, 1).with_shared(232_448 - 1120);
        say(format!("{:?}", kernel.max_active_blocks(1, largest.shared_bytes).is_ok()));
        let larger = largest.with_shared(largest.shared_bytes + 1);
        say(format!("{:?}", kernel.max_active_blocks(1, larger.shared_bytes).map(drop)));
        let stream = program.device().stream()?;
        for config in
            [LaunchConfig::new(8, 1).with_cluster(8), LaunchConfig::new(1, 1).cooperative()]
        {
            match launch(&stream, &kernel, &config) {
                Ok(()) => stream.synchronize_default()?,
                Err(error) => say(error),
            }
        }
    }
    Ok(())
});

scenario!(a_full_launch_memory_loses_launches, "full", ["FAKE_LOST" = "3"], || {
    let (device, program) = program()?;
    let stream = device.stream()?;
    launch(&stream, &program.kernel("lose")?, &LaunchConfig::new(1, 1))?;
    stream.synchronize_default()
});

scenario!(a_foreign_stream_has_launch_memory_here, "full", ["FAKE_TALLY" = "1"], || {
    let (device, program) = program()?;
    let theirs = device.stream()?;
    // SAFETY: the stream lives as long as its owner, which the other stream holds.
    let ours = unsafe { Stream::borrow_raw(&device, theirs.raw()?, theirs.clone()) }?;
    launch(&ours, &program.kernel("lose")?, &LaunchConfig::new(1, 1))?;
    drop(theirs);
    Ok(())
});

scenario!(another_entry_is_not_launched, "full", ["FAKE_WORDS" = "3"], || {
    let (_device, program) = program()?;
    program.kernel("plain")?;
    program.kernel("lose").map(drop)
});

scenario!(
    a_graph_has_launch_memory_of_its_own,
    "full",
    ["FAKE_CAPTURE" = "7", "FAKE_TALLY" = "1"],
    || {
        let (device, program) = program()?;
        let kernel = program.kernel("lose")?;
        let (ours, captured, other) = (device.stream()?, device.stream()?, device.stream()?);
        // Other code captures a stream that it has the handle of.
        for stream in [&captured, &other] {
            stream.raw()?;
        }
        let config = LaunchConfig::new(1, 1);
        for stream in [&ours, &captured, &captured, &other] {
            launch(stream, &kernel, &config)?;
        }
        say("a larger block");
        launch(&captured, &kernel, &LaunchConfig::new(1, 1024))?;
        say("the streams are dropped");
        drop((ours, captured, other));
        say("the program is dropped");
        Ok(())
    }
);

scenario!(children_that_do_not_fit_the_device_are_refused, "full", [], || {
    let artifact = resident_artifact()?;
    let images: Vec<_> = artifact.images().map(|(_, bytes)| bytes.to_vec()).collect();
    let mut manifest = artifact.manifest().clone();
    if let Some(resident) = &mut manifest.resident {
        resident.shared_bytes = 232_448;
    }
    let device = Device::open(0)?;
    let program = Program::load(&device, &Artifact::new(manifest, images)?)?;
    launch(&device.stream()?, &program.kernel("lose")?, &LaunchConfig::new(1, 1))
});
