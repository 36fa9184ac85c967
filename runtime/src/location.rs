//! A machine's memories and processors, as unified addressing names them.

/// Where managed memory can reside (`CUmemLocation`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Location {
    /// The memory of the GPU with this ordinal.
    Device(u32),
    /// The host's memory.
    Host,
    /// The memory of the host's NUMA node with this number. Since CUDA 12.2.
    HostNuma(u32),
    /// The host's NUMA node nearest to the calling thread. Since CUDA 12.2.
    HostNumaCurrent,
}

/// A processor that accesses memory. Access advice does not take NUMA nodes ("All other location types are
/// invalid").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Processor {
    /// The host.
    Host,
    /// The GPU with this ordinal.
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
