//! Time that tests may hold against a limit.

/// How long this thread ran, whoever else did: Linux counts nanoseconds. `None` on other systems.
pub(crate) fn seconds_on_processor() -> Option<f64> {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(text.split_whitespace().next()?.parse::<f64>().ok()? / 1e9)
}
