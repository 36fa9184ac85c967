//! The kinds of findings of checked CPU images, whose ids the compiler documents.

use serde::Serialize;

/// A kind of mistake that a checked program makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// An access of memory that is not the program's.
    OutOfBounds,
    /// An address that is not a multiple of what the access needs.
    Misaligned,
    /// An access of memory that was freed.
    UseAfterFree,
    /// A read of bytes that nobody wrote.
    Uninitialised,
    /// Two accesses, one of them a write, that nothing orders.
    Race,
    /// A barrier or warp operation that not all its threads reach.
    Barrier,
    /// A loop that waits for what nobody will do.
    InfiniteWait,
    /// The program stopped itself.
    Trap,
}

impl Kind {
    /// All of them, in the order of the reference of messages.
    pub const ALL: [Kind; 8] = [
        Kind::OutOfBounds,
        Kind::Misaligned,
        Kind::UseAfterFree,
        Kind::Uninitialised,
        Kind::Race,
        Kind::Barrier,
        Kind::InfiniteWait,
        Kind::Trap,
    ];

    /// The kind's name, as `//~` comments and `--json` spell it.
    pub fn id(self) -> &'static str {
        match self {
            Kind::OutOfBounds => "out-of-bounds",
            Kind::Misaligned => "misaligned",
            Kind::UseAfterFree => "use-after-free",
            Kind::Uninitialised => "uninitialised",
            Kind::Race => "race",
            Kind::Barrier => "barrier",
            Kind::InfiniteWait => "infinite-wait",
            Kind::Trap => "trap",
        }
    }

    /// What it is, in a line.
    pub fn meaning(self) -> &'static str {
        match self {
            Kind::OutOfBounds => "an access of memory that is not the program's",
            Kind::Misaligned => "an access at an address that is no multiple of what it needs",
            Kind::UseAfterFree => "an access of memory that was freed",
            Kind::Uninitialised => "a read of memory that nothing wrote",
            Kind::Race => "two accesses, one of them a write, that nothing orders",
            Kind::Barrier => "a barrier or warp operation that not all its threads reach",
            Kind::InfiniteWait => "a loop that waits for what nobody will do",
            Kind::Trap => "a kernel that stopped itself",
        }
    }
}
