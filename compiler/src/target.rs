//! Build targets: GPU architectures and the CPU device.

use std::collections::HashSet;
use std::fmt;
use std::str::FromStr;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};
use std::thread;

use gridlet_lang::arch::CudaArch;

/// The target of an image.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Target {
    /// A GPU.
    Cuda(CudaArch),
    /// The CPU device, on the architecture that the compiler runs on.
    Cpu,
}

impl From<CudaArch> for Target {
    fn from(arch: CudaArch) -> Self {
        Target::Cuda(arch)
    }
}

/// `sm_90` or `cpu`.
impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Cuda(arch) => arch.fmt(f),
            Target::Cpu => f.write_str("cpu"),
        }
    }
}

impl FromStr for Target {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "cpu" {
            return Ok(Target::Cpu);
        }
        text.parse().map(Target::Cuda).map_err(|error: String| format!("{error}, cpu"))
    }
}

/// The targets without those that are named before.
pub fn distinct(targets: &[Target]) -> Vec<Target> {
    let mut seen = HashSet::new();
    targets.iter().copied().filter(|target| seen.insert(*target)).collect()
}

/// Compilers' recursion is as deep as on a main thread.
const STACK_BYTES: usize = 8 << 20;

/// Makes something for each target, for several at a time on a machine with several processors, and returns it in their
/// order.
///
/// # Errors
/// The error of the first target for which `make` fails.
pub fn for_each<T: Sync, R: Send, E: Send>(
    targets: &[T],
    make: impl Fn(&T) -> Result<R, E> + Sync,
) -> Result<Vec<R>, E> {
    let next = AtomicUsize::new(0);
    let made: Vec<Mutex<Option<Result<R, E>>>> = targets.iter().map(|_| Mutex::default()).collect();
    let work = || {
        let take = || targets.iter().zip(&made).nth(next.fetch_add(1, Ordering::Relaxed));
        while let Some((target, place)) = take() {
            let result = make(target);
            if result.is_err() {
                // Nobody wants the rest; those before it are under way.
                next.store(targets.len(), Ordering::Relaxed);
            }
            *place.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        }
    };
    let threads = thread::available_parallelism().map_or(1, usize::from).min(targets.len());
    thread::scope(|scope| {
        for _ in 1..threads {
            // Without a further thread, the others do the work.
            let _ = thread::Builder::new().stack_size(STACK_BYTES).spawn_scoped(scope, work);
        }
        work();
    });
    let results =
        made.into_iter().map(|place| place.into_inner().unwrap_or_else(PoisonError::into_inner));
    results.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_the_order_of_the_targets() {
        let numbers: Vec<u64> = (0..100).collect();
        let slow_first = |number: &u64| {
            thread::sleep(std::time::Duration::from_micros(100 - number));
            Ok::<_, ()>(2 * number)
        };
        let doubled: Vec<u64> = numbers.iter().map(|number| 2 * number).collect();
        assert_eq!(for_each(&numbers, slow_first), Ok(doubled));
        let failing = |number: &u64| if number % 10 == 7 { Err(*number) } else { Ok(()) };
        assert_eq!(for_each(&numbers, failing), Err(7));
        assert_eq!(for_each(&[], failing), Ok(vec![]));
    }

    #[test]
    fn targets_are_made_at_the_same_time() {
        if thread::available_parallelism().map_or(1, usize::from) < 2 {
            return;
        }
        // Each waits for the other.
        let both = std::sync::Barrier::new(2);
        let met = for_each(&[0, 1], |_| Ok::<_, ()>(both.wait().is_leader())).unwrap();
        assert_ne!(met[0], met[1]);
    }

    #[test]
    fn names_parse() {
        for target in CudaArch::SUPPORTED.map(Target::from).into_iter().chain([Target::Cpu]) {
            assert_eq!(target.to_string().parse(), Ok(target));
        }
        let error = "x86_64".parse::<Target>().unwrap_err();
        assert!(error.ends_with("sm_120, cpu"), "{error}");
    }
}
