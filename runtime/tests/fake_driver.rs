//! How the runtime uses a driver, seen from the driver: a fake one prints the calls that it gets. So the order
//! of destruction, time-outs, faults and old drivers are tested on machines without a GPU.
//!
//! Each scenario runs in a process of its own, because a process loads one driver.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers panic, and a child process reports by printing"
)]

mod common;

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;
use std::time::Duration;

use gridlet_runtime::{Arg, Buffer, Device, GreenContext, LaunchConfig, Program, Result};

/// Set in the processes that run a scenario.
const SCENARIO: &str = "GRIDLET_FAKE_SCENARIO";

/// Marks the scenario's own lines among the test harness's.
const MARK: &str = "> ";

/// In a scenario process runs `scenario`; else starts that process with the fake driver and returns the calls
/// and what the scenario printed. `None` in the scenario process, and where there is no C compiler.
fn driven(
    name: &str,
    flavour: &str,
    settings: &[(&str, &str)],
    scenario: fn() -> Result<()>,
) -> Option<String> {
    if std::env::var_os(SCENARIO).is_some() {
        println!(); // The harness has begun a line of its own.
        if let Err(error) = scenario() {
            say(format!("error: {error}"));
        }
        return None;
    }
    let Some(drivers) = fake_drivers() else {
        let _ =
            writeln!(std::io::stderr(), "SKIPPED: {name} needs a C compiler: no `cc` on the path");
        return None;
    };
    let this = std::env::current_exe().unwrap();
    let output = Command::new(this)
        .args([name, "--exact", "--nocapture", "--test-threads=1"])
        .env(SCENARIO, name)
        .env("LD_LIBRARY_PATH", drivers.join(flavour))
        .envs(settings.iter().copied())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> =
        text.lines().filter(|line| line.starts_with("cu") || line.starts_with(MARK)).collect();
    assert!(!lines.is_empty(), "the scenario said nothing:\n{text}");
    Some(lines.join("\n"))
}

fn say(text: impl std::fmt::Display) {
    for line in text.to_string().lines() {
        println!("{MARK}{line}");
    }
}

/// The folder that has a folder with `libcuda.so` and `libcuda.so.1` for each flavour of fake driver; `None`
/// if there is no C compiler.
fn fake_drivers() -> Option<&'static Path> {
    static DRIVERS: OnceLock<Option<PathBuf>> = OnceLock::new();
    DRIVERS
        .get_or_init(|| {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
                .join(format!("fake_driver-{}", std::process::id()));
            let flavours: [(&str, &[&str]); 4] = [
                ("not-a-library", &[]),
                ("empty", &["-DWITHOUT_DEVICES", "-DWITHOUT_GREEN"]),
                ("old", &["-DWITHOUT_GREEN"]),
                ("full", &[]),
            ];
            for (flavour, flags) in flavours {
                let libraries =
                    ["libcuda.so", "libcuda.so.1"].map(|name| folder.join(flavour).join(name));
                std::fs::create_dir_all(folder.join(flavour)).unwrap();
                if flavour == "not-a-library" {
                    std::fs::write(&libraries[0], "no library").unwrap();
                } else if !build(&folder.join("fake.c"), &libraries[0], flags) {
                    return None;
                }
                std::fs::copy(&libraries[0], &libraries[1]).unwrap();
            }
            Some(folder)
        })
        .as_deref()
}

/// Compiles the fake driver; false if there is no compiler.
fn build(source: &Path, library: &Path, flags: &[&str]) -> bool {
    std::fs::write(source, include_str!("fake_driver/fake.c")).unwrap();
    let mut cc = Command::new("cc");
    match cc.args(["-shared", "-fPIC", "-w", "-o"]).arg(library).args(flags).arg(source).status() {
        Ok(status) => assert!(status.success(), "cc: {status}"),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return false,
        Err(error) => panic!("cc: {error}"),
    }
    true
}

/// One test per scenario: a name, a flavour of driver, its settings, what runs, and the expected calls.
macro_rules! scenario {
    ($name:ident, $flavour:literal, [$($setting:literal = $value:literal),*], $run:expr) => {
        #[test]
        fn $name() {
            if let Some(seen) = driven(stringify!($name), $flavour, &[$(($setting, $value)),*], $run) {
                insta::assert_snapshot!(stringify!($name), seen);
            }
        }
    };
}

fn open() -> Result<()> {
    say(format!("{:?}", Device::list().map(|devices| devices.len())));
    Device::open(0).map(|_| ())
}

scenario!(no_driver_is_an_error, "not-a-library", [], open);
scenario!(a_driver_too_old_says_so, "empty", ["FAKE_VERSION" = "11080"], open);
scenario!(a_driver_without_a_gpu_says_so, "empty", ["FAKE_INIT" = "100"], open);
scenario!(a_driver_that_does_not_start_says_so, "empty", ["FAKE_INIT" = "999"], open);
scenario!(a_missing_call_is_an_error, "empty", [], open);
scenario!(a_second_gpu_that_is_not_there, "full", [], || Device::open(1).map(|_| ()));

scenario!(green_contexts_need_a_driver_that_has_them, "old", [], || {
    let device = Device::open(0)?;
    say(format!("granularity: {:?}", device.info().sm_granularity));
    GreenContext::with_sms(&device, 16).map(|_| ())
});

