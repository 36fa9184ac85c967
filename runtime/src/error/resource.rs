//! Requests for SMs and workqueues that break a rule of the driver.

/// A rule of the driver API's green-context section that a request breaks.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResourceProblem {
    /// A group of a split was split.
    #[error(
        "these SMs are a group of a split and cannot be split again: make a green context of them and split its SMs"
    )]
    SplitAgain,
    /// A split into 0 groups.
    #[error("a split needs at least one group")]
    NoGroups,
    /// More SMs than the resource has.
    #[error(
        "{asked} SMs requested, {available} available: this device splits in multiples of {alignment}, at least {minimum}"
    )]
    TooFew {
        /// SMs requested.
        asked: u32,
        /// SMs of the resource.
        available: u32,
        /// SMs of the smallest partition.
        minimum: u32,
        /// Partition sizes are multiples of this many SMs.
        alignment: u32,
    },
    /// The driver would round the number of SMs.
    #[error(
        "{asked} SMs requested, the device would give {given}: it splits in multiples of {alignment}, at least {minimum}"
    )]
    Rounded {
        /// SMs requested.
        asked: u32,
        /// SMs that the green context would have.
        given: u32,
        /// SMs of the smallest partition.
        minimum: u32,
        /// Partition sizes are multiples of this many SMs.
        alignment: u32,
    },
    /// Clusters need a newer GPU.
    #[error(
        "groups for the largest clusters need compute capability 9.0, this GPU has {capability}"
    )]
    NoClusters {
        /// The GPU's compute capability.
        capability: String,
    },
    /// A field of a group has an invalid value.
    #[error("group {index}: `{field}` is {value}, and must be {rule}")]
    Group {
        /// The group's index, from 0.
        index: usize,
        /// The field of [`SmGroup`](crate::SmGroup).
        field: &'static str,
        /// Its value.
        value: u32,
        /// The rule for the field.
        rule: String,
    },
    /// A descriptor without SMs.
    #[error("a green context needs SMs: give at least one SM resource")]
    NoSms,
    /// Resources of different devices.
    #[error("the resources belong to different devices")]
    SeveralDevices,
    /// More than one workqueue resource.
    #[error("a green context has one set of workqueues: give one configuration or one resource")]
    SeveralQueues,
    /// SMs from different splits.
    #[error("all SM resources must come from the same split")]
    SeveralSplits,
    /// SMs with different alignments.
    #[error("the SM resources are co-scheduled in different sizes, {first} and {other}")]
    SeveralAlignments {
        /// The alignment of the first.
        first: u32,
        /// The alignment of another.
        other: u32,
    },
    /// The same SMs are listed twice.
    #[error("the same SM resource is given twice")]
    Twice,
}

impl From<ResourceProblem> for super::Error {
    fn from(problem: ResourceProblem) -> Self {
        super::Error::Resource(Box::new(problem))
    }
}
