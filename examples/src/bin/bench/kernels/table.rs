//! The kernels' figures as a table and as JSON.

use std::collections::BTreeMap;

use gridlet_examples::kernels::Plain;
use serde_json::{Value, json};

use super::Way;
use super::build::Built;
use crate::measure::Times;

/// A kernel in one way.
pub(super) struct Outcome {
    /// Times of a launch in milliseconds, by turn.
    pub(super) times: Vec<f64>,
    /// Registers per thread.
    pub(super) registers: u32,
    /// Local memory per thread in bytes, for spilled registers and arrays.
    pub(super) local_bytes: u32,
}

impl Outcome {
    /// In microseconds.
    fn median(&self) -> f64 {
        Times::of(self.times.clone()).median * 1e3
    }
}

/// One kernel.
pub(super) struct Row {
    pub(super) name: &'static str,
    pub(super) what: &'static str,
    pub(super) outcomes: BTreeMap<Way, Result<Outcome, String>>,
}

impl Row {
    fn outcome(&self, way: Way) -> Option<&Outcome> {
        self.outcomes.get(&way)?.as_ref().ok()
    }

    /// How many times as long as nvcc's it takes: in each turn, because the GPU's clock changes from turn to turn.
    fn ratios(&self, way: Way) -> Option<Vec<f64>> {
        let pairs = self.outcome(way)?.times.iter().zip(&self.outcome(Way::Nvcc)?.times);
        Some(pairs.map(|(own, nvcc)| own / nvcc).collect())
    }

    /// The median of the ratios.
    fn ratio(&self, way: Way) -> Option<f64> {
        Some(Times::of(self.ratios(way)?).median)
    }

    /// The middle half of the ratios lies within such a distance.
    fn spread(&self, way: Way) -> Option<f64> {
        let mut ratios = self.ratios(way)?;
        ratios.sort_by(f64::total_cmp);
        Some(ratios.get(ratios.len() * 3 / 4)? - ratios.get(ratios.len() / 4)?)
    }

    fn to_json(&self) -> Value {
        let ways = self.outcomes.iter().map(|(way, outcome)| {
            let figures = match outcome {
                Ok(outcome) => json!({
                    "median_us": outcome.median(),
                    "ratio": self.ratio(*way),
                    "spread": self.spread(*way),
                    "best_us": Times::of(outcome.times.clone()).best * 1e3,
                    "samples": outcome.times.len(),
                    "registers": outcome.registers,
                    "local_bytes": outcome.local_bytes,
                }),
                Err(error) => json!({"error": error}),
            };
            (way.name().to_string(), figures)
        });
        json!({
            "kernel": self.name,
            "what": self.what,
            "ways": ways.collect::<serde_json::Map<_, _>>(),
        })
    }
}

/// One figure for each way.
fn each(cell: impl Fn(Way) -> String) -> String {
    Way::ALL.map(cell).join(" / ")
}

pub(super) fn print_head() {
    let names = Way::ALL.map(|way| format!("{:>24}", way.name())).concat();
    println!("{:<22}{names}{:>20}{:>20}", "µs (÷ nvcc ± spread)", "registers", "local bytes");
}

pub(super) fn print_row(row: &Row) {
    let time = |way: Way| match (row.outcome(way), row.ratio(way)) {
        (Some(outcome), Some(ratio)) if way != Way::Nvcc => {
            let half = row.spread(way).unwrap_or(f64::NAN) / 2.0;
            format!("{:>24}", format!("{:.2} ({ratio:.3} ± {half:.3})", outcome.median()))
        }
        (Some(outcome), _) => format!("{:>24}", format!("{:.2}", outcome.median())),
        (None, _) => format!("{:>24}", "failed"),
    };
    let figure = |get: fn(&Outcome) -> u32| {
        each(|way| row.outcome(way).map_or("-".into(), |outcome| get(outcome).to_string()))
    };
    let registers = figure(|outcome| outcome.registers);
    let local = figure(|outcome| outcome.local_bytes);
    println!("{:<22}{}{registers:>20}{local:>20}", row.name, Way::ALL.map(time).concat());
    for (way, outcome) in &row.outcomes {
        if let Err(error) = outcome {
            println!("  !! {}: {error}", way.name());
        }
    }
}

/// The geometric mean and the worst ratio of a way.
struct Summary {
    mean: f64,
    worst: (f64, &'static str),
    count: usize,
}

fn summary(rows: &[Row], way: Way) -> Summary {
    let ratios: Vec<_> = rows.iter().filter_map(|row| Some((row.ratio(way)?, row.name))).collect();
    let logs: f64 = ratios.iter().map(|(ratio, _)| ratio.ln()).sum();
    let worst = ratios.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0));
    Summary {
        mean: (logs / ratios.len() as f64).exp(),
        worst: worst.unwrap_or((f64::NAN, "-")),
        count: ratios.len(),
    }
}

