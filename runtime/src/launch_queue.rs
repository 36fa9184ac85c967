//! Measures the depth of the driver's launch queue. [`Stream::try_launch`] never waits for that queue.
//!
//! The driver puts launches into channels of 1,024 entries, 1,022 of them usable; a launch into a full channel
//! blocks until the kernel at its head has run. There are 8 channels, or `CUDA_DEVICE_MAX_CONNECTIONS` (1 to 32),
//! over which streams are distributed evenly; `CUDA_SCALE_LAUNCH_QUEUES` scales the entries (CUDA C++ Programming
//! Guide, CUDA Environment Variables; measured with [`probe`] on an H200 with driver 580.159.04).

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use gridlet_artifact::manifest::{ImageKind, Manifest};
use gridlet_artifact::{Artifact, Dim3, LaunchConfig, describe_image};
use serde::{Deserialize, Serialize};

use crate::arguments::Arg;
use crate::error::{Error, Result};
use crate::handles::{DEFAULT_TIMEOUT, Device, Kernel, Program, Stream};
use crate::info::DeviceKind;
use crate::limits::Limit;
use crate::unified::{HostBuffer, HostFlags};

/// The parameters of [`probe`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct QueueProbe {
    /// Number of streams, each fed by its own thread.
    pub streams: u32,
    /// Blocks per grid.
    pub grid: u32,
    /// Threads per block.
    pub block: u32,
    /// The [`Limit::PendingLaunches`] to set first; it should change nothing.
    pub pending_launches: Option<u64>,
    /// Gives up after this many launches in total.
    pub most: u64,
    /// The host counts as blocked once no launch has returned for this long.
    pub patience: Duration,
    /// Number of measurements, at least one. The deepest counts: a single round was occasionally one launch short
    /// (seen on an H200 with driver 580.159.04; the cause is unknown).
    pub rounds: u32,
}

impl Default for QueueProbe {
    fn default() -> Self {
        QueueProbe {
            streams: 1,
            grid: 1,
            block: 1,
            pending_launches: None,
            most: 200_000,
            patience: Duration::from_millis(300),
            rounds: 3,
        }
    }
}

impl QueueProbe {
    gridlet_artifact::setters! {
        with_streams: streams: u32,
        with_grid: grid: u32,
        with_block: block: u32,
        with_pending_launches: pending_launches: Option<u64>,
        with_most: most: u64,
        with_patience: patience: Duration,
        with_rounds: rounds: u32,
    }
}

/// The result of [`probe`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct QueueDepth {
    /// Launches that returned before the host blocked, over all streams. The first in each channel runs; the
    /// others wait in the queue.
    pub launches: u64,
    /// The same count for each stream.
    pub per_stream: Vec<u64>,
    /// Whether the host blocked; otherwise [`QueueProbe::most`] was reached.
    pub blocked: bool,
}

/// Launches kernels that do not end until the host blocks, then ends them. Waits for the device before and after,
/// and needs it to be otherwise idle.
///
/// The driver reads its environment once, so each setting needs a new process. A process with an endless kernel
/// can hang: run this in a process that is supervised.
///
/// # Errors
/// [`Error::NotOnCpu`]; the errors of launching and waiting.
pub fn probe(device: &Device, probe: &QueueProbe) -> Result<QueueDepth> {
    if device.info().kind == DeviceKind::Cpu {
        return Err(Error::NotOnCpu { what: "launch queue" });
    }
    if let Some(launches) = probe.pending_launches {
        device.set_limit(Limit::PendingLaunches, launches)?;
    }
    let program = Program::load(device, &artifact()?)?;
    let hold = Hold {
        kernel: program.kernel("hold")?,
        config: LaunchConfig::new(Dim3::from(probe.grid), Dim3::from(probe.block)),
        flag: HostBuffer::<u64>::alloc_zeroed(device, 1, HostFlags::default())?,
    };
    let streams: Vec<Stream> =
        (0..probe.streams).map(|_| device.stream()).collect::<Result<_>>()?;
    // Round 0 is over before it begins. It absorbs the driver's one-time work for a kernel or stream, which would
    // distort the measured rounds.
    for stream in &streams {
        hold.launch(stream, 0)?;
    }
    device.synchronize(DEFAULT_TIMEOUT)?;
    let mut deepest = measure(&hold, &streams, probe, 1)?;
    for round in 2..=u64::from(probe.rounds) {
        device.synchronize(DEFAULT_TIMEOUT)?;
        let depth = measure(&hold, &streams, probe, round)?;
        if depth.launches > deepest.launches {
            deepest = depth;
        }
    }
    device.synchronize(DEFAULT_TIMEOUT)?;
    Ok(deepest)
}

