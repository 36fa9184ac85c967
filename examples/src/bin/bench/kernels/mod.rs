//! Plain kernels, each compiled by Gridlet in every way and by nvcc. All ways run in this process, in turns, with the same
//! launches on the same memory.

mod build;
mod code;
mod table;

use std::collections::BTreeMap;

use anyhow::{Context as _, anyhow, ensure};
use gridlet::arch::CudaArch;
use gridlet::compile::Session;
use gridlet_examples::TIME_OUT;
use gridlet_examples::kernels::{Case, Loaded, Plain, Size, kernels, run_small};
use gridlet_runtime::{Device, Event, Kernel, Program, Stream};

use crate::measure::Options;
use crate::results;
use crate::ways::Way;
use build::Built;
use table::{Outcome, Row};

/// A sample is as many launches as take about so many milliseconds.
const SAMPLE_MS: f32 = 3.0;
const MAX_LAUNCHES: f32 = 500.0;
/// Launches before each sample, so that the GPU has work while the host queues the sample.
const WARM_UP: usize = 2;

pub(crate) fn kernel_times(session: &Session, options: &Options) -> anyhow::Result<()> {
    let named = |plain: &Plain| {
        options.programs.is_empty() || options.programs.iter().any(|name| name == plain.name)
    };
    let plains: Vec<Plain> = kernels().into_iter().filter(named).collect();
    ensure!(!plains.is_empty(), "no kernel of the suite has one of these names");
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => {
            println!("no GPU ({error}): the kernels were compiled, but not measured");
            let built = build::build(session, &plains, CudaArch::DEFAULT)?;
            table::print_code(&plains, &built);
            return Ok(());
        }
    };
    let info = device.info();
    let capability = info.compute_capability;
    let arch = CudaArch::for_device(capability.major, capability.minor)
        .with_context(|| format!("Gridlet cannot build for compute capability {capability}"))?;
    println!("\nplain kernels, on {}, driver {}:", info.name, info.driver_version);
    let built = build::build(session, &plains, arch)?;
    table::print_head();
    let mut rows = Vec::new();
    for (plain, built) in plains.iter().zip(&built) {
        let row = measure(&device, plain, built, Size::Full, options.repeat)?;
        table::print_row(&row);
        rows.push(row);
    }
    table::print_summary(&rows);
    let figures = table::to_json(&rows, &info.name, &info.driver_version.to_string());
    results::write("kernels", figures, &options.out)?;
    let failed = table::failures(&rows);
    ensure!(failed.is_empty(), "no right result: {}", failed.join(", "));
    Ok(())
}

/// A kernel that is loaded and gives right results, with its times so far in milliseconds.
struct Runner<'a> {
    kernel: Kernel,
    built: &'a Built,
    times: Vec<f64>,
}

