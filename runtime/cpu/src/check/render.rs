//! Renders reports as text.

use std::fmt::Write as _;

use super::report::{ChainLink, Place, Report};
use crate::executor::is_operation_name;

/// Returns a line of a source file, if available.
pub type SourceLines<'a> = dyn Fn(&str, u32) -> Option<String> + 'a;

/// Renders a report, ending with a newline.
pub fn render(report: &Report, source: &SourceLines<'_>) -> String {
    let mut text = format!("error[{}]: {}\n", report.kind.id(), report.message);
    let number = report.place.line.to_string();
    let other_line = report.other.as_ref().map(|other| other.place.line.to_string());
    let width = number.len().max(other_line.map_or(0, |line| line.len()));
    // Writing to a `String` cannot fail.
    let _ = writeln!(text, "{:width$}--> {}", "", text_of(&report.place));
    excerpt(&mut text, &report.place, width, source);
    let _ = writeln!(text, "{:width$} = {} {}", "", report.thread, report.action);
    for (position, link) in report.chain.iter().enumerate() {
        if report.chain_omitted > 0 && position + 1 == report.chain.len() {
            let _ = writeln!(text, "{:width$} = … {} more launches …", "", report.chain_omitted);
        }
        let _ =
            writeln!(text, "{:width$} = {}", "", launched(&report.kernel, report, position, link));
    }
    if let Some(other) = &report.other {
        let _ = writeln!(text, "{:width$}::: {}", "", text_of(&other.place));
        if other.place != report.place {
            excerpt(&mut text, &other.place, width, source);
        }
        let of = if other.kernel == report.kernel || is_operation_name(&other.kernel) {
            String::new()
        } else {
            format!(" of kernel `{}`", other.kernel)
        };
        let _ = writeln!(text, "{:width$} = {}{of} {}", "", other.thread, other.action);
        if other.chain != report.chain
            && let Some(link) = other.chain.first()
        {
            let _ = writeln!(
                text,
                "{:width$} = `{}` was launched by `{}` at {}, {}",
                "",
                other.kernel,
                link.kernel,
                text_of(&link.place),
                link.thread
            );
        }
    }
    if report.count > 1 {
        let _ = writeln!(text, "{:width$} = found {} times at these lines", "", report.count);
    }
    let _ = writeln!(text, "{:width$} = help: {}", "", report.help);
    text
}

fn launched(kernel: &str, report: &Report, position: usize, link: &ChainLink) -> String {
    let child = match position.checked_sub(1) {
        Some(previous) => &report.chain[previous].kernel,
        None => kernel,
    };
    format!(
        "`{child}` was launched by `{}` at {}, {}",
        link.kernel,
        text_of(&link.place),
        link.thread
    )
}

fn excerpt(text: &mut String, place: &Place, width: usize, source: &SourceLines<'_>) {
    if let Some(line) = source(&place.file, place.line) {
        let _ = writeln!(text, "{:width$} |", "");
        let _ = writeln!(text, "{:>width$} | {}", place.line, line.trim_end());
        let _ = writeln!(text, "{:width$} |", "");
    }
}

/// Renders all reports, followed by the number of findings and of those omitted.
pub fn render_all(reports: &[Report], further: u64, source: &SourceLines<'_>) -> String {
    let mut text: String = reports.iter().map(|report| render(report, source) + "\n").collect();
    let found = reports.len() as u64 + further;
    if found > 0 {
        let _ = writeln!(text, "--check found {found} error{}", if found == 1 { "" } else { "s" });
    }
    if further > 0 {
        let _ = writeln!(text, "{further} of them are not shown; fix these first");
    }
    text
}

pub(super) fn plural(count: usize) -> &'static str {
    if count == 1 { "" } else { "s" }
}

pub(super) fn text_of(place: &Place) -> String {
    format!("{}:{}", place.file, place.line)
}
