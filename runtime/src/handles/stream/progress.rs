//! Launches that never wait for the driver's queue: how many it takes, and how far a stream has come.
//!
//! [`crate::launch_queue`] describes the queue.

use std::collections::VecDeque;
use std::env;
use std::sync::{Mutex, OnceLock};

use gridlet_cpu::sync::lock;

use super::Stream;
use crate::error::Result;
use crate::handles::event::Event;

/// Entries of a channel that copies, events and other libraries may take without a launch having to wait.
const RESERVED: u64 = 64;
/// A mark is set after so many launches, to see how far a stream has come.
const MARK_EVERY: u64 = 32;

/// How many launches one channel takes, by the environment.
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

/// How many channels there are, by the environment.
fn channels(connections: Option<&str>) -> u64 {
    connections.and_then(|text| text.trim().parse().ok()).map_or(8, |count: u64| count.clamp(1, 32))
}

/// How many launches of a stream may be under way so that none waits, if all of `streams` keep to it.
fn allowance(capacity: u64, channels: u64, streams: u64) -> u64 {
    let sharing = streams.div_ceil(channels).max(1);
    (capacity.saturating_sub(RESERVED) / sharing).max(1)
}

/// The same for the process's environment, which the driver reads once as well.
pub(crate) fn allowance_here(streams: u64) -> u64 {
    static HERE: OnceLock<(u64, u64)> = OnceLock::new();
    let (capacity, channels) = *HERE.get_or_init(|| {
        let scale = env::var("CUDA_SCALE_LAUNCH_QUEUES").ok();
        let connections = env::var("CUDA_DEVICE_MAX_CONNECTIONS").ok();
        (channel_capacity(scale.as_deref()), channels(connections.as_deref()))
    });
    allowance(capacity, channels, streams)
}

/// How far a stream has come, for [`Stream::try_launch`].
#[derive(Debug, Default)]
pub(crate) struct Progress {
    marks: Mutex<Marks>,
}

#[derive(Debug, Default)]
struct Marks {
    /// Events, with how many launches came before each.
    set: VecDeque<(u64, Event)>,
    /// Events to use again.
    spare: Vec<Event>,
    /// Launches before the last mark.
    last: u64,
}

impl Progress {
    /// Sets a mark after `submitted` launches, if the last is far enough back.
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

    /// How many launches have ended, as far as the marks tell.
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
        // However many launch at once, no channel gets more than it takes.
        for streams in 1..200u64 {
            let in_a_channel = streams.div_ceil(8) * allowance(1022, 8, streams);
            assert!(in_a_channel <= 1022 - RESERVED || streams > 958, "{streams} streams");
        }
    }
}
