//! One measurement of the launch queue, in its own process: the driver reads its environment only
//! once, and a process whose kernel never ends may hang.

use std::ffi::OsString;
use std::fmt;
use std::fs::File;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::str::FromStr;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use gridlet::diagnostics::ids;
use gridlet_runtime::launch_queue::{QueueDepth, QueueProbe, probe};
use gridlet_runtime::{Device, DeviceSelector};
use serde::{Serialize, Serializer};
use tempfile::TempDir;

use crate::output::print_json;
use crate::report::{Failure, Outcome};
use crate::status;

/// Environment variables of the driver (CUDA C++ Programming Guide, "CUDA Environment Variables").
pub(super) const CONNECTIONS: &str = "CUDA_DEVICE_MAX_CONNECTIONS";
pub(super) const SCALE: &str = "CUDA_SCALE_LAUNCH_QUEUES";

/// How often to poll the process.
const POLL: Duration = Duration::from_millis(10);

/// The settings of a measurement.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(super) struct Setting {
    pub(super) streams: u32,
    /// Blocks.
    pub(super) grid: u32,
    /// Threads per block.
    pub(super) block: u32,
    /// [`CONNECTIONS`], if it is set.
    #[serde(rename = "max_connections")]
    pub(super) connections: Option<u32>,
    /// [`SCALE`], if it is set.
    #[serde(rename = "scale_launch_queues")]
    pub(super) scale: Option<&'static str>,
    /// The limit of pending device-side launches, if it is set.
    #[serde(rename = "pending_launches")]
    pub(super) pending: Option<u64>,
}

/// The settings that differ from the driver's defaults.
impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.connections, self.scale, self.pending) {
            (Some(count), _, _) => write!(f, "{CONNECTIONS}={count}"),
            (_, Some(scale), _) => write!(f, "{SCALE}={scale}"),
            (_, _, Some(limit)) => write!(f, "pending launches: {limit}"),
            _ => f.write_str("-"),
        }
    }
}

/// How a measurement ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// With a result.
    Measured(QueueDepth),
    /// The process was killed after this time.
    Hung(Duration),
    /// The process failed with this message.
    Failed(String),
}

impl Serialize for Ending {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let value = match self {
            Ending::Measured(depth) => serde_json::json!({
                "launches": depth.launches, "per_stream": depth.per_stream, "blocked": depth.blocked,
            }),
            Ending::Hung(after) => serde_json::json!({"hung_after_s": after.as_secs_f64()}),
            Ending::Failed(why) => serde_json::json!({"failed": why}),
        };
        value.serialize(serializer)
    }
}

/// The value of the hidden option: streams, blocks, threads and the limit of pending launches (0:
/// the default).
#[derive(Clone, Debug)]
pub(super) struct Order {
    device: DeviceSelector,
    probe: QueueProbe,
}

impl FromStr for Order {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("`{text}` is not DEVICE,STREAMS,BLOCKS,THREADS,LIMIT");
        let (device, numbers) = text.split_once(',').ok_or_else(wrong)?;
        let numbers: Vec<u32> =
            numbers.split(',').map(str::parse).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let &[streams, grid, block, pending] = numbers.as_slice() else { return Err(wrong()) };
        let pending_launches = (pending > 0).then_some(u64::from(pending));
        let probe = QueueProbe::default()
            .with_streams(streams)
            .with_grid(grid)
            .with_block(block)
            .with_pending_launches(pending_launches);
        Ok(Order { device: device.parse()?, probe })
    }
}

/// Measures in this process, and writes the result as JSON.
pub(super) fn in_this_process(order: &Order) -> Outcome {
    let device = Device::select(order.device)?;
    print_json(&probe(&device, &order.probe)?)
}

/// The command that starts this program, if it is not this process's file.
static RESTART: OnceLock<Vec<OsString>> = OnceLock::new();

/// Sets the command that starts this program in a process that has another file. Its first word is the file to run.
pub(crate) fn set_restart(command: Vec<OsString>) {
    let _ = RESTART.set(command);
}

/// The command that starts this program.
fn restart() -> std::io::Result<Vec<OsString>> {
    match RESTART.get().filter(|command| !command.is_empty()) {
        Some(command) => Ok(command.clone()),
        None => Ok(vec![std::env::current_exe()?.into_os_string()]),
    }
}

/// Measures in a child process, which is killed after `timeout`.
pub(super) fn in_child_process(
    device: u32,
    setting: &Setting,
    timeout: Duration,
) -> Result<Ending, Failure> {
    let failed = |what: &str, error: std::io::Error| {
        Failure::new(status::RUN, ids::PROBE, format!("{what}: {error}"))
    };
    // Files rather than pipes, because nobody reads a pipe while the process is watched.
    let folder = TempDir::new().map_err(|error| failed("a temporary folder", error))?;
    let (out, err) = (folder.path().join("out"), folder.path().join("err"));
    let file = |path| File::create(path).map_err(|error| failed("a temporary file", error));
    let this = restart().map_err(|error| failed("this program's file", error))?;
    let Setting { streams, grid, block, .. } = setting;
    let pending = setting.pending.unwrap_or_default();
    let order = format!("cuda:{device},{streams},{grid},{block},{pending}");
    let mut command = Command::new(&this[0]);
    command
        .args(&this[1..])
        .args(["probe", "launch-queue", "--measure", &order])
        .stdin(Stdio::null())
        .stdout(file(&out)?)
        .stderr(file(&err)?)
        // Settings inherited from the environment must not affect the rows without them.
        .env_remove(CONNECTIONS)
        .env_remove(SCALE);
    if let Some(count) = setting.connections {
        command.env(CONNECTIONS, count.to_string());
    }
    if let Some(scale) = setting.scale {
        command.env(SCALE, scale);
    }
    let mut child = command.spawn().map_err(|error| failed("a process to measure in", error))?;
    let watched = watch(&mut child, timeout);
    let Some(left) = watched.map_err(|error| failed("the process that measures", error))? else {
        return Ok(Ending::Hung(timeout));
    };
    let read = |path| -> Result<String, Failure> {
        let bytes = std::fs::read(path).map_err(|error| failed("a temporary file", error))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    };
    Ok(ending(left, &read(&out)?, &read(&err)?))
}

/// Waits for a process, and kills it after `timeout`: then `None`.
fn watch(child: &mut Child, timeout: Duration) -> std::io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(left) = child.try_wait()? {
            return Ok(Some(left));
        }
        if start.elapsed() >= timeout {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        std::thread::sleep(POLL);
    }
}

fn ending(left: ExitStatus, out: &str, err: &str) -> Ending {
    // The driver may print before and after the result.
    let text = out.find("{\n").map_or("", |at| &out[at..]);
    match serde_json::Deserializer::from_str(text).into_iter().next() {
        Some(Ok(depth)) if left.success() => Ending::Measured(depth),
        _ => {
            let said = err.trim().strip_prefix("error: ").unwrap_or(err.trim());
            let nothing = format!("the process ended with {left} and no result");
            Ending::Failed(if said.is_empty() { nothing } else { said.into() })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_five_things() {
        let order: Order = "cuda:1,3,1728,128,1000".parse().expect("an order");
        assert_eq!(order.device, DeviceSelector::Cuda(1));
        let QueueProbe { streams, grid, block, pending_launches, .. } = order.probe;
        assert_eq!((streams, grid, block, pending_launches), (3, 1728, 128, Some(1000)));
        for wrong in ["cuda:0,1,1,1", "cuda:0,1,1,1,x", "gpu,1,1,1,0", ""] {
            assert!(wrong.parse::<Order>().is_err(), "{wrong}");
        }
    }
}
