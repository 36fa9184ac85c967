//! `gridlet device`

use std::fmt::Write as _;

use gridlet_runtime::{Device, DeviceInfo};
use serde_json::json;

use super::{Outcome, print, print_json};

/// Options of `gridlet device`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Lists the GPUs.
pub(crate) fn run(options: &Options) -> Outcome {
    let devices = Device::list()?;
    if options.json {
        return print_json(&json!({"devices": devices}));
    }
    if devices.is_empty() {
        return print("no GPU: the driver is there, but lists no device\n");
    }
    let mut text = String::new();
    for device in &devices {
        describe(device, &mut text);
    }
    print(&text)
}

fn describe(device: &DeviceInfo, text: &mut String) {
    let _ = writeln!(text, "cuda:{}  {}", device.ordinal, device.name);
    let mut row = |name: &str, value: String| _ = writeln!(text, "  {name:<22}{value}");
    row("architecture", device.compute_capability.sm());
    row("SMs", device.sm_count.to_string());
    row("memory", format!("{:.1} GiB", device.memory_bytes as f64 / f64::from(1 << 30)));
    row("driver", device.driver_version.to_string());
    row("threads per block", format!("at most {}", device.limits.max_threads_per_block));
    row(
        "shared per block",
        format!("at most {} bytes", device.limits.shared_bytes_per_block_optin),
    );
    match &device.sm_granularity {
        Some(partition) => row(
            "green contexts",
            format!(
                "partitions of {} SMs or more, in multiples of {}",
                partition.minimum, partition.alignment
            ),
        ),
        None => row(
            "green contexts",
            "not available: they need CUDA 12.4 or newer in the driver".into(),
        ),
    }
    let yes = |flag| if flag { "yes" } else { "no" }.to_string();
    row("unified addressing", yes(device.unified_addressing));
    row("managed memory", yes(device.managed_memory));
}