fn measure(
    device: &Device,
    plain: &Plain,
    built: &BTreeMap<Way, anyhow::Result<Built>>,
    size: Size,
    turns: usize,
) -> anyhow::Result<Row> {
    let stream = device.stream()?;
    let case = (plain.case)(size);
    let mut loaded = Loaded::new(device, &case)?;
    let mut failed = BTreeMap::new();
    let mut runners = BTreeMap::new();
    let mut results = None;
    // nvcc's results are those that the others are compared with.
    for way in Way::ALL.into_iter().rev() {
        let mut prepare = || -> anyhow::Result<Runner<'_>> {
            let built = built.get(&way).context("not built")?;
            let built = built.as_ref().map_err(|error| anyhow!("{error:#}"))?;
            let program = Program::load(device, &built.artifact)?;
            run_small(plain, device, &program).context("WRONG")?;
            let kernel = program.kernel(plain.name)?;
            loaded.reset()?;
            stream.launch(&kernel, &case.config, &loaded.arguments())?;
            stream.synchronize(TIME_OUT)?;
            let found = loaded.results()?;
            match &results {
                None => results = Some(found),
                Some(expected) => case.compare(&found, expected).context("WRONG, full size")?,
            }
            Ok(Runner { kernel, built, times: Vec::new() })
        };
        match prepare() {
            Ok(runner) => drop(runners.insert(way, runner)),
            Err(error) => drop(failed.insert(way, format!("{error:#}"))),
        }
    }
    drop(results);
    if let Some(runner) = runners.values().next_back() {
        let one = sample(device, &stream, &case, &mut loaded, &runner.kernel, 3)?;
        let launches = (SAMPLE_MS / one as f32).clamp(1.0, MAX_LAUNCHES) as usize;
        for turn in 0..turns.max(1) {
            // No way is always the first or follows always the same one.
            let order =
                if turn % 2 == 0 { Way::ALL } else { [Way::Nvcc, Way::Nvptx, Way::LibNvvm] };
            for at in 0..order.len() {
                if let Some(runner) = runners.get_mut(&order[(at + turn / 2) % order.len()]) {
                    let kernel = &runner.kernel;
                    let time = sample(device, &stream, &case, &mut loaded, kernel, launches)?;
                    runner.times.push(time);
                }
            }
        }
    }
    let mut outcomes = BTreeMap::new();
    for way in Way::ALL {
        let outcome = match runners.remove(&way) {
            Some(Runner { built, times, .. }) => {
                let Built { registers, local_bytes, .. } = *built;
                Ok(Outcome { times, registers, local_bytes })
            }
            None => Err(failed.remove(&way).unwrap_or_default()),
        };
        outcomes.insert(way, outcome);
    }
    Ok(Row { name: plain.name, what: plain.what, outcomes })
}

/// Milliseconds per launch, of several launches that start from the same contents of memory.
fn sample(
    device: &Device,
    stream: &Stream,
    case: &Case,
    loaded: &mut Loaded<'_>,
    kernel: &Kernel,
    launches: usize,
) -> anyhow::Result<f64> {
    loaded.reset()?;
    let arguments = loaded.arguments();
    let (start, end) = (Event::new(device)?, Event::new(device)?);
    for _ in 0..WARM_UP {
        stream.launch(kernel, &case.config, &arguments)?;
    }
    stream.record(&start)?;
    for _ in 0..launches {
        stream.launch(kernel, &case.config, &arguments)?;
    }
    stream.record(&end)?;
    stream.synchronize(TIME_OUT)?;
    Ok(f64::from(start.elapsed_ms(&end)?) / launches as f64)
}

#[cfg(test)]
mod tests {
    use gridlet::compile;
    use gridlet::cpu::CpuOptions;
    use gridlet::source::SourceMap;
    use gridlet_runtime::cpu::CpuConfig;

    use super::*;

    /// A source for the CPU device, as if it were one of the ways.
    fn built(name: &str, source: &str) -> anyhow::Result<Built> {
        let program = compile::check(SourceMap::single(format!("{name}.grid"), source))?;
        let options = CpuOptions::default();
        let artifact = gridlet::artifact::build_cpu(&Session::new(), &program, &options)?;
        Ok(Built { artifact, registers: 7, local_bytes: 16, instructions: None })
    }

    #[test]
    fn right_kernels_are_measured_and_wrong_ones_are_not() {
        let saxpy = kernels().into_iter().find(|plain| plain.name == "saxpy").expect("a kernel");
        let wrong = saxpy.source.replace("a * x[i]", "a - x[i]");
        let ways = BTreeMap::from([
            (Way::LibNvvm, built("saxpy", saxpy.source)),
            (Way::Nvptx, built("saxpy", &wrong)),
            (Way::Nvcc, built("saxpy", saxpy.source)),
        ]);
        let device = Device::open_cpu(CpuConfig::default()).expect("the CPU device");
        let row = measure(&device, &saxpy, &ways, Size::Small, 4).expect("measured");
        for way in [Way::LibNvvm, Way::Nvcc] {
            let outcome = row.outcomes[&way].as_ref().expect("a right result");
            assert!(outcome.times.iter().all(|time| *time > 0.0), "{:?}", outcome.times);
            assert_eq!((outcome.times.len(), outcome.registers, outcome.local_bytes), (4, 7, 16));
        }
        let error = row.outcomes[&Way::Nvptx].as_ref().err().expect("a wrong result");
        assert!(error.starts_with("WRONG: saxpy: result 0: element 0 is"), "{error}");
    }
}
