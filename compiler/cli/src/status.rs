//! Exit statuses, by the party responsible for the failure.

/// Nothing failed.
pub(crate) const SUCCESS: u8 = 0;
/// The program, or a module linked to it, is wrong.
pub(crate) const PROGRAM: u8 = 1;
/// The command line is wrong.
pub(crate) const CALL: u8 = 2;
/// A tool, driver or device is missing, too old, or refused its input, or a disk is full.
pub(crate) const MISSING: u8 = 3;
/// The run failed: a fault, lost launches, a time-out.
pub(crate) const RUN: u8 = 4;
/// A bug of Gridlet (`EX_SOFTWARE` of sysexits).
pub(crate) const INTERNAL: u8 = 70;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_lists_every_status() {
        let page = include_str!("../../../docs/command-line.md");
        for status in [SUCCESS, PROGRAM, CALL, MISSING, RUN, INTERNAL] {
            assert!(page.contains(&format!("\n| {status} | ")), "{status}");
        }
        assert!(page.contains("134 (`SIGABRT`)"));
    }
}