/// The kernel that runs until its round ends, and its launch configuration.
struct Hold {
    kernel: Kernel,
    config: LaunchConfig,
    /// The last round that has ended.
    flag: HostBuffer<u64>,
}

impl Hold {
    fn launch(&self, stream: &Stream, round: u64) -> Result<()> {
        stream.launch(&self.kernel, &self.config, &[Arg::from(&self.flag), Arg::from(round)])
    }
}

/// One round: fills the queue of an idle device, then releases it.
fn measure(hold: &Hold, streams: &[Stream], probe: &QueueProbe, round: u64) -> Result<QueueDepth> {
    let counts: Vec<AtomicU64> = streams.iter().map(|_| AtomicU64::new(0)).collect();
    let stop = AtomicBool::new(false);
    let total = || counts.iter().map(|count| count.load(Ordering::Acquire)).sum::<u64>();

    let (result, depth) = thread::scope(|scope| {
        let feed = |(stream, count): (&Stream, &AtomicU64)| -> Result<()> {
            while !stop.load(Ordering::Acquire) && total() < probe.most {
                hold.launch(stream, round)?;
                count.fetch_add(1, Ordering::AcqRel);
            }
            Ok(())
        };
        let feeds: Vec<_> =
            streams.iter().zip(&counts).map(|pair| scope.spawn(move || feed(pair))).collect();
        let (mut last, mut since) = (0, Instant::now());
        let blocked = loop {
            thread::sleep(Duration::from_millis(5));
            let now = total();
            if now != last {
                (last, since) = (now, Instant::now());
            } else if feeds.iter().all(thread::ScopedJoinHandle::is_finished) {
                break false;
            } else if since.elapsed() >= probe.patience {
                break true;
            }
        };
        let per_stream: Vec<u64> = counts.iter().map(|c| c.load(Ordering::Acquire)).collect();
        let depth = QueueDepth { launches: per_stream.iter().sum(), per_stream, blocked };
        stop.store(true, Ordering::Release);
        hold.flag.set_from_host(0, round);
        let mut result = Ok(());
        for feed in feeds {
            let ended = feed.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            result = result.and(ended);
        }
        (result, depth)
    });
    result.map(|()| depth)
}

/// `hold.ptx` as an artifact.
fn artifact() -> Result<Artifact> {
    const PTX: &str = include_str!("launch_queue/hold.ptx");
    let manifest = serde_json::json!({
        "manifest_version": 1,
        "program": "launch_queue",
        "sources": ["hold.ptx"],
        "source_sha256": "",
        "launch_strategy": "cdp",
        "kernels": [{
            "name": "hold",
            "parameters": [{
                "name": "flag", "offset": 0, "size": 8, "alignment": 8,
                "type": { "pointer": { "mutable": false, "to": { "scalar": "u64" } } },
            }, {
                "name": "round", "offset": 8, "size": 8, "alignment": 8,
                "type": { "scalar": "u64" },
            }],
            "parameter_bytes": 16, "static_shared_bytes": 0, "dynamic_shared": false,
            "launches": [],
        }],
        "structs": [],
        "images": [describe_image(ImageKind::Ptx, "compute_75", "hold.ptx", PTX.as_bytes())],
    });
    let manifest: Manifest = serde_json::from_value(manifest)
        .map_err(|error| Error::CpuImage { reason: error.to_string() })?;
    Ok(Artifact::new(manifest, vec![PTX.into()])?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernel_that_holds_is_an_artifact() {
        let artifact = artifact().expect("an artifact");
        assert_eq!(artifact.kernel("hold").expect("the kernel").parameter_bytes, 16);
    }
}
