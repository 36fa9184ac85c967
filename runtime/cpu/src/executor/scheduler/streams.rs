//! Streams: sequential execution, and their progress as the host sees it.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use super::super::grid::Tree;
use super::{Entry, Gate, HostStream, Mark, MarkIn, NodeId, Point, Scheduler, Stream, StreamId};
use crate::fault::CpuFault;
use crate::hooks::GridId;

impl Scheduler {
    /// Opens a host stream.
    pub(crate) fn open_host_stream(&mut self) -> StreamId {
        let host = Some(HostStream::default());
        self.add_stream(Stream { open: true, host, ..Stream::default() })
    }

    /// Closes a host stream to further launches.
    pub(crate) fn close_host_stream(&mut self, stream: StreamId) {
        self.streams[stream].open = false;
        self.drop_stream_if_done(stream);
    }

    /// Closes a block's default stream or a created stream to further launches.
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
        // Nested launches run last in, first out, so that a tree of launches runs depth first and few launches wait;
        // launches from the host keep their order.
        if self.nodes[node].parent.is_some() {
            self.ready.push_back(node);
        } else {
            self.ready.push_front(node);
        }
    }

    /// Advances a stream whose running grid has ended with all its descendants.
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

    /// Counts one more finished entry of a stream. Adds to `open` the streams whose first gate this opens.
    fn finish_one(&mut self, stream: StreamId, open: &mut Vec<StreamId>) {
        let Some(host) = &mut self.streams[stream].host else { return };
        host.finished += 1;
        // A host thread that waits for a higher count keeps sleeping.
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
            // A gate that was already opened may belong to a closed stream.
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
            // Opening a gate finishes its entry, which may open other gates.
            while let Some(Entry::Gate(gate)) = self.streams[stream].queue.front()
                && gate.load(Ordering::Relaxed) == 0
            {
                self.streams[stream].queue.pop_front();
                self.finish_one(stream, &mut open);
            }
            self.go_on(stream, None);
        }
    }

    /// Starts the next grid of an idle stream, unless a gate blocks it.
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

    /// Makes later launches into a stream wait for marks in other streams.
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
            // Until the mark is reached, its stream exists.
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

    /// Opens all gates in a stream.
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

    /// Marks the point after everything launched into the stream so far.
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

    /// Number of entries submitted to a stream so far: launches, and waits for other streams.
    pub(crate) fn submitted(&self, stream: StreamId) -> u64 {
        self.streams[stream].host.as_ref().map_or(0, |host| host.submitted)
    }

    /// Number of entries of a stream that have finished, with all their descendants.
    pub(crate) fn finished(&self, stream: StreamId) -> u64 {
        self.streams[stream].host.as_ref().map_or(0, |host| host.finished)
    }

    /// Whether this number of entries has finished; if not, the waiting host thread is woken once it has.
    pub(crate) fn awaits(&mut self, stream: StreamId, launches: u64) -> bool {
        let Some(host) = &mut self.streams[stream].host else { return true };
        if host.finished >= launches {
            return true;
        }
        host.awaited = if host.awaited == 0 { launches } else { host.awaited.min(launches) };
        false
    }

    /// Takes the stream's unreported failure.
    pub(crate) fn take_failure(&mut self, stream: StreamId) -> Option<Box<CpuFault>> {
        self.streams[stream].host.as_mut().and_then(|host| host.failure.take())
    }

    /// The live trees of a stream.
    pub(crate) fn trees(&self, stream: StreamId) -> Vec<Arc<Tree>> {
        let host = self.streams[stream].host.as_ref();
        host.map_or_else(Vec::new, |host| host.trees.iter().cloned().collect())
    }

    /// Stops every tree.
    pub(crate) fn stop_all(&mut self) {
        for (_, stream) in self.streams.iter() {
            for tree in stream.host.iter().flat_map(|host| &host.trees) {
                tree.stop();
            }
        }
    }
}
