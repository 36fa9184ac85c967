//! Compares the layouts of random signatures with what the driver says of the compiled kernels, by `cuFuncGetParamInfo` on the
//! first GPU.
//!
//! The kernels are compiled by LLVM's NVPTX back end and assembled by ptxas if there is a toolkit, otherwise by the driver.

#![expect(clippy::print_stdout, reason = "a program for people")]

use std::process::ExitCode;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, anyhow, ensure};
use clap::Parser;
use gridlet::compile::Session;
use gridlet::layout::Layouts;
use gridlet::toolchain::Component;
use nvvm_tests::layouts::driver::{Driver, difference};
use nvvm_tests::layouts::shape::{Family, describe, edges, signatures};
use nvvm_tests::layouts::{self, Image};

/// Kernels of a module.
const KERNELS: u64 = 250;

/// Compares the layouts of random signatures with the driver's records.
#[derive(Parser)]
struct Options {
    /// Seed of the first module; the others follow
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// How many signatures
    #[arg(long, default_value_t = 10_000, value_name = "N")]
    count: u64,
    /// Let the driver compile the PTX although there is a toolkit
    #[arg(long)]
    ptx: bool,
}

fn main() -> ExitCode {
    match run(&Options::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(options: &Options) -> anyhow::Result<()> {
    let started = Instant::now();
    let driver = Driver::open()?;
    let session = Session::new();
    let has_ptxas = session.toolchain().path(Component::Ptxas).is_ok() && !options.ptx;
    let image = if has_ptxas { Image::Cubin } else { Image::Ptx };
    prove(&driver, &session, image)?;

    let modules = options.count.div_ceil(KERNELS);
    let next = AtomicU64::new(0);
    let parameters = AtomicU64::new(0);
    let work = || -> anyhow::Result<()> {
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= modules {
                return Ok(());
            }
            let seed = options.seed.wrapping_add(at);
            let kernels = KERNELS.min(options.count - at * KERNELS) as usize;
            let signatures = signatures(Family::Gridlet, kernels, seed);
            let (module, layouts) = layouts::build(&signatures)?;
            let image = layouts::compile(&session, &module, driver.arch(), image)?;
            let found = driver.parameters(&image, &layouts.kernels)?;
            if let Some(difference) = difference(&found, &layouts) {
                let wrong = layouts.kernels.iter().zip(&found).position(|(layout, found)| {
                    let layouts = Layouts { kernels: vec![layout.clone()] };
                    difference_of_one(found, &layouts)
                });
                let kernel = wrong.and_then(|at| module.kernels.get(at)).context("no kernel")?;
                let signature = describe(&kernel.parameters, &module.structs);
                // The other threads need not go on.
                next.store(modules, Ordering::Relaxed);
                return Err(anyhow!("seed {seed}: {difference}\n{signature}"));
            }
            let slots = layouts.kernels.iter().map(|layout| layout.slots.len() as u64);
            parameters.fetch_add(slots.sum(), Ordering::Relaxed);
        }
    };
    thread::scope(|scope| {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        let results = workers
            .into_iter()
            .map(|worker| worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        results.collect::<Vec<_>>().into_iter().collect::<anyhow::Result<()>>()
    })?;
    println!(
        "{} signatures with {} parameters for {}, {}: the driver has each where the layout pass puts it; {:.1} s",
        options.count,
        parameters.into_inner(),
        driver.arch(),
        if has_ptxas { "assembled by ptxas" } else { "compiled by the driver" },
        started.elapsed().as_secs_f64(),
    );
    Ok(())
}

fn difference_of_one(found: &[(usize, usize)], layouts: &Layouts) -> bool {
    difference(&[found.to_vec()], layouts).is_some()
}

/// Shows that the edges agree, and that each kind of difference is told.
fn prove(driver: &Driver, session: &Session, image: Image) -> anyhow::Result<()> {
    let (module, right) = layouts::build(&edges())?;
    let image = layouts::compile(session, &module, driver.arch(), image)?;
    let found = driver.parameters(&image, &right.kernels)?;
    if let Some(difference) = difference(&found, &right) {
        return Err(anyhow!("edges: {difference}"));
    }
    let changes: [fn(&mut Layouts, usize); 3] = [
        |layouts, at| layouts.kernels[at].slots[0].offset += 1,
        |layouts, at| layouts.kernels[at].slots[0].size += 1,
        |layouts, at| _ = layouts.kernels[at].slots.pop(),
    ];
    for (at, kernel) in
        right.kernels.iter().enumerate().filter(|(_, kernel)| !kernel.slots.is_empty())
    {
        for change in changes {
            let mut wrong = right.clone();
            change(&mut wrong, at);
            let told = difference(&found, &wrong).is_some();
            ensure!(told, "`{}`: a difference is not told", kernel.kernel);
        }
    }
    Ok(())
}
