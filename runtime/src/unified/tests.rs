//! Unified addressing without a driver: conversions of numbers, and the CPU device.

use gridlet_cpu::CpuConfig;

use super::*;
use crate::Error;

fn cpu() -> Device {
    Device::open_cpu(CpuConfig { threads: Some(2), ..CpuConfig::default() }).expect("a device")
}

#[test]
fn managed_memory_is_the_hosts_on_the_cpu() {
    let device = cpu();
    assert_eq!(Location::from(&device), Location::Host);
    let mut managed = ManagedBuffer::from_slice(&device, &[1u32, 2, 3]).expect("a buffer");
    managed.host().expect("the elements")[1] = 7;
    assert_eq!(managed.to_vec(), Ok(vec![1, 7, 3]));
    managed.fill(9).expect("filled");
    assert_eq!(managed.host().expect("the elements"), [9, 9, 9]);

    let stream = device.stream().expect("a stream");
    let part = managed.range(1..3).expect("a range");
    part.advise(Advice::ReadMostly).expect("nothing to do");
    part.prefetch(Location::Host, &stream).expect("nothing to do");
    stream.synchronize_default().expect("nothing runs");
    assert!(matches!(part.attributes(1), Err(Error::NotOnCpu { .. })));
    assert!(matches!(part.is_read_mostly(), Err(Error::NotOnCpu { .. })));
    let (early, late) = (2, 1);
    assert!(matches!(managed.range(early..late), Err(Error::Length { .. })));
    assert_eq!(managed.range(0..4).map(drop), Err(Error::Length { expected: 12, given: 16 }));
    assert!(matches!(device.pointer(managed.address()).info(), Err(Error::NotOnCpu { .. })));

    // A stream of another device cannot migrate it.
    let other = cpu().stream().expect("a stream");
    let whole = managed.whole();
    assert!(matches!(whole.prefetch(Location::Host, &other), Err(Error::OtherDevice { .. })));
}

#[test]
fn host_memory_is_the_devices_on_the_cpu() {
    let device = cpu();
    let flags = HostFlags { write_combined: true };
    let mut host = HostBuffer::<u16>::alloc_zeroed(&device, 5, flags).expect("a buffer");
    host.host().expect("the elements")[4] = 1;
    assert_eq!(host.host().expect("the elements"), [0, 0, 0, 0, 1]);
    assert_eq!((host.len(), host.is_write_combined()), (5, Ok(false)));
    assert_eq!(host.address(), host.host_address());

    let values = vec![1.5f64; 100];
    let at = values.as_ptr();
    let registered = RegisteredMemory::new(&device, values, RegisterFlags::default());
    let mut registered = registered.expect("registered");
    registered.host().expect("the elements")[0] = 2.5;
    assert_eq!(registered.address(), at as u64);
    let back = registered.into_vec().expect("the vector");
    assert_eq!((back.as_ptr(), back.len(), back[0], back[99]), (at, 100, 2.5, 1.5));
}

#[test]
fn memories_are_copied() {
    let device = cpu();
    let from = crate::Buffer::from_slice(&device, &[1u8, 2, 3]).expect("a buffer");
    let mut to = crate::DeviceMemory::alloc_zeroed(&device, 3).expect("memory");
    to.copy_from(from.memory()).expect("copied");
    let mut bytes = [0; 3];
    to.copy_to_host(&mut bytes).expect("copied");
    assert_eq!(bytes, [1, 2, 3]);
    let mut short = crate::DeviceMemory::alloc_zeroed(&device, 2).expect("memory");
    assert_eq!(short.copy_from(from.memory()), Err(Error::Length { expected: 2, given: 3 }));
    assert!(matches!(device.can_access_peer(&cpu()), Err(Error::OtherDevice { .. })));
}
