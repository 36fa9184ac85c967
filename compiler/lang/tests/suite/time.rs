//! Processor time, for tests with a time limit.

/// The processor time of this thread, independent of other load: Linux counts nanoseconds. `None` on other
/// systems.
pub(crate) fn seconds_on_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}
