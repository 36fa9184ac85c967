//! The runtime's `tracing` events: one function per kind of event, so that names and fields are in one place. All
//! events have the target [`TARGET`].
//!
//! | Level | Event or span | Fields |
//! |---|---|---|
//! | debug | `opened a device` | `device`, `name`, `sms`, `driver` |
//! | debug | span `load`, with `loaded an image` | `program`; `image`, `arch`, `bytes` |
//! | debug | `set a limit` | `device`, `limit`, `value`, `taken_bytes` |
//! | debug | `created a green context` | `device`, `sms` |
//! | debug | span `wait`, with `waited` | `what`; `us`, `outcome` |
//! | trace | `copying` | `what`, `bytes` |
//! | trace | `launching` | `kernel`, `grid`, `block`, `shared_bytes`, `stream` |
//! | warn | conditions that cannot return an error: [`Unseen`] | |
//!
//! Without a subscriber, a launch costs one comparison of levels.

use std::fmt::Display;
use std::sync::atomic::{AtomicBool, Ordering};

use gridlet_artifact::LaunchConfig;
use gridlet_artifact::manifest::Image;
use tracing::span::EnteredSpan;
use tracing::{debug, debug_span, trace, warn};

use crate::error::{Error, Result};
use crate::info::DeviceInfo;

/// The target of all events.
pub const TARGET: &str = "gridlet_runtime";

/// Conditions that cannot be returned as errors; each is a warning once per process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Unseen {
    /// A program that launches from the device runs in a green context, and its child grids leave it.
    ChildrenLeave,
    /// A program was dropped before a wait could report its lost launches.
    DroppedLosses,
    /// Handles are leaked, because destroying them would wait for hung work or take them from another library.
    Leaked,
}

impl Unseen {
    /// Whether this is the first occurrence.
    fn is_first(self) -> bool {
        static SEEN: [AtomicBool; 3] = [const { AtomicBool::new(false) }; 3];
        !SEEN[self as usize].swap(true, Ordering::Relaxed)
    }
}

pub(crate) fn opened(device: impl Display, info: &DeviceInfo) {
    debug!(
        target: TARGET,
        %device,
        name = info.name,
        sms = info.sm_count,
        driver = %info.driver_version,
        "opened a device"
    );
}

/// A span that lasts while a program is being loaded.
pub(crate) fn loading(program: &str) -> EnteredSpan {
    debug_span!(target: TARGET, "load", program).entered()
}

pub(crate) fn loaded(image: &Image) {
    debug!(
        target: TARGET,
        image = ?image.kind,
        arch = image.arch,
        bytes = image.bytes,
        "loaded an image"
    );
}

pub(crate) fn limit_set(device: impl Display, limit: &str, value: u64, taken_bytes: i64) {
    debug!(target: TARGET, %device, limit, value, taken_bytes, "set a limit");
}

pub(crate) fn green_created(device: impl Display, sms: u32) {
    debug!(target: TARGET, %device, sms, "created a green context");
}

/// Runs a wait for `what` and, if the span is enabled, times it and reports its outcome.
pub(crate) fn waiting<T>(
    what: impl Fn() -> String,
    wait: impl FnOnce() -> Result<T>,
    outcome: impl FnOnce(&T) -> &'static str,
) -> Result<T> {
    if !tracing::enabled!(target: TARGET, tracing::Level::DEBUG) {
        return wait();
    }
    let _span = debug_span!(target: TARGET, "wait", what = what()).entered();
    let start = std::time::Instant::now();
    let waited = wait();
    let us = start.elapsed().as_micros() as u64;
    let outcome = waited.as_ref().map_or("failed", outcome);
    debug!(target: TARGET, us, outcome, "waited");
    waited
}

pub(crate) fn copying(what: &str, bytes: usize) {
    trace!(target: TARGET, what, bytes, "copying");
}

#[inline]
pub(crate) fn launching(kernel: &str, config: &LaunchConfig, stream: u64) {
    trace!(
        target: TARGET,
        kernel,
        grid = %config.grid,
        block = %config.block,
        shared_bytes = config.shared_bytes,
        stream,
        "launching"
    );
}

/// Warns that a program runs in a green context that its child grids leave.
pub(crate) fn children_leave(program: &str, confinement: impl Display) {
    if Unseen::ChildrenLeave.is_first() {
        warn!(target: TARGET, program, "{confinement}");
    }
}

/// Warns about the launches that a dropped program lost and nobody saw.
pub(crate) fn dropped(report: Result<()>) {
    if let Err(error @ Error::LostLaunches(_)) = report
        && Unseen::DroppedLosses.is_first()
    {
        warn!(target: TARGET, "dropped before a wait could report it: {error}");
    }
}

/// Warns that a handle leaks, and why.
pub(crate) fn leaked(why: impl Display) {
    if Unseen::Leaked.is_first() {
        warn!(target: TARGET, "handles are leaked from here on: {why}");
    }
}
