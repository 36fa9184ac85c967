//! The host side of a program: how to run and check it.

use std::path::Path;
use std::time::Duration;

use gridlet_runtime::{Arg, Device, Event, Kernel, LaunchConfig, Program, Stream};

/// Time limit of one kernel with all its children.
pub const TIME_OUT: Duration = Duration::from_secs(60);

/// Launches that may be pending at once: enough for every example here. The device runtime's own default,
/// 2,048, is not: it loses launches when it is full and can hang when children launch into a full pool.
pub const PENDING_LAUNCHES: u64 = 32_768;

/// A program and its host side.
pub struct Example {
    /// Its name, the stem of its source file.
    pub name: &'static str,
    /// Its source.
    pub source: &'static str,
    /// A description in one line.
    pub what: &'static str,
    /// Runs it and checks the result. A picture, if it has one, goes to the folder.
    pub run: fn(&Run<'_>) -> anyhow::Result<Finding>,
}

/// Where an example runs.
pub struct Run<'a> {
    /// The device, for memory.
    pub device: &'a Device,
    /// The stream: of a green context or of the primary context.
    pub stream: &'a Stream,
    /// The program, loaded.
    pub program: &'a Program,
    /// Folder for pictures.
    pub pictures: &'a Path,
    /// Divides the size of the problem: 1, or more for tests on slow devices.
    pub shrink: u32,
}

impl Run<'_> {
    /// Launches a kernel, waits for it and all its children, and gives their time in milliseconds, by events
    /// on the stream.
    ///
    /// # Errors
    /// The errors of the runtime: a wrong argument, a fault, lost launches, a time-out.
    pub fn timed(
        &self,
        kernel: &Kernel,
        config: &LaunchConfig,
        arguments: &[Arg<'_>],
    ) -> anyhow::Result<f32> {
        let (start, end) = (Event::new(self.device)?, Event::new(self.device)?);
        self.stream.record(&start)?;
        self.stream.launch(kernel, config, arguments)?;
        self.stream.record(&end)?;
        self.stream.synchronize(TIME_OUT)?;
        Ok(start.elapsed_ms(&end)?)
    }
}

/// The result of a checked run.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// Time of the first kernel with all its children, in milliseconds, by events on the stream.
    pub milliseconds: f32,
    /// A description of the check, with numbers.
    pub checked: String,
}

/// Compares values with the expected ones and names the first difference.
pub(crate) fn compare(found: &[u32], expected: &[u32]) -> anyhow::Result<()> {
    anyhow::ensure!(found.len() == expected.len(), "{} values came back", found.len());
    match (0..found.len()).find(|&at| found[at] != expected[at]) {
        Some(at) => Err(anyhow::anyhow!(
            "value {at} is {}, but a sort on the host puts {} there",
            found[at],
            expected[at]
        )),
        None => Ok(()),
    }
}
