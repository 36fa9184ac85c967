//! Resident launches: what the host passes to the kernel that [`Resident`] names, and how it sizes that kernel's grid.
//!
//! The host launches the kernel with [`Layout::workers`] blocks of [`Shape::threads`] threads. The kernel's parameters are
//! the address of the stream's launch memory, [`WORDS`] 32-bit words ([`RootGrid::words`]) and, from
//! [`PARAMETERS_OFFSET`] on, [`Resident::parameter_words`] 64-bit words with the parameter buffer of the root grid,
//! padded with zeros.
//!
//! The launch memory starts with [`HEADER_BYTES`] for the scheduler, then has a ring of [`Layout::ring_slots`] slots of
//! [`SLOT_BYTES`], an area of [`AREA_BYTES`] for each worker, then the records. It is zero before the first launch, and
//! before a launch with another [`Layout`] than the one before it. Grids that run at the same time need launch memory of
//! their own.

use crate::launch::Dim3;
use crate::manifest::Resident;

/// 32-bit words between the address of the launch memory and the root grid's parameters.
pub const WORDS: usize = 14;

/// Offset in bytes of the root grid's parameters in the entry kernel's parameters.
pub const PARAMETERS_OFFSET: usize = 8 + 4 * WORDS;

/// Alignment of the launch memory and of its records in bytes.
pub const ALIGNMENT: u32 = 128;

/// Bytes at the start of the launch memory that belong to the scheduler.
pub const HEADER_BYTES: u64 = 4096;

/// Size of a slot of the ring in bytes.
pub const SLOT_BYTES: u64 = 128;

/// Size in bytes of the area that each worker has for grids that its stack has no room for.
pub const AREA_BYTES: u64 = 4096;

/// Size in bytes of a stream's launch memory unless the host sets another.
pub const DEFAULT_LAUNCH_MEMORY: u64 = 64 << 20;

/// Records per worker below which launch memory is too small: a worker needs one for the grid that it runs, one for the
/// grid that this launches, and spares that it can hand on.
const MIN_RECORDS_PER_WORKER: u64 = 4;

/// The most records of a stream's launch memory: the scheduler keeps two bits beside a record's number. More memory than they need is
/// not used.
const MAX_RECORDS: u64 = (1 << 30) - 1;

/// Size of the blocks that run the grids of one launch from the host.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    /// Warps of a block.
    pub warps: u32,
    /// Dynamic shared memory of a block in bytes, which all blocks that it runs share.
    pub shared_bytes: u32,
}

impl Shape {
    /// The shape for a root grid with blocks of `block_threads` threads and `shared_bytes` bytes of shared memory, static
    /// and dynamic.
    pub fn new(resident: &Resident, block_threads: u32, shared_bytes: u32) -> Self {
        let threads = block_threads.max(resident.max_block_threads).max(1);
        let root = shared_bytes.checked_next_multiple_of(16).unwrap_or(shared_bytes);
        Shape { warps: threads.div_ceil(32), shared_bytes: root.max(resident.shared_bytes) }
    }

    /// Threads of a block.
    pub fn threads(self) -> u32 {
        self.warps * 32
    }
}

/// How a stream's launch memory is divided for a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Layout {
    /// Blocks of the entry kernel.
    pub workers: u32,
    /// Slots of the ring, a power of two.
    pub ring_slots: u32,
    /// Number of records.
    pub records: u32,
    /// Size of a record in bytes.
    pub record_bytes: u32,
    /// Number of records that a worker takes at a time.
    pub batch: u32,
}

/// Launch memory that is too small for a program on a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TooSmall {
    /// The least number of bytes that suffices.
    pub needed: u64,
}

impl Layout {
    /// Divides `bytes` bytes of launch memory among `workers` workers.
    ///
    /// # Errors
    /// If `bytes` is below [`Layout::min_bytes`].
    pub fn new(record_bytes: u32, workers: u32, bytes: u64) -> Result<Layout, TooSmall> {
        let workers = workers.max(1);
        let needed = Layout::min_bytes(record_bytes, workers);
        if bytes < needed {
            return Err(TooSmall { needed });
        }
        let ring_slots = ring_slots(workers);
        let areas = u64::from(workers) * AREA_BYTES;
        let left = bytes - HEADER_BYTES - u64::from(ring_slots) * SLOT_BYTES - areas;
        let records = left / u64::from(record_bytes.max(ALIGNMENT));
        let records = records.min(MAX_RECORDS) as u32;
        let batch = u64::from(records) / (8 * u64::from(workers));
        Ok(Layout { workers, ring_slots, records, record_bytes, batch: batch.clamp(1, 30) as u32 })
    }

