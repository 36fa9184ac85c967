//! How a grid fails, as the host sees it.

use std::fmt;

use gridlet_artifact::Dim3;

use crate::abi::Location;

/// Why a grid failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// `trap()`, or a failed `assert`.
    Trap,
    /// An integer division by zero.
    Division,
    /// Code that the compiler takes for unreachable.
    Unreachable,
    /// An access to memory that is not mapped, or not writable.
    Access,
    /// An access that the machine refuses at that address.
    Bus,
    /// An arithmetic exception of the machine.
    Arithmetic,
    /// An instruction that the machine does not have.
    Instruction,
    /// A thread used up its stack.
    StackOverflow,
    /// It freed memory that `malloc` did not give, or twice.
    InvalidFree,
    /// All threads of a block wait, and not all for the same barrier.
    Deadlock,
    /// The checker stopped the grid; its report says why.
    Checked,
    /// A wait for it timed out, or its device was closed.
    Cancelled,
    /// The system has no memory for a block's stacks or shared memory.
    NoMemory,
}

impl FaultKind {
    fn text(self) -> &'static str {
        match self {
            FaultKind::Trap => "stopped itself with a trap",
            FaultKind::Division => "divided an integer by zero",
            FaultKind::Unreachable => "reached code assumed to be unreachable",
            FaultKind::Access => "read or wrote an invalid address",
            FaultKind::Bus => "read or wrote an address that the machine rejects",
            FaultKind::Arithmetic => "caused an arithmetic exception",
            FaultKind::Instruction => "executed an instruction that this machine does not support",
            FaultKind::StackOverflow => {
                "used up its stack (local variables and calls need more than 256 KiB)"
            }
            FaultKind::InvalidFree => {
                "freed an address that `malloc` did not return, or freed memory twice"
            }
            FaultKind::Deadlock => {
                "waits forever: not all threads of the block reach the same barrier"
            }
            FaultKind::Checked => "was stopped by the checker",
            FaultKind::Cancelled => "was cancelled",
            FaultKind::NoMemory => "did not start: no memory for a block's stacks or shared memory",
        }
    }
}

/// A line of the source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// The file: its name, or `file N` if the loader was not told the names.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A grid that failed on the CPU device. What was launched with it is dropped; the device goes on.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", describe(self))]
pub struct CpuFault {
    /// Why.
    pub kind: FaultKind,
    /// The kernel.
    pub kernel: String,
    /// `block_idx`; `None` if no block had started.
    pub block: Option<Dim3>,
    /// `thread_idx`; `None` if it is not known, because the block ran as one loop.
    pub thread: Option<Dim3>,
    /// The address that was accessed.
    pub address: Option<u64>,
    /// Where in the source; `None` if the image does not say.
    pub location: Option<SourceLine>,
    /// Where the grid was launched; `None` for a launch of the host.
    pub launched_at: Option<SourceLine>,
}

/// `kernel 'k' stopped itself with a trap at a.grid:7, in block (0, 0, 0), thread (1, 0, 0)`
fn describe(fault: &CpuFault) -> String {
    let mut text = format!("kernel `{}` {}", fault.kernel, fault.kind.text());
    if let Some(address) = fault.address {
        text += &format!(": {address:#x}");
    }
    if let Some(location) = &fault.location {
        text += &format!(", at {location}");
    }
    if let Some(block) = fault.block {
        text += &format!(", in block {block}");
    }
    if let Some(thread) = fault.thread {
        text += &format!(", thread {thread}");
    }
    if let Some(launched_at) = &fault.launched_at {
        text += &format!("; launched at {launched_at}");
    }
    text
}

/// File and line of a location; `None` if it is unknown.
pub(crate) fn file_and_line(location: Location) -> Option<(u32, u32)> {
    (location != 0).then_some((location >> 24, location & 0x00ff_ffff))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_says_all_that_is_known() {
        let line = |line| Some(SourceLine { file: "a.grid".into(), line });
        let full = CpuFault {
            kind: FaultKind::Access,
            kernel: "child".into(),
            block: Some(Dim3::new(2, 0, 0)),
            thread: Some(Dim3::new(31, 1, 0)),
            address: Some(0xdead_0000),
            location: line(7),
            launched_at: line(3),
        };
        let bare = CpuFault {
            kind: FaultKind::NoMemory,
            block: None,
            thread: None,
            address: None,
            location: None,
            launched_at: None,
            ..full.clone()
        };
        insta::assert_snapshot!(format!("{full}\n{bare}"), @"
        kernel `child` read or wrote an invalid address: 0xdead0000, at a.grid:7, in block (2, 0, 0), thread (31, 1, 0); launched at a.grid:3
        kernel `child` did not start: no memory for a block's stacks or shared memory
        ");
    }
}
