//! Kernels with a register or two more than let more blocks share an SM, and others with too few to load ahead.
//!
//! ptxas gives a kernel the registers that its order of instructions asks for. Two fewer hardly change the code, but let up to a
//! third more threads hide each other's waits: a WENO scheme with 66 registers took 1.08 of the time of nvcc's code, and 0.95 with 64
//! (docs/measurements.md, "Plain kernels beside nvcc's").
//!
//! Up to eight fewer pay in code that waits much, if its loads stay together: systems with three diagonals took 0.97 of nvcc's time with
//! 40 registers, and 0.74 with 32. Code that computes much becomes slower, and so does code whose loads come in other groups.
//!
//! In some kernels ptxas takes few registers, so that many blocks share an SM, and each load waits alone. With eight more it may load
//! several at once: a warping of time series took 1.16 with 32 registers and 1.03 with 40, through NVPTX 0.98 and 0.90.

use std::collections::BTreeMap;

use super::cubin::{KernelResources, kernel_codes, kernel_resources};
use super::registers::{OF_SM, UNIT, set_limit};
use super::waits::{self, Waits};
use super::{Cubin, LinkOutput};
use crate::error::Result;
use crate::ptx::Ptx;

/// How many registers a kernel may lose, and how many more threads an SM must have room for then, in hundredths. With a tenth more, the steps
/// of Viterbi's algorithm took 8 % longer.
const FEW: Step = Step { most_less: 2, least_gain: 15 };

/// The same for kernels that wait much.
const MANY: Step = Step { most_less: UNIT, least_gain: 30 };

/// How many of a hundred instructions wait in such kernels.
const MUCH: usize = 14;

/// The least loads from global memory of a kernel that gets more registers, and how many of a hundred wait alone.
const LEAST_LOADS: usize = 8;
const ALONE: usize = 80;

/// The most waits for loads that are left of a hundred.
const MOST_LEFT: usize = 75;

/// The most registers that a kernel gets so: with more, too few threads share an SM.
const MOST_FOR_LOADS: u32 = 48;

/// How much longer the code may become, in hundredths.
const MOST_MORE: usize = 2;

/// The threads of a block where a kernel does not say.
const USUAL_THREADS: u32 = 256;

/// The most threads of an SM ("CUDA Programming Guide", "Technical Specifications"); newer GPUs for graphics have room for 1,536.
const THREADS_OF_SM: u32 = 2048;

/// Assembles PTX again with a limit for such kernels, where that needs no local memory and hardly more instructions. `cubin` was
/// assembled without, and stays where this fails.
pub(super) fn improve(
    ptx: &Ptx,
    cubin: &Cubin,
    assemble: impl Fn(&Ptx) -> Result<LinkOutput>,
) -> Option<(Ptx, LinkOutput)> {
    let before = measure(cubin)?;
    let mut limits: BTreeMap<&str, u32> = before
        .iter()
        .filter_map(|kernel| Some((&*kernel.resources.kernel, limit(&ptx.0, kernel)?)))
        .collect();
    while !limits.is_empty() {
        let mut limited = ptx.clone();
        for (kernel, limit) in &limits {
            set_limit(&mut limited, kernel, *limit);
        }
        let output = assemble(&limited).ok()?;
        let after = measure(&output.cubin)?;
        let count = limits.len();
        // Both are sorted by name.
        for (before, after) in before.iter().zip(&after) {
            let limit = limits.get(&*before.resources.kernel);
            if limit.is_some_and(|limit| !is_better(before, after, *limit)) {
                limits.remove(&*before.resources.kernel);
            }
        }
        if limits.len() == count {
            return Some((limited, output));
        }
    }
    None
}

/// What a kernel's registers decide.
struct Measured {
    resources: KernelResources,
    waits: Waits,
}

/// All kernels, sorted by name.
fn measure(cubin: &Cubin) -> Option<Vec<Measured>> {
    let codes = kernel_codes(cubin).ok()?;
    let of = |resources: KernelResources| {
        let waits = waits::count(codes.get(&resources.kernel)?);
        Some(Measured { resources, waits })
    };
    kernel_resources(cubin).ok()?.into_iter().map(of).collect()
}

