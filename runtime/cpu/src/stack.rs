//! Stacks for kernel threads: reserved in slabs and reused, each with a guard at its low end.

use std::io;
use std::num::NonZeroUsize;
use std::ops::Range;
use std::ptr;

use corosensei::stack::{Stack, StackPointer};

/// Usable bytes of a stack: enough for the local variables of any reasonable program. Untouched pages cost nothing.
pub(crate) const STACK_BYTES: usize = 256 * 1024;
const GUARD_BYTES: usize = 64 * 1024;
/// Number of stacks in a slab.
const SLAB: usize = 32;

/// `MADV_GUARD_INSTALL` (Linux 6.13): a guard that does not split the mapping; a process may have only
/// 65,530 mappings.
const MADV_GUARD_INSTALL: libc::c_int = 102;

/// A stack of a pool. It must not outlive the pool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KernelStack {
    base: NonZeroUsize,
    limit: NonZeroUsize,
}

impl KernelStack {
    /// Address and size of the usable part.
    pub(crate) fn usable(self) -> (usize, usize) {
        let first = self.limit.get() + GUARD_BYTES;
        (first, self.base.get() - first)
    }

    /// Whether the address is in its guard.
    pub(crate) fn guards(self, address: usize) -> bool {
        (self.limit.get()..self.usable().0).contains(&address)
    }
}

// SAFETY: `base` is aligned to 16 and `limit` to a page; between them lie the usable bytes and, at the low end, the
// guard. The pool keeps the mapping, and its owner keeps the pool longer than any coroutine on it.
unsafe impl Stack for KernelStack {
    fn base(&self) -> StackPointer {
        self.base
    }

    fn limit(&self) -> StackPointer {
        self.limit
    }
}

/// The stacks of one worker, numbered from 0.
#[derive(Debug, Default)]
pub(crate) struct StackPool {
    slabs: Vec<*mut libc::c_void>,
    stacks: Vec<KernelStack>,
}

const SLAB_BYTES: usize = SLAB * (STACK_BYTES + GUARD_BYTES);

impl StackPool {
    /// Ensures that stacks 0 to `count - 1` exist. Reports the addresses of all that it makes.
    ///
    /// # Errors
    /// The system's error if it cannot reserve more memory.
    pub(crate) fn reserve(&mut self, count: usize, made: impl Fn(Range<usize>)) -> io::Result<()> {
        while self.stacks.len() < count {
            let first = self.add_slab()?;
            made(first..first + SLAB_BYTES);
        }
        Ok(())
    }

    /// Stack `index`, which must have been reserved.
    pub(crate) fn get(&self, index: usize) -> KernelStack {
        self.stacks[index]
    }

    /// Returns the slab's address.
    fn add_slab(&mut self) -> io::Result<usize> {
        // SAFETY: a new anonymous mapping, which nothing else refers to.
        let slab = unsafe {
            libc::mmap(
                ptr::null_mut(),
                SLAB_BYTES,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if slab == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        self.slabs.push(slab);
        for index in 0..SLAB {
            let limit = slab as usize + index * (STACK_BYTES + GUARD_BYTES);
            guard(limit)?;
            // Offset the stacks differently within a page; otherwise the hot ends of many stacks would compete for the same
            // cache sets.
            let colour = (self.stacks.len() * 7 % 16) * 256;
            let base = limit + GUARD_BYTES + STACK_BYTES - colour;
            let (Some(base), Some(limit)) = (NonZeroUsize::new(base), NonZeroUsize::new(limit))
            else {
                return Err(io::Error::other("a mapping at address 0"));
            };
            self.stacks.push(KernelStack { base, limit });
        }
        Ok(slab as usize)
    }
}

impl Drop for StackPool {
    fn drop(&mut self) {
        for slab in &self.slabs {
            // SAFETY: `add_slab` made the mapping; no coroutine uses it any more.
            unsafe { libc::munmap(*slab, SLAB_BYTES) };
        }
    }
}

fn guard(start: usize) -> io::Result<()> {
    let start = start as *mut libc::c_void;
    // SAFETY: the bytes belong to the slab that is being set up, and hold no data.
    let guarded = unsafe {
        libc::madvise(start, GUARD_BYTES, MADV_GUARD_INSTALL) == 0
            || libc::mprotect(start, GUARD_BYTES, libc::PROT_NONE) == 0
    };
    if guarded { Ok(()) } else { Err(io::Error::last_os_error()) }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[test]
    fn stacks_are_writable_and_apart() {
        let mut pool = StackPool::default();
        let made = RefCell::new(vec![]);
        pool.reserve(SLAB + 1, |range| made.borrow_mut().push(range)).unwrap();
        let mut ranges: Vec<(usize, usize)> = (0..=SLAB).map(|i| pool.get(i).usable()).collect();
        for (first, bytes) in &ranges {
            // SAFETY: writes both ends of a stack that no coroutine uses.
            unsafe {
                (*first as *mut u8).write(1);
                ((first + bytes - 1) as *mut u8).write(1);
            }
        }
        ranges.sort_unstable();
        assert!(
            ranges.windows(2).all(|pair| pair[0].0 + pair[0].1 + GUARD_BYTES <= pair[1].0 + 4096)
        );
        let made = made.into_inner();
        assert_eq!(made.len(), 2, "each slab is reported once");
        let is_reported = |first: usize, bytes: usize| {
            made.iter().any(|range| range.start <= first && first + bytes <= range.end)
        };
        assert!(ranges.iter().all(|(first, bytes)| is_reported(*first, *bytes)));
    }
}
