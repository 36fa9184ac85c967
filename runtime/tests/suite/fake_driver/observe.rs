//! The events that a `tracing` subscriber receives.

use std::time::Duration;

use gridlet_runtime::{
    Arg, Artifact, Buffer, CpuConfig, Device, GreenContext, LaunchConfig, Limit, Program, Result,
    Stream,
};
use tracing::Level;
use tracing::subscriber::with_default;

use super::{common, say, scenario};
use crate::collect::Collector;

/// Runs `body` and prints what a subscriber at this level received.
fn observed(level: Level, body: fn() -> Result<()>) -> Result<()> {
    let collector = Collector::new(level);
    let result = with_default(collector.clone(), body);
    for line in collector.lines() {
        say(line);
    }
    result
}

fn launch(program: &Program, stream: &Stream) -> Result<()> {
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    stream.launch(&program.kernel("lose")?, &LaunchConfig::new((2, 3), 32).with_shared(64), &args)
}

/// Opens, loads, launches, waits, copies, sets a limit, creates a partition.
fn all_kinds() -> Result<()> {
    let device = Device::open(0)?;
    device.set_limit(Limit::PrintfBytes, 1 << 20)?;
    let program = Program::load(&device, &common::artifact()?)?;
    let green = GreenContext::with_sms(&device, 16)?;
    let stream = green.stream()?;
    launch(&program, &stream)?;
    launch(&program, &stream)?;
    stream.synchronize_default()?;
    Buffer::from_slice(&device, &[1u32, 2])?.to_vec().map(drop)
}

scenario!(everything_is_seen_at_the_finest_level, "full", [], || observed(Level::TRACE, all_kinds));
scenario!(launches_are_not_seen_at_the_debug_level, "full", ["FAKE_QUIET" = "1"], || {
    observed(Level::DEBUG, all_kinds)
});
scenario!(a_partition_that_children_leave_is_warned_of_once, "full", ["FAKE_QUIET" = "1"], || {
    observed(Level::WARN, all_kinds)
});

scenario!(
    a_partition_that_children_may_leave_is_not_warned_of,
    "full",
    ["FAKE_QUIET" = "1", "FAKE_MAJOR" = "8", "FAKE_MINOR" = "9"],
    || {
        observed(Level::WARN, || {
            all_kinds()?;
            let device = Device::open(0)?;
            let program = Program::load(&device, &common::artifact()?)?;
            say(GreenContext::with_sms(&device, 16)?.confinement(&program));
            Ok(())
        })
    }
);

// "When a module with dynamic parallelism (CDP) is loaded": other loaded programs matter.
scenario!(a_program_that_launches_lends_others_two_sms, "full", [], || {
    let plain = || {
        let mut manifest = common::manifest();
        manifest.device_runtime = None;
        Artifact::new(manifest, vec![common::PTX.into()])
    };
    let device = Device::open(0)?;
    let green = GreenContext::with_sms(&device, 16)?;
    let program = Program::load(&device, &plain()?)?;
    say(format!("{:?}", green.confinement(&program)));
    let launching = Program::load(&device, &common::artifact()?)?;
    say(format!("{:?}", green.confinement(&program)));
    say(green.confinement(&program));
    say(format!("{:?}", green.confinement(&launching)));
    drop(launching);
    say(format!("{:?}", green.confinement(&program)));
    let cpu = Device::open_cpu(CpuConfig::default())?;
    say(format!("{:?}", GreenContext::with_sms(&cpu, 1)?.confinement(&program)));
    Ok(())
});

scenario!(losses_of_a_dropped_program_are_warned_of_once, "full", ["FAKE_LOST" = "3"], || {
    observed(Level::WARN, || {
        let device = Device::open(0)?;
        for _ in 0..2 {
            let program = Program::load(&device, &common::artifact()?)?;
            launch(&program, &device.stream()?)?;
        }
        // A wait that reports the lost launches leaves nothing to warn about.
        let program = Program::load(&device, &common::artifact()?)?;
        let stream = device.stream()?;
        launch(&program, &stream)?;
        say(stream.synchronize_default().unwrap_err());
        Ok(())
    })
});

scenario!(
    handles_that_leak_after_a_time_out_are_warned_of_once,
    "full",
    ["FAKE_QUERY" = "600"],
    || {
        observed(Level::WARN, || {
            let device = Device::open(0)?;
            let buffer = Buffer::<u32>::alloc_zeroed(&device, 4)?;
            let program = Program::load(&device, &common::artifact()?)?;
            let stream = device.stream()?;
            launch(&program, &stream)?;
            say(stream.synchronize(Duration::from_millis(20)).unwrap_err());
            drop((stream, buffer, program));
            Ok(())
        })
    }
);
