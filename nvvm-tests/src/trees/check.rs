//! Compares what a tree recorded with what the language promises:
//!
//! - Each thread of each grid runs once, with the geometry, the parameters and the memory of its launch. A launch that
//!   fails with 69 runs nothing, and only where launches may fail.
//! - A grid starts after its launch.
//! - The grids of one default or created stream run one after another, each with all that it launched: those that one
//!   thread launched in its order, and those of a block before those that its threads launch after a barrier.
//! - A grid's tail launches run in the same way, after the grid and all that it launched otherwise.
//! - A join's grid runs once if all members ran, and after them; otherwise not at all.
//! - A grid sees the marks of all that ran before it by these rules.

use std::collections::{BTreeMap, HashMap};

use super::tables::{NOT_TRIED, Node, Record, Results, Tables, mix};
use super::{Kernel, Stream};

/// `cudaErrorLaunchPendingCountExceeded`.
const PENDING_COUNT_EXCEEDED: u32 = 69;

/// Checks a run.
///
/// # Errors
/// The first rule that was broken, by which record.
pub fn check(tables: &Tables<'_>, results: &Results, may_refuse: bool) -> Result<Summary, String> {
    let run = Run { tables, results };
    for node in &tables.nodes {
        run.launches(node)?;
        for number in run.records_of(node) {
            run.record(node, number, may_refuse).map_err(|broken| run.named(number, &broken))?;
        }
        run.marks(node)?;
    }
    run.joins()?;
    run.order()?;
    let refused = |record: &&Record| record.status == PENDING_COUNT_EXCEEDED;
    Ok(Summary {
        grids: (0..results.records.len()).filter(|number| run.ran(*number)).count(),
        refused: results.records.iter().filter(refused).count(),
    })
}

/// The size of a tree as it ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Grids and transfers that ran.
    pub grids: usize,
    /// Launches that failed because the launch memory, or the pool, was full.
    pub refused: usize,
}

struct Run<'a> {
    tables: &'a Tables<'a>,
    results: &'a Results,
}

/// When a grid and all that it launched ran.
#[derive(Clone, Copy)]
struct Span {
    number: usize,
    start: u32,
    end: u32,
}

