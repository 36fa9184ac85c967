//! How the runtime uses a driver, from the driver's side: a fake driver prints the calls that it receives. This
//! tests the order of destruction, timeouts, faults and old drivers on machines without a GPU.
//!
//! Each scenario runs in its own process, because a process loads only one driver.

#![allow(clippy::print_stdout, reason = "a child process reports by printing")]

mod driver;
mod failures;
mod interop;
mod loading;
mod misuse;
mod notice;
mod observe;
mod resident;
mod rules;

use std::time::Duration;

use driver::{driven, say};

use crate::common;
use gridlet_runtime::occupancy::{Carveout, ClusterScheduling};
use gridlet_runtime::resources::Resource;
use gridlet_runtime::unified::{
    Advice, HostBuffer, HostFlags, Location, ManagedBuffer, Processor, RegisterFlags,
    RegisteredMemory,
};
use gridlet_runtime::{
    Arg, Buffer, Device, Event, GreenContext, LaunchConfig, Limit, Program, ResourceDescriptor,
    Result, SmGroup, SmResource, SplitFlags, WorkqueueScope,
};

/// One test per scenario: a name, a variant of the driver, its settings, the code to run, and the expected calls.
macro_rules! scenario {
    ($name:ident, $flavour:literal, [$($setting:literal = $value:literal),*], $run:expr) => {
        #[test]
        fn $name() {
            let name = concat!(module_path!(), "::", stringify!($name));
            if let Some(seen) = $crate::fake_driver::driver::driven(name, $flavour, &[$(($setting, $value)),*], $run) {
                insta::assert_snapshot!(stringify!($name), seen);
            }
        }
    };
}

pub(crate) use scenario;

fn open() -> Result<()> {
    say(format!("{:?}", Device::list().map(|devices| devices.len())));
    Device::open(0).map(|_| ())
}

scenario!(no_driver_is_an_error, "not-a-library", [], open);
scenario!(a_driver_too_old_says_so, "empty", ["FAKE_VERSION" = "11080"], open);
scenario!(a_driver_without_a_gpu_says_so, "empty", ["FAKE_INIT" = "100"], open);
scenario!(a_driver_that_does_not_start_says_so, "empty", ["FAKE_INIT" = "999"], open);
scenario!(a_missing_call_is_an_error, "empty", [], open);
scenario!(a_second_gpu_that_is_not_there, "full", [], || Device::open(1).map(|_| ()));

scenario!(green_contexts_need_a_driver_that_has_them, "old", [], || {
    let device = Device::open(0)?;
    say(format!("granularity: {:?}", device.info().sm_granularity));
    GreenContext::with_sms(&device, 16).map(|_| ())
});

scenario!(handles_are_destroyed_in_order, "full", [], || {
    let device = Device::open(0)?;
    device.set_pending_launch_limit(4096)?;
    let program = Program::load(&device, &common::artifact()?)?;
    let kernel = program.kernel("lose")?;
    let buffer = Buffer::<f32>::alloc_zeroed(&device, 4)?;
    let green = GreenContext::with_sms(&device, 12)?;
    say(format!("{} SMs", green.sm_count()));
    let stream = green.stream()?;
    let args = [Arg::from(-1), Arg::from(2u32), Arg::from(0x0102_0304u32)];
    stream.launch(&kernel, &LaunchConfig::new((2, 3), (32, 2, 1)).with_shared(64), &args)?;
    stream.synchronize_default()?;
    say(device.set_pending_launch_limit(4096).unwrap_err());
    // The worst order: handles are dropped before the handles that use them.
    drop((device, green, program));
    say("kernel");
    drop(kernel);
    say("stream");
    drop(stream);
    say("buffer");
    drop(buffer);
    Ok(())
});

scenario!(memory_is_freed_after_the_launches_that_may_use_it, "full", ["FAKE_POLLS" = "5"], || {
    let device = Device::open(0)?;
    let buffer = Buffer::<u8>::alloc(&device, 4)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = device.stream()?;
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
    drop(buffer);
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
    drop(stream);
    Ok(())
});

scenario!(large_shared_memory_opts_in_once, "full", [], || {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = device.stream()?;
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    for shared in [49_152, 100_000, 60_000] {
        stream.launch(&kernel, &LaunchConfig::new(1, 1).with_shared(shared), &args)?;
    }
    stream.synchronize_default()
});

