//! Streams created by grids.

use super::{NodeId, Scheduler, Stream};

/// Lower handles denote CUDA's predefined streams.
pub(super) const FIRST_HANDLE: u64 = 16;

impl Scheduler {
    /// Creates a stream for a running grid and returns its handle, which is never reused.
    pub(in super::super) fn create_stream(&mut self, owner: NodeId) -> u64 {
        let handle = self.next_handle;
        self.next_handle += 1;
        let stream = self.add_stream(Stream { open: true, ..Stream::default() });
        self.created.insert((owner, handle), stream);
        handle
    }

    /// Whether the grid owns the stream and may launch into it.
    pub(in super::super) fn has_stream(&self, owner: NodeId, handle: u64) -> bool {
        self.created.contains_key(&(owner, handle))
    }

    /// Closes a stream, whose pending work still runs; false if the grid has no stream with this handle.
    pub(in super::super) fn destroy_stream(&mut self, owner: NodeId, handle: u64) -> bool {
        let stream = self.created.remove(&(owner, handle));
        if let Some(stream) = stream {
            self.close_block_stream(stream);
        }
        stream.is_some()
    }

    /// Closes the streams that a grid did not destroy.
    pub(super) fn close_created(&mut self, owner: NodeId) {
        while let Some((&(_, handle), _)) =
            self.created.range((owner, 0)..=(owner, u64::MAX)).next()
        {
            self.destroy_stream(owner, handle);
        }
    }
}
