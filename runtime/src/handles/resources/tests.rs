//! Resources of the CPU device, which are its workers.

use gridlet_cpu::CpuConfig;

use super::*;
use crate::{Event, GreenContext};

fn device(threads: usize) -> Device {
    Device::open_cpu(CpuConfig { threads: Some(threads), ..CpuConfig::default() })
        .expect("a device")
}

fn sizes(split: &Split) -> (Vec<u32>, u32) {
    let sizes = split.groups.iter().map(SmResource::sm_count).collect();
    (sizes, split.remainder.as_ref().map_or(0, SmResource::sm_count))
}

#[test]
fn workers_are_split_by_count() {
    let all = device(8).sm_resource().expect("workers");
    let flags = SplitFlags::default();
    assert_eq!(all.sm_count(), 8);
    assert_eq!(all.count_groups(3, flags), Ok(2));
    assert_eq!(sizes(&all.split_by_count(9, 3, flags).expect("groups")), (vec![3, 3], 2));
    assert!(all.split_by_count(2, 4, flags).is_ok_and(|split| split.remainder.is_none()));
    assert_eq!(sizes(&all.split_by_count(1, 0, flags).expect("groups")), (vec![1], 7));
    let too_few = ResourceProblem::TooFew { asked: 9, available: 8, minimum: 1, alignment: 1 };
    assert_eq!(all.count_groups(9, flags), Err(too_few.into()));
}

#[test]
fn workers_are_split_into_structured_groups() {
    let all = device(9).sm_resource().expect("workers");
    let groups = [
        SmGroup { sm_count: 4, ..SmGroup::default() },
        SmGroup { coscheduled: 2, ..SmGroup::default() },
    ];
    let (found, rest) = all.discover(&groups).expect("sizes");
    assert_eq!((found[0].sm_count, found[1].sm_count, rest), (4, 4, 1));
    assert_eq!(sizes(&all.split(&groups).expect("groups")), (vec![4, 4], 1));
}

#[test]
fn a_green_context_has_the_workers_of_its_groups() {
    let device = device(6);
    let split = device.sm_resource().expect("workers").split_by_count(2, 2, SplitFlags::default());
    let split = split.expect("two groups");
    let descriptor = ResourceDescriptor::new(split.groups).expect("a descriptor");
    let green = GreenContext::new(&descriptor).expect("a green context");
    assert_eq!((green.sm_count(), descriptor.sm_count()), (4, 4));
    assert_eq!(green.sm_resource().expect("workers").sm_count(), 4);
    let stream = green.stream().expect("a stream");
    assert_eq!(stream.sm_resource().expect("workers").sm_count(), 4);
    assert_eq!(stream.priority(), Ok(0));
    assert_eq!(device.stream_priorities(), Ok(0..=0));

    // Nothing runs, so the event has already completed.
    let event = Event::new(&device).expect("an event");
    green.record(&event).expect("recorded");
    device.stream().expect("a stream").wait_event(&event).expect("no wait");
    green.wait_event(&event).expect("no wait");
    assert_eq!(green.id(), Err(Error::NotOnCpu { what: "green context ids" }));
    assert!(matches!(device.workqueue_config(), Err(Error::NotOnCpu { what: "workqueues" })));
    assert!(matches!(green.make_current(), Err(Error::NotOnCpu { .. })));
}