scenario!(a_whole_device_is_not_split, "full", [], || {
    let device = Device::open(0)?;
    say(format!("{} SMs", GreenContext::with_sms(&device, 130)?.sm_count()));
    say(GreenContext::with_sms(&device, 0).unwrap_err());
    GreenContext::with_sms(&device, 133).map(|_| ())
});

scenario!(a_device_is_split_by_count, "full", [], || {
    let device = Device::open(0)?;
    let all = device.sm_resource()?;
    say(format!("{} SMs, {:?}", all.sm_count(), all.granularity()));
    let flags = SplitFlags::default();
    say(format!("{} groups of 16", all.count_groups(16, flags)?));
    let fine = flags.with_ignore_coscheduling(true);
    let large = fine.with_max_potential_cluster_size(true);
    all.count_groups(2, fine)?;
    all.count_groups(2, large)?;
    let split = all.split_by_count(3, 20, flags)?;
    let sizes: Vec<u32> = split.groups.iter().map(|group| group.sm_count()).collect();
    let remainder = split.remainder.as_ref().map(|rest| rest.sm_count());
    say(format!("{sizes:?}, {remainder:?} left"));
    // Calls that the driver's documentation forbids never reach the driver.
    say(all.split_by_count(1, 133, flags).unwrap_err());
    say(all.split_by_count(0, 8, flags).unwrap_err());
    say(split.groups[0].split_by_count(1, 8, flags).unwrap_err());
    say(GreenContext::with_exactly(&device, 20).unwrap_err());
    say(GreenContext::with_exactly(&device, 24)?.sm_count());
    device.context_sm_resource().map(|_| ())
});

scenario!(descriptors_are_checked, "full", [], || {
    let device = Device::open(0)?;
    let all = device.sm_resource()?;
    let split = all.split_by_count(3, 16, SplitFlags::default())?;
    let other = all.split_by_count(3, 16, SplitFlags::default())?;
    let refused = |resources: &[&SmResource]| {
        let resources = resources.iter().map(|resource| (*resource).clone());
        say(ResourceDescriptor::new(resources).unwrap_err());
    };
    refused(&[]);
    refused(&[&all, &all]);
    refused(&[&split.groups[0], &other.groups[1]]);
    refused(&[&split.groups[0], &split.groups[0]]);
    let cpu = Device::open_cpu(gridlet_runtime::CpuConfig::default())?;
    refused(&[&split.groups[0], &cpu.sm_resource()?]);
    let rest = split.remainder.clone().into_iter();
    let both = ResourceDescriptor::new([split.groups[0].clone()].into_iter().chain(rest))?;
    let green = GreenContext::new(&both)?;
    say(format!("{} SMs, {} as the green context has it", both.sm_count(), green.sm_count()));
    say(format!("id {}", green.id()?));
    say(format!(
        "{} can be split again",
        green.sm_resource()?.count_groups(8, SplitFlags::default())?
    ));
    Ok(())
});

scenario!(events_and_priorities_of_green_contexts, "full", [], || {
    let device = Device::open(0)?;
    say(format!("priorities {:?}", device.stream_priorities()?));
    let green = GreenContext::with_sms(&device, 16)?;
    let stream = green.stream_with_priority(-5)?;
    let whole = device.stream_with_priority(-3)?;
    say(format!("{}, {}", whole.priority()?, stream.green_context().is_some()));
    say(format!("{} {}", stream.is_in_its_green_context()?, whole.is_in_its_green_context()?));
    let event = Event::new(&device)?;
    green.record(&event)?;
    green.wait_event(&event)?;
    whole.wait_event(&event)?;
    let raw = green.make_current()?.raw();
    say(format!("{raw:?}"));
    Ok(())
});

scenario!(what_came_with_13_1_is_an_error_before, "full", ["FAKE_VERSION" = "13000"], || {
    let device = Device::open(0)?;
    let all = device.sm_resource()?;
    say(all.split(&[SmGroup::new(16)]).unwrap_err());
    say(all.discover(&[SmGroup::default()]).unwrap_err());
    say(device.workqueue_config().unwrap_err());
    say(device.context_workqueue_config().unwrap_err());
    say(device.context_workqueue().unwrap_err());
    let green = GreenContext::with_sms(&device, 16)?;
    say(green.workqueue_config().unwrap_err());
    say(green.workqueue().unwrap_err());
    say(green.stream()?.sm_resource().unwrap_err());
    Ok(())
});

