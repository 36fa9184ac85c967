//! The registers of the resident kernel.
//!
//! The resident kernel holds the scheduler and the code of every kernel that nests, and each of its threads has as many
//! registers as the largest part asks for, so that fewer threads fit on an SM than for a kernel of its own. The scheduler
//! runs seldom beside the blocks of a large grid: it may keep values in memory instead. So the limit is what the kernels need
//! when each is compiled alone. On the H200 a grid that copies 256,000,000 numbers took 2.09 ms without a limit (76
//! registers), 1.63 ms with 64 and 1.48 ms with 48. But a scheduler with too few of them keeps its own values in memory, and grids wait
//! for it.

use super::Cubin;
use super::cubin::kernel_resources;
use crate::Result;
use crate::ptx::Ptx;

/// With fewer registers the scheduler costs more than the threads gain: on an H200, particles in cells took 2.87 ms with 48 and 2.59 with 64,
/// an octree 1.14 ms with 32 and 0.92 with 64. An SM has room for 32 blocks of one warp, and for their threads with this many.
const LEAST: u32 = 64;

/// The same for programs in which kernels have loops, no grid waits for another, and no kernel that is launched launches. On an H200 the
/// triangles of a graph took 3.84 ms with 32 and 4.80 ms with 48, and a join with a grid for each long bucket 0.96 and 1.02.
const LEAST_OF_LOOPS: u32 = 32;

/// The GPU gives registers to warps in units of 256 (CUDA Programming Guide, "Technical Specifications").
pub(super) const UNIT: u32 = 8;

/// The most that a thread can have, in such units (same section).
const MOST: u32 = 248;

/// Registers of an SM (same section).
pub(super) const OF_SM: u32 = 65_536;

/// Registers that a launch needs in addition where it does not call the device runtime, so that it keeps nothing in memory.
const LAUNCH: u32 = 24;

/// The limit for kernels that need so many registers when each is compiled alone. `object` has them; `kernels` gives their
/// names in the machine code, and whether each launches. `may_lack` says that some let the resident kernel have few.
/// `block_threads` is the most threads of a block that kernels or, by `#[launch_bounds]`, the host launch, `bound` how many threads the
/// resident kernel may have if it is not for the compiler to say. On an H200 a search that the host launches with blocks of 256
/// threads, and kernels with one warp, took 3.04 ms with 72 registers, of which only three such blocks fit on an SM, and 2.20 with 48.
///
/// # Errors
/// `Invalid` if the object cannot be read.
pub(crate) fn limit(
    object: &Cubin,
    kernels: &[(String, bool)],
    may_lack: bool,
    block_threads: u32,
    bound: Option<u32>,
) -> Result<u32> {
    let all = kernel_resources(object)?;
    let most = |of_launch| {
        let needs = |(name, launches): &(String, bool)| {
            let found = all.iter().find(|found| found.kernel == *name)?;
            Some(found.registers + if *launches { of_launch } else { 0 })
        };
        kernels.iter().filter_map(needs).max().unwrap_or(0)
    };
    let least = if may_lack { LEAST_OF_LOOPS } else { LEAST };
    let limit = balanced(most(LAUNCH), most(0), least, block_threads);
    // With `.maxnreg`, ptxas no longer sees to it that a block of so many threads can run.
    let possible = bound.map_or(limit, |threads| OF_SM / threads / UNIT * UNIT);
    Ok(limit.min(possible))
}

/// The limit for kernels that need so many registers with and without those for launches: without, if a third more blocks fit on
/// an SM then. On an H100 a quadtree (four blocks instead of two) took 3.00 instead of 3.59 ms, and a quicksort (five instead of
/// three) 5.01 instead of 5.90 ms. Where the gain is a quarter, a breadth-first search gained 4 % with large grids and lost 5 %
/// with small ones. Then as many as fit without a block less: with 64 instead of 56, the scheduler of that search reads half as often
/// from memory.
fn balanced(with: u32, without: u32, least: u32, block_threads: u32) -> u32 {
    if block_threads <= 32 {
        // Kernels with such blocks mostly launch: the search of an unbalanced tree took 18 % longer without.
        return with.next_multiple_of(UNIT).max(LEAST);
    }
    let [with, without] = [with, without].map(|most| most.next_multiple_of(UNIT).max(least));
    let threads = block_threads.next_multiple_of(32);
    let blocks = |registers| OF_SM / (registers * threads);
    let limit = if 3 * blocks(without) >= 4 * blocks(with) { without } else { with };
    // The most with which as many blocks fit: the scheduler needs them.
    let most = OF_SM / (blocks(limit).max(1) * threads) / UNIT * UNIT;
    limit.max(most.min(MOST))
}

/// Puts the directive `.maxnreg` at a kernel (PTX ISA, "Performance-Tuning Directives"). A module without that kernel stays as
/// it is.
pub(crate) fn set_limit(ptx: &mut Ptx, kernel: &str, limit: u32) {
    let start = ptx.0.find(&format!(".entry {kernel}("));
    let body = start.and_then(|start| Some(start + ptx.0[start..].find('{')?));
    if let Some(body) = body {
        ptx.0.insert_str(body, &format!(".maxnreg {limit}\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn launches_get_registers_unless_many_more_blocks_fit_without() {
        // A quadtree, a quicksort, and a breadth-first search.
        assert_eq!(balanced(84, 60, LEAST, 256), 64);
        assert_eq!(balanced(72, 48, LEAST, 256), 64);
        assert_eq!(balanced(54, 30, LEAST, 128), 64);
        // Blocks of one warp.
        assert_eq!(balanced(82, 58, LEAST, 32), 88);
        assert_eq!(balanced(24, 10, LEAST, 1), LEAST);
        // The triangles of a graph, whose kernels have loops.
        assert_eq!(balanced(48, 24, LEAST_OF_LOOPS, 256), 32);
        // As many blocks fit with more.
        assert_eq!(balanced(54, 54, LEAST_OF_LOOPS, 256), 64);
        assert_eq!(balanced(66, 66, LEAST, 256), 80);
        assert_eq!(balanced(20, 20, LEAST, 1024), 64);
        // No block fits with them.
        assert_eq!(balanced(90, 64, LEAST, 1024), 64);
        assert_eq!(balanced(20, 20, LEAST, 128), LEAST);
    }

    #[test]
    fn the_limit_is_a_directive_of_the_kernel() {
        let mut ptx = Ptx(".visible .entry a(\n)\n{\n}\n.visible .entry b(\n)\n{\n}\n".into());
        set_limit(&mut ptx, "b", 48);
        let limited = ".visible .entry a(\n)\n{\n}\n.visible .entry b(\n)\n.maxnreg 48\n{\n}\n";
        assert_eq!(ptx.0, limited);
        set_limit(&mut ptx, "c", 48);
        assert_eq!(ptx.0, limited);
    }
}