    /// The least number of bytes of launch memory for `workers` workers: the header, the ring, and an area and 4 records per
    /// worker.
    pub fn min_bytes(record_bytes: u32, workers: u32) -> u64 {
        let records = MIN_RECORDS_PER_WORKER * u64::from(workers.max(1));
        let record_bytes = u64::from(record_bytes.max(ALIGNMENT));
        let areas = u64::from(workers.max(1)) * AREA_BYTES;
        HEADER_BYTES + u64::from(ring_slots(workers)) * SLOT_BYTES + areas + records * record_bytes
    }
}

/// Slots of the ring: the power of two from 8 per worker up.
fn ring_slots(workers: u32) -> u32 {
    workers.max(1).saturating_mul(8).checked_next_power_of_two().unwrap_or(1 << 31)
}

/// The grid that the host launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RootGrid {
    /// Index of the kernel in [`crate::manifest::Manifest::kernels`].
    pub kernel: u32,
    /// Number of blocks.
    pub grid: Dim3,
    /// Number of threads in a block.
    pub block: Dim3,
    /// Dynamic shared memory of a block in bytes.
    pub shared_bytes: u32,
}

impl RootGrid {
    /// The words of the entry kernel's parameters.
    pub fn words(&self, shape: Shape, layout: &Layout) -> [u32; WORDS] {
        [
            self.kernel,
            self.grid.x,
            self.grid.y,
            self.grid.z,
            self.block.x,
            self.block.y,
            self.block.z,
            self.shared_bytes,
            layout.workers,
            layout.records,
            layout.ring_slots - 1,
            layout.batch,
            shape.shared_bytes,
            0,
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resident() -> Resident {
        Resident {
            symbol: "__gridlet_resident".into(),
            record_bytes: 256,
            parameter_words: 4,
            max_block_threads: 96,
            shared_bytes: 64,
        }
    }

    #[test]
    fn blocks_fit_the_root_and_every_child() {
        let shape = |threads, shared| {
            let shape = Shape::new(&resident(), threads, shared);
            (shape.threads(), shape.shared_bytes)
        };
        assert_eq!(shape(1, 0), (96, 64));
        assert_eq!(shape(97, 64), (128, 64));
        assert_eq!(shape(1024, 65), (1024, 80));
    }

    #[test]
    fn launch_memory_is_divided() {
        let layout = |workers, bytes| Layout::new(256, workers, bytes);
        // 3 workers: 32 slots.
        let needed = 4096 + 32 * 128 + 3 * 4096 + 12 * 256;
        assert_eq!(layout(3, needed - 1), Err(TooSmall { needed }));
        let least = layout(3, needed).unwrap();
        assert_eq!((least.ring_slots, least.records, least.batch), (32, 12, 1));
        let large = layout(3, DEFAULT_LAUNCH_MEMORY + 255).unwrap();
        assert_eq!(u64::from(large.records), ((64 << 20) - 5 * 4096) / 256);
        assert_eq!(large.batch, 30);
        assert_eq!(layout(4, 1 << 20).unwrap().ring_slots, 32);
        assert_eq!(layout(5, 1 << 20).unwrap().ring_slots, 64);
        assert_eq!(u64::from(layout(3, 1 << 50).unwrap().records), MAX_RECORDS);
        assert_eq!(layout(0, 1 << 20).unwrap().workers, 1);
    }

    #[test]
    fn words_are_in_the_kernels_order() {
        let root = RootGrid {
            kernel: 7,
            grid: Dim3 { x: 1, y: 2, z: 3 },
            block: Dim3 { x: 4, y: 5, z: 6 },
            shared_bytes: 8,
        };
        let layout =
            Layout { workers: 9, ring_slots: 128, records: 10, record_bytes: 256, batch: 11 };
        let words = root.words(Shape { warps: 4, shared_bytes: 12 }, &layout);
        assert_eq!(words, [7, 1, 2, 3, 4, 5, 6, 8, 9, 10, 127, 11, 12, 0]);
    }
}
