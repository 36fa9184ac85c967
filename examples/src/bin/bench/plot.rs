//! The figures of a suite as a plot: for each row the time of each version, as a multiple of one of them.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use gridlet_examples::nested::{Version, patterns};
use plotters::coord::ranged1d::{AsRangedCoord, ValueFormatter};
use plotters::prelude::*;
use serde_json::Value;

use crate::ways::Way;

/// Width, and height of a row, in pixels.
const WIDTH: u32 = 900;
const ROW: u32 = 24;
/// Height of the title, the axis and the margins, in pixels.
const FRAME: u32 = 110;

/// Colours that differ for every eye.
const COLORS: [RGBColor; 3] =
    [RGBColor(213, 94, 0), RGBColor(0, 114, 178), RGBColor(120, 120, 120)];

/// A plot.
struct Plot {
    title: String,
    /// The versions shown.
    shown: Vec<&'static str>,
    rows: Vec<Row>,
    /// Whether the ratios differ by orders of magnitude.
    is_log: bool,
}

/// A row that has a time of the version that is the unit.
struct Row {
    name: String,
    /// By version of `shown`, how many times as long it takes; `None` if it has no time.
    ratios: Vec<Option<f64>>,
}

impl Row {
    fn new(name: String, times: Vec<Option<f64>>, unit: Option<f64>) -> Option<Row> {
        let unit = unit?;
        let ratios: Vec<_> = times.into_iter().map(|time| Some(time? / unit)).collect();
        ratios.iter().any(Option::is_some).then_some(Row { name, ratios })
    }
}

