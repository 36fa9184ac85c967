//! The suite's figures as a plot: for each case the time of each version, as a multiple of the version without nesting.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow};
use gridlet_examples::nested::{Version, patterns};
use plotters::prelude::*;
use serde_json::Value;

/// Width, and height of a case, in pixels.
const WIDTH: u32 = 900;
const ROW: u32 = 24;
/// Height of the title, the axis and the margins, in pixels.
const FRAME: u32 = 110;

/// The versions shown, which differ in colour for every eye; the version without nesting is the unit.
const SHOWN: [Version; 3] = [Version::Resident, Version::Cdp, Version::CudaNested];
const COLORS: [RGBColor; 3] =
    [RGBColor(213, 94, 0), RGBColor(0, 114, 178), RGBColor(120, 120, 120)];

/// A case that has a version without nesting.
struct Row {
    name: String,
    /// By version of `SHOWN`, how many times as long it takes; `None` if it has no time.
    ratios: [Option<f64>; 3],
}

/// Draws a file of the suite's figures; gives the plot's file, which lies beside it.
pub(crate) fn plot_file(json: &Path) -> anyhow::Result<PathBuf> {
    let text = fs::read(json).with_context(|| format!("cannot read {}", json.display()))?;
    let figures = serde_json::from_slice(&text)
        .with_context(|| format!("{} is no file of figures", json.display()))?;
    let svg = draw(&figures).with_context(|| format!("cannot plot {}", json.display()))?;
    let file = json.with_extension("svg");
    fs::write(&file, svg).with_context(|| format!("cannot write {}", file.display()))?;
    Ok(file)
}

fn rows(figures: &Value) -> anyhow::Result<Vec<Row>> {
    let cases = figures["cases"].as_array().context("`cases` is no list")?;
    let median =
        |case: &Value, version: Version| case["versions"][version.name()]["median_ms"].as_f64();
    let programs = cases.iter().filter(|case| case["program"] != patterns::PROGRAM.name);
    let row = |case: &Value| {
        let unit = median(case, Version::CudaFlat)?;
        let ratios = SHOWN.map(|version| Some(median(case, version)? / unit));
        let name = [&case["program"], &case["case"]].map(|part| part.as_str().unwrap_or("?"));
        ratios.iter().any(Option::is_some).then(|| Row { name: name.join(", "), ratios })
    };
    Ok(programs.filter_map(row).collect())
}

fn draw(figures: &Value) -> anyhow::Result<String> {
    let rows = rows(figures)?;
    let device = figures["device"].as_str().unwrap_or("an unknown GPU");
    let ratios = || rows.iter().flat_map(|row| row.ratios.iter().flatten().copied());
    let (least, most) = (ratios().fold(1.0, f64::min), ratios().fold(1.0, f64::max));
    let count = rows.len() as i32;
    let mut svg = String::new();
    {
        let size = (WIDTH, FRAME + ROW * rows.len() as u32);
        let area = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        let failed = |error: &dyn std::fmt::Display| anyhow!("{error}");
        area.fill(&WHITE).map_err(|error| failed(&error))?;
        let title = format!("{device}: time as a multiple of CUDA C++ without nesting");
        let mut chart = ChartBuilder::on(&area)
            .caption(title, ("sans-serif", 18))
            .margin(12)
            .x_label_area_size(40)
            .y_label_area_size(360)
            .build_cartesian_2d((least / 1.5..most * 1.5).log_scale(), -1..count)
            .map_err(|error| failed(&error))?;
        // The first case is on top.
        let name = |at: &i32| {
            let row = usize::try_from(count - 1 - at).ok().and_then(|at| rows.get(at));
            row.map_or(String::new(), |row| row.name.clone())
        };
        chart
            .configure_mesh()
            .disable_y_mesh()
            .y_labels(rows.len() + 2)
            .y_label_formatter(&name)
            .x_label_formatter(&|ratio| format!("{ratio}"))
            .draw()
            .map_err(|error| failed(&error))?;
        let unit = LineSeries::new([(1.0, -1), (1.0, count)], BLACK.stroke_width(1));
        chart.draw_series(unit).map_err(|error| failed(&error))?;
        for (at, (version, color)) in SHOWN.iter().zip(COLORS).enumerate() {
            let points = (0..count).zip(rows.iter().rev());
            let points = points.filter_map(|(y, row)| Some((row.ratios[at]?, y)));
            chart
                .draw_series(points.map(|point| Circle::new(point, 5, color.filled())))
                .map_err(|error| failed(&error))?
                .label(version.name())
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
        let rows = rows(&figures()).unwrap_or_default();
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].name, "uts, a case");
        assert_eq!(rows[0].ratios, [Some(1.5), None, None]);
    }

    #[test]
    fn the_plot_is_a_picture_with_its_rows() {
        let svg = draw(&figures()).unwrap_or_default();
        assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"));
        for text in ["a GPU", "uts, a case", "resident", "nvcc nested"] {
            assert!(svg.contains(text), "no `{text}` in {svg}");
        }
        assert!(!svg.contains("bfs, a case"));
    }

    #[test]
    fn other_files_are_refused() {
        let error = plot_file(Path::new("/nonexistent.json")).map_err(|error| error.to_string());
        assert_eq!(error.err().as_deref(), Some("cannot read /nonexistent.json"));
        assert!(rows(&json!({"cases": 1})).is_err());
    }
}
