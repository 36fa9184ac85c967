//! The events that a `tracing` subscriber receives from the CPU device, with an image in C.

use crate::c_image;
use crate::collect::Collector;
use gridlet_runtime::{
    Artifact, Buffer, CpuConfig, Device, GreenContext, LaunchConfig, Limit, Program, Result,
};
use tracing::Level;
use tracing::subscriber::with_default;

/// A program with a kernel of `cpu/tests/device/kernels.c`; `None` without a C compiler.
fn artifact() -> Option<Artifact> {
    c_image::artifact(serde_json::json!({
        "name": "empty", "parameters": [], "parameter_bytes": 0, "static_shared_bytes": 0,
        "dynamic_shared": false, "launches": [],
    }))
}

/// The lines that a subscriber at this level receives.
fn observed(level: Level, artifact: &Artifact) -> Vec<String> {
    let body = || -> Result<()> {
        let device = Device::open_cpu(CpuConfig { threads: Some(2), ..CpuConfig::default() })?;
        device.set_limit(Limit::PendingLaunches, 100)?;
        let program = Program::load(&device, artifact)?;
        let stream = GreenContext::with_sms(&device, 1)?.stream()?;
        stream.launch(&program.kernel("empty")?, &LaunchConfig::new((2, 3), 4), &[])?;
        stream.synchronize_default()?;
        Buffer::from_slice(&device, &[1u8; 3])?.to_vec().map(drop)
    };
    let collector = Collector::new(level);
    with_default(collector.clone(), body).unwrap();
    collector.lines()
}

#[test]
fn the_cpu_device_tells_what_it_does() {
    let Some(artifact) = artifact() else { return };
    let lines = observed(Level::TRACE, &artifact).join("\n");
    // Values that depend on the machine.
    insta::with_settings!({ filters => [
        (r#"name="[^"]*""#, "name=_"),
        (r#"arch="[^"]*""#, "arch=_"),
        (r"bytes=\d{4,}", "bytes=_"),
    ] }, { insta::assert_snapshot!(lines) });
}

#[test]
fn subscribers_get_their_level_and_nothing_stays_behind() {
    let Some(artifact) = artifact() else { return };
    let all = observed(Level::TRACE, &artifact);
    let debug = observed(Level::DEBUG, &artifact);
    let less: Vec<&String> = all.iter().filter(|line| !line.starts_with("TRACE")).collect();
    assert_eq!(debug.iter().collect::<Vec<_>>(), less);
    assert!(all.len() > debug.len());
    assert_eq!(observed(Level::INFO, &artifact), [""; 0]);
    assert_eq!(observed(Level::TRACE, &artifact), all);
}
