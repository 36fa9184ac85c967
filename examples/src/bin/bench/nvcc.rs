//! Runs nvcc, and other tools on all cores.

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Mutex;

use anyhow::{Context as _, anyhow, ensure};
use gridlet::arch::CudaArch;
use gridlet::toolchain::{Component, Toolchain};

/// Compiles CUDA C++ with `arguments`, for `arch`, optimised.
pub(crate) fn compile(
    tools: &Toolchain,
    arch: CudaArch,
    arguments: &[&str],
    source: &Path,
    output: &Path,
) -> anyhow::Result<()> {
    let mut nvcc = Command::new(tools.path(Component::Nvcc)?);
    nvcc.arg(format!("-arch={}", arch.sm())).args(["-O3", "-std=c++17"]).args(arguments);
    nvcc.arg("-o").arg(output).arg(source);
    if arguments.contains(&"-lcudadevrt") {
        let libraries = tools.cudadevrt()?;
        nvcc.arg("-L").arg(libraries.parent().unwrap_or(libraries));
    }
    let ran = nvcc.stdin(Stdio::null()).output().with_context(|| format!("{nvcc:?}"))?;
    let log = [ran.stdout, ran.stderr].concat();
    let log = String::from_utf8_lossy(&log);
    ensure!(ran.status.success(), "nvcc rejects {}: {}", source.display(), log.trim());
    ensure!(output.exists(), "nvcc made no {}", output.display());
    Ok(())
}

/// Does each job, on all cores; the results have the order of the jobs.
pub(crate) fn on_all_cores<T: Send, R: Send>(
    jobs: Vec<T>,
    each: impl Fn(T) -> R + Sync,
) -> anyhow::Result<Vec<R>> {
    let (queue, done) = (Mutex::new(jobs.into_iter().enumerate()), Mutex::new(Vec::new()));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(|| {
                while let Some((at, job)) = queue.lock().ok().and_then(|mut queue| queue.next()) {
                    let result = each(job);
                    if let Ok(mut done) = done.lock() {
                        done.push((at, result));
                    }
                }
            });
        }
    });
    let mut done = done.into_inner().map_err(|_| anyhow!("a job panicked"))?;
    done.sort_by_key(|(at, _)| *at);
    Ok(done.into_iter().map(|(_, result)| result).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_have_the_order_of_the_jobs() {
        let jobs: Vec<u64> = (0..100).collect();
        let slow_first = |job: u64| {
            std::thread::sleep(std::time::Duration::from_micros((100 - job) * 10));
            job * 2
        };
        let doubled: Vec<u64> = jobs.iter().map(|job| job * 2).collect();
        assert_eq!(on_all_cores(jobs, slow_first).ok(), Some(doubled));
    }
}