pub(super) fn print_summary(rows: &[Row]) {
    println!();
    for way in [Way::LibNvvm, Way::Nvptx] {
        let Summary { mean, worst: (worst, name), count } = summary(rows, way);
        println!(
            "{} ÷ nvcc: geometric mean {mean:.3} of {count}, worst {worst:.3} ({name})",
            way.name()
        );
    }
}

/// The kernels and ways without a right result.
pub(super) fn failures(rows: &[Row]) -> Vec<String> {
    let of = |row: &Row| {
        let failed = row.outcomes.iter().filter(|(_, outcome)| outcome.is_err());
        failed.map(|(way, _)| format!("{} ({})", row.name, way.name())).collect::<Vec<_>>()
    };
    rows.iter().flat_map(of).collect()
}

pub(super) fn to_json(rows: &[Row], device: &str, driver: &str) -> Value {
    let rows: Vec<Value> = rows.iter().map(Row::to_json).collect();
    json!({"device": device, "driver": driver, "kernels": rows})
}

/// Without a GPU: what the machine code shows.
pub(super) fn print_code(plains: &[Plain], built: &[BTreeMap<Way, anyhow::Result<Built>>]) {
    println!("\n{} each:", Way::ALL.map(Way::name).join(" / "));
    println!(
        "{:<22}{:>20}{:>20}{:>24}{:>24}",
        "", "registers", "local bytes", "instructions", "in loops"
    );
    for (plain, built) in plains.iter().zip(built) {
        let figure = |get: &dyn Fn(&Built) -> Option<u64>| {
            each(|way| {
                let built = built.get(&way).and_then(|built| built.as_ref().ok());
                built.and_then(get).map_or("-".into(), |figure| figure.to_string())
            })
        };
        println!(
            "{:<22}{:>20}{:>20}{:>24}{:>24}",
            plain.name,
            figure(&|built| Some(built.registers.into())),
            figure(&|built| Some(built.local_bytes.into())),
            figure(&|built| Some(built.instructions?.all as u64)),
            figure(&|built| Some(built.instructions?.in_loops as u64)),
        );
        for error in built.values().filter_map(|built| built.as_ref().err()) {
            println!("  !! {error:#}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &'static str, ours: f64, nvcc: f64) -> Row {
        let outcome =
            |ms| Ok(Outcome { times: vec![ms, 9.0, ms, ms, 0.0], registers: 8, local_bytes: 0 });
        let outcomes = BTreeMap::from([
            (Way::LibNvvm, outcome(ours)),
            (Way::Nvptx, Err("WRONG".to_string())),
            (Way::Nvcc, outcome(nvcc)),
        ]);
        Row { name, what: "", outcomes }
    }

    #[test]
    fn the_summary_has_the_mean_of_the_ratios_and_the_worst() {
        let rows = [row("a", 1.0, 2.0), row("b", 8.0, 4.0), row("c", 2.0, 2.0)];
        let found = summary(&rows, Way::LibNvvm);
        assert!((found.mean - 1.0).abs() < 1e-12, "{}", found.mean);
        assert_eq!((found.worst, found.count), ((2.0, "b"), 3));
        assert_eq!(summary(&rows, Way::Nvptx).count, 0);
        assert_eq!(failures(&rows[..2]), ["a (NVPTX)", "b (NVPTX)"]);
        let json = to_json(&rows, "a GPU", "1");
        assert_eq!(json["kernels"][1]["ways"]["libNVVM"]["ratio"], 2.0);
        assert_eq!(json["kernels"][1]["ways"]["libNVVM"]["median_us"], 8000.0);
        assert_eq!(json["kernels"][1]["ways"]["NVPTX"]["error"], "WRONG");
    }

    #[test]
    fn a_slower_turn_of_both_does_not_change_the_ratio() {
        let outcome =
            |times: &[f64]| Ok(Outcome { times: times.to_vec(), registers: 8, local_bytes: 0 });
        let outcomes = BTreeMap::from([
            (Way::LibNvvm, outcome(&[1.1, 2.2, 1.1, 3.3, 4.4])),
            (Way::Nvcc, outcome(&[1.0, 2.0, 1.0, 3.0, 2.0])),
        ]);
        let row = Row { name: "a", what: "", outcomes };
        let near = |found: Option<f64>, expected: f64| {
            found.is_some_and(|found| (found - expected).abs() < 1e-9)
        };
        assert!(near(row.ratio(Way::LibNvvm), 1.1), "{:?}", row.ratio(Way::LibNvvm));
        assert!(near(row.spread(Way::LibNvvm), 0.0), "{:?}", row.spread(Way::LibNvvm));
        assert_eq!(row.ratio(Way::Nvptx), None);
    }
}
