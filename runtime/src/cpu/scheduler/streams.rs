//! Streams: what runs in them one after another, and what the host sees of it.

use std::sync::Arc;
use std::time::Instant;

use super::super::fault::CpuFault;
use super::super::grid::Tree;
use super::super::hooks::GridId;
use super::{HostStream, Mark, NodeId, Scheduler, Stream, StreamId};

impl Scheduler {
    /// A stream of the host.
    pub(in crate::cpu) fn open_host_stream(&mut self) -> StreamId {
        let host = Some(HostStream::default());
        self.streams.insert(Stream { open: true, host, ..Stream::default() })
    }

    /// The host will launch nothing more into the stream.
    pub(in crate::cpu) fn close_host_stream(&mut self, stream: StreamId) {
        self.streams[stream].open = false;
        self.drop_stream_if_done(stream);
    }

    /// Nothing more will be launched into a block's default stream, or a created one.
    pub(in crate::cpu) fn close_block_stream(&mut self, stream: StreamId) {
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
        if entered.running.is_some() {
            entered.queue.push_back(node);
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
        let mut failed = false;
        if let Some(host) = &mut this.host {
            host.finished += 1;
            if let Some(tree) = host.trees.pop_front()
                && let Some(failure) = tree.take_failure()
                && host.failure.is_none()
            {
                host.failure = Some(failure);
            }
            failed = host.failure.is_some();
            // Whoever waits for more than that sleeps on.
            let mut is_awaited = host.awaited != 0 && host.awaited <= host.finished;
            if is_awaited {
                host.awaited = 0;
            }
            while let Some((_, mark)) =
                host.marks.pop_front_if(|(launches, _)| *launches <= host.finished)
            {
                let _ = mark.set(Instant::now());
                is_awaited = true;
            }
            self.host_progress |= is_awaited;
        }
        let this = &mut self.streams[stream];
        match this.queue.pop_front() {
            Some(next) => {
                this.running = Some(next);
                if failed {
                    self.nodes[next].tree.stop();
                }
                self.nodes[next].after = Some(ended);
                self.make_ready(next);
            }
            None => {
                self.drop_stream_if_done(stream);
            }
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
    pub(in crate::cpu) fn mark(&mut self, stream: StreamId) -> Mark {
        let mark = Mark::default();
        if let Some(host) = &mut self.streams[stream].host {
            if host.finished >= host.submitted {
                let _ = mark.set(Instant::now());
            } else {
                host.marks.push_back((host.submitted, Arc::clone(&mark)));
            }
        }
        mark
    }

    /// Launches made into a stream so far.
    pub(in crate::cpu) fn submitted(&self, stream: StreamId) -> u64 {
        self.streams[stream].host.as_ref().map_or(0, |host| host.submitted)
    }

    /// Launches of a stream that have ended, with all that came of them.
    pub(in crate::cpu) fn finished(&self, stream: StreamId) -> u64 {
        self.streams[stream].host.as_ref().map_or(0, |host| host.finished)
    }

    /// Whether so many launches of a stream have ended; if not, whoever waits is woken once they have.
    pub(in crate::cpu) fn awaits(&mut self, stream: StreamId, launches: u64) -> bool {
        let Some(host) = &mut self.streams[stream].host else { return true };
        if host.finished >= launches {
            return true;
        }
        host.awaited = if host.awaited == 0 { launches } else { host.awaited.min(launches) };
        false
    }

    /// The failure that the next report of the stream is to tell.
    pub(in crate::cpu) fn take_failure(&mut self, stream: StreamId) -> Option<Box<CpuFault>> {
        self.streams[stream].host.as_mut().and_then(|host| host.failure.take())
    }

    /// The trees of a stream that have not ended.
    pub(in crate::cpu) fn trees(&self, stream: StreamId) -> Vec<Arc<Tree>> {
        let host = self.streams[stream].host.as_ref();
        host.map_or_else(Vec::new, |host| host.trees.iter().cloned().collect())
    }

    /// Ends every tree.
    pub(in crate::cpu) fn stop_all(&mut self) {
        for stream in self.streams.iter() {
            for tree in stream.host.iter().flat_map(|host| &host.trees) {
                tree.stop();
            }
        }
    }
}
