//! Unified addressing.

use gridlet_runtime::unified::{
    Access, Advice, HostBuffer, HostFlags, Location, ManagedBuffer, MemoryType, Processor,
    RegisterFlags, RegisteredMemory,
};
use gridlet_runtime::{Arg, Buffer, Device, Error, LaunchConfig};

use super::{gpu, load, note};

/// Elements of 1 MiB: managed allocations stay small here.
const ELEMENTS: usize = 1 << 18;

#[test]
fn managed_memory_has_one_address() {
    let Some((_alone, device)) = gpu("managed_memory_has_one_address") else { return };
    let program = load(&device);
    let kernel = program.kernel("vector_add").unwrap();
    let stream = device.stream().unwrap();
    let values: Vec<f32> = (0..ELEMENTS).map(|i| i as f32).collect();
    let mut x = ManagedBuffer::from_slice(&device, &values).unwrap();
    let mut out = ManagedBuffer::<f32>::alloc(&device, ELEMENTS).unwrap();
    x.host().unwrap()[7] = 0.5;
    x.whole().prefetch(Location::from(&device), &stream).unwrap();
    let n = ELEMENTS as u32;
    let args = [Arg::from(&*x), Arg::from(&*x), Arg::from(&mut out), Arg::from(n)];
    stream.launch(&kernel, &LaunchConfig::new(n.div_ceil(256), 256), &args).unwrap();
    out.whole().prefetch(Location::Host, &stream).unwrap();
    // No synchronization: the host's view waits for the launch.
    let sums = out.host().unwrap();
    for (i, sum) in sums.iter().enumerate() {
        assert_eq!(*sum, if i == 7 { 1.0 } else { 2.0 * i as f32 }, "element {i}");
    }
}

#[test]
fn ranges_keep_their_advice() {
    let Some((_alone, device)) = gpu("ranges_keep_their_advice") else { return };
    let mut buffer = ManagedBuffer::from_slice(&device, &vec![1u32; ELEMENTS]).unwrap();
    let (gpu, stream) = (Processor::from(&device), device.stream().unwrap());
    let range = buffer.whole();
    assert!(!range.is_read_mostly().unwrap());
    range.advise(Advice::ReadMostly).unwrap();
    assert!(range.is_read_mostly().unwrap());
    range.advise(Advice::UnsetReadMostly).unwrap();
    assert!(!range.is_read_mostly().unwrap());

    for processor in [gpu, Processor::Host] {
        range.advise(Advice::PreferredLocation(processor.into())).unwrap();
        assert_eq!(range.preferred_processor().unwrap(), Some(processor));
        assert_eq!(range.preferred_location().unwrap(), Some(processor.into()));
    }
    range.advise(Advice::UnsetPreferredLocation).unwrap();
    assert_eq!(range.preferred_processor().unwrap(), None);
    assert_eq!(range.preferred_location().unwrap(), None);

    range.advise(Advice::AccessedBy(gpu)).unwrap();
    range.advise(Advice::AccessedBy(Processor::Host)).unwrap();
    assert_eq!(range.accessed_by(4).unwrap(), [Processor::Host, gpu]);
    range.advise(Advice::UnsetAccessedBy(Processor::Host)).unwrap();
    assert_eq!(range.accessed_by(4).unwrap(), [gpu]);
    range.advise(Advice::UnsetAccessedBy(gpu)).unwrap();
    assert!(range.accessed_by(4).unwrap().is_empty());

    assert_eq!(range.last_prefetch_processor().unwrap(), None);
    for processor in [gpu, Processor::Host] {
        range.prefetch(processor.into(), &stream).unwrap();
        stream.synchronize_default().unwrap();
        assert_eq!(range.last_prefetch_processor().unwrap(), Some(processor));
        assert_eq!(range.last_prefetch_location().unwrap(), Some(processor.into()));
    }
    // NUMA nodes of the host; a machine may have one and still refuse advice about it.
    for location in [Location::HostNuma(0), Location::HostNumaCurrent] {
        match range.advise(Advice::PreferredLocation(location)) {
            Ok(()) => {
                // Driver 580 accepts NUMA nodes but reports none on a machine with one node.
                let seen = range.preferred_location().unwrap();
                note(format!("preferred {location:?} reads back as {seen:?}"));
                assert!(!matches!(seen, Some(Location::Device(_))), "{seen:?}");
                range.prefetch(location, &stream).unwrap();
                stream.synchronize_default().unwrap();
                let seen = range.last_prefetch_location().unwrap();
                note(format!("prefetched to {location:?} reads back as {seen:?}"));
                assert!(!matches!(seen, Some(Location::Device(_))), "{seen:?}");
            }
            Err(error) => {
                note(format!("{location:?}: {error}"));
                assert!(matches!(error, Error::Cuda(_)), "{error:?}");
            }
        }
    }

    // A batch query agrees with single calls.
    range.advise(Advice::ReadMostly).unwrap();
    range.advise(Advice::AccessedBy(gpu)).unwrap();
    let all = range.attributes(2).unwrap();
    note(format!("{all:?}"));
    assert_eq!(all.read_mostly, range.is_read_mostly().unwrap());
    assert_eq!(all.preferred_processor, range.preferred_processor().unwrap());
    assert_eq!(all.preferred_location, range.preferred_location().unwrap());
    assert_eq!(all.accessed_by, range.accessed_by(2).unwrap());
    assert_eq!(all.last_prefetch_processor, range.last_prefetch_processor().unwrap());
    assert_eq!(all.last_prefetch_location, range.last_prefetch_location().unwrap());
    assert!(all.read_mostly && all.accessed_by == [gpu]);

    // Each half of a buffer can have its own advice, on whole pages.
    let half = buffer.range(0..ELEMENTS / 2).unwrap();
    half.advise(Advice::UnsetReadMostly).unwrap();
    assert!(!half.is_read_mostly().unwrap() && !buffer.whole().is_read_mostly().unwrap());
    assert!(buffer.range(ELEMENTS / 2..ELEMENTS).unwrap().is_read_mostly().unwrap());
    // The driver's description of the error is passed on.
    let nowhere = half.advise(Advice::PreferredLocation(Location::Device(4095))).unwrap_err();
    note(format!("a GPU that is not there: {nowhere}"));
    assert_eq!(buffer.host().unwrap()[5], 1);
}

