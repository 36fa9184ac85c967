//! Streams that grids create.

use super::{NodeId, Scheduler, Stream};

/// Handles below are those of streams of a known kind, as in CUDA.
pub(super) const FIRST_HANDLE: u64 = 16;

impl Scheduler {
    /// A stream of a grid whose blocks run; gives its handle, which no other stream ever has.
    pub(in super::super) fn create_stream(&mut self, owner: NodeId) -> u64 {
        let handle = self.next_handle;
        self.next_handle += 1;
        let stream = self.add_stream(Stream { open: true, ..Stream::default() });
        self.created.insert((owner, handle), stream);
        handle
    }

    /// Whether a grid may launch into a stream.
    pub(in super::super) fn has_stream(&self, owner: NodeId, handle: u64) -> bool {
        self.created.contains_key(&(owner, handle))
    }

    /// Closes a stream, whose work goes on; false if the grid has none of that handle.
    pub(in super::super) fn destroy_stream(&mut self, owner: NodeId, handle: u64) -> bool {
        let stream = self.created.remove(&(owner, handle));
        if let Some(stream) = stream {
            self.close_block_stream(stream);
        }
        stream.is_some()
    }

    /// Closes what a grid did not destroy.
    pub(super) fn close_created(&mut self, owner: NodeId) {
        while let Some((&(_, handle), _)) =
            self.created.range((owner, 0)..=(owner, u64::MAX)).next()
        {
            self.destroy_stream(owner, handle);
        }
    }
}
