//! The limits of a launch's sizes that hold on every architecture, for sizes that are known when a program is compiled.

use crate::diagnostics::{Diagnostic, ids};
use crate::source::Span;

/// The maximum number of blocks of a grid in x, y and z (CUDA C++ Programming Guide, "Compute Capabilities",
/// technical specifications: the same for every architecture so far).
const MAX_GRID: [i128; 3] = [0x7fff_ffff, 0xffff, 0xffff];

/// The maximum number of threads of a block in x, y and z (same source).
const MAX_BLOCK: [i128; 3] = [1024, 1024, 64];

/// The maximum number of threads of a block (same source).
pub const MAX_BLOCK_THREADS: u32 = 1024;

/// The most blocks on a multiprocessor that launch bounds ask for.
pub(crate) const MAX_MIN_BLOCKS: u32 = 64;

/// The maximum shared memory of a block in bytes, that of the architecture with the most (same source; compute capability 9.0).
pub(crate) const MAX_SHARED_BYTES: i128 = 227 * 1024;

/// A size that no launch can have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Impossible {
    /// The id of the message, from [`crate::diagnostics::ids`].
    pub id: &'static str,
    /// The dimension, counted from 0, if one alone is wrong.
    pub axis: Option<usize>,
    /// The problem.
    pub message: String,
    /// The sizes that are possible.
    pub note: Option<String>,
}

impl Impossible {
    /// The message at a place.
    pub fn at(self, span: Span) -> Diagnostic {
        let error = Diagnostic::error(self.id, span, self.message);
        match self.note {
            Some(note) => error.note(note),
            None => error,
        }
    }
}

/// What is wrong with the number of blocks in x, y and z, as far as they are known.
pub fn grid(sizes: &[Option<i128>]) -> Vec<Impossible> {
    let one = |(at, (size, most)): (usize, (&Option<i128>, i128))| {
        let size = (*size)?;
        let message = || format!("a grid cannot have {size} blocks in {}", axis(at));
        (size < 1 || size > most).then(|| in_axis(at, message(), most))
    };
    sizes.iter().zip(MAX_GRID).enumerate().filter_map(one).collect()
}

/// What is wrong with the number of threads in x, y and z, as far as they are known. `bounds` are a kernel's name and its
/// maximum number of threads, if it has one.
pub fn block(sizes: &[Option<i128>], bounds: Option<(&str, u32)>) -> Option<Impossible> {
    let mut threads: i128 = 1;
    for (at, (size, most)) in sizes.iter().zip(MAX_BLOCK).enumerate() {
        let Some(size) = *size else { continue };
        threads = threads.saturating_mul(size);
        if size < 1 || (at == 2 && size > most) {
            let message = format!("a block cannot have {size} threads in {}", axis(at));
            return Some(in_axis(at, message, most));
        }
    }
    // Unknown sizes count as 1: the block has at least this many threads.
    let at_least = if sizes.contains(&None) { "at least " } else { "" };
    let whole = |id, message| Some(Impossible { id, axis: None, message, note: None });
    if threads > i128::from(MAX_BLOCK_THREADS) {
        let message =
            format!("a block of {at_least}{threads} threads; the maximum is {MAX_BLOCK_THREADS}");
        return whole(ids::BLOCK_TOO_LARGE, message);
    }
    let (name, most) = bounds.filter(|(_, most)| threads > i128::from(*most))?;
    let message = format!(
        "a block of {at_least}{threads} threads; the launch bounds of `{name}` allow {most}"
    );
    whole(ids::LAUNCH_BOUNDS_EXCEEDED, message)
}

/// What is wrong with the dynamic shared memory of a block, in bytes.
pub fn shared(bytes: i128) -> Option<Impossible> {
    (bytes > MAX_SHARED_BYTES).then(|| Impossible {
        id: ids::LAUNCH_DIMENSION,
        axis: None,
        message: format!("a block cannot have {bytes} bytes of dynamic shared memory"),
        note: Some(format!("no GPU has more than {MAX_SHARED_BYTES} bytes for a block")),
    })
}

fn in_axis(at: usize, message: String, most: i128) -> Impossible {
    let note = Some(format!("must be between 1 and {most}"));
    Impossible { id: ids::LAUNCH_DIMENSION, axis: Some(at), message, note }
}

fn axis(at: usize) -> &'static str {
    ["x", "y", "z"].get(at).copied().unwrap_or("x")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limits_themselves_are_possible() {
        let known = |sizes: [i128; 3]| sizes.map(Some);
        assert_eq!(grid(&known([0x7fff_ffff, 0xffff, 0xffff])), []);
        assert_eq!(grid(&[Some(0), None, Some(0x1_0000)]).len(), 2);
        assert_eq!(block(&known([16, 1, 64]), Some(("k", 1024))), None);
        assert_eq!(block(&[Some(64), None, Some(1)], Some(("k", 64))), None);
        for sizes in [[0, 1, 1], [1, 1, 65], [1024, 2, 1], [65, 1, 1]] {
            assert!(block(&known(sizes), Some(("k", 64))).is_some(), "{sizes:?}");
        }
        assert_eq!((shared(232_448), shared(232_449).is_some()), (None, true));
    }
}