scenario!(structured_splits_and_workqueues, "newest", ["FAKE_VERSION" = "13010"], || {
    let device = Device::open(0)?;
    let all = device.sm_resource()?;
    let groups = [
        SmGroup::new(32).with_coscheduled(16).with_preferred_coscheduled(32),
        SmGroup::new(18).with_coscheduled(4).with_backfill(true),
        SmGroup::default(),
    ];
    let (found, rest) = all.discover(&groups)?;
    say(format!("{found:?}, {rest} left"));
    let split = all.split(&groups)?;
    let sizes: Vec<u32> = split.groups.iter().map(|group| group.sm_count()).collect();
    say(format!("{sizes:?}"));
    // A remainder can be split again, a group cannot.
    let rest = split.remainder.as_ref().expect("2 SMs are left");
    rest.split(&[SmGroup::new(2).with_coscheduled(2)])?;
    say(split.groups[0].split(&groups).unwrap_err());
    for wrong in [
        SmGroup::new(17),
        SmGroup::new(12),
        SmGroup::new(1).with_backfill(true),
        SmGroup::new(6).with_coscheduled(8).with_backfill(true),
        SmGroup::new(0).with_coscheduled(64),
        SmGroup::new(0).with_coscheduled(8).with_preferred_coscheduled(12),
        SmGroup::new(134),
    ] {
        say(all.split(&[wrong]).unwrap_err());
    }
    let half = SmGroup::new(72);
    say(all.split(&[half, half]).unwrap_err());
    say(all.split(&[]).unwrap_err());

    let config = device.workqueue_config()?;
    say(format!("limit {}, {:?}", config.concurrency_limit(), config.scope()));
    let config = config.with_concurrency_limit(4).with_scope(WorkqueueScope::GreenContextBalanced);
    let sms = Resource::from(split.groups[0].clone());
    let green = GreenContext::new(&ResourceDescriptor::new([sms.clone(), config.clone().into()])?)?;
    say(format!("{} SMs", green.sm_count()));
    green.workqueue_config()?;
    let shared = green.workqueue()?;
    GreenContext::new(&ResourceDescriptor::new([sms.clone(), shared.clone().into()])?)?;
    say(ResourceDescriptor::new([sms, shared.into(), config.clone().into()]).unwrap_err());
    say(ResourceDescriptor::new([config]).unwrap_err());
    device.context_workqueue_config()?;
    green.stream()?.sm_resource().map(|_| ())
});

/// All kinds of advice, and a prefetch to every kind of location.
fn advise_and_prefetch() -> Result<()> {
    let device = Device::open(0)?;
    let managed = ManagedBuffer::<u32>::alloc(&device, 1000)?;
    let stream = device.stream()?;
    let gpu = Processor::from(&device);
    for advice in [
        Advice::ReadMostly,
        Advice::UnsetReadMostly,
        Advice::PreferredLocation(Location::Device(0)),
        Advice::PreferredLocation(Location::Host),
        Advice::UnsetPreferredLocation,
        Advice::AccessedBy(gpu),
        Advice::AccessedBy(Processor::Host),
        Advice::UnsetAccessedBy(gpu),
    ] {
        managed.whole().advise(advice)?;
    }
    let part = managed.range(100..200)?;
    part.prefetch(Location::from(&device), &stream)?;
    part.prefetch(Location::Host, &stream)?;
    // Last, because older drivers refuse them.
    part.advise(Advice::PreferredLocation(Location::HostNuma(1)))?;
    part.prefetch(Location::HostNumaCurrent, &stream)
}

scenario!(managed_memory_is_advised_and_prefetched, "full", [], advise_and_prefetch);
scenario!(older_drivers_know_fewer_locations, "without-locations", [], advise_and_prefetch);

