//! Streams: what runs in them one after another, and what the host sees of it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::super::grid::Tree;
use super::{Entry, Gate, HostStream, Mark, MarkIn, NodeId, Point, Scheduler, Stream, StreamId};
use crate::fault::CpuFault;
use crate::hooks::GridId;

impl Scheduler {
    /// A stream of the host.
    pub(crate) fn open_host_stream(&mut self) -> StreamId {
        let host = Some(HostStream::default());
        self.add_stream(Stream { open: true, host, ..Stream::default() })
    }

    /// The host will launch nothing more into the stream.
    pub(crate) fn close_host_stream(&mut self, stream: StreamId) {
        self.streams[stream].open = false;
        self.drop_stream_if_done(stream);
    }

    /// Nothing more will be launched into a block's default stream, or a created one.
    pub(crate) fn close_block_stream(&mut self, stream: StreamId) {
        self.streams[stream].open = false;
        let running = self.streams[stream].running;
        if !self.drop_stream_if_done(stream)
            && let Some(node) = running
        {
            self.forward(node);
        }
    }

    pub(super) fn enter_stream(&mut self, node: NodeId, stream: StreamId) {
        self.nodes[node].stream = Some(stream);
        let entered = &mut self.streams[stream];
        if entered.running.is_some() || !entered.queue.is_empty() {
            entered.queue.push_back(Entry::Grid(node));
        } else {
            entered.running = Some(node);
            self.make_ready(node);
        }
    }

    fn make_ready(&mut self, node: NodeId) {
        // From the back comes the youngest, so that a tree of launches runs depth first and few of them wait;
        // launches of the host keep their order.
        if self.nodes[node].parent.is_some() {
            self.ready.push_back(node);
        } else {
            self.ready.push_front(node);
        }
    }

    /// The grid that a stream ran has ended, and so did all that came of it.
    pub(super) fn advance(&mut self, stream: StreamId, ended: GridId) {
        let this = &mut self.streams[stream];
        this.running = None;
        if let Some(host) = &mut this.host
            && let Some(tree) = host.trees.pop_front()
            && let Some(failure) = tree.take_failure()
            && host.failure.is_none()
        {
            host.failure = Some(failure);
        }
        let mut open = Vec::new();
        self.finish_one(stream, &mut open);
        self.go_on(stream, Some(ended));
        self.go_on_all(open);
    }

    /// One more of what was submitted to a stream has ended. Adds to `open` the streams whose first gate this opens.
    fn finish_one(&mut self, stream: StreamId, open: &mut Vec<StreamId>) {
        let Some(host) = &mut self.streams[stream].host else { return };
        host.finished += 1;
        // Whoever waits for more than that sleeps on.
        let mut is_awaited = host.awaited != 0 && host.awaited <= host.finished;
        if is_awaited {
            host.awaited = 0;
        }
        let mut gates = Vec::new();
        while let Some(point) = host.marks.pop_front_if(|point| point.after <= host.finished) {
            let _ = point.mark.set(Instant::now());
            is_awaited = true;
            gates.extend(point.gates);
        }
        self.host_progress |= is_awaited;
        for (stream, gate) in gates {
            let left = gate.load(Ordering::Relaxed);
            // One that was opened before may be in a stream that is gone.
            if left == 0 {
                continue;
            }
            gate.store(left - 1, Ordering::Relaxed);
            let this = &self.streams[stream];
            let is_first =
                matches!(this.queue.front(), Some(Entry::Gate(first)) if Arc::ptr_eq(first, &gate));
            if left == 1 && is_first && this.running.is_none() {
                open.push(stream);
            }
        }
    }

    fn go_on_all(&mut self, mut open: Vec<StreamId>) {
        while let Some(stream) = open.pop() {
            // Its gates end, which may open others.
            while let Some(Entry::Gate(gate)) = self.streams[stream].queue.front()
                && gate.load(Ordering::Relaxed) == 0
            {
                self.streams[stream].queue.pop_front();
                self.finish_one(stream, &mut open);
            }
            self.go_on(stream, None);
        }
    }

    /// A stream that runs nothing starts its next grid, unless a gate is before it.
    fn go_on(&mut self, stream: StreamId, ended: Option<GridId>) {
        let this = &mut self.streams[stream];
        match this.queue.front() {
            Some(Entry::Gate(gate)) if gate.load(Ordering::Relaxed) == 0 => {
                self.go_on_all(vec![stream]);
            }
            Some(Entry::Gate(_)) => {}
            Some(&Entry::Grid(next)) => {
                this.queue.pop_front();
                this.running = Some(next);
                if this.host.as_ref().is_some_and(|host| host.failure.is_some()) {
                    self.nodes[next].tree.stop();
                }
                self.nodes[next].after = ended;
                self.make_ready(next);
            }
            None => {
                self.drop_stream_if_done(stream);
            }
        }
    }

