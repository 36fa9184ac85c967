//! `gridlet device`

use std::fmt::{Display, Write as _};

use gridlet_runtime::artifact::cpu_arch;
use gridlet_runtime::{Device, DeviceInfo, DeviceKind, Error};
use serde_json::json;

use super::{Outcome, print, print_json};

/// Options of `gridlet device`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Lists the GPUs and the CPU.
pub(crate) fn run(options: &Options) -> Outcome {
    let (mut devices, without_gpu) = gpus()?;
    devices.push(Device::cpu_info());
    if options.json {
        return print_json(&json!({"devices": devices, "no_gpu": without_gpu}));
    }
    let mut text = String::new();
    if let Some(why) = without_gpu {
        let _ = writeln!(text, "no GPU: {why}\n");
    }
    for device in &devices {
        describe(device, &mut text);
    }
    print(&text)
}

/// The GPUs, or why there are none. A driver that fails is an error.
fn gpus() -> Result<(Vec<DeviceInfo>, Option<String>), Error> {
    match Device::list() {
        Ok(devices) if devices.is_empty() => {
            Ok((devices, Some("the driver is there, but lists no device".into())))
        }
        Ok(devices) => Ok((devices, None)),
        Err(error) if error.is_absent_gpu() => Ok((Vec::new(), Some(error.to_string()))),
        Err(error) => Err(error),
    }
}

fn describe(device: &DeviceInfo, text: &mut String) {
    match device.kind {
        DeviceKind::Cuda => describe_gpu(device, text),
        DeviceKind::Cpu => describe_cpu(device, text),
    }
}

fn row(text: &mut String, name: &str, value: impl Display) {
    let _ = writeln!(text, "  {name:<22}{value}");
}

fn gibibytes(bytes: u64) -> String {
    format!("{:.1} GiB", bytes as f64 / f64::from(1 << 30))
}

fn describe_cpu(device: &DeviceInfo, text: &mut String) {
    let _ = writeln!(text, "cpu  {}", device.name);
    row(text, "architecture", cpu_arch());
    row(text, "worker threads", format!("{} (GRIDLET_CPU_THREADS sets them)", device.sm_count));
    if device.memory_bytes > 0 {
        row(text, "memory", gibibytes(device.memory_bytes));
    }
    describe_limits(device, text);
}

fn describe_limits(device: &DeviceInfo, text: &mut String) {
    let limits = &device.limits;
    row(text, "threads per block", format!("at most {}", limits.max_threads_per_block));
    let shared = limits.shared_bytes_per_block_optin;
    row(text, "shared per block", format!("at most {shared} bytes"));
}

fn describe_gpu(device: &DeviceInfo, text: &mut String) {
    let _ = writeln!(text, "cuda:{}  {}", device.ordinal, device.name);
    row(text, "architecture", device.compute_capability.sm());
    row(text, "SMs", device.sm_count);
    row(text, "memory", gibibytes(device.memory_bytes));
    row(text, "driver", device.driver_version);
    describe_limits(device, text);
    match &device.sm_granularity {
        Some(partition) => row(
            text,
            "green contexts",
            format!(
                "partitions of {} SMs or more, in multiples of {}",
                partition.minimum, partition.alignment
            ),
        ),
        None => {
            row(text, "green contexts", "not available: they need CUDA 12.4 or newer in the driver")
        }
    }
    let yes = |flag| if flag { "yes" } else { "no" };
    row(text, "unified addressing", yes(device.unified_addressing));
    row(text, "managed memory", yes(device.managed_memory));
}
