//! The notice of lost launches, which saves copies of the record.

use std::time::Duration;

use gridlet_runtime::{Arg, Artifact, Device, LaunchConfig, Program, Result, Stream};

use super::{common, say, scenario};

/// A program whose image takes the address of a notice.
fn artifact() -> Result<Artifact> {
    let mut manifest = common::manifest();
    if let Some(runtime) = &mut manifest.device_runtime {
        runtime.lost_launch_notice = Some("__gridlet_lost_launch_notice".into());
    }
    Ok(Artifact::new(manifest, vec![common::PTX.into()])?)
}

/// Launches a kernel that loses launches if `error` is not 0.
fn launch(program: &Program, stream: &Stream, error: i32) -> Result<()> {
    let args = [Arg::from(error), Arg::from(0u32), Arg::from(0u32)];
    stream.launch(&program.kernel("lose")?, &LaunchConfig::new(1, 1), &args)
}

scenario!(the_record_is_copied_only_after_a_loss, "full", ["FAKE_LOST" = "3"], || {
    let device = Device::open(0)?;
    let program = Program::load(&device, &artifact()?)?;
    let (stream, other) = (device.stream()?, device.stream()?);
    say("nothing lost");
    launch(&program, &stream, 0)?;
    stream.synchronize_default()?;
    say("lost on an idle device");
    launch(&program, &stream, 69)?;
    say(stream.synchronize_default().unwrap_err());
    say("nothing lost");
    launch(&program, &stream, 0)?;
    stream.synchronize_default()?;
    say(
        "lost twice while another stream is busy: the record is not cleared, and the second loss sets no notice",
    );
    launch(&program, &other, 0)?;
    for _ in 0..2 {
        launch(&program, &stream, 69)?;
        say(stream.synchronize_default().unwrap_err());
    }
    say("idle again");
    device.synchronize(Duration::from_secs(1))?;
    say("nothing lost");
    launch(&program, &stream, 0)?;
    stream.synchronize_default()?;
    say("lost while the program is dropped");
    launch(&program, &stream, 69)
});

scenario!(a_notice_of_another_size_is_an_error, "full", ["FAKE_NOTICE_BYTES" = "4"], || {
    let device = Device::open(0)?;
    let program = Program::load(&device, &artifact()?)?;
    launch(&program, &device.stream()?, 0)
});