#[test]
fn pointers_tell_what_they_are() {
    let Some((_alone, device)) = gpu("pointers_tell_what_they_are") else { return };
    let ordinal = device.info().ordinal;
    let memory = Buffer::<u8>::alloc_zeroed(&device, 1000).unwrap();
    let managed = ManagedBuffer::<u8>::alloc(&device, 1000).unwrap();
    let host = HostBuffer::<u8>::alloc_zeroed(&device, 1000, HostFlags::default()).unwrap();

    let query = device.pointer(memory.address() + 10);
    assert_eq!(query.memory_type().unwrap(), MemoryType::Device);
    assert_eq!(query.device_address().unwrap(), memory.address() + 10);
    assert!(query.host_address().is_err(), "the host cannot reach device memory");
    assert_ne!(query.context().unwrap(), 0);
    assert!(!query.is_managed().unwrap() && query.is_mapped().unwrap());
    assert_eq!(query.device_ordinal().unwrap(), Some(ordinal));
    assert!(query.range_start().unwrap() <= memory.address());
    assert!(query.range_size().unwrap() >= 1000);
    assert!(query.mapping_base().unwrap() <= memory.address());
    assert!(query.mapping_size().unwrap() >= 1000);
    assert_eq!(query.memory_pool().unwrap(), 0);
    assert_eq!(query.access().unwrap(), Access::ReadWrite);
    let other = Buffer::<u8>::alloc_zeroed(&device, 1000).unwrap();
    assert_ne!(query.buffer_id().unwrap(), device.pointer(other.address()).buffer_id().unwrap());
    assert!(!query.sync_memops().unwrap());
    query.set_sync_memops(true).unwrap();
    assert!(query.sync_memops().unwrap());
    query.set_sync_memops(false).unwrap();
    assert!(!query.sync_memops().unwrap());
    note(format!(
        "legacy IPC {:?}, handle types {:?}, RDMA {:?}, decompression {:?}, block {:?}, tokens {:?}",
        query.is_legacy_ipc_capable(),
        query.allowed_handle_types(),
        query.is_gpu_direct_rdma_capable(),
        query.is_hardware_decompress_capable(),
        query.memory_block_id(),
        query.p2p_tokens().map(|_| "given"),
    ));
    query.is_legacy_ipc_capable().unwrap();
    query.allowed_handle_types().unwrap();
    query.is_gpu_direct_rdma_capable().unwrap();

    let info = query.info().unwrap().expect("it is CUDA's");
    assert_eq!(info.memory_type, MemoryType::Device);
    assert_eq!((info.device_address, info.host_address), (memory.address() + 10, 0));
    assert_eq!(info.device_ordinal, Some(ordinal));
    assert_eq!(info.buffer_id, query.buffer_id().unwrap());
    assert_eq!(info.range_start, query.range_start().unwrap());
    assert_eq!(info.range_bytes, query.range_size().unwrap());
    assert!(info.is_mapped && !info.is_managed);
    note(format!("in one call: {info:?}"));
    assert_eq!(info.context, query.context().unwrap());
    assert_eq!(info.sync_memops, query.sync_memops().unwrap());
    assert_eq!(info.is_legacy_ipc_capable, query.is_legacy_ipc_capable().unwrap());
    assert_eq!(info.allowed_handle_types, query.allowed_handle_types().unwrap());
    assert_eq!(info.memory_pool, query.memory_pool().unwrap());
    let decompress = info.is_hardware_decompress_capable;
    assert!(decompress.is_none_or(|it| Ok(it) == query.is_hardware_decompress_capable()));

    let managed_info = device.pointer(managed.address()).info().unwrap().expect("CUDA's");
    assert!(managed_info.is_managed);
    assert_eq!(managed_info.host_address, managed.address());
    let pinned = device.pointer(host.host_address());
    assert_eq!(pinned.memory_type().unwrap(), MemoryType::Host);
    assert_eq!(pinned.device_address().unwrap(), host.address());

    // Pointers unknown to CUDA: a single query is an error, a batch query is empty.
    let local = 5u8;
    let unknown = device.pointer(&raw const local as u64);
    assert!(matches!(unknown.memory_type().unwrap_err(), Error::Cuda(_)));
    assert_eq!(unknown.info().unwrap(), None);
}

