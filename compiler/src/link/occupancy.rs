//! Kernels with a register or two more than let more blocks share an SM.
//!
//! ptxas gives a kernel the registers that its order of instructions asks for. Two fewer hardly change the code, but let up to a
//! third more threads hide each other's waits: a WENO scheme with 66 registers took 1.08 of the time of nvcc's code, and 0.95 with 64
//! (docs/measurements.md, "Plain kernels beside nvcc's").

use std::collections::BTreeMap;

use super::cubin::{KernelResources, kernel_resources};
use super::registers::{OF_SM, UNIT, set_limit};
use super::{Cubin, LinkOutput};
use crate::error::Result;
use crate::ptx::Ptx;

/// How many registers a kernel may lose. Kernels that lost six or eight took up to 1.28 times as long, without an instruction more.
const MOST_LESS: u32 = 2;

/// How many more threads an SM must have room for, in hundredths: with a tenth more, the steps of Viterbi's algorithm took 8 % longer.
const LEAST_GAIN: u32 = 15;

/// How much longer the code may become, in hundredths.
const MOST_MORE: u64 = 2;

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
    let before = kernel_resources(cubin).ok()?;
    let mut limits: BTreeMap<&str, u32> = before
        .iter()
        .filter_map(|kernel| Some((&*kernel.kernel, limit(&ptx.0, kernel)?)))
        .collect();
    while !limits.is_empty() {
        let mut limited = ptx.clone();
        for (kernel, limit) in &limits {
            set_limit(&mut limited, kernel, *limit);
        }
        let output = assemble(&limited).ok()?;
        let after = kernel_resources(&output.cubin).ok()?;
        let count = limits.len();
        // Both are sorted by name.
        for (before, after) in before.iter().zip(&after) {
            if !is_better(before, after) {
                limits.remove(&*before.kernel);
            }
        }
        if limits.len() == count {
            return Some((limited, output));
        }
    }
    None
}

/// Whether a kernel with fewer registers is as short and needs no more memory. Kernels without a limit stay as they are.
fn is_better(before: &KernelResources, after: &KernelResources) -> bool {
    before.kernel == after.kernel
        && after.local_bytes <= before.local_bytes
        && after.code_bytes * 100 <= before.code_bytes * (100 + MOST_MORE)
}

/// The limit with which more blocks fit on an SM.
fn limit(ptx: &str, kernel: &KernelResources) -> Option<u32> {
    let (_, rest) = ptx.split_once(&format!(".entry {}(", kernel.kernel))?;
    let header = rest.split_once('{')?.0;
    if [".maxnreg", ".minnctapersm"].iter().any(|directive| header.contains(directive)) {
        return None;
    }
    fewer(kernel.registers, block_threads(header).unwrap_or(USUAL_THREADS))
}

/// As [`limit`], for a kernel with so many registers.
fn fewer(registers: u32, block_threads: u32) -> Option<u32> {
    let threads = block_threads.clamp(1, THREADS_OF_SM).next_multiple_of(32);
    let limit = registers.checked_sub(1)? / UNIT * UNIT;
    if limit == 0 || registers - limit > MOST_LESS {
        return None;
    }
    let blocks = |registers: u32| {
        let by_registers = OF_SM / (registers.next_multiple_of(UNIT) * threads);
        by_registers.min(THREADS_OF_SM / threads)
    };
    (blocks(limit) * 100 >= blocks(registers) * (100 + LEAST_GAIN)).then_some(limit)
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
        let found = registers.map(|registers| fewer(registers, 256));
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
        assert_eq!([0, 1, 8, 9].map(|registers| fewer(registers, 256)), [None; 4]);
        // No more than 2,048 threads.
        assert_eq!(fewer(34, 64), Some(32));
        assert_eq!(fewer(26, 256), None);
        // One block of 1,024 threads fits, and with 32 registers two.
        assert_eq!(fewer(42, 1024), None);
        assert_eq!(fewer(34, 1000), Some(32));
    }

    #[test]
    fn kernels_with_limits_of_their_own_keep_them() {
        let limit_of = |directives: &str| {
            let ptx = format!(
                ".visible .entry kk(\n)\n{{\n}}\n.visible .entry k(\n\t.param .u32 a\n)\n{directives}{{\n}}\n"
            );
            let (kernel, registers) = ("k".to_owned(), 66);
            let resources = KernelResources {
                kernel,
                registers,
                static_shared_bytes: 0,
                local_bytes: 0,
                code_bytes: 0,
            };
            limit(&ptx, &resources)
        };
        assert_eq!(limit_of(""), Some(64));
        assert_eq!(limit_of(".maxntid 16, 16, 1\n"), Some(64));
        assert_eq!(limit_of(".maxntid 1024\n"), Some(64));
        assert_eq!(limit_of(".maxntid 160, 1, 1\n"), Some(64));
        assert_eq!(limit_of(".maxntid 512, 1, 1\n.minnctapersm 1\n"), None);
        assert_eq!(limit_of(".maxnreg 70\n"), None);
    }
}