    /// Lets what is launched into a stream from now on wait for marks in other streams.
    pub(crate) fn wait_for<'a>(
        &mut self,
        stream: StreamId,
        marks: impl Iterator<Item = &'a MarkIn>,
    ) {
        let gate = Gate::default();
        for at in marks.filter(|at| at.stream != stream) {
            if let Some(hooks) = &self.hooks {
                let later = at.launched.load(Ordering::Relaxed).saturating_sub(at.launches);
                hooks.on_stream_wait(stream, at.stream, later);
            }
            // As long as it was not reached, its stream is there.
            if at.mark.get().is_some() {
                continue;
            }
            let host = self.streams[at.stream].host.as_mut();
            let mut points = host.into_iter().flat_map(|host| &mut host.marks);
            if let Some(point) = points.find(|point| Arc::ptr_eq(&point.mark, &at.mark)) {
                point.gates.push((stream, Arc::clone(&gate)));
                gate.fetch_add(1, Ordering::Relaxed);
            }
        }
        let this = &mut self.streams[stream];
        if gate.load(Ordering::Relaxed) > 0
            && let Some(host) = &mut this.host
        {
            host.submitted += 1;
            this.queue.push_back(Entry::Gate(gate));
        }
    }

    /// What is in a stream waits for no other stream any more.
    pub(crate) fn open_gates(&mut self, stream: StreamId) {
        let this = &self.streams[stream];
        for entry in &this.queue {
            if let Entry::Gate(gate) = entry {
                gate.store(0, Ordering::Relaxed);
            }
        }
        if this.running.is_none() && !this.queue.is_empty() {
            self.go_on(stream, None);
        }
    }

    fn drop_stream_if_done(&mut self, stream: StreamId) -> bool {
        let this = &self.streams[stream];
        let done = !this.open && this.running.is_none() && this.queue.is_empty();
        if done {
            self.streams.remove(stream);
        }
        done
    }

    // ---- the host's view

    /// Marks the point after everything that was launched into the stream so far.
    pub(crate) fn mark(&mut self, stream: StreamId) -> MarkIn {
        let mark = Mark::default();
        let mut launched = Arc::default();
        if let Some(host) = &mut self.streams[stream].host {
            launched = Arc::clone(&host.launched);
            if host.finished >= host.submitted {
                let _ = mark.set(Instant::now());
            } else {
                let (after, mark) = (host.submitted, Arc::clone(&mark));
                host.marks.push_back(Point { after, mark, gates: Vec::new() });
            }
        }
        MarkIn { stream, mark, launches: launched.load(Ordering::Relaxed), launched }
    }

    /// Launches made into a stream so far, and its waits for others.
    pub(crate) fn submitted(&self, stream: StreamId) -> u64 {
        self.streams[stream].host.as_ref().map_or(0, |host| host.submitted)
    }

    /// Launches of a stream that have ended, with all that came of them.
    pub(crate) fn finished(&self, stream: StreamId) -> u64 {
        self.streams[stream].host.as_ref().map_or(0, |host| host.finished)
    }

    /// Whether so many launches of a stream have ended; if not, whoever waits is woken once they have.
    pub(crate) fn awaits(&mut self, stream: StreamId, launches: u64) -> bool {
        let Some(host) = &mut self.streams[stream].host else { return true };
        if host.finished >= launches {
            return true;
        }
        host.awaited = if host.awaited == 0 { launches } else { host.awaited.min(launches) };
        false
    }

    /// The failure that the next report of the stream is to tell.
    pub(crate) fn take_failure(&mut self, stream: StreamId) -> Option<Box<CpuFault>> {
        self.streams[stream].host.as_mut().and_then(|host| host.failure.take())
    }

    /// The trees of a stream that have not ended.
    pub(crate) fn trees(&self, stream: StreamId) -> Vec<Arc<Tree>> {
        let host = self.streams[stream].host.as_ref();
        host.map_or_else(Vec::new, |host| host.trees.iter().cloned().collect())
    }

    /// Ends every tree.
    pub(crate) fn stop_all(&mut self) {
        for (_, stream) in self.streams.iter() {
            for tree in stream.host.iter().flat_map(|host| &host.trees) {
                tree.stop();
            }
        }
    }
}