impl Run<'_> {
    fn node(&self, number: usize) -> &Node<'_> {
        &self.tables.nodes[self.results.records[number].node as usize]
    }

    fn records_of(&self, node: &Node<'_>) -> std::ops::Range<usize> {
        let first = node.first_record as usize;
        first..first + node.records as usize
    }

    fn ran(&self, number: usize) -> bool {
        self.results.records[number].status == 0
    }

    fn named(&self, number: usize, broken: &str) -> String {
        let record = self.results.records[number];
        format!("record {number} of node {}: {broken}\n{record:?}", record.node)
    }

    /// The threads that launched a node are those of its step, in all grids of its parent that ran.
    fn launches(&self, node: &Node<'_>) -> Result<(), String> {
        let said = |text: String| Err(format!("node {}: {text}", node.number));
        if let Some(step) = node.step {
            let parent = &self.tables.nodes[node.parent];
            let mut found: HashMap<u32, Vec<u32>> = HashMap::new();
            for number in self.records_of(node) {
                let record = self.results.records[number];
                if record.status != NOT_TRIED {
                    if record.step != node.step_number {
                        return Err(self.named(number, "launched by another step"));
                    }
                    found.entry(record.parent).or_default().push(record.thread);
                }
            }
            let Some(grid) = parent.grid else { return said("launched by a transfer".into()) };
            let mut expected = step.threads(grid).repeat(step.times as usize);
            expected.sort_unstable();
            let mut launched = 0;
            for number in self.records_of(parent).filter(|number| self.ran(*number)) {
                let mut threads = found.remove(&(number as u32)).unwrap_or_default();
                threads.sort_unstable();
                if threads != expected {
                    return said(format!(
                        "record {number} must launch it by the threads {}, not {}",
                        listed(&expected),
                        listed(&threads)
                    ));
                }
                launched += threads.len();
            }
            if let Some(other) = found.keys().next() {
                return said(format!("record {other} launched it, and must not"));
            }
            if self.results.launched[node.number] as usize != launched {
                let found = self.results.launched[node.number];
                return said(format!("launched {found} times instead of {launched}"));
            }
        }
        Ok(())
    }

    fn record(&self, node: &Node<'_>, number: usize, may_refuse: bool) -> Result<(), String> {
        let record = self.results.records[number];
        let Some(grid) = node.grid.filter(|_| record.status == 0) else {
            if record.start != u32::MAX || record.threads != 0 {
                return Err("a grid ran that was not launched".into());
            }
            return match record.status {
                0 | NOT_TRIED => Ok(()),
                PENDING_COUNT_EXCEEDED if may_refuse => Ok(()),
                status => Err(format!("its launch failed with {}", status.cast_signed())),
            };
        };
        let total = grid.total();
        if record.threads != total {
            return Err(format!("{} threads ran instead of {total}", record.threads));
        }
        if record.sum != (0..total).fold(0, |sum: u32, index| sum.wrapping_add(mix(index))) {
            return Err("not every thread ran once".into());
        }
        if record.wrong != 0 {
            return Err(format!(
                "{} wrong values of parameters, geometry, shared memory, warps or earlier writes",
                record.wrong
            ));
        }
        if number != 0 && record.start <= record.launched {
            return Err("it started before its launch".into());
        }
        let marks = &self.results.marks;
        let unwritten = |at: &&u32| **at == 0;
        let missing: usize = node
            .ranges
            .iter()
            .map(|range| {
                marks[range.start as usize..range.end as usize].iter().filter(unwritten).count()
            })
            .sum();
        if record.missing as usize != missing {
            return Err(format!(
                "it did not see {} of the marks before it, of which {missing} were not written",
                record.missing
            ));
        }
        Ok(())
    }

    /// Grids that ran left all their marks, others none.
    fn marks(&self, node: &Node<'_>) -> Result<(), String> {
        for (at, number) in self.records_of(node).enumerate() {
            let first = node.first_mark as usize + at * node.marks_each as usize;
            for mark in first..first + node.marks_each as usize {
                let expected = if self.ran(number) { self.tables.expected[mark] } else { 0 };
                let found = self.results.marks[mark];
                if found != expected {
                    let text =
                        format!("its mark {} is {found:#x} instead of {expected:#x}", mark - first);
                    return Err(self.named(number, &text));
                }
            }
        }
        Ok(())
    }

    fn joins(&self) -> Result<(), String> {
        for (at, join) in self.tables.joins.iter().enumerate() {
            let members = self.tables.nodes.iter().filter(|node| node.member_of == Some(at));
            let members: Vec<usize> = members
                .flat_map(|node| self.records_of(node))
                .filter(|number| self.ran(*number))
                .collect();
            let node = &self.tables.nodes[join.node];
            let number = node.first_record as usize;
            let record = self.results.records[number];
            let complete = members.len() == join.members as usize;
            let launched = self.results.launched[join.node];
            if launched != u32::from(complete) || complete == (record.status == NOT_TRIED) {
                let text = format!(
                    "launched {launched} times, after {} of {} members ran",
                    members.len(),
                    join.members
                );
                return Err(self.named(number, &text));
            }
            if complete && !members.contains(&(record.parent as usize)) {
                return Err(self.named(number, "no member launched the join"));
            }
            let early = members
                .iter()
                .find(|member| complete && self.results.records[**member].start >= record.launched);
            if let Some(member) = early {
                return Err(self.named(number, &format!("launched before its member {member}")));
            }
        }
        Ok(())
    }

    fn order(&self) -> Result<(), String> {
        let records = &self.results.records;
        let grids: Vec<usize> = (0..records.len())
            .filter(|number| self.ran(*number) && self.node(*number).grid.is_some())
            .collect();
        // The end of each grid with all that it launched. A grid is launched after its parent.
        let mut ends: Vec<u32> = records.iter().map(|record| record.end).collect();
        // The same without its tail launches.
        let mut bodies = ends.clone();
        let mut by_launch = grids.clone();
        by_launch.sort_by_key(|number| std::cmp::Reverse(records[*number].launched));
        for &number in by_launch.iter().filter(|number| **number != 0) {
            let parent = records[number].parent as usize;
            ends[parent] = ends[parent].max(ends[number]);
            if self.stream(number) != Stream::Tail {
                bodies[parent] = bodies[parent].max(ends[number]);
            }
        }
        // The streams: which grid's, which of its blocks or threads, which slot.
        let mut streams: BTreeMap<(u32, Stream, u32, u32), Vec<Span>> = BTreeMap::new();
        for &number in grids.iter().filter(|number| **number != 0) {
            let record = records[number];
            let (stream, parent) = (self.stream(number), self.node(record.parent as usize));
            let Some(grid) = parent.grid else { continue };
            let block = record.thread / grid.threads();
            let place = match stream {
                Stream::Forget => continue,
                Stream::Created if grid.kernel != Kernel::Phases => record.thread,
                Stream::Default | Stream::Created => block,
                Stream::Tail => 0,
            };
            let slot = self.node(number).step.map_or(0, |step| step.slot);
            let span = Span { number, start: record.start, end: ends[number] };
            let body = bodies[record.parent as usize];
            if stream == Stream::Tail && span.start <= body {
                let text = format!("it started before all else of its parent ended, at {body}");
                return Err(self.named(number, &text));
            }
            streams.entry((record.parent, stream, place, slot)).or_default().push(span);
        }
        for spans in streams.values_mut() {
            self.stream_order(spans)?;
        }
        Ok(())
    }

    fn stream(&self, number: usize) -> Stream {
        self.node(number).step.map_or(Stream::Forget, |step| step.stream)
    }

    /// Checks the grids of one stream.
    fn stream_order(&self, spans: &mut [Span]) -> Result<(), String> {
        spans.sort_by_key(|span| span.start);
        let mut last_of_thread: HashMap<u32, Span> = HashMap::new();
        let mut last_phase_of_block: HashMap<u32, (u32, usize)> = HashMap::new();
        let mut before: Option<Span> = None;
        for span in spans {
            if let Some(before) = before.filter(|before| span.start <= before.end) {
                let other = before.number;
                let text = format!(
                    "it started before record {other} of its stream, with all that it launched, ended at {}",
                    before.end
                );
                return Err(self.named(span.number, &text));
            }
            before = Some(*span);
            let record = self.results.records[span.number];
            if let Some(last) = last_of_thread.insert(record.thread, *span) {
                let other = self.results.records[last.number];
                if other.launched > record.launched {
                    let text = format!(
                        "its thread launched it before record {}, which ran first",
                        last.number
                    );
                    return Err(self.named(span.number, &text));
                }
            }
            let phase = self.node(span.number).step.map_or(0, |step| step.phase);
            let threads = self.node(record.parent as usize).grid.map_or(1, super::Grid::threads);
            let (last, other) = last_phase_of_block
                .insert(record.thread / threads, (phase, span.number))
                .unwrap_or((0, 0));
            if last > phase {
                let text = format!(
                    "its block launched it a barrier before record {other}, which ran first"
                );
                return Err(self.named(span.number, &text));
            }
        }
        Ok(())
    }
}

/// The first threads of a list, and their number.
fn listed(threads: &[u32]) -> String {
    let first = &threads[..threads.len().min(16)];
    format!("{first:?} ({} in all)", threads.len())
}
