//! The suite's figures as a table and as JSON.

use std::collections::BTreeMap;

use gridlet_examples::nested::{Version, patterns};
use serde_json::{Value, json};

use crate::measure::Times;

/// How the errors of versions start that are not run any more, and of those that hung.
pub(super) const NOT_RUN: &str = "not run";
pub(super) const HUNG: &str = "hung";

/// Times of one process in milliseconds.
pub(super) struct Runs {
    /// The first run of the process with this input.
    pub(super) cold: f64,
    /// The measured runs.
    pub(super) warm: Vec<f64>,
}

/// What was measured of a version.
#[derive(Default)]
pub(super) struct Outcome {
    pub(super) processes: Vec<Runs>,
}

impl Outcome {
    /// The median of each process, in milliseconds.
    fn medians(&self) -> Vec<f64> {
        self.processes.iter().map(|runs| Times::of(runs.warm.clone()).median).collect()
    }

    /// The median of the processes' medians.
    fn median(&self) -> f64 {
        Times::of(self.medians()).median
    }

    fn cold(&self) -> f64 {
        Times::of(self.processes.iter().map(|runs| runs.cold).collect()).median
    }

    fn to_json(&self) -> Value {
        let warm: Vec<f64> = self.processes.iter().flat_map(|runs| runs.warm.clone()).collect();
        json!({
            "median_ms": self.median(),
            "best_ms": Times::of(warm.clone()).best,
            "cold_ms": self.cold(),
            "runs": warm.len(),
            "medians_of_processes_ms": self.medians(),
        })
    }
}

/// One case of a program.
pub(super) struct Row {
    pub(super) program: &'static str,
    pub(super) case: String,
    /// Launches, if the case measures the cost of one.
    pub(super) launches: Option<u64>,
    pub(super) outcomes: BTreeMap<Version, Result<Outcome, String>>,
}

impl Row {
    /// The median in milliseconds.
    fn median(&self, version: Version) -> Option<f64> {
        Some(self.outcomes.get(&version)?.as_ref().ok()?.median())
    }

    /// How many times as long `version` takes as `base`.
    fn ratio(&self, version: Version, base: Version) -> Option<f64> {
        Some(self.median(version)? / self.median(base)?)
    }

    fn to_json(&self) -> Value {
        let versions = self.outcomes.iter().map(|(version, outcome)| {
            let figures = match outcome {
                Ok(measured) => measured.to_json(),
                Err(error) => json!({"error": error}),
            };
            (version.name().to_string(), figures)
        });
        json!({
            "program": self.program,
            "case": self.case,
            "launches": self.launches,
            "versions": versions.collect::<serde_json::Map<_, _>>(),
        })
    }
}

pub(super) fn print_head() {
    let names = Version::ALL.map(|version| format!("{:>20}", version.name())).concat();
    println!("{:<52}{names}", "median (cold), ms");
}

pub(super) fn print_row(row: &Row) {
    let cell = |version| match row.outcomes.get(&version) {
        None => format!("{:>20}", "-"),
        Some(Ok(outcome)) => {
            format!("{:>20}", format!("{:.4} ({:.2})", outcome.median(), outcome.cold()))
        }
        Some(Err(error)) if error.starts_with(NOT_RUN) => format!("{NOT_RUN:>20}"),
        Some(Err(error)) if error.starts_with(HUNG) => format!("{HUNG:>20}"),
        Some(Err(_)) => format!("{:>20}", "failed"),
    };
    println!("{:<52}{}", row.case, Version::ALL.map(cell).concat());
    if let Some(launches) = row.launches.filter(|launches| *launches > 0) {
        let each = |version| {
            let each = row.median(version).map(|ms| format!("{:.5}", ms * 1e3 / launches as f64));
            format!("{:>20}", each.unwrap_or_default())
        };
        let what = format!("  µs for each of {launches} launches");
        println!("{what:<52}{}", Version::ALL.map(each).concat());
    }
    for (version, outcome) in &row.outcomes {
        if let Err(error) = outcome
            && !error.starts_with(NOT_RUN)
        {
            println!("  !! {}: {error}", version.name());
        }
    }
}

/// The ratios that matter, over all programs.
pub(super) fn print_summary(rows: &[Row]) {
    let ratios = [
        ("nvcc nested / resident", Version::CudaNested, Version::Resident),
        ("resident / nvcc flat", Version::Resident, Version::CudaFlat),
        ("cdp / nvcc nested", Version::Cdp, Version::CudaNested),
        ("nvcc nested / nvcc flat", Version::CudaNested, Version::CudaFlat),
    ];
    let programs: Vec<&Row> =
        rows.iter().filter(|row| row.program != patterns::PROGRAM.name).collect();
    println!("\n{:<52}{}", "ratios", ratios.map(|(what, ..)| format!("{what:>26}")).concat());
    for row in &programs {
        let cell = |(_, version, base)| match row.ratio(version, base) {
            Some(ratio) => format!("{ratio:>26.3}"),
            None => format!("{:>26}", "-"),
        };
        println!("{:<52}{}", format!("{}, {}", row.program, row.case), ratios.map(cell).concat());
    }
    let mean = |(_, version, base)| {
        let logs: Vec<f64> =
            programs.iter().filter_map(|row| Some(row.ratio(version, base)?.ln())).collect();
        if logs.is_empty() {
            return format!("{:>26}", "-");
        }
        let mean = (logs.iter().sum::<f64>() / logs.len() as f64).exp();
        format!("{:>26}", format!("{mean:.3} of {}", logs.len()))
    };
    println!("{:<52}{}", "geometric mean", ratios.map(mean).concat());
}

/// The figures as JSON.
pub(super) fn to_json(rows: &[Row], device: &str) -> Value {
    let rows: Vec<Value> = rows.iter().map(Row::to_json).collect();
    json!({"device": device, "cases": rows})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_needs_both_versions() {
        let outcome =
            |ms| Ok(Outcome { processes: vec![Runs { cold: 9.0, warm: vec![ms, ms, 100.0] }] });
        let outcomes = BTreeMap::from([
            (Version::Resident, outcome(2.0)),
            (Version::CudaNested, outcome(6.0)),
            (Version::CudaFlat, Err("WRONG".to_string())),
        ]);
        let row = Row { program: "p", case: "c".into(), launches: None, outcomes };
        assert_eq!(row.ratio(Version::CudaNested, Version::Resident), Some(3.0));
        assert_eq!(row.ratio(Version::Resident, Version::CudaFlat), None);
        assert_eq!(row.ratio(Version::Cdp, Version::Resident), None);
        assert_eq!(row.to_json()["versions"]["nvcc flat"]["error"], "WRONG");
    }

    #[test]
    fn each_process_counts_once() {
        let runs = |cold, warm: &[f64]| Runs { cold, warm: warm.to_vec() };
        let processes = vec![runs(5.0, &[1.0; 9]), runs(4.0, &[3.0, 2.0, 7.0]), runs(6.0, &[8.0])];
        let outcome = Outcome { processes };
        assert_eq!(outcome.medians(), [1.0, 3.0, 8.0]);
        assert_eq!(outcome.median(), 3.0);
        assert_eq!(outcome.cold(), 5.0);
        assert_eq!(outcome.to_json()["best_ms"], 1.0);
        assert_eq!(outcome.to_json()["runs"], 13);
    }
}
