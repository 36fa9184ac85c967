//! A process that runs one Gridlet program of the suite, by the commands that `serve.h` lists.

use std::io::{Write as _, stdin, stdout};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context as _, anyhow, bail};
use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::compile::{self, BuildOptions, Session};
use gridlet::source::SourceMap;
use gridlet_examples::nested::{Input, Nested, Place, SUITE, Work};
use gridlet_runtime::{Device, Program};
use serde_json::{Value, json};

/// Answers commands until the input ends.
pub(crate) fn serve(program: &str, launch: &str) -> anyhow::Result<()> {
    let answer = |answer: &Value| -> anyhow::Result<()> {
        println!("{answer}");
        Ok(stdout().flush()?)
    };
    let prepared = SUITE
        .iter()
        .find(|known| known.name == program)
        .context("the suite has no program of this name")
        .and_then(|program| Ok((program, prepare(program, launch)?)));
    let (program, place) = match prepared {
        Ok(prepared) => prepared,
        Err(error) => return answer(&json!({"error": format!("{error:#}")})),
    };
    answer(&json!({"ok": true}))?;
    let mut work = None;
    for line in stdin().lines() {
        let reply = obey(program, &place, &mut work, &line?);
        answer(&reply.unwrap_or_else(|error| json!({"error": format!("{error:#}")})))?;
    }
    Ok(())
}

fn prepare(program: &Nested, launch: &str) -> anyhow::Result<Place> {
    let strategy = launch.parse().map_err(|error| anyhow!("{error}"))?;
    let device = Device::open(0)?;
    let capability = device.info().compute_capability;
    let arch = CudaArch::for_device(capability.major, capability.minor)
        .ok_or_else(|| anyhow!("Gridlet cannot build for compute capability {capability}"))?;
    if launch == "cdp" {
        device.set_pending_launch_limit(program.pending_launches)?;
    }
    let sources = SourceMap::single(format!("{}.grid", program.name), program.source);
    let build = BuildOptions::for_arch(arch).with_launch(strategy);
    let artifact = artifact::build(&Session::new(), &compile::check(sources)?, &[arch], &build)?;
    let stream = device.stream()?;
    Ok(Place { program: Program::load(&device, &artifact)?, device, stream })
}

fn obey(
    program: &Nested,
    place: &Place,
    work: &mut Option<Box<dyn Work>>,
    line: &str,
) -> anyhow::Result<Value> {
    let mut words = line.split_whitespace();
    match words.next() {
        Some("load") => {
            let input = Input::read(Path::new(words.next().context("load needs a file")?))?;
            // The memory of the case before is freed first.
            *work = None;
            *work = Some((program.load)(place, &input)?);
            Ok(json!({"ok": true}))
        }
        Some("run") => {
            let runs: usize = words.next().context("run needs a count")?.parse()?;
            let work = work.as_mut().context("run needs a load before it")?;
            let mut times = Vec::new();
            for _ in 0..runs {
                work.reset()?;
                let start = Instant::now();
                work.run()?;
                times.push(start.elapsed().as_secs_f64() * 1e3);
            }
            if let Some(path) = words.next() {
                let bytes: Vec<u8> =
                    work.result()?.iter().flat_map(|word| word.to_le_bytes()).collect();
                std::fs::write(path, bytes)?;
            }
            Ok(json!({"ms": times}))
        }
        _ => bail!("unknown command: {line}"),
    }
}
