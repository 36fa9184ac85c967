//! Faults of grids, as the host sees them.

use std::fmt;

use gridlet_artifact::Dim3;

/// The kind of a fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// `trap()`, or a failed `assert`.
    Trap,
    /// An integer division by zero.
    Division,
    /// Code that the compiler assumed to be unreachable.
    Unreachable,
    /// An access to unmapped or write-protected memory.
    Access,
    /// A bus error: the machine rejects the access at that address.
    Bus,
    /// A hardware arithmetic exception.
    Arithmetic,
    /// An illegal instruction.
    Instruction,
    /// A thread exhausted its stack.
    StackOverflow,
    /// A free of an address that `malloc` did not return, or a double free.
    InvalidFree,
    /// All threads of a block wait, but not all for the same barrier.
    Deadlock,
    /// Stopped by the checker; its report gives the reason.
    Checked,
    /// A wait timed out, or the device was closed.
    Cancelled,
    /// Out of memory for a block's stacks or shared memory.
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

/// A source line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLine {
    /// File name, or `file N` if the loader was not given the names.
    pub file: String,
    /// The line, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}

/// A grid that failed on the CPU device. The rest of its launch is dropped; the device remains usable.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", describe(self))]
pub struct CpuFault {
    /// Kind of the fault.
    pub kind: FaultKind,
    /// The kernel.
    pub kernel: String,
    /// `block_idx`; `None` if no block had started.
    pub block: Option<Dim3>,
    /// `thread_idx`; `None` if unknown because the block ran as one loop.
    pub thread: Option<Dim3>,
    /// The accessed address.
    pub address: Option<u64>,
    /// Source line; `None` if the image does not provide it.
    pub location: Option<SourceLine>,
    /// Source line of the launch; `None` for a launch from the host.
    pub launched_at: Option<SourceLine>,
    /// Whether the accesses of the kernel were checked.
    pub is_checked: bool,
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
            is_checked: false,
        };
        let bare = CpuFault {
            kind: FaultKind::NoMemory,
            block: None,
            thread: None,
            address: None,
            location: None,
            launched_at: None,
            is_checked: false,
            ..full.clone()
        };
        insta::assert_snapshot!(format!("{full}\n{bare}"), @"
        kernel `child` read or wrote an invalid address: 0xdead0000, at a.grid:7, in block (2, 0, 0), thread (31, 1, 0); launched at a.grid:3
        kernel `child` did not start: no memory for a block's stacks or shared memory
        ");
    }
}
