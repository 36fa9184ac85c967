//! Your own compiler on Gridlet's IR: a toy language whose kernels launch kernels, to a bundle for GPUs and the CPU device,
//! where `--check` and lost launches name the lines of the toy's own source.
//!
//! `cargo run -p gridlet --example own_ir` prints the lowered IR, and writes the bundle `main.gridlet`.

use anyhow::{Context as _, bail};
use gridlet::artifact;
use gridlet::builder::{Body, ProgramBuilder};
use gridlet::compile::{self, BuildOptions, Checked, CpuOptions, Session};
use gridlet::ir::{BinaryOp, KernelId};
use gridlet::target::Target;
use gridlet::types::Type;
use gridlet_artifact::Artifact;

type Made<T> = anyhow::Result<T>;

// The front end.

/// The toy's source: `NAME: add N` adds N to the number of each thread, `NAME: run OTHER BLOCKS THREADS` launches.
pub(crate) const SOURCE: &str = "step: add 3\nmain: run step 2 4\n";

/// A statement of the toy.
enum Statement<'s> {
    Add(u32),
    Run(&'s str, u32, u32),
}

/// The front end: a name and a statement for each line.
fn parse(source: &str) -> Made<Vec<(&str, Statement<'_>)>> {
    let line = |line| {
        let words: Vec<&str> = str::split_whitespace(line).collect();
        let number = |word: &str| word.parse().with_context(|| format!("`{word}` is not a number"));
        match words[..] {
            [name, "add", step] => Ok((name.trim_end_matches(':'), Statement::Add(number(step)?))),
            [name, "run", other, blocks, threads] => {
                let run = Statement::Run(other, number(blocks)?, number(threads)?);
                Ok((name.trim_end_matches(':'), run))
            }
            _ => bail!("cannot read `{line}`"),
        }
    };
    source.lines().map(line).collect()
}

// The back end.

/// The program of a source.
pub(crate) fn program(source: &str) -> Made<Checked> {
    let statements = parse(source)?;
    let pointer = Type::pointer_mut(Type::U32);
    let mut program = ProgramBuilder::new("main.toy", source);
    let mut kernels: Vec<(&str, KernelId)> = vec![];
    for (line, (name, _)) in (1..).zip(&statements) {
        let parameters = [("p", pointer.clone())];
        kernels.push((name, program.kernel(name, &parameters, program.at(line))));
    }
    for (line, (_, statement)) in (1..).zip(&statements) {
        let mut body = Body::new(program.at(line));
        let p = Body::parameter(0);
        match statement {
            Statement::Add(step) => {
                let index = body.thread_index(0);
                let place = body.element(p, index, pointer.clone());
                let old = body.load(place.clone(), Type::U32);
                let step = body.number(*step);
                let new = body.binary(BinaryOp::Add, old, step, Type::U32);
                body.store(place, new);
            }
            Statement::Run(other, blocks, threads) => {
                let found = kernels.iter().find(|(name, _)| name == other);
                let (_, kernel) = found.with_context(|| format!("no kernel `{other}`"))?;
                let (blocks, threads) = (body.number(*blocks), body.number(*threads));
                body.launch(*kernel, &[blocks], &[threads], &[p]);
            }
        }
        body.end();
        program.define(kernels[line as usize - 1].1, body);
    }
    Ok(program.finish()?)
}

/// A bundle for some targets.
pub(crate) fn bundle(source: &str, targets: &[Target], cpu: &CpuOptions) -> Made<Artifact> {
    let cuda = BuildOptions::default();
    Ok(artifact::build_for(&Session::new(), &program(source)?, targets, &cuda, cpu)?)
}

#[allow(clippy::print_stdout, reason = "a program")]
fn main() -> Made<()> {
    let lowered = compile::lower(&program(SOURCE)?, &BuildOptions::default())?;
    print!("{}", gridlet::ir::print::print(&lowered));
    bundle(SOURCE, &[Target::Cpu], &CpuOptions::default())?.write("main.gridlet")?;
    Ok(())
}
