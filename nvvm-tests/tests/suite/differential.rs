//! Random programs through the stages and on the CPU device: unoptimised, optimised and under `--check`, each in its own
//! order of threads. The program `differential` runs them on a GPU and in large numbers.

use gridlet::arch::{CudaArch, Dialect};
use gridlet::compile::{self, Backend, BuildOptions, CpuOptions, DialectChoice, Session};
use gridlet::ir::verify::verify;
use gridlet::ptx::Ptx;
use nvvm_tests::differential::{self, Outcome, Runner, Way};
use nvvm_tests::{FOR_LINKING, FOR_PTX, generate, toolchain_or_skip};

/// As many programs as run in half a minute.
const PROGRAMS: u64 = 100;

fn each(seeds: std::ops::Range<u64>, test: impl Fn(u64) -> Result<(), String> + Sync) {
    let next = std::sync::atomic::AtomicU64::new(seeds.start);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let failed: Vec<String> = std::thread::scope(|scope| {
        let work = || {
            let mut failed = vec![];
            loop {
                let seed = next.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
                if seed >= seeds.end {
                    return failed;
                }
                if let Err(message) = test(seed) {
                    failed.push(format!(
                        "seed {seed}: {message}\nto see it: cargo run -p nvvm-tests --bin differential -- \
                         --seed {seed} --count 1 --reduce"
                    ));
                }
            }
        };
        let threads: Vec<_> = (0..workers).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
    });
    assert!(failed.is_empty(), "{}", failed.join("\n\n"));
}

#[test]
fn results_on_the_cpu_do_not_depend_on_the_optimiser_or_the_order_of_threads() {
    let runner = Runner::new();
    each(0..PROGRAMS, |seed| {
        // The checked way is the slow one.
        let ways = if seed % 3 == 0 { &Way::CPU[..] } else { &Way::CPU[..2] };
        let compared = runner.compare(&generate::program(seed), ways);
        compared.map_err(|failure| failure.to_string())
    });
}

#[test]
fn every_stage_takes_what_the_one_before_made() {
    each(PROGRAMS..2 * PROGRAMS, |seed| {
        let checked = differential::check(&generate::program(seed).source);
        let stages = || -> gridlet::Result<()> {
            let checked = checked.map_err(|error| gridlet::Error::Invalid(error.to_string()))?;
            verify(&checked.module)?;
            verify(&compile::lower_for_cpu(&checked, &CpuOptions::default())?)?;
            for dialect in [Dialect::Legacy, Dialect::Modern] {
                let dialect = DialectChoice::Fixed(dialect);
                let options = BuildOptions::default().with_dialect(dialect);
                verify(&compile::lower(&checked, &options)?)?;
                // This includes LLVM's verifier.
                compile::nvvm(&checked, &options)?;
            }
            Ok(())
        };
        stages().map_err(|error| error.to_string())
    });
}

#[test]
fn every_back_end_takes_the_programs() {
    let test = "every_back_end_takes_the_programs";
    if toolchain_or_skip(test, &FOR_LINKING).is_none() {
        return;
    }
    let session = Session::new();
    each(200..210, |seed| {
        let program = generate::program(seed);
        let checked = differential::check(&program.source).map_err(|error| error.to_string())?;
        for (backend, optimize, arch) in [
            (Backend::LibNvvm, true, CudaArch::DEFAULT),
            (Backend::LibNvvm, false, CudaArch::DEFAULT),
            (Backend::Nvptx, true, CudaArch::DEFAULT),
            (Backend::LibNvvm, true, CudaArch::for_device(10, 0).ok_or("no sm_100")?),
        ] {
            let options =
                BuildOptions::for_arch(arch).with_backend(backend).with_optimize(optimize);
            session.cubin(&checked, &options).map_err(|error| error.to_string())?;
        }
        Ok(())
    });
}

/// Else libNVVM evaluates an operation in its own way, and a random program differs where it should not.
#[test]
fn hidden_numbers_stay_unknown() {
    if toolchain_or_skip("hidden_numbers_stay_unknown", &FOR_PTX).is_none() {
        return;
    }
    let made = ["make_f64(0x8000_0000_0000_0000, z)", "mul64(2.0, -3.0, z)", "div64(1.0, -8.0, z)"];
    let stores: Vec<String> = made
        .iter()
        .enumerate()
        .map(|(at, made)| format!("    out[{at}] = saturate(hide_f64({made}, z));\n"))
        .collect();
    let kernel = format!("kernel entry(out: *mut f64, z: u64) {{\n{}}}\n", stores.concat());
    let checked = differential::check(&format!("{}\n{kernel}", generate::HELPERS)).unwrap();
    let (Ptx(ptx), _) = Session::new().ptx(&checked, &BuildOptions::default()).unwrap();
    assert_eq!(ptx.matches("max.f64").count(), made.len(), "{ptx}");
}

#[test]
fn a_program_is_read_from_its_text() {
    let program = generate::program(3);
    let text = program.to_text().unwrap();
    assert_eq!(generate::Program::from_text(&text).unwrap(), program);
    differential::check(&text).unwrap();
    let error = generate::Program::from_text(&program.source).unwrap_err();
    insta::assert_snapshot!(error, @"no line begins with `// Run: `, as the last one of a generated program does");
}

#[test]
fn a_difference_is_seen_and_said() {
    let outcome = |slots: &[u64], bytes: &[u8]| Outcome {
        slots: slots.to_vec(),
        statics: vec![("COUNTER1".into(), bytes.to_vec())],
    };
    let first = outcome(&[1, 2, 3], &[0, 1]);
    assert_eq!(first.difference(&first), None);
    let said = first.difference(&outcome(&[1, 5, 6], &[0, 1]));
    assert_eq!(said.as_deref(), Some("out[1] is 0x2 and 0x5; 2 of 3 slots differ"));
    let said = first.difference(&outcome(&[1, 2, 3], &[7, 1]));
    assert_eq!(said.as_deref(), Some("`COUNTER1` has the bytes [0, 1] and [7, 1]"));

    // A program whose result depends on the order of its threads.
    let source = "kernel entry(out: *mut u64, z: u64, seed: u64) {
    out[1 + block_idx.x] = atomic_add(out, 1);
}
";
    let program = generate::Program {
        seed: 1,
        source: source.into(),
        grid: [64, 1, 1],
        block: [1, 1, 1],
        shared_bytes: 0,
        slots: 65,
        argument: 0,
        statics: vec![],
    };
    let failure = Runner::new().compare(&program, &Way::CPU).unwrap_err();
    assert!(failure.differs, "{failure}");
}

/// A worker that a compiler keeps busy ends, and its program counts as one that failed.
#[test]
fn programs_that_take_too_long_to_compile_are_reported() {
    let extra = |at: u32| {
        format!(
            "kernel extra{at}(p: *mut u32) {{ for i in 0u32..7 {{ p[i] += sin(p[i + {at}] as f32) as u32; }} }}\n"
        )
    };
    // The last line says how to run the program.
    let text = (0..1500).map(extra).collect::<String>() + &generate::program(0).to_text().unwrap();
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), text).unwrap();
    let mut differential = std::process::Command::new(env!("CARGO_BIN_EXE_differential"));
    differential.args(["--count", "1", "--jobs", "1", "--time-out", "1", "--source"]);
    let output = differential.arg(file.path()).output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("error: the program took longer than 5 s as a whole"), "{said}");
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("seed 0: its process ended with exit status: 1"), "{said}");
    assert!(!output.status.success());
}
