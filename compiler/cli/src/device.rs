//! `gridlet device`

use std::fmt::{Display, Write as _};

use gridlet_runtime::artifact::cpu_arch;
use gridlet_runtime::{Device, DeviceInfo, DeviceKind, Error, Limit};
use serde::Serialize;
use serde_json::json;

use crate::output::{print, print_json};
use crate::report::Outcome;

/// Options of `gridlet device`.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Write JSON
    #[arg(long)]
    json: bool,
}

/// Lists the GPUs and the CPU.
pub(crate) fn run(options: &Options) -> Outcome {
    let (gpus, without_gpu) = gpus()?;
    let mut devices: Vec<Described> = gpus.into_iter().map(Described::by_opening).collect();
    devices.push(Described { info: Device::cpu_info(), opened: Opened::default() });
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

/// One device in the list.
#[derive(Serialize)]
struct Described {
    #[serde(flatten)]
    info: DeviceInfo,
    #[serde(flatten)]
    opened: Opened,
}

/// Properties that only an open GPU reports; empty for the CPU.
#[derive(Default, Serialize)]
struct Opened {
    /// The greatest stream priority, which is the lowest number, and the least.
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_priorities: Option<(i32, i32)>,
    /// The driver's defaults.
    #[serde(skip_serializing_if = "Option::is_none")]
    driver_limits: Option<DriverLimits>,
    /// Why the GPU could not be opened.
    #[serde(skip_serializing_if = "Option::is_none")]
    not_opened: Option<String>,
}

#[derive(Serialize)]
struct DriverLimits {
    pending_launches: u64,
    stack_bytes: u64,
    heap_bytes: u64,
    printf_bytes: u64,
}

impl Described {
    /// Describes a GPU. One that cannot be opened, because it is busy or broken, is shown with what
    /// the driver lists of it.
    fn by_opening(info: DeviceInfo) -> Described {
        let open = || -> Result<Opened, Error> {
            let device = Device::open(info.ordinal)?;
            let priorities = device.stream_priorities()?;
            Ok(Opened {
                stream_priorities: Some((*priorities.start(), *priorities.end())),
                driver_limits: Some(DriverLimits {
                    pending_launches: device.limit(Limit::PendingLaunches)?,
                    stack_bytes: device.limit(Limit::StackBytes)?,
                    heap_bytes: device.limit(Limit::HeapBytes)?,
                    printf_bytes: device.limit(Limit::PrintfBytes)?,
                }),
                not_opened: None,
            })
        };
        let opened = open().unwrap_or_else(|error| Opened {
            not_opened: Some(error.to_string()),
            ..Opened::default()
        });
        Described { info, opened }
    }
}

/// The GPUs, or why there are none. A failing driver is an error.
fn gpus() -> Result<(Vec<DeviceInfo>, Option<String>), Error> {
    match Device::list() {
        Ok(devices) if devices.is_empty() => {
            Ok((devices, Some("the driver is installed, but lists no device".into())))
        }
        Ok(devices) => Ok((devices, None)),
        Err(error) if error.is_absent_gpu() => Ok((Vec::new(), Some(error.to_string()))),
        Err(error) => Err(error),
    }
}

fn describe(device: &Described, text: &mut String) {
    match device.info.kind {
        DeviceKind::Cuda => {
            describe_gpu(&device.info, text);
            describe_opened(&device.opened, text);
        }
        DeviceKind::Cpu => describe_cpu(&device.info, text),
    }
}

fn describe_opened(opened: &Opened, text: &mut String) {
    if let Some((greatest, least)) = opened.stream_priorities {
        row(text, "stream priorities", format!("{greatest} (first) to {least}"));
    }
    if let Some(limits) = &opened.driver_limits {
        row(text, "pending launches", format!("{} by default", limits.pending_launches));
        row(text, "stack per thread", format!("{} bytes", limits.stack_bytes));
        row(text, "device heap", format!("{} bytes", limits.heap_bytes));
        row(text, "printf buffer", format!("{} bytes", limits.printf_bytes));
    }
    if let Some(why) = &opened.not_opened {
        row(text, "cannot be opened", why);
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
    row(text, "worker threads", format!("{} (set by GRIDLET_CPU_THREADS)", device.sm_count));
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
    let features = &device.green_context_features;
    let newer = [
        ("green context ids", features.ids, "13.0"),
        ("structured splits", features.structured_split, "13.1"),
        ("SMs per stream", features.stream_resources, "13.1"),
        ("workqueues", features.workqueues, "13.1"),
    ];
    for (name, has, since) in newer {
        let has =
            if has { "yes".to_owned() } else { format!("no: needs CUDA {since} in the driver") };
        row(text, name, has);
    }
    row(text, "unified addressing", yes(device.unified_addressing));
    row(text, "managed memory", yes(device.managed_memory));
}