scenario!(ranges_and_pointers_are_asked_singly_and_in_batches, "full", [], || {
    let device = Device::open(0)?;
    let mut managed = ManagedBuffer::from_slice(&device, &[1u32, 2, 3])?;
    say(format!("{:?}", managed.host()?));
    let range = managed.whole();
    say(format!("{} {:?}", range.is_read_mostly()?, range.preferred_processor()?));
    say(format!("{:?} {:?}", range.preferred_location()?, range.accessed_by(3)?));
    say(format!("{:?} {:?}", range.last_prefetch_processor()?, range.last_prefetch_location()?));
    say(format!("{:?}", range.attributes(3)?));
    let query = device.pointer(0x1000);
    say(format!("{} {:?} {}", query.context()?, query.memory_type()?, query.device_address()?));
    say(format!("{} {:?} {}", query.host_address()?, query.p2p_tokens()?, query.sync_memops()?));
    query.set_sync_memops(true)?;
    say(format!("{} {} {:?}", query.buffer_id()?, query.is_managed()?, query.device_ordinal()?));
    say(format!("{} {}", query.is_legacy_ipc_capable()?, query.range_start()?));
    say(format!("{} {}", query.range_size()?, query.is_mapped()?));
    say(format!("{:?} {}", query.allowed_handle_types()?, query.is_gpu_direct_rdma_capable()?));
    say(format!("{:?} {}", query.access()?, query.memory_pool()?));
    say(format!("{} {}", query.mapping_size()?, query.mapping_base()?));
    say(format!("{}", query.memory_block_id()?));
    say(query.is_hardware_decompress_capable().unwrap_err());
    say(format!("{:?}", query.info()?));
    // In a batch query, a pointer unknown to the driver is not an error.
    say(format!("{:?}", device.pointer(1).info()?));
    Ok(())
});

scenario!(host_memory_has_an_address_on_each_side, "full", [], || {
    let device = Device::open(0)?;
    let mut host = HostBuffer::<u32>::alloc_zeroed(
        &device,
        3,
        HostFlags::default().with_write_combined(true),
    )?;
    host.host()?[1] = 4;
    say(format!("{:?}", host.host()?));
    say(format!("{:#x} apart", host.address() - host.host_address()));
    say(format!("write-combined: {}", host.is_write_combined()?));
    let flags = RegisterFlags::default().with_read_only(true);
    let registered = RegisteredMemory::new(&device, vec![1u8, 2], flags)?;
    say(format!("{:#x} apart", registered.address() - registered.host_address()));
    say(format!("{:?}", registered.into_vec()?));
    drop(RegisteredMemory::new(&device, vec![1u8, 2, 3], RegisterFlags::default())?);
    say(RegisteredMemory::<u8>::new(&device, vec![], RegisterFlags::default()).unwrap_err());
    let mut to = Buffer::<u8>::alloc_zeroed(&device, 2)?;
    to.copy_from(&Buffer::from_slice(&device, &[5, 6])?)?;
    say(format!("{:?}", to.to_vec()?));
    Ok(())
});

scenario!(
    host_memory_that_the_device_does_not_see_is_given_back,
    "full",
    ["FAKE_NO_POINTER" = "1"],
    || {
        let device = Device::open(0)?;
        say(HostBuffer::<u8>::alloc_zeroed(&device, 3, HostFlags::default()).unwrap_err());
        RegisteredMemory::new(&device, vec![0u8], RegisterFlags::default()).map(|_| ())
    }
);

scenario!(nothing_is_destroyed_after_a_time_out, "full", ["FAKE_QUERY" = "600"], || {
    let device = Device::open(0)?;
    let buffer = Buffer::<u32>::alloc_zeroed(&device, 4)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = GreenContext::with_sms(&device, 16)?.stream()?;
    stream.launch(
        &kernel,
        &LaunchConfig::new(1, 1),
        &[Arg::from(0), Arg::from(0u32), Arg::from(0u32)],
    )?;
    say(stream.synchronize(Duration::from_millis(20)).unwrap_err());
    say(buffer.to_vec().unwrap_err());
    say(device.recover().unwrap_err());
    drop((kernel, stream, buffer, device));
    let again = Device::open(0)?;
    again.stream().map(|_| ())
});

scenario!(a_fault_names_the_kernels, "full", ["FAKE_QUERY" = "719"], || {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = device.stream()?;
    stream.launch(
        &kernel,
        &LaunchConfig::new(1, 1),
        &[Arg::from(0), Arg::from(0u32), Arg::from(0u32)],
    )?;
    stream.synchronize_default()
});