#[test]
fn host_memory_is_used_by_kernels() {
    let Some((_alone, device)) = gpu("host_memory_is_used_by_kernels") else { return };
    let program = load(&device);
    let kernel = program.kernel("vector_add").unwrap();
    let stream = device.stream().unwrap();
    let n = 1000u32;
    let config = LaunchConfig::new(n.div_ceil(256), 256);
    let values: Vec<f32> = (0..n).map(|i| i as f32).collect();

    let plain = HostFlags::default();
    let mut x = HostBuffer::<f32>::alloc_zeroed(&device, n as usize, plain).unwrap();
    x.host().unwrap().copy_from_slice(&values);
    let combined = HostFlags::default().with_write_combined(true);
    let mut y = HostBuffer::<f32>::alloc_zeroed(&device, n as usize, combined).unwrap();
    y.host().unwrap().copy_from_slice(&values);
    assert!(y.is_write_combined().unwrap() && !x.is_write_combined().unwrap());
    note(format!(
        "host memory: {:#x} on both sides; write-combined: {:#x} on the host, {:#x} on the device",
        x.address(),
        y.host_address(),
        y.address()
    ));
    assert_eq!(x.address(), x.host_address(), "Unified Addressing, Automatic Mapping");

    let registered =
        RegisteredMemory::new(&device, vec![0f32; n as usize], RegisterFlags::default());
    let mut out = registered.unwrap();
    note(format!(
        "registered: {:#x} on the host, {:#x} on the device",
        out.host_address(),
        out.address()
    ));
    let args = [Arg::from(&x), Arg::from(&y), Arg::from(&mut out), Arg::from(n)];
    stream.launch(&kernel, &config, &args).unwrap();
    let sums = out.into_vec().unwrap();
    for (i, sum) in sums.iter().enumerate() {
        assert_eq!(*sum, 2.0 * i as f32, "element {i}");
    }
    // Unregistered and freed, so unknown to the driver again.
    assert_eq!(device.pointer(sums.as_ptr() as u64).info().unwrap(), None);
    let at = x.host_address();
    assert!(device.pointer(at).info().unwrap().is_some());
    drop(x);
    assert_eq!(device.pointer(at).info().unwrap(), None);
    let nothing = RegisteredMemory::<f32>::new(&device, vec![], RegisterFlags::default());
    assert!(matches!(nothing.map(drop), Err(Error::Cuda(_))));
    match RegisteredMemory::new(&device, values, RegisterFlags::default().with_read_only(true)) {
        Ok(read_only) => assert_eq!(read_only.len(), n as usize),
        Err(error) => note(format!("read-only registration: {error}")),
    }
}

#[test]
fn peers_use_each_others_memory() {
    let Some((_alone, device)) = gpu("peers_use_each_others_memory") else { return };
    let Ok(peer) = Device::open(1) else {
        return note("SKIPPED: peers_use_each_others_memory needs two GPUs".into());
    };
    note(format!("{:?}", device.peer_attributes(&peer)));
    let values: Vec<u32> = (0..ELEMENTS as u32).collect();
    let from = Buffer::from_slice(&peer, &values).unwrap();
    let mut to = Buffer::<u32>::alloc_zeroed(&device, ELEMENTS).unwrap();
    to.copy_from(&from).unwrap();
    assert_eq!(to.to_vec().unwrap(), values);

    if !device.can_access_peer(&peer).unwrap() {
        return note("SKIPPED: the rest of it needs GPUs that reach each other's memory".into());
    }
    device.enable_peer_access(&peer).unwrap();
    device.enable_peer_access(&peer).unwrap();
    let kernel = load(&device).kernel("poke").unwrap();
    let stream = device.stream().unwrap();
    let one = LaunchConfig::new(1, 1);
    stream.launch(&kernel, &one, &[Arg::address(from.address())]).unwrap();
    stream.synchronize_default().unwrap();
    assert_eq!(from.to_vec().unwrap()[..2], [1, 1]);
    device.disable_peer_access(&peer).unwrap();
    device.disable_peer_access(&peer).unwrap();
}
