//! Output for people: one line for each step, in colour on a terminal.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

/// `✓ what    detail`
pub(crate) fn done(what: &str, detail: &str) {
    line("32", "✓", what, detail);
}

/// `✗ what    detail`
pub(crate) fn failed(what: &str, detail: &str) {
    line("31", "✗", what, detail);
}

/// `- what    detail`, for a skipped step
pub(crate) fn skipped(what: &str, detail: &str) {
    line("33", "-", what, detail);
}

/// `→ text`, before something that takes a while
pub(crate) fn step(text: &str) {
    eprintln!("{} {text}", paint("1;34", "→"));
}

/// A remark about the line above or below.
pub(crate) fn note(text: &str) {
    eprintln!("  {}", text.replace('\n', "\n  "));
}

/// A line as it is.
pub(crate) fn plain(text: &str) {
    eprintln!("{text}");
}

/// The error and its causes, one below the other.
pub(crate) fn error(error: &anyhow::Error) {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    eprintln!("{} {}", paint("1;31", "error:"), causes.join("\n  because: "));
}

fn line(color: &str, mark: &str, what: &str, detail: &str) {
    let text = format!("{} {what:<26} {detail}", paint(color, mark));
    eprintln!("{}", text.trim_end());
}

fn paint(color: &str, text: &str) -> String {
    let colored = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    if colored { format!("\x1b[{color}m{text}\x1b[0m") } else { text.to_string() }
}

/// `150 MB`, `3.1 MB`, `134 kB`: decimal units.
pub(crate) fn bytes(count: u64) -> String {
    let value = count as f64;
    match count {
        0..1_000 => format!("{count} bytes"),
        1_000..1_000_000 => format!("{:.0} kB", value / 1e3),
        1_000_000..10_000_000 => format!("{:.1} MB", value / 1e6),
        _ => format!("{:.0} MB", value / 1e6),
    }
}

/// `0.4 s`, `12 s`, `3 min 05 s`.
pub(crate) fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..10 => format!("{:.1} s", time.as_secs_f64()),
        10..60 => format!("{} s", time.as_secs()),
        seconds => format!("{} min {:02} s", seconds / 60, seconds % 60),
    }
}

/// A progress bar over `total` bytes; a single line where standard error is not a terminal.
pub(crate) fn byte_bar(what: &str, total: u64) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        step(&format!("{what}: {}", bytes(total)));
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(total).with_message(what.to_string());
    if let Ok(style) = ProgressStyle::with_template(
        "{msg:<28} {bar:30} {decimal_bytes:>9} of {decimal_total_bytes} {eta:>4}",
    ) {
        bar.set_style(style);
    }
    bar
}

/// A spinner for work of unknown length; a single line where standard error is not a terminal.
pub(crate) fn spinner(what: &str) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        step(what);
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new_spinner().with_prefix(what.to_string());
    if let Ok(style) = ProgressStyle::with_template("{spinner} {prefix}: {wide_msg:.dim}") {
        bar.set_style(style);
    }
    bar.enable_steady_tick(Duration::from_millis(100));
    bar
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_short() {
        assert_eq!(bytes(999), "999 bytes");
        assert_eq!(bytes(134_086), "134 kB");
        assert_eq!(bytes(3_120_526), "3.1 MB");
        assert_eq!(bytes(149_960_000), "150 MB");
        assert_eq!(seconds(Duration::from_millis(420)), "0.4 s");
        assert_eq!(seconds(Duration::from_secs(185)), "3 min 05 s");
    }
}
