//! Time that tests may hold against a limit. The unit tests of the library include this file, too.

use std::time::Instant;

/// How many seconds of processor time `run` takes on this thread, whatever else the machine does. Only Linux counts
/// it; elsewhere, the time that passes.
#[allow(dead_code, reason = "not every program that has this file needs it")]
pub(crate) fn seconds(run: impl FnOnce()) -> f64 {
    let (start, before) = (Instant::now(), seconds_on_processor());
    run();
    match (before, seconds_on_processor()) {
        (Some(before), Some(after)) => after - before,
        _ => start.elapsed().as_secs_f64(),
    }
}

/// How long this thread has run, in seconds. Linux counts nanoseconds.
pub(crate) fn seconds_on_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}