scenario!(handles_are_destroyed_in_order, "full", [], || {
    let device = Device::open(0)?;
    device.set_pending_launch_limit(4096)?;
    let program = Program::load(&device, &common::artifact()?)?;
    let kernel = program.kernel("lose")?;
    let buffer = Buffer::<f32>::alloc_zeroed(&device, 4)?;
    let green = GreenContext::with_sms(&device, 12)?;
    say(format!("{} SMs", green.sm_count()));
    let stream = green.stream()?;
    let args = [Arg::from(-1), Arg::from(2u32), Arg::from(0x0102_0304u32)];
    stream.launch(&kernel, &LaunchConfig::new((2, 3), (32, 2, 1)).with_shared(64), &args)?;
    stream.synchronize_default()?;
    say(device.set_pending_launch_limit(4096).unwrap_err());
    // The worst order: everything that others need goes first.
    drop((device, green, program));
    say("kernel");
    drop(kernel);
    say("stream");
    drop(stream);
    say("buffer");
    drop(buffer);
    Ok(())
});

scenario!(memory_is_freed_after_the_launches_that_may_use_it, "full", ["FAKE_POLLS" = "5"], || {
    let device = Device::open(0)?;
    let buffer = Buffer::<u8>::alloc(&device, 4)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = device.stream()?;
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
    drop(buffer);
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
    drop(stream);
    Ok(())
});

scenario!(large_shared_memory_opts_in_once, "full", [], || {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = device.stream()?;
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    for shared in [49_152, 100_000, 60_000] {
        stream.launch(&kernel, &LaunchConfig::new(1, 1).with_shared(shared), &args)?;
    }
    stream.synchronize_default()
});

scenario!(a_whole_device_is_not_split, "full", [], || {
    let device = Device::open(0)?;
    say(format!("{} SMs", GreenContext::with_sms(&device, 130)?.sm_count()));
    say(GreenContext::with_sms(&device, 0).unwrap_err());
    GreenContext::with_sms(&device, 133).map(|_| ())
});

scenario!(nothing_is_destroyed_after_a_time_out, "full", ["FAKE_QUERY" = "600"], || {
    let device = Device::open(0)?;
    let buffer = Buffer::<u32>::alloc_zeroed(&device, 4)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = GreenContext::with_sms(&device, 16)?.stream()?;
    stream.launch(
        &kernel,
        &LaunchConfig::new(1, 1),
        &[Arg::from(0), Arg::from(0u32), Arg::from(0u32)],
    )?;
    say(stream.synchronize(Duration::from_millis(20)).unwrap_err());
    say(buffer.to_vec().unwrap_err());
    drop((kernel, stream, buffer, device));
    let again = Device::open(0)?;
    again.stream().map(|_| ())
});

scenario!(a_fault_names_the_kernels, "full", ["FAKE_QUERY" = "719"], || {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = device.stream()?;
    stream.launch(
        &kernel,
        &LaunchConfig::new(1, 1),
        &[Arg::from(0), Arg::from(0u32), Arg::from(0u32)],
    )?;
    stream.synchronize_default()
});

scenario!(lost_launches_are_reported_once, "full", ["FAKE_LOST" = "3"], || {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    let launch =
        |stream: &gridlet_runtime::Stream| stream.launch(&kernel, &LaunchConfig::new(1, 1), &args);
    launch(&stream)?;
    say(stream.synchronize_default().unwrap_err());
    stream.synchronize_default()?;
    // While another stream is busy the record is not cleared, and still nothing is reported twice.
    launch(&stream)?;
    launch(&other)?;
    say(stream.synchronize_default().unwrap_err());
    stream.synchronize_default()?;
    launch(&stream)?;
    // A copy waits, so it reports as well.
    say(Buffer::from_slice(&device, &[1u8]).unwrap_err());
    device.synchronize(Duration::from_secs(1))?;
    launch(&other)?;
    device.synchronize(Duration::from_secs(1))
});

scenario!(a_refused_image_shows_the_drivers_log, "full", ["FAKE_LOAD" = "218"], || {
    Program::load(&Device::open(0)?, &common::artifact()?).map(|_| ())
});

scenario!(
    the_drivers_parameters_must_be_the_manifests,
    "full",
    ["FAKE_PARAMETER_BYTES" = "8"],
    || {
        let program = Program::load(&Device::open(0)?, &common::artifact()?)?;
        program.kernel("lose").map(|_| ())
    }
);

scenario!(a_record_of_another_size_is_refused, "full", ["FAKE_RECORD_BYTES" = "8"], || {
    Program::load(&Device::open(0)?, &common::artifact()?).map(|_| ())
});

scenario!(a_launch_that_does_not_fit_is_not_made, "full", [], || {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = device.stream()?;
    let one = LaunchConfig::new(1, 1);
    say(stream.launch(&kernel, &one, &[Arg::from(0)]).unwrap_err());
    say(stream
        .launch(&kernel, &one, &[Arg::from(0u32), Arg::from(0u32), Arg::from(0u32)])
        .unwrap_err());
    stream.launch(&kernel, &LaunchConfig::new(1, 2048), &[])
});

scenario!(the_device_describes_itself, "full", [], || {
    let device = Device::open(0)?;
    say(serde_json::to_string(device.info()).unwrap());
    Ok(())
});
