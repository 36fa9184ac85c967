//! The depth of the driver's queue of launches, measured. [`Stream::try_launch`] never waits for that queue.
//!
//! The driver puts launches into channels of 1,024 entries, of which 1,022 can be used, and a launch into a full one
//! waits until the kernel at its end has run. There are 8 channels, or as many as `CUDA_DEVICE_MAX_CONNECTIONS` says
//! (1 to 32), among which streams are shared out evenly, and `CUDA_SCALE_LAUNCH_QUEUES` scales the entries (CUDA C++
//! Programming Guide, CUDA Environment Variables; seen on an H200 with driver 580.159.04: [`probe`] shows it).

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

/// What [`probe`] does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct QueueProbe {
    /// Streams, each fed by a thread of its own.
    pub streams: u32,
    /// Blocks of each grid.
    pub grid: u32,
    /// Threads of each block.
    pub block: u32,
    /// [`Limit::PendingLaunches`] to set before; it should change nothing.
    pub pending_launches: Option<u64>,
    /// Give up after so many launches in all.
    pub most: u64,
    /// The host counts as blocked once no launch has returned for so long.
    pub patience: Duration,
    /// How often it is measured, at least once. The most launches count: a single round was now and then one launch
    /// short (seen on an H200 with driver 580.159.04; why is not known).
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

/// What [`probe`] found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct QueueDepth {
    /// Launches that returned before the host blocked, over all streams. The first of each channel runs; the others
    /// wait in the queue.
    pub launches: u64,
    /// The same for each stream.
    pub per_stream: Vec<u64>,
    /// Whether the host blocked; else [`QueueProbe::most`] was reached.
    pub blocked: bool,
}

/// Launches kernels that do not end until the host blocks, then ends them. It waits for the device before and after, and
/// wants it for itself.
///
/// The driver reads its environment once, so another setting takes another process. A process that launches a kernel
/// which never ends can hang: run this in one that somebody watches.
///
/// # Errors
/// [`Error::NotOnCpu`]; those of launching and waiting.
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
    // Round 0 has ended before it begins. What the driver does once for a kernel or a stream is done then, and not in the
    // rounds that count.
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

/// The kernel that does not end before its round, as it is launched.
struct Hold {
    kernel: Kernel,
    config: LaunchConfig,
    /// The last round that ended.
    flag: HostBuffer<u64>,
}

impl Hold {
    fn launch(&self, stream: &Stream, round: u64) -> Result<()> {
        stream.launch(&self.kernel, &self.config, &[Arg::from(&self.flag), Arg::from(round)])
    }
}

/// One round: fills the queue of a device that has nothing to do, and lets it go on.
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
