//! Kinds of findings of checked CPU images; the compiler documents their ids.

use serde::Serialize;

/// A kind of error in a checked program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An access outside the program's memory.
    OutOfBounds,
    /// An access at an address that violates its alignment.
    Misaligned,
    /// An access of freed memory.
    UseAfterFree,
    /// A read of uninitialised bytes.
    Uninitialised,
    /// Two unordered accesses, at least one of them a write.
    Race,
    /// Memory that a kernel promised to reach through one pointer parameter only.
    Overlap,
    /// An atomic operation on a local variable.
    LocalAtomic,
    /// A barrier or warp operation that some of its threads do not reach, or a wrong mask.
    Barrier,
    /// A loop that waits for something that never happens.
    InfiniteWait,
    /// The program stopped itself.
    Trap,
}

impl Kind {
    /// All kinds, in the order of the message reference.
    pub const ALL: [Kind; 10] = [
        Kind::OutOfBounds,
        Kind::Misaligned,
        Kind::UseAfterFree,
        Kind::Uninitialised,
        Kind::Race,
        Kind::Overlap,
        Kind::LocalAtomic,
        Kind::Barrier,
        Kind::InfiniteWait,
        Kind::Trap,
    ];

    /// The kind's identifier in `//~` comments and `--json` output.
    pub fn id(self) -> &'static str {
        match self {
            Kind::OutOfBounds => "out-of-bounds",
            Kind::Misaligned => "misaligned",
            Kind::UseAfterFree => "use-after-free",
            Kind::Uninitialised => "uninitialised",
            Kind::Race => "race",
            Kind::Overlap => "overlap",
            Kind::LocalAtomic => "local-atomic",
            Kind::Barrier => "barrier",
            Kind::InfiniteWait => "infinite-wait",
            Kind::Trap => "trap",
        }
    }

    /// A one-line description.
    pub fn meaning(self) -> &'static str {
        match self {
            Kind::OutOfBounds => "an access outside the program's memory",
            Kind::Misaligned => "an access at a misaligned address",
            Kind::UseAfterFree => "an access of freed memory",
            Kind::Uninitialised => "a read of uninitialised memory",
            Kind::Race => "two unordered accesses, at least one of them a write",
            Kind::Overlap => "a write to memory that another `#[noalias]` pointer leads to as well",
            Kind::LocalAtomic => "an atomic operation on a local variable",
            Kind::Barrier => {
                "a barrier or warp operation that some of its threads do not reach, or a wrong mask"
            }
            Kind::InfiniteWait => "a loop that waits for something that never happens",
            Kind::Trap => "a kernel that stopped itself",
        }
    }
}
