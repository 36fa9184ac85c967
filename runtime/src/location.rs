//! The memories and processors of a machine, as unified addressing names them.

/// Where managed memory can be (`CUmemLocation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Location {
    /// The memory of the GPU of that number.
    Device(u32),
    /// The host's memory.
    Host,
    /// That NUMA node of the host. Since CUDA 12.2.
    HostNuma(u32),
    /// The host's NUMA node nearest to the calling thread. Since CUDA 12.2.
    HostNumaCurrent,
}

/// What accesses memory: advice on access takes no NUMA nodes ("All other location types are invalid").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Processor {
    /// The host.
    Host,
    /// The GPU of that number.
    Device(u32),
}

impl From<Processor> for Location {
    fn from(processor: Processor) -> Location {
        match processor {
            Processor::Host => Location::Host,
            Processor::Device(ordinal) => Location::Device(ordinal),
        }
    }
}