/// Whether a kernel with a limit for its registers is as short, needs no more memory, and has its loads in as many groups if it lost many
/// registers, or in fewer if it may have more.
fn is_better(before: &Measured, after: &Measured, limit: u32) -> bool {
    let [old, new] = [&before.resources, &after.resources];
    let [waits, left] = [before.waits.for_loads, after.waits.for_loads];
    let loads = match old.registers.checked_sub(limit) {
        Some(lost) => lost <= FEW.most_less || waits == left,
        None => left * 100 <= waits * MOST_LEFT,
    };
    old.kernel == new.kernel
        && new.local_bytes <= old.local_bytes
        && after.waits.instructions * 100 <= before.waits.instructions * (100 + MOST_MORE)
        && loads
}

/// The limit with which more blocks fit on an SM, or more loads are under way.
fn limit(ptx: &str, kernel: &Measured) -> Option<u32> {
    let Measured { resources, waits } = kernel;
    let (_, rest) = ptx.split_once(&format!(".entry {}(", resources.kernel))?;
    let header = rest.split_once('{')?.0;
    if [".maxnreg", ".minnctapersm"].iter().any(|directive| header.contains(directive)) {
        return None;
    }
    let threads = block_threads(header).unwrap_or(USUAL_THREADS);
    let waits_much = waits.waiting * 100 >= waits.instructions * MUCH;
    let registers = resources.registers;
    // A program that calls the device runtime spends its time there, and would take half as long again to assemble.
    let is_plain = !ptx.contains("cudaLaunchDevice");
    let many = || fewer(registers, threads, MANY).filter(|_| is_plain && waits_much);
    let more = || more(registers, *waits).filter(|_| is_plain);
    fewer(registers, threads, FEW).or_else(many).or_else(more)
}

/// The registers of the next step, for a kernel that has all of its step and whose loads wait alone.
fn more(registers: u32, waits: Waits) -> Option<u32> {
    let wait_alone = waits.for_loads >= LEAST_LOADS && waits.for_loads * 100 >= waits.loads * ALONE;
    let limit = registers + UNIT;
    (wait_alone && registers.is_multiple_of(UNIT) && limit <= MOST_FOR_LOADS).then_some(limit)
}

/// How many registers a kernel may lose for how many more threads.
#[derive(Clone, Copy)]
struct Step {
    most_less: u32,
    least_gain: u32,
}

/// As [`limit`], for a kernel with so many registers.
fn fewer(registers: u32, block_threads: u32, step: Step) -> Option<u32> {
    let threads = block_threads.clamp(1, THREADS_OF_SM).next_multiple_of(32);
    let limit = registers.checked_sub(1)? / UNIT * UNIT;
    if limit == 0 || registers - limit > step.most_less {
        return None;
    }
    let blocks = |registers: u32| {
        let by_registers = OF_SM / (registers.next_multiple_of(UNIT) * threads);
        by_registers.min(THREADS_OF_SM / threads)
    };
    (blocks(limit) * 100 >= blocks(registers) * (100 + step.least_gain)).then_some(limit)
}