/// A fault, and then a second device on the new context.
fn recover() -> Result<()> {
    let device = Device::open(0)?;
    say(device.recover()?.info().name.clone());
    let program = Program::load(&device, &common::artifact()?)?;
    let kernel = program.kernel("lose")?;
    let (stream, buffer) = (device.stream()?, Buffer::<u32>::alloc_zeroed(&device, 1)?);
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
    say(stream.synchronize_default().unwrap_err());
    say(stream.synchronize_default().unwrap_err());
    say("recovering");
    let fresh = device.recover()?;
    // Recovering again, or opening by ordinal, returns the same device.
    device.recover()?;
    Device::open(0)?.set_pending_launch_limit(4096)?;
    say(buffer.to_vec().unwrap_err());
    say(stream.launch(&kernel, &LaunchConfig::new(1, 1), &args).unwrap_err());
    let program = Program::load(&fresh, &common::artifact()?)?;
    let next = fresh.stream()?;
    next.launch(&program.kernel("lose")?, &LaunchConfig::new(1, 1), &args)?;
    next.synchronize_default()?;
    say("nothing of the old device is destroyed");
    drop((stream, buffer, kernel));
    say("the new one is");
    drop((program, next, fresh));
    // The ordinal does not refer to a broken device that still lives.
    Device::open(0)?.stream()?;
    device.recover()?.stream().map(|_| ())
}

scenario!(a_device_recovers_from_a_fault, "full", ["FAKE_QUERY" = "700"], recover);
scenario!(a_reset_may_fail, "full", ["FAKE_QUERY" = "700", "FAKE_RESET" = "719"], recover);
scenario!(
    a_context_may_stay_broken,
    "full",
    ["FAKE_QUERY" = "700", "FAKE_AFTER_RESET" = "719"],
    recover
);

scenario!(
    a_launch_may_refuse_to_block,
    "full",
    ["FAKE_QUIET" = "1", "FAKE_EVENT_POLLS" = "2", "CUDA_SCALE_LAUNCH_QUEUES" = "0.25x"],
    || {
        let device = Device::open(0)?;
        let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
        let stream = device.stream()?;
        let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
        let fill = || {
            let mut launches = 0;
            loop {
                match stream.try_launch(&kernel, &LaunchConfig::new(1, 1), &args) {
                    Ok(()) => launches += 1,
                    Err(error) => break format!("{launches} launches, then: {error}"),
                }
                if launches == 100_000 {
                    break "it never blocks".into();
                }
            }
        };
        // Nothing has ended for the first two polls; then all marks are reached.
        say(fill());
        say(fill());
        say(stream.try_launch(&kernel, &LaunchConfig::new(1, 1), &args).is_ok());
        say("more streams share the channels");
        let others: Vec<_> = (0..16).map(|_| device.stream()).collect::<Result<_>>()?;
        say(others[0].try_launch(&kernel, &LaunchConfig::new(1, 1), &args).is_ok());
        Ok(())
    }
);

scenario!(limits_are_set_before_the_first_kernel, "full", [], || {
    let device = Device::open(0)?;
    for limit in [Limit::PendingLaunches, Limit::StackBytes, Limit::HeapBytes, Limit::PrintfBytes] {
        say(format!("{limit:?} {}", device.limit(limit)?));
        say(format!("{} bytes taken", device.set_limit(limit, 8192)?));
    }
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = device.stream()?;
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
    device.set_limit(Limit::StackBytes, 2048)?;
    for limit in [Limit::PendingLaunches, Limit::HeapBytes, Limit::PrintfBytes] {
        say(device.set_limit(limit, 8192).unwrap_err());
    }
    let cpu = Device::open_cpu(gridlet_runtime::CpuConfig::default())?;
    say(cpu.limit(Limit::HeapBytes).unwrap_err());
    say(cpu.set_limit(Limit::StackBytes, 1).unwrap_err());
    Ok(())
});

scenario!(lost_launches_are_reported_once, "full", ["FAKE_LOST" = "3"], || {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let (stream, other) = (device.stream()?, device.stream()?);
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    let launch =
        |stream: &gridlet_runtime::Stream| stream.launch(&kernel, &LaunchConfig::new(1, 1), &args);
    launch(&stream)?;
    say(stream.synchronize_default().unwrap_err());
    stream.synchronize_default()?;
    // While another stream is busy the record is not cleared, but nothing is reported twice.
    launch(&stream)?;
    launch(&other)?;
    say(stream.synchronize_default().unwrap_err());
    stream.synchronize_default()?;
    launch(&stream)?;
    // A copy waits, so it reports lost launches as well.
    say(Buffer::from_slice(&device, &[1u8]).unwrap_err());
    device.synchronize(Duration::from_secs(1))?;
    launch(&other)?;
    device.synchronize(Duration::from_secs(1))
});

