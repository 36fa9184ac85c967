//! Support for launches that never wait for the driver's queue: the queue's capacity, and a stream's progress.
//!
//! [`crate::launch_queue`] describes the queue.

use std::collections::VecDeque;
use std::env;
use std::sync::{Mutex, OnceLock};

use gridlet_cpu::sync::lock;

use super::Stream;
use crate::error::Result;
use crate::handles::event::Event;

/// Entries of a channel reserved for copies, events and other libraries, so that they do not make a launch wait.
const RESERVED: u64 = 64;
/// A mark is set after this many launches, to track a stream's progress.
const MARK_EVERY: u64 = 32;

/// The number of launches that fit into one channel, given the environment.
fn channel_capacity(scale: Option<&str>) -> u64 {
    let entries = match scale {
        Some("0.25x") => 256,
        Some("0.5x") => 512,
        Some("2x") => 2048,
        Some("4x") => 4096,
        _ => 1024,
    };
    entries - 2
}

/// The number of channels, given the environment.
fn channels(connections: Option<&str>) -> u64 {
    connections.and_then(|text| text.trim().parse().ok()).map_or(8, |count: u64| count.clamp(1, 32))
}

/// The number of unfinished launches per stream at which no launch waits, if all `streams` streams observe it.
fn allowance(capacity: u64, channels: u64, streams: u64) -> u64 {
    let sharing = streams.div_ceil(channels).max(1);
    (capacity.saturating_sub(RESERVED) / sharing).max(1)
}

/// The same for the process's environment, which the driver also reads once.
pub(crate) fn allowance_here(streams: u64) -> u64 {
    static HERE: OnceLock<(u64, u64)> = OnceLock::new();
    let (capacity, channels) = *HERE.get_or_init(|| {
        let scale = env::var("CUDA_SCALE_LAUNCH_QUEUES").ok();
        let connections = env::var("CUDA_DEVICE_MAX_CONNECTIONS").ok();
        (channel_capacity(scale.as_deref()), channels(connections.as_deref()))
    });
    allowance(capacity, channels, streams)
}

/// A stream's progress, for [`Stream::try_launch`].
#[derive(Debug, Default)]
pub(crate) struct Progress {
    marks: Mutex<Marks>,
}

#[derive(Debug, Default)]
struct Marks {
    /// Events, each with the number of launches before it.
    set: VecDeque<(u64, Event)>,
    /// Events for reuse.
    spare: Vec<Event>,
    /// The number of launches before the last mark.
    last: u64,
}

impl Progress {
    /// Sets a mark after `submitted` launches, if the last mark is far enough back.
    pub(crate) fn mark(&self, stream: &Stream, submitted: u64) -> Result<()> {
        let mut marks = lock(&self.marks);
        if submitted < marks.last + MARK_EVERY {
            return Ok(());
        }
        let event = match marks.spare.pop() {
            Some(event) => event,
            None => Event::new(&stream.device())?,
        };
        stream.record(&event)?;
        marks.last = submitted;
        marks.set.push_back((submitted, event));
        Ok(())
    }

    /// The number of finished launches, as far as the marks show.
    pub(crate) fn finished(&self) -> Result<u64> {
        let mut marks = lock(&self.marks);
        let mut finished = 0;
        while let Some((submitted, event)) = marks.set.front() {
            if !event.is_done()? {
                break;
            }
            finished = *submitted;
            if let Some((_, event)) = marks.set.pop_front() {
                marks.spare.push(event);
            }
        }
        Ok(finished)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_environment_says_how_deep_channels_are() {
        let settings = [None, Some("0.25x"), Some("0.5x"), Some("2x"), Some("4x"), Some("3x")];
        assert_eq!(settings.map(channel_capacity), [1022, 254, 510, 2046, 4094, 1022]);
        let settings = [None, Some("1"), Some("32"), Some("64"), Some("0"), Some("many")];
        assert_eq!(settings.map(channels), [8, 1, 32, 32, 1, 8]);
    }

    #[test]
    fn streams_share_channels() {
        let allowances = [1, 8, 9, 16, 17, 100_000].map(|streams| allowance(1022, 8, streams));
        assert_eq!(allowances, [958, 958, 479, 479, 319, 1]);
        // However many streams launch at once, no channel overflows.
        for streams in 1..200u64 {
            let in_a_channel = streams.div_ceil(8) * allowance(1022, 8, streams);
            assert!(in_a_channel <= 1022 - RESERVED || streams > 958, "{streams} streams");
        }
    }
}
