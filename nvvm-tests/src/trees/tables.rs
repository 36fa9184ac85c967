//! The tables in device memory from which the program runs a tree: one buffer of words, in the layout of the structs of
//! `tree.grid`.

use std::ops::Range;

use super::{Grid, Kernel, Step, Stream, Tree, Who, Work};

/// No join, or all blocks.
const NONE: u32 = u32::MAX;
/// Words of a `Record`.
const RECORD_WORDS: usize = 14;
/// Words of the `Tree` at the start, and the number of its pointers.
const TREE_WORDS: usize = 2 * POINTERS;
const POINTERS: usize = 10;
/// Words that a table's start is aligned to.
const ALIGNMENT: usize = 32;
/// The status of a launch that was not tried.
pub const NOT_TRIED: u32 = u32::MAX;

/// A grid or a transfer of a tree, with its place in the tables.
#[derive(Clone, Debug)]
pub struct Node<'a> {
    /// Its number.
    pub number: usize,
    /// The node whose threads launch it; for a join, the node that it belongs to. The root's own number for the root.
    pub parent: usize,
    /// The step that launches it; `None` for the root and for joins.
    pub step: Option<&'a Step>,
    /// The number of that step.
    pub step_number: u32,
    /// `None` for a transfer.
    pub grid: Option<&'a Grid>,
    /// How deep in the tree it is.
    pub depth: usize,
    /// The most grids of it.
    pub records: u32,
    /// Its first record.
    pub first_record: u32,
    /// Marks of each of its records.
    pub marks_each: u32,
    /// Its first mark.
    pub first_mark: u32,
    /// The last mark of its tree, and the end of the marks of that tree without its tail launches.
    pub last_mark: u32,
    body_end: u32,
    /// Marks that are written before each of its grids starts.
    pub ranges: Vec<Range<u32>>,
    /// The byte that a fill writes.
    fill: Option<u8>,
    /// The join that it is a member of, by its number.
    pub member_of: Option<usize>,
    first_step: usize,
}

impl Node<'_> {
    /// Its own marks.
    fn own_marks(&self) -> Range<u32> {
        self.first_mark..self.first_mark + self.records * self.marks_each
    }

    /// The marks of it and of all below it.
    fn tree_marks(&self) -> Range<u32> {
        self.first_mark..self.last_mark + 1
    }
}

/// A join.
#[derive(Clone, Copy, Debug)]
pub struct Join {
    /// The node that its last member launches.
    pub node: usize,
    /// The number of members.
    pub members: u32,
}

/// What a grid recorded, or the thread that launched it.
#[derive(Clone, Copy, Debug)]
#[expect(missing_docs, reason = "described in `tree.grid`")]
pub struct Record {
    pub node: u32,
    pub parent: u32,
    pub thread: u32,
    pub step: u32,
    pub launched: u32,
    pub status: u32,
    pub payload: u32,
    pub start: u32,
    pub end: u32,
    pub threads: u32,
    pub finished: u32,
    pub sum: u32,
    pub missing: u32,
    pub wrong: u32,
}

/// The tables of a tree.
#[derive(Clone, Debug)]
pub struct Tables<'a> {
    /// The nodes by their number. The root is the first.
    pub nodes: Vec<Node<'a>>,
    /// The joins.
    pub joins: Vec<Join>,
    /// The number of records.
    pub records: u32,
    /// The value that each mark gets.
    pub expected: Vec<u32>,
    steps: Vec<[u32; 11]>,
    attempts_only: bool,
}

/// Where the tables are in the buffer, in words.
#[derive(Clone, Copy, Debug, Default)]
struct Places {
    nodes: usize,
    steps: usize,
    ranges: usize,
    joins: usize,
    expected: usize,
    records: usize,
    marks: usize,
    launched: usize,
    joined: usize,
    ticket: usize,
    end: usize,
}