scenario!(a_launch_that_does_not_fit_is_not_made, "full", [], || {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = device.stream()?;
    let one = LaunchConfig::new(1, 1);
    say(stream.launch(&kernel, &one, &[Arg::from(0)]).unwrap_err());
    say(stream
        .launch(&kernel, &one, &[Arg::from(0u32), Arg::from(0u32), Arg::from(0u32)])
        .unwrap_err());
    stream.launch(&kernel, &LaunchConfig::new(1, 2048), &[])
});

scenario!(launches_have_attributes, "full", [], || {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = device.stream()?;
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    let launch = |config| stream.launch(&kernel, &config, &args);
    let grid = LaunchConfig::new((8, 4), 128);
    launch(grid.with_priority(-2))?;
    launch(grid.with_cluster((2, 4)).with_priority(0))?;
    launch(grid.cooperative())?;
    say(launch(grid.with_cluster((3, 1))).unwrap_err());
    say(launch(grid.with_cluster((4, 4))).unwrap_err());
    say(launch(LaunchConfig::new(9, 128).with_cluster(9)).unwrap_err());
    say(launch(grid.with_cluster((0, 1))).unwrap_err());
    kernel.allow_non_portable_clusters(true)?;
    launch(grid.with_cluster((4, 4)).cooperative())?;
    // Two blocks of 1,024 threads fit on each of 132 SMs, and of 16.
    launch(LaunchConfig::new(264, 1024).cooperative())?;
    say(launch(LaunchConfig::new(265, 1024).cooperative()).unwrap_err());
    let green = GreenContext::with_sms(&device, 16)?.stream()?;
    let whole = LaunchConfig::new(33, 1024).cooperative();
    say(green.launch(&kernel, &whole, &args).unwrap_err());
    Ok(())
});

scenario!(kernels_tell_what_they_need_and_what_fits, "full", [], || {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    say(format!("{:#?}", kernel.attributes()?));
    kernel.set_carveout(Carveout::Percent(50))?;
    kernel.set_cluster_scheduling(ClusterScheduling::Spread)?;
    say(format!("{:?}", kernel.attributes()?.carveout));
    say(kernel.max_active_blocks((16, 16), 1024)?);
    say(kernel.max_active_blocks(256, 100_000)?);
    say(kernel.max_active_blocks(2048, 0).unwrap_err());
    say(format!("{:?}", kernel.best_block(512, 0)?));
    say(kernel.best_block(500_000, 0).unwrap_err());
    say(kernel.available_shared_bytes(4, 256)?);
    let config = LaunchConfig::new(64, 256).with_shared(2048).with_cluster(2);
    say(kernel.max_cluster_blocks(&config)?);
    say(kernel.max_active_clusters(&config)?);
    say(kernel.max_active_clusters(&config.with_cluster(3)).unwrap_err());
    Ok(())
});

scenario!(contexts_are_pushed_where_they_are_not_current, "full", ["FAKE_CONTEXTS" = "1"], || {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = device.stream()?;
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    let one = LaunchConfig::new(1, 1);
    say("from outside");
    stream.launch(&kernel, &one, &args)?;
    say("current");
    let current = device.make_current()?;
    stream.launch(&kernel, &one, &args)?;
    stream.launch(&kernel, &one, &args)?;
    say("green, whose record is looked up once");
    let green = GreenContext::with_sms(&device, 16)?;
    let inside = green.stream()?;
    inside.launch(&kernel, &one, &args)?;
    inside.launch(&kernel, &one, &args)?;
    say("green and current");
    let green_current = green.make_current()?;
    inside.launch(&kernel, &one, &args)?;
    drop(green_current);
    say("current again");
    stream.launch(&kernel, &one, &args)?;
    drop(current);
    say("the end");
    Ok(())
});

scenario!(the_device_describes_itself, "full", [], || {
    let device = Device::open(0)?;
    say(serde_json::to_string(device.info()).unwrap());
    Ok(())
});
