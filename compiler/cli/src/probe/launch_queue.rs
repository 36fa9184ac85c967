//! `gridlet probe launch-queue`

use std::fmt::Write as _;
use std::io::{IsTerminal as _, Write as _};
use std::path::PathBuf;
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets::UTF8_FULL_CONDENSED};
use gridlet::diagnostics::ids;
use gridlet_runtime::{Device, DeviceInfo, DeviceSelector, Error};
use serde::Serialize;
use serde_json::json;

use super::measure::{self, Ending, Order, Setting};
use super::plot;
use crate::output::{print, print_json};
use crate::report::{Failure, Outcome, Reporter};
use crate::status;

/// Blocks and threads per block: the smallest grid, and one that fills a GPU.
const SHAPES: [(u32, u32); 2] = [(1, 1), (1728, 128)];
/// Streams in the measurements that vary connections: more than the driver's default of 8
/// connections.
const STREAMS_OF_CONNECTIONS: u32 = 16;

/// Options of `gridlet probe launch-queue`.
#[derive(clap::Args)]
pub(super) struct Options {
    /// The GPU
    #[arg(long, default_value = "cuda", value_name = "cuda[:N]")]
    device: DeviceSelector,
    /// Numbers of streams to launch into, each fed by its own thread
    #[arg(long, value_delimiter = ',', default_value = "1,3,8,12,16,48,128", value_name = "LIST",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    streams: Vec<u32>,
    /// Time limit of one measurement
    #[arg(long, default_value_t = 30.0, value_name = "SECONDS", value_parser = crate::run::seconds)]
    timeout: f64,
    /// Plot launches over streams
    #[arg(long, value_name = "FILE.svg")]
    plot: Option<PathBuf>,
    /// Write JSON
    #[arg(long)]
    json: bool,
    /// Measure once, in this process
    #[arg(long, hide = true, value_name = "DEVICE,STREAMS,BLOCKS,THREADS,LIMIT")]
    measure: Option<Order>,
}

/// A setting and its result.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    #[serde(flatten)]
    pub(super) setting: Setting,
    pub(super) result: Ending,
}

/// Measures every setting, one after another.
pub(super) fn run(options: &Options, reporter: &Reporter) -> Outcome {
    if let Some(order) = &options.measure {
        return measure::in_this_process(order);
    }
    let DeviceSelector::Cuda(ordinal) = options.device else {
        return Err(Failure::call("only a GPU has a launch queue: give --device cuda or cuda:N"));
    };
    if let Some(path) = &options.plot {
        plot::check_name(path)?;
    }
    let gpu = gpu(ordinal)?;
    let settings = settings(&options.streams);
    let mut rows = Vec::with_capacity(settings.len());
    for (at, setting) in settings.iter().enumerate() {
        progress(at, settings.len());
        let timeout = Duration::from_secs_f64(options.timeout);
        let result = measure::in_child_process(ordinal, setting, timeout)?;
        rows.push(Row { setting: setting.clone(), result });
    }
    progress(settings.len(), settings.len());
    if options.json {
        print_json(&json!({
            "device": format!("cuda:{ordinal}"), "name": gpu.name,
            "driver_version": gpu.driver_version, "measurements": rows,
        }))?;
    } else {
        print(&table(&gpu, &rows))?;
    }
    if let Some(path) = &options.plot {
        plot::write(path, &gpu.name, &rows)?;
        if !options.json {
            reporter.note(ids::PLOT, &format!("plot written to {}", path.display()));
        }
    }
    let wrong = rows.iter().filter(|row| !matches!(row.result, Ending::Measured(_))).count();
    if wrong == 0 {
        return Ok(());
    }
    let message = format!("{wrong} of {} measurements gave no result", rows.len());
    Err(Failure::new(status::RUN, ids::PROBE, message))
}

/// Describes the GPU without opening it in this process: each measurement opens it afresh.
fn gpu(ordinal: u32) -> Result<DeviceInfo, Failure> {
    let gpus = Device::list()?;
    let found = gpus.len() as u32;
    let gpu = gpus.into_iter().nth(ordinal as usize);
    Ok(gpu.ok_or(Error::NoDevice { ordinal, found })?)
}

/// All settings, in the order of the table.
fn settings(streams: &[u32]) -> Vec<Setting> {
    let plain = |streams, (grid, block)| Setting {
        streams,
        grid,
        block,
        connections: None,
        scale: None,
        pending: None,
    };
    let small = |streams| plain(streams, SHAPES[0]);
    let mut settings = Vec::new();
    for shape in SHAPES {
        settings.extend(streams.iter().map(|&streams| plain(streams, shape)));
    }
    settings.extend(
        [1, 8, 32]
            .map(|count| Setting { connections: Some(count), ..small(STREAMS_OF_CONNECTIONS) }),
    );
    let scales = ["0.25x", "0.5x", "2x", "4x"];
    settings.extend(scales.map(|scale| Setting { scale: Some(scale), ..small(1) }));
    settings.extend([128, 1000].map(|limit| Setting { pending: Some(limit), ..small(1) }));
    settings
}

/// Progress on standard error: a run takes about a minute.
#[expect(clippy::print_stderr, reason = "progress is for the terminal")]
fn progress(done: usize, of: usize) {
    if std::io::stderr().is_terminal() {
        eprint!("\r{done} of {of} measurements{}", if done == of { "\r\x1b[K" } else { "" });
        let _ = std::io::stderr().flush();
    }
}

fn table(gpu: &DeviceInfo, rows: &[Row]) -> String {
    let mut table = Table::new();
    table.load_style(UTF8_FULL_CONDENSED);
    table.set_header(["grid", "block", "streams", "setting", "launches", "per stream"]);
    for Row { setting, result } in rows {
        let (launches, per_stream) = match result {
            Ending::Measured(depth) => {
                let least = depth.per_stream.iter().min().copied().unwrap_or_default();
                let most = depth.per_stream.iter().max().copied().unwrap_or_default();
                let more = if depth.blocked { "" } else { " or more" };
                let range =
                    if least == most { most.to_string() } else { format!("{least} to {most}") };
                (format!("{}{more}", depth.launches), range)
            }
            Ending::Hung(after) => {
                (format!("hung, killed after {} s", after.as_secs_f64()), "-".into())
            }
            Ending::Failed(why) => (format!("failed: {why}"), "-".into()),
        };
        table.add_row([
            setting.grid.to_string(),
            setting.block.to_string(),
            setting.streams.to_string(),
            setting.to_string(),
            launches,
            per_stream,
        ]);
    }
    for at in [0, 1, 2, 4, 5] {
        if let Some(column) = table.column_mut(at) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let mut text =
        format!("{}, driver {}: launches until the host blocks\n", gpu.name, gpu.driver_version);
    let _ = writeln!(text, "{table}");
    text
}