/// What the program left in its tables.
#[derive(Clone, Debug)]
pub struct Results {
    /// The records.
    pub records: Vec<Record>,
    /// The marks.
    pub marks: Vec<u32>,
    /// How often each node was launched, or tried to be.
    pub launched: Vec<u32>,
}

/// As `mix` in `tree.grid`.
pub fn mix(n: u32) -> u32 {
    let x = (n ^ n >> 15).wrapping_mul(0x2c1b_3c6d);
    (x ^ x >> 12).wrapping_mul(0x297a_2d39)
}

impl<'a> Tables<'a> {
    /// The tables of a tree. With `attempts_only`, every launch is a `try launch`.
    pub fn new(tree: &'a Tree, attempts_only: bool) -> Tables<'a> {
        let mut tables = Tables {
            nodes: vec![],
            joins: vec![],
            records: 0,
            expected: vec![],
            steps: vec![],
            attempts_only,
        };
        tables.place_grid(&tree.root, 0, None, 0, 1, 0);
        for number in 0..tables.nodes.len() {
            let ranges = tables.ranges(number);
            tables.nodes[number].ranges = ranges;
        }
        tables
    }

    fn place_grid(
        &mut self,
        grid: &'a Grid,
        parent: usize,
        step: Option<&'a Step>,
        step_number: u32,
        records: u32,
        depth: usize,
    ) -> usize {
        let number = self.place(Node {
            number: 0,
            parent,
            step,
            step_number,
            grid: Some(grid),
            depth,
            records,
            first_record: 0,
            marks_each: 2 * grid.total(),
            first_mark: 0,
            last_mark: 0,
            body_end: 0,
            ranges: vec![],
            fill: None,
            member_of: None,
            first_step: self.steps.len(),
        });
        let first_step = self.steps.len();
        self.steps.resize(first_step + grid.steps.len(), [0; 11]);
        let mut members = vec![];
        for (at, step) in grid.steps.iter().enumerate() {
            if step.stream != Stream::Tail {
                let child = self.place_step(grid, number, step, at);
                if step.member {
                    members.push(child);
                }
            }
        }
        if let Some(join) = &grid.join
            && !members.is_empty()
        {
            let node = self.place_grid(join, number, None, NONE, 1, depth + 1);
            let count = members.iter().map(|member| self.nodes[*member].records).sum();
            for member in members {
                self.nodes[member].member_of = Some(self.joins.len());
            }
            self.joins.push(Join { node, members: count });
        }
        self.nodes[number].body_end = self.marks_so_far();
        for (at, step) in grid.steps.iter().enumerate() {
            if step.stream == Stream::Tail {
                self.place_step(grid, number, step, at);
            }
        }
        self.nodes[number].last_mark = self.marks_so_far() - 1;
        number
    }

    fn place_step(&mut self, grid: &'a Grid, parent: usize, step: &'a Step, at: usize) -> usize {
        let Node { depth, records, first_step, .. } = self.nodes[parent];
        let launchers = u32::try_from(step.threads(grid).len()).unwrap_or(u32::MAX);
        let records = records * launchers * step.times;
        let step_number = u32::try_from(at).unwrap_or(u32::MAX);
        let transfer = |what, words, fill| {
            let node = Node {
                number: 0,
                parent,
                step: Some(step),
                step_number,
                grid: None,
                depth: depth + 1,
                records,
                first_record: 0,
                marks_each: words,
                first_mark: 0,
                last_mark: 0,
                body_end: 0,
                ranges: vec![],
                fill,
                member_of: None,
                first_step: 0,
            };
            (what, Some(node), fill)
        };
        let (what, node, fill) = match &step.work {
            Work::Launch(_) => (0, None, None),
            Work::Fill(words, value) => transfer(1, *words, Some(*value)),
            Work::Copy(words) => transfer(2, *words, None),
        };
        let child = match (&step.work, node) {
            (Work::Launch(child), _) => {
                self.place_grid(child, parent, Some(step), step_number, records, depth + 1)
            }
            (_, node) => node.map_or(0, |node| self.place(node)),
        };
        let (who, thread) = match step.who {
            Who::One(thread) => (0, thread),
            Who::Lane(lane) => (1, lane),
            Who::All => (2, 0),
        };
        self.steps[first_step + at] = [
            what,
            u32::try_from(child).unwrap_or(NONE),
            step.block.unwrap_or(NONE),
            who,
            thread,
            step.stream as u32,
            step.slot,
            u32::from(step.attempt || self.attempts_only),
            step.phase,
            step.times,
            u32::from(fill.unwrap_or(0)),
        ];
        child
    }

    /// Gives a node its number, its records and its marks.
    fn place(&mut self, node: Node<'a>) -> usize {
        let number = self.nodes.len();
        let first_mark = self.marks_so_far();
        for mark in first_mark..first_mark + node.records * node.marks_each {
            let value = match node.fill {
                Some(byte) => u32::from_ne_bytes([byte; 4]),
                None => mix(mark) | 1,
            };
            self.expected.push(value);
        }
        let end = self.marks_so_far();
        let first_record = self.records;
        self.records += node.records;
        let last_mark = end - 1;
        self.nodes.push(Node {
            number,
            first_record,
            first_mark,
            last_mark,
            body_end: end,
            ..node
        });
        number
    }

    fn marks_so_far(&self) -> u32 {
        u32::try_from(self.expected.len()).unwrap_or(u32::MAX)
    }

    /// The marks that are written before each grid of the node starts, as far as they lie together: only a node that
    /// exists once has the marks of what it launched for itself.
    fn ranges(&self, number: usize) -> Vec<Range<u32>> {
        let node = &self.nodes[number];
        let parent = &self.nodes[node.parent];
        if number == 0 || parent.records != 1 || node.grid.is_none() {
            return vec![];
        }
        let Some(step) = node.step else {
            let join = self.joins.iter().position(|join| join.node == number);
            let members = self.nodes.iter().filter(|node| join.is_some() && node.member_of == join);
            return members.map(Node::own_marks).collect();
        };
        let mut ranges = vec![];
        let Some(grid) = parent.grid else { return ranges };
        let phased = grid.kernel == Kernel::Phases;
        if step.stream == Stream::Tail {
            ranges.push(parent.first_mark..parent.body_end);
        } else if phased
            && step.phase == 1
            && let Some(block) = step.block
        {
            // The first marks of the block's threads, which met at a barrier since.
            let first = parent.first_mark + block * grid.threads();
            ranges.push(first..first + grid.threads());
        }
        if step.stream == Stream::Forget {
            return ranges;
        }
        let order = |node: &Node<'_>| (node.step.map_or(0, |step| step.phase), node.step_number);
        let earlier = self.nodes.iter().filter(|other| {
            let Some(before) = other.step else { return false };
            let same_stream = other.number != 0
                && other.parent == parent.number
                && before.stream == step.stream
                && (step.stream != Stream::Created || before.slot == step.slot);
            let same_thread = before.is_by_one()
                && step.is_by_one()
                && before.block == step.block
                && before.who == step.who
                && order(other) < order(node);
            let before_barrier = phased
                && before.block.is_some()
                && before.block == step.block
                && before.phase < step.phase;
            same_stream && (same_thread || before_barrier)
        });
        ranges.extend(earlier.map(Node::tree_marks));
        ranges
    }

    fn places(&self) -> Places {
        let ranges: usize = self.nodes.iter().map(|node| node.ranges.len()).sum();
        let mut next = TREE_WORDS;
        let mut take = |words: usize| {
            let first = next.next_multiple_of(ALIGNMENT);
            next = first + words;
            first
        };
        Places {
            nodes: take(NODE_WORDS * self.nodes.len()),
            steps: take(11 * self.steps.len()),
            ranges: take(2 * ranges),
            joins: take(2 * self.joins.len()),
            expected: take(self.expected.len()),
            records: take(RECORD_WORDS * self.records as usize),
            marks: take(self.expected.len()),
            launched: take(self.nodes.len()),
            joined: take(self.joins.len()),
            ticket: take(1),
            end: take(0),
        }
    }

    /// The number of words of the buffer.
    pub fn words(&self) -> usize {
        self.places().end
    }

    /// The buffer's content at an address.
    pub fn content(&self, address: u64) -> Vec<u32> {
        let places = self.places();
        let mut words = vec![0; places.end];
        let pointers: [usize; POINTERS] = [
            places.nodes,
            places.steps,
            places.ranges,
            places.joins,
            places.expected,
            places.records,
            places.marks,
            places.launched,
            places.joined,
            places.ticket,
        ];
        for (to, place) in words.chunks_exact_mut(2).zip(pointers) {
            let pointer = address + 4 * place as u64;
            to.copy_from_slice(&[pointer as u32, (pointer >> 32) as u32]);
        }
        let mut put = |at: usize, from: &[u32]| words[at..at + from.len()].copy_from_slice(from);
        let mut range = 0;
        for node in &self.nodes {
            put(places.nodes + node.number * NODE_WORDS, &self.node_words(node, range));
            for Range { start, end } in &node.ranges {
                put(places.ranges + 2 * range as usize, &[*start, end - start]);
                range += 1;
            }
            for record in node.first_record..node.first_record + node.records {
                let number = node.number as u32;
                let payload = if number == 0 { mix(0) } else { 0 };
                let start = u32::MAX;
                let status = if number == 0 { 0 } else { NOT_TRIED };
                let own = [number, 0, 0, 0, 0, status, payload, start, 0, 0, 0, 0, 0, 0];
                put(places.records + RECORD_WORDS * record as usize, &own);
            }
        }
        for (at, step) in self.steps.iter().enumerate() {
            put(places.steps + 11 * at, step);
        }
        for (at, join) in self.joins.iter().enumerate() {
            put(places.joins + 2 * at, &[join.members, join.node as u32]);
        }
        put(places.expected, &self.expected);
        put(places.ticket, &[1]);
        words
    }

    fn node_words(&self, node: &Node<'_>, first_range: u32) -> [u32; NODE_WORDS] {
        let steps = node.grid.map_or(&[][..], |grid| &grid.steps);
        let [gx, gy, gz] = node.grid.map_or([0; 3], |grid| grid.grid);
        let [bx, by, bz] = node.grid.map_or([0; 3], |grid| grid.block);
        [
            gx,
            gy,
            gz,
            bx,
            by,
            bz,
            node.grid.map_or(0, |grid| grid.kernel as u32),
            node.grid.map_or(0, |grid| grid.shared_bytes),
            node.first_record,
            node.records,
            node.first_mark,
            node.last_mark,
            node.first_step as u32,
            steps.len() as u32,
            first_range,
            node.ranges.len() as u32,
            node.member_of.map_or(NONE, |join| join as u32),
            u32::from(node.grid.is_some_and(|grid| grid.returns)),
            u32::from(steps.iter().any(|step| step.stream == Stream::Created)),
            u32::from(node.records == 1),
        ]
    }

    /// Reads the buffer after the run.
    pub fn results(&self, words: &[u32]) -> Results {
        let places = self.places();
        let record = |words: &[u32]| {
            let mut words = words.iter().copied();
            let mut next = || words.next().unwrap_or(0);
            Record {
                node: next(),
                parent: next(),
                thread: next(),
                step: next(),
                launched: next(),
                status: next(),
                payload: next(),
                start: next(),
                end: next(),
                threads: next(),
                finished: next(),
                sum: next(),
                missing: next(),
                wrong: next(),
            }
        };
        let records = &words[places.records..][..RECORD_WORDS * self.records as usize];
        Results {
            records: records.chunks_exact(RECORD_WORDS).map(record).collect(),
            marks: words[places.marks..][..self.expected.len()].to_vec(),
            launched: words[places.launched..][..self.nodes.len()].to_vec(),
        }
    }
}

/// Words of a `Node`.
const NODE_WORDS: usize = 20;
