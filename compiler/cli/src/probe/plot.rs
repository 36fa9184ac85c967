//! The plot of `gridlet probe launch-queue`: launches over streams, as SVG.
//!
//! Only SVG, because a bitmap would need fonts, from the machine or embedded in this program.

use std::path::Path;

use gridlet::diagnostics::ids;
use plotters::prelude::*;

use super::launch_queue::Row;
use super::measure::Ending;
use crate::files;
use crate::report::{Failure, Outcome};
use crate::status;

/// Width and height, in pixels.
const SIZE: (u32, u32) = (900, 560);

/// Checks the file's extension.
pub(super) fn check_name(path: &Path) -> Outcome {
    if path.extension().is_some_and(|ending| ending.eq_ignore_ascii_case("svg")) {
        return Ok(());
    }
    let path = path.display();
    Err(Failure::call(format!("--plot {path}: plots are written as SVG; give a name with .svg")))
}

/// Writes the plot, without the settings that gave no result.
pub(super) fn write(path: &Path, gpu: &str, rows: &[Row]) -> Outcome {
    let failed = |error: String| {
        Failure::new(status::RUN, ids::PLOT, format!("{}: {error}", path.display()))
    };
    let svg = draw(gpu, rows).map_err(|error| failed(error.to_string()))?;
    files::write_all(&[(path.into(), svg.as_bytes())])
}

/// A line of the plot.
struct Line {
    name: String,
    /// Streams and launches, sorted by streams.
    points: Vec<(f64, f64)>,
}

fn draw(gpu: &str, rows: &[Row]) -> Result<String, DrawingAreaErrorKind<std::io::Error>> {
    let lines = lines(rows);
    let points = || lines.iter().flat_map(|line| &line.points);
    let widest = points().map(|point| point.0).fold(1.0, f64::max);
    let highest = points().map(|point| point.1).fold(1.0, f64::max);
    let mut svg = String::new();
    {
        let area = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        area.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&area)
            .caption(format!("{gpu}: launches until the host blocks"), ("sans-serif", 20))
            .margin(16)
            .x_label_area_size(44)
            .y_label_area_size(72)
            .build_cartesian_2d(
                (0.8..widest * 1.25).log_scale(),
                (100.0..highest * 1.6).log_scale(),
            )?;
        chart
            .configure_mesh()
            .x_desc("streams")
            .y_desc("launches")
            .x_label_formatter(&|streams| format!("{streams}"))
            .y_label_formatter(&|launches| format!("{launches}"))
            .draw()?;
        for (at, line) in lines.iter().enumerate() {
            let color = Palette99::pick(at).to_rgba();
            chart
                .draw_series(LineSeries::new(line.points.iter().copied(), color.stroke_width(2)))?
                .label(&line.name)
                .legend(move |(x, y)| {
                    Rectangle::new([(x, y - 4), (x + 12, y + 4)], color.filled())
                });
            let dots = line.points.iter().map(|&point| Circle::new(point, 4, color.filled()));
            chart.draw_series(dots)?;
        }
        chart
            .configure_series_labels()
            .position(SeriesLabelPosition::UpperLeft)
            .background_style(WHITE.mix(0.9))
            .border_style(BLACK.mix(0.3))
            .draw()?;
        area.present()?;
    }
    Ok(svg)
}

/// Groups the rows by their settings other than the streams, in the order of the table.
fn lines(rows: &[Row]) -> Vec<Line> {
    let mut lines: Vec<Line> = Vec::new();
    for Row { setting, result } in rows {
        let Ending::Measured(depth) = result else { continue };
        let differs =
            setting.connections.is_some() || setting.scale.is_some() || setting.pending.is_some();
        let name = match differs {
            true => setting.to_string(),
            false => format!("{} × {} threads", setting.grid, setting.block),
        };
        let point = (f64::from(setting.streams), depth.launches as f64);
        match lines.iter_mut().find(|line| line.name == name) {
            Some(line) => line.points.push(point),
            None => lines.push(Line { name, points: vec![point] }),
        }
    }
    for line in &mut lines {
        line.points.sort_by(|left, right| left.0.total_cmp(&right.0));
    }
    lines
}
