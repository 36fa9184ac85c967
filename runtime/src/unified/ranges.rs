//! Attributes of a range of managed memory (`cuMemRangeGetAttribute`).

use super::managed::ManagedRange;
use super::{Location, Processor};
use crate::backend::NO_DEVICE;
use crate::error::Result;

/// `CUmem_range_attribute` (cuda.h).
const READ_MOSTLY: u32 = 1;
const PREFERRED_LOCATION: u32 = 2;
const ACCESSED_BY: u32 = 3;
const LAST_PREFETCH_LOCATION: u32 = 4;
const PREFERRED_LOCATION_TYPE: u32 = 5;
const PREFERRED_LOCATION_ID: u32 = 6;
const LAST_PREFETCH_LOCATION_TYPE: u32 = 7;
const LAST_PREFETCH_LOCATION_ID: u32 = 8;

/// All attributes of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RangeAttributes {
    /// [`ManagedRange::is_read_mostly`]
    pub read_mostly: bool,
    /// [`ManagedRange::preferred_processor`]
    pub preferred_processor: Option<Processor>,
    /// [`ManagedRange::accessed_by`]
    pub accessed_by: Vec<Processor>,
    /// [`ManagedRange::last_prefetch_processor`]
    pub last_prefetch_processor: Option<Processor>,
    /// [`ManagedRange::preferred_location`]
    pub preferred_location: Option<Location>,
    /// [`ManagedRange::last_prefetch_location`]
    pub last_prefetch_location: Option<Location>,
}

impl RangeAttributes {
    pub(super) fn read(range: &ManagedRange<'_>, processors: usize) -> Result<RangeAttributes> {
        let mut scalars = [[0i32]; 7];
        // "must be a multiple of 4" and not 0.
        let mut accessed_by = vec![NO_DEVICE; processors.max(1)];
        let [
            read_mostly,
            preferred,
            prefetched,
            preferred_type,
            preferred_id,
            prefetched_type,
            prefetched_id,
        ] = &mut scalars;
        let mut wanted: [(u32, &mut [i32]); 8] = [
            (READ_MOSTLY, read_mostly),
            (PREFERRED_LOCATION, preferred),
            (ACCESSED_BY, &mut accessed_by),
            (LAST_PREFETCH_LOCATION, prefetched),
            (PREFERRED_LOCATION_TYPE, preferred_type),
            (PREFERRED_LOCATION_ID, preferred_id),
            (LAST_PREFETCH_LOCATION_TYPE, prefetched_type),
            (LAST_PREFETCH_LOCATION_ID, prefetched_id),
        ];
        let device = &range.device.inner;
        let entered = device.enter()?;
        // SAFETY: the range lies in managed memory that `range` borrows.
        unsafe {
            device.handle.range_attributes(range.address, range.bytes, &mut wanted, &entered)
        }?;
        let value = |at: usize| scalars[at][0];
        accessed_by.truncate(processors);
        Ok(RangeAttributes {
            read_mostly: value(0) != 0,
            preferred_processor: Processor::from_raw(value(1)),
            accessed_by: processors_of(&accessed_by),
            last_prefetch_processor: Processor::from_raw(value(2)),
            preferred_location: Location::from_raw(value(3), value(4)),
            last_prefetch_location: Location::from_raw(value(5), value(6)),
        })
    }
}

fn processors_of(devices: &[i32]) -> Vec<Processor> {
    let mut processors: Vec<Processor> =
        devices.iter().filter_map(|device| Processor::from_raw(*device)).collect();
    processors.sort_unstable();
    processors
}

/// Queries for single attributes.
///
/// # Errors
/// Each returns [`Error::NotOnCpu`](crate::Error::NotOnCpu), [`Error::Cuda`](crate::Error::Cuda) or
/// [`Error::Unusable`](crate::Error::Unusable).
impl ManagedRange<'_> {
    /// Whether all pages are [`Advice::ReadMostly`](super::Advice::ReadMostly).
    pub fn is_read_mostly(&self) -> Result<bool> {
        Ok(self.one(READ_MOSTLY)? != 0)
    }

    /// The preferred location of all pages, if it is a single GPU or the host.
    pub fn preferred_processor(&self) -> Result<Option<Processor>> {
        Ok(Processor::from_raw(self.one(PREFERRED_LOCATION)?))
    }

    /// The preferred location of all pages, distinguishing NUMA nodes.
    pub fn preferred_location(&self) -> Result<Option<Location>> {
        let kind = self.one(PREFERRED_LOCATION_TYPE)?;
        Ok(Location::from_raw(kind, self.one(PREFERRED_LOCATION_ID)?))
    }

    /// The processors that [`Advice::AccessedBy`](super::Advice::AccessedBy) names for all pages, at most `most`.
    pub fn accessed_by(&self, most: usize) -> Result<Vec<Processor>> {
        let mut devices = vec![NO_DEVICE; most.max(1)];
        self.read(ACCESSED_BY, &mut devices)?;
        devices.truncate(most);
        Ok(processors_of(&devices))
    }

    /// The last prefetch destination of all pages, if it was a single GPU or the host. The pages may not have
    /// arrived there.
    pub fn last_prefetch_processor(&self) -> Result<Option<Processor>> {
        Ok(Processor::from_raw(self.one(LAST_PREFETCH_LOCATION)?))
    }

    /// The last prefetch destination of all pages, distinguishing NUMA nodes.
    pub fn last_prefetch_location(&self) -> Result<Option<Location>> {
        let kind = self.one(LAST_PREFETCH_LOCATION_TYPE)?;
        Ok(Location::from_raw(kind, self.one(LAST_PREFETCH_LOCATION_ID)?))
    }

    fn one(&self, attribute: u32) -> Result<i32> {
        let mut value = [0];
        self.read(attribute, &mut value)?;
        Ok(value[0])
    }

    fn read(&self, attribute: u32, data: &mut [i32]) -> Result<()> {
        let device = &self.device.inner;
        let entered = device.enter()?;
        // SAFETY: the range lies in managed memory that `self` borrows.
        unsafe {
            device.handle.range_attribute(self.address, self.bytes, attribute, data, &entered)
        }
    }
}
