//! Signals that end the program: temporary files and folders are removed first.

use gridlet::temporary;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use signal_hook::low_level::emulate_default_handler;

/// Removes temporary files and folders on a signal, and then ends as if nobody had handled it. Signals that the process
/// was started to ignore (`nohup`) stay ignored.
pub(crate) fn install() {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let ignored = ignored.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0);
    let handled =
        [SIGHUP, SIGINT, SIGTERM].into_iter().filter(|signal| ignored >> (signal - 1) & 1 == 0);
    // Without the handlers, files may be left behind, which is no reason not to start.
    let Ok(mut signals) = Signals::new(handled) else { return };
    let waiting = std::thread::Builder::new().name("signals".into());
    let _ = waiting.spawn(move || {
        for signal in signals.forever() {
            temporary::remove_all();
            let _ = emulate_default_handler(signal);
        }
    });
}
