//! What was found: `explain` makes reports, `render` writes them as text.

pub use gridlet_artifact::cpu::findings::Kind;
use serde::Serialize;

/// A line of a source file.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Place {
    /// As the manifest names it.
    pub file: String,
    /// From 1; 0 if unknown.
    pub line: u32,
}

/// A finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// What is wrong.
    pub kind: Kind,
    /// One line that says it.
    pub message: String,
    /// Where.
    pub place: Place,
    /// The kernel.
    pub kernel: String,
    /// `thread_idx` and `block_idx`, such as `thread 5 of block (1, 2, 0)`.
    pub thread: String,
    /// What it did there.
    pub action: String,
    /// For races and barriers: the other side.
    pub other: Option<OtherAccess>,
    /// What to do about it.
    pub help: String,
    /// The launches that led there, the innermost first; empty if the host launched the kernel.
    pub chain: Vec<ChainLink>,
    /// Launches of the chain that were left out, between the last and the one before it.
    pub chain_omitted: u32,
    /// How often it was found at these lines.
    pub count: u64,
}

impl Report {
    /// Every place that it names, to show files by other names.
    pub fn places_mut(&mut self) -> impl Iterator<Item = &mut Place> {
        let (other, others) = match &mut self.other {
            Some(other) => (Some(&mut other.place), other.chain.as_mut_slice()),
            None => (None, [].as_mut_slice()),
        };
        let chains = self.chain.iter_mut().chain(others).map(|link| &mut link.place);
        [&mut self.place].into_iter().chain(other).chain(chains)
    }
}

/// The other side of a race or of a barrier.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct OtherAccess {
    /// Where.
    pub place: Place,
    /// The kernel.
    pub kernel: String,
    /// As [`Report::thread`].
    pub thread: String,
    /// What it did there.
    pub action: String,
    /// The launches that led there.
    pub chain: Vec<ChainLink>,
}

/// A launch by a thread.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChainLink {
    /// The kernel that launched.
    pub kernel: String,
    /// Where.
    pub place: Place,
    /// The thread that launched, as [`Report::thread`].
    pub thread: String,
}

/// The reports of a detector: each kind once a line.
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
            // A race is the same from either side.
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