/// Draws a file of a suite's figures; gives the plot's file, which lies beside it.
pub(crate) fn plot_file(json: &Path) -> anyhow::Result<PathBuf> {
    let text = fs::read(json).with_context(|| format!("cannot read {}", json.display()))?;
    let figures = serde_json::from_slice(&text)
        .with_context(|| format!("{} is no file of figures", json.display()))?;
    let svg = plot(&figures).and_then(|plot| plot.draw());
    let svg = svg.with_context(|| format!("cannot plot {}", json.display()))?;
    let file = json.with_extension("svg");
    fs::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

/// The plot of the figures of either suite.
fn plot(figures: &Value) -> anyhow::Result<Plot> {
    match &figures["kernels"] {
        Value::Array(kernels) => Ok(plain_kernels(figures, kernels)),
        _ => nested_programs(figures),
    }
}

fn device(figures: &Value) -> &str {
    figures["device"].as_str().unwrap_or("an unknown GPU")
}

/// The version without nesting is the unit.
fn nested_programs(figures: &Value) -> anyhow::Result<Plot> {
    let shown = [Version::Resident, Version::Cdp, Version::CudaNested];
    let cases = figures["cases"].as_array().context("`cases` is no list")?;
    let median =
        |case: &Value, version: Version| case["versions"][version.name()]["median_ms"].as_f64();
    let programs = cases.iter().filter(|case| case["program"] != patterns::PROGRAM.name);
    let row = |case: &Value| {
        let times = shown.map(|version| median(case, version)).to_vec();
        let name = [&case["program"], &case["case"]].map(|part| part.as_str().unwrap_or("?"));
        Row::new(name.join(", "), times, median(case, Version::CudaFlat))
    };
    Ok(Plot {
        title: format!("{}: time as a multiple of CUDA C++ without nesting", device(figures)),
        shown: shown.map(Version::name).to_vec(),
        rows: programs.filter_map(row).collect(),
        is_log: true,
    })
}

/// nvcc is the unit.
fn plain_kernels(figures: &Value, kernels: &[Value]) -> Plot {
    let shown = [Way::LibNvvm, Way::Nvptx];
    let ratio = |kernel: &Value, way: Way| kernel["ways"][way.name()]["ratio"].as_f64();
    let row = |kernel: &Value| {
        let name = kernel["kernel"].as_str().unwrap_or("?").to_string();
        let times = shown.map(|way| ratio(kernel, way)).to_vec();
        Row::new(name, times, ratio(kernel, Way::Nvcc))
    };
    Plot {
        title: format!("{}: time as a multiple of nvcc's", device(figures)),
        shown: shown.map(Way::name).to_vec(),
        rows: kernels.iter().filter_map(row).collect(),
        is_log: false,
    }
}

impl Plot {
    fn draw(&self) -> anyhow::Result<String> {
        let ratios = || self.rows.iter().flat_map(|row| row.ratios.iter().flatten().copied());
        let (least, most) = (ratios().fold(1.0, f64::min), ratios().fold(1.0, f64::max));
        if self.is_log {
            self.draw_on((least / 1.5..most * 1.5).log_scale())
        } else {
            self.draw_on(least - 0.05..most + 0.05)
        }
    }

    fn draw_on<X>(&self, axis: X) -> anyhow::Result<String>
    where
        X: AsRangedCoord<Value = f64>,
        X::CoordDescType: ValueFormatter<f64>,
    {
        let count = self.rows.len() as i32;
        let mut svg = String::new();
        {
            let size = (WIDTH, FRAME + ROW * self.rows.len() as u32);
            let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
            let failed = |error: &dyn std::fmt::Display| anyhow!("{error}");
            area.fill(&WHITE).map_err(|error| failed(&error))?;
            let longest = self.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or(0);
            let mut chart = ChartBuilder::on(&area)
                .caption(&self.title, ("sans-serif", 18))
                .margin(12)
                .x_label_area_size(40)
                .y_label_area_size(if longest > 24 { 360 } else { 160 })
                .build_cartesian_2d(axis, -1..count)
                .map_err(|error| failed(&error))?;
            // The first row is on top.
            let name = |at: &i32| {
                let row = usize::try_from(count - 1 - at).ok().and_then(|at| self.rows.get(at));
                row.map_or(String::new(), |row| row.name.clone())
            };
            let ratio = |ratio: &f64| format!("{}", (ratio * 1e4).round() / 1e4);
            chart
                .configure_mesh()
                .disable_y_mesh()
                .y_labels(self.rows.len() + 2)
                .y_label_formatter(&name)
                .x_label_formatter(&ratio)
                .draw()
                .map_err(|error| failed(&error))?;
            let unit = LineSeries::new([(1.0, -1), (1.0, count)], BLACK.stroke_width(1));
            chart.draw_series(unit).map_err(|error| failed(&error))?;
            for (at, (version, color)) in self.shown.iter().zip(COLORS).enumerate() {
                let points = (0..count).zip(self.rows.iter().rev());
                let points = points.filter_map(|(y, row)| Some((row.ratios[at]?, y)));
                chart
                    .draw_series(points.map(|point| Circle::new(point, 5, color.filled())))
                    .map_err(|error| failed(&error))?
                    .label(*version)
                    .legend(move |(x, y)| Circle::new((x + 6, y), 5, color.filled()));
            }
            chart
                .configure_series_labels()
                .position(SeriesLabelPosition::LowerRight)
                .background_style(WHITE.mix(0.9))
                .border_style(BLACK.mix(0.3))
                .draw()
                .map_err(|error| failed(&error))?;
            area.present().map_err(|error| failed(&error))?;
        }
        Ok(svg)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn figures() -> Value {
        let case = |program: &str, resident: f64, flat: Value| {
            json!({"program": program, "case": "a case", "versions": {
                "resident": {"median_ms": resident, "cold_ms": 9.0},
                "cdp": {"error": "hung"},
                "nvcc flat": flat,
            }})
        };
        let time = json!({"median_ms": 2.0, "cold_ms": 2.0});
        json!({"device": "a GPU", "cases": [
            case("patterns", 1.0, time.clone()),
            case("uts", 3.0, time),
            case("bfs", 3.0, json!({"error": "WRONG"})),
        ]})
    }

    #[test]
    fn a_row_needs_the_version_without_nesting() {
        let rows = plot(&figures()).map(|plot| plot.rows).unwrap_or_default();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].name, "uts, a case");
        assert_eq!(rows[0].ratios, [Some(1.5), None, None]);
    }

    #[test]
    fn the_plot_is_a_picture_with_its_rows() {
        let svg = plot(&figures()).and_then(|plot| plot.draw()).unwrap_or_default();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
        for text in ["a GPU", "uts, a case", "resident", "nvcc nested"] {
            assert!(svg.contains(text), "no `{text}` in {svg}");
        }
        assert!(!svg.contains("bfs, a case"));
    }

    #[test]
    fn the_plot_of_kernels_has_nvcc_as_its_unit() {
        let time = |ratio: f64| json!({"ratio": ratio});
        let kernel = |name: &str, nvcc: Value| {
            let ways = json!({"libNVVM": time(1.5), "NVPTX": {"error": "WRONG"}, "nvcc": nvcc});
            json!({"kernel": name, "ways": ways})
        };
        let kernels = [kernel("saxpy", time(1.0)), kernel("spmv", json!({"error": "WRONG"}))];
        let plot = plot(&json!({"device": "a GPU", "kernels": kernels})).expect("figures");
        assert_eq!(plot.rows.len(), 1);
        assert_eq!(plot.rows[0].ratios, [Some(1.5), None]);
        let svg = plot.draw().unwrap_or_default();
        assert!(svg.contains("saxpy") && svg.contains("libNVVM") && !svg.contains("spmv"));
    }

    #[test]
    fn other_files_are_refused() {
        let error = plot_file(Path::new("/nonexistent.json")).map_err(|error| error.to_string());
        assert_eq!(error.err().as_deref(), Some("cannot read /nonexistent.json"));
        assert!(plot(&json!({"cases": 1})).is_err());
    }
}
