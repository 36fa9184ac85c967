//! Reports: `explain` creates them, `render` turns them into text.

pub use gridlet_artifact::cpu::findings::Kind;
use serde::Serialize;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// File name, as in the manifest.
    pub file: String,
    /// Line, from 1; 0 if unknown.
    pub line: u32,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// The kind of error.
    pub kind: Kind,
    /// One-line description.
    pub message: String,
    /// Source line of the access.
    pub place: Place,
    /// The kernel.
    pub kernel: String,
    /// The thread, such as `thread 5 of block (1, 2, 0)`.
    pub thread: String,
    /// The thread's action there.
    pub action: String,
    /// For races and barriers: the other thread's access.
    pub other: Option<OtherAccess>,
    /// Advice on how to fix the error.
    pub help: String,
    /// The launches that led to the kernel, innermost first; empty if the host launched it.
    pub chain: Vec<ChainLink>,
    /// Number of launches omitted from the chain, just before its last link.
    pub chain_omitted: u32,
    /// Number of times found at these lines.
    pub count: u64,
}

impl Report {
    /// All places in the report, for renaming files.
    pub fn places_mut(&mut self) -> impl Iterator<Item = &mut Place> {
        let (other, others) = match &mut self.other {
            Some(other) => (Some(&mut other.place), other.chain.as_mut_slice()),
            None => (None, [].as_mut_slice()),
        };
        let chains = self.chain.iter_mut().chain(others).map(|link| &mut link.place);
        [&mut self.place].into_iter().chain(other).chain(chains)
    }
}

/// The other access in a race or at a barrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OtherAccess {
    /// Source line of the access.
    pub place: Place,
    /// The kernel.
    pub kernel: String,
    /// The thread, as in [`Report::thread`].
    pub thread: String,
    /// The thread's action there.
    pub action: String,
    /// The launches that led to the kernel.
    pub chain: Vec<ChainLink>,
}

/// A launch by a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainLink {
    /// The launching kernel.
    pub kernel: String,
    /// Source line of the launch.
    pub place: Place,
    /// The launching thread, as in [`Report::thread`].
    pub thread: String,
}

/// A detector's reports: one per kind and line.
#[derive(Debug)]
pub(super) struct Collection {
    limit: usize,
    reports: Vec<Report>,
    further: u64,
}

impl Collection {
    pub(super) fn new(limit: usize) -> Collection {
        Collection { limit, reports: Vec::new(), further: 0 }
    }

    pub(super) fn reports(&self) -> Vec<Report> {
        self.reports.clone()
    }

    pub(super) fn further(&self) -> u64 {
        self.further
    }

    pub(super) fn take(&mut self) -> Vec<Report> {
        self.further = 0;
        std::mem::take(&mut self.reports)
    }

    pub(super) fn add(&mut self, report: Report) {
        let same = |known: &&mut Report| {
            let other = |report: &Report| report.other.as_ref().map(|other| other.place.clone());
            let places = (&report.place, other(&report));
            // A race is the same seen from either side.
            let mirrored = report.other.as_ref().map(|other| other.place.clone())
                == Some(known.place.clone())
                && other(known).as_ref() == Some(&report.place);
            known.kind == report.kind && ((&known.place, other(known)) == places || mirrored)
        };
        if let Some(known) = self.reports.iter_mut().find(same) {
            known.count += 1;
        } else if self.reports.len() < self.limit {
            self.reports.push(report);
        } else {
            self.further += 1;
        }
    }
}