/// The most threads of a block, from `.maxntid 16, 16, 1` or `.reqntid` (PTX ISA, "Performance-Tuning Directives").
fn block_threads(header: &str) -> Option<u32> {
    let (_, rest) = header.split_once(".maxntid").or_else(|| header.split_once(".reqntid"))?;
    let numbers = rest.lines().next()?.split(',').map(|number| number.trim().parse::<u32>());
    numbers.map_while(std::result::Result::ok).try_fold(1u32, u32::checked_mul)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_is_a_little_less_and_lets_a_block_more_run() {
        let registers = [32, 33, 34, 35, 42, 49, 58, 65, 66, 67, 74, 81, 90, 130];
        let found = registers.map(|registers| fewer(registers, 256, FEW));
        let expected = [
            None,
            Some(32),
            Some(32),
            None,
            Some(40),
            Some(48),
            None,
            Some(64),
            Some(64),
            None,
            None,
            Some(80),
            None,
            Some(128),
        ];
        assert_eq!(found, expected);
        // Some kernels hardly need registers.
        assert_eq!([0, 1, 8, 9].map(|registers| fewer(registers, 256, MANY)), [None; 4]);
        // No more than 2,048 threads.
        assert_eq!(fewer(34, 64, FEW), Some(32));
        assert_eq!(fewer(26, 256, FEW), None);
        // One block of 1,024 threads fits, and with 32 registers two.
        assert_eq!(fewer(42, 1024, FEW), None);
        assert_eq!(fewer(34, 1000, FEW), Some(32));
    }

    #[test]
    fn kernels_that_wait_much_may_lose_more_for_more() {
        let found = [40, 38, 35, 48, 56, 72, 128].map(|registers| fewer(registers, 256, MANY));
        assert_eq!(found, [Some(32), Some(32), Some(32), None, None, Some(64), None]);

        let ptx = ".visible .entry k(\n)\n{\n}\n";
        let of = |registers, waiting| limit(ptx, &kernel(registers, waiting));
        assert_eq!([of(40, 13), of(40, 14), of(34, 13)], [None, Some(32), Some(32)]);
        let launching = format!(".extern .func cudaLaunchDeviceV2\n;\n{ptx}");
        let of = |registers, waiting| limit(&launching, &kernel(registers, waiting));
        assert_eq!([of(40, 14), of(34, 13)], [None, Some(32)]);
    }

    #[test]
    fn loads_stay_together_where_many_registers_are_lost() {
        let [before, after, mut apart] = [40, 32, 32].map(|registers| kernel(registers, 20));
        assert!(is_better(&before, &after, 32));
        apart.waits.for_loads += 1;
        assert!(!is_better(&before, &apart, 32));
        assert!(is_better(&kernel(34, 20), &apart, 32));
    }

    #[test]
    fn kernels_whose_loads_wait_alone_get_more() {
        let waits = |for_loads, loads| Waits { instructions: 100, waiting: 10, for_loads, loads };
        assert_eq!(more(32, waits(8, 10)), Some(40));
        let ptx = ".visible .entry k(\n)\n{\n}\n";
        let of = |waits| limit(ptx, &Measured { waits, ..kernel(32, 0) });
        assert_eq!([of(waits(8, 10)), of(waits(8, 11))], [Some(40), None]);
        assert_eq!(more(40, waits(8, 10)), Some(48));
        // Few loads, loads in groups, registers of the step that are left, and few threads.
        let others = [
            more(32, waits(7, 8)),
            more(32, waits(8, 11)),
            more(31, waits(8, 10)),
            more(48, waits(8, 10)),
        ];
        assert_eq!(others, [None; 4]);

        let [before, mut after] = [32, 40].map(|registers| kernel(registers, 20));
        assert!(!is_better(&before, &after, 40));
        after.waits.for_loads = 3;
        assert!(is_better(&before, &after, 40));
    }

    /// A kernel of 100 instructions.
    fn kernel(registers: u32, waiting: usize) -> Measured {
        let resources = KernelResources {
            kernel: "k".to_owned(),
            registers,
            static_shared_bytes: 0,
            local_bytes: 0,
            code_bytes: 1600,
        };
        Measured { resources, waits: Waits { instructions: 100, waiting, for_loads: 5, loads: 7 } }
    }

    #[test]
    fn kernels_with_limits_of_their_own_keep_them() {
        let limit_of = |directives: &str| {
            let ptx = format!(
                ".visible .entry kk(\n)\n{{\n}}\n.visible .entry k(\n\t.param .u32 a\n)\n{directives}{{\n}}\n"
            );
            limit(&ptx, &kernel(66, 0))
        };
        assert_eq!(limit_of(""), Some(64));
        assert_eq!(limit_of(".maxntid 16, 16, 1\n"), Some(64));
        assert_eq!(limit_of(".maxntid 1024\n"), Some(64));
        assert_eq!(limit_of(".maxntid 160, 1, 1\n"), Some(64));
        assert_eq!(limit_of(".maxntid 512, 1, 1\n.minnctapersm 1\n"), None);
        assert_eq!(limit_of(".maxnreg 70\n"), None);
    }
}
