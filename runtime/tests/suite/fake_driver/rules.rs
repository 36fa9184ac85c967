//! Rules from the driver's reference that the runtime checks before calling the driver, or with the driver's
//! answers, on older drivers, older GPUs and two GPUs.

use std::time::Duration;

use gridlet_runtime::occupancy::Carveout;
use gridlet_runtime::resources::Resource;
use gridlet_runtime::unified::{Advice, Location, ManagedBuffer};
use gridlet_runtime::{
    Arg, Artifact, Buffer, CpuConfig, Device, Event, GreenContext, LaunchConfig, Program,
    ResourceDescriptor, Result, SmGroup, SplitFlags, WorkqueueScope,
};

use super::{common, say, scenario};

// 8.0: no clusters, and at most two SMs are co-scheduled.
scenario!(
    gpus_before_9_have_no_clusters,
    "newest",
    ["FAKE_VERSION" = "13010", "FAKE_MAJOR" = "8"],
    || {
        let device = Device::open(0)?;
        let all = device.sm_resource()?;
        let clusters = SplitFlags::default().with_max_potential_cluster_size(true);
        say(all.count_groups(8, clusters).unwrap_err());
        say(all.split_by_count(1, 8, clusters).unwrap_err());
        say(all.split(&[SmGroup::new(0).with_coscheduled(4)]).unwrap_err());
        all.split(&[SmGroup::new(0).with_coscheduled(2)])?;
        let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
        let config = LaunchConfig::new(8, 32);
        say(kernel.max_cluster_blocks(&config).unwrap_err());
        say(kernel.max_active_clusters(&config).unwrap_err());
        let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
        say(device.stream()?.launch(&kernel, &config.with_cluster(2), &args).unwrap_err());
        Ok(())
    }
);

// 12.4 to 12.9: the sizes come from the reference, and there are no ids.
scenario!(
    drivers_before_13_do_not_tell_sizes_and_ids,
    "before-13",
    ["FAKE_VERSION" = "12040"],
    || {
        let device = Device::open(0)?;
        let all = device.sm_resource()?;
        say(format!("{:?} {:?}", device.info().sm_granularity, all.granularity()));
        let green = GreenContext::with_sms(&device, 12)?;
        say(green.sm_count());
        say(green.id().unwrap_err());
        say(format!("{:?}", device.info().green_context_features));
        say(GreenContext::with_exactly(&device, 12).unwrap_err());
        Ok(())
    }
);

scenario!(groups_of_one_split_are_put_together, "newest", ["FAKE_VERSION" = "13010"], || {
    let device = Device::open(0)?;
    let all = device.sm_resource()?;
    let group = |coscheduled| SmGroup::new(16).with_coscheduled(coscheduled);
    let split = all.split(&[group(8), group(8), group(4)])?;
    let [first, second, other] = &split.groups[..] else { panic!("three groups") };
    say(ResourceDescriptor::new([first.clone(), other.clone()]).unwrap_err());
    let queues = device.workqueue_config()?;
    // In either order, each setter keeps the other's value.
    for queues in [
        queues.with_concurrency_limit(4).with_scope(WorkqueueScope::GreenContextBalanced),
        queues.with_scope(WorkqueueScope::GreenContextBalanced).with_concurrency_limit(4),
    ] {
        say(format!("limit {}, {:?}", queues.concurrency_limit(), queues.scope()));
        let resources = [first.clone().into(), second.clone().into(), Resource::from(queues)];
        let descriptor = ResourceDescriptor::new(resources)?;
        say(format!(
            "{} SMs, {}",
            descriptor.sm_count(),
            GreenContext::new(&descriptor)?.sm_count()
        ));
    }
    // A remainder combines with the groups of its split; a whole resource combines with nothing.
    let rest = split.remainder.clone().unwrap();
    ResourceDescriptor::new([first.clone(), rest.clone()])?;
    say(ResourceDescriptor::new([all.clone(), first.clone()]).unwrap_err());
    say(ResourceDescriptor::new([first.clone(), all.clone()]).unwrap_err());
    say(rest.split_by_count(1, 8, SplitFlags::default()).unwrap_err());
    Ok(())
});

scenario!(
    a_launch_that_was_made_is_no_error,
    "full",
    ["FAKE_QUIET" = "1", "FAKE_FAIL" = "cuEventRecord:46"],
    || {
        let device = Device::open(0)?;
        let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
        let stream = device.stream()?;
        let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
        let launch = || stream.try_launch(&kernel, &LaunchConfig::new(1, 1), &args);
        // The driver cannot report the stream's progress, but a wait can.
        say((0..958).filter(|_| launch().is_ok()).count());
        say(launch().unwrap_err());
        stream.synchronize_default()?;
        launch()
    }
);

scenario!(events_are_those_of_the_device, "full", [], || {
    let (device, cpu) = (Device::open(0)?, Device::open_cpu(CpuConfig::default())?);
    let (green, stream) = (GreenContext::with_sms(&device, 16)?, device.stream()?);
    let event = Event::new(&cpu)?;
    say(green.record(&event).unwrap_err());
    say(green.wait_event(&event).unwrap_err());
    say(stream.record(&event).unwrap_err());
    say(stream.wait_event(&event).unwrap_err());
    Ok(())
});

scenario!(occupancy_is_asked_for_what_can_be_launched, "full", [], || {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    // Over 48 KiB, so the kernel must have opted in.
    say(format!("{:?}", kernel.best_block(100_000, 256)?));
    say(kernel.available_shared_bytes(4, 2048).unwrap_err());
    say(kernel.available_shared_bytes(4, 0).unwrap_err());
    let cpu = Device::open_cpu(CpuConfig::default())?;
    say(Program::load(&cpu, &common::artifact()?).unwrap_err().to_string().contains("no image"));
    Ok(())
});

scenario!(kernels_that_launch_have_half_of_the_cache_as_shared_memory, "full", [], || {
    let device = Device::open(0)?;
    let mut manifest = common::manifest();
    for kernel in manifest.kernels.iter_mut().filter(|kernel| kernel.name == "lose") {
        kernel.launches = vec!["spin".into()];
    }
    let artifact = Artifact::new(manifest, vec![common::PTX.into()])?;
    let program = Program::load(&device, &artifact)?;
    say("a kernel that launches");
    let kernel = program.kernel("lose")?;
    kernel.set_carveout(Carveout::Default)?;
    say("a kernel that launches nothing");
    Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    Ok(())
});

scenario!(a_broken_device_makes_nothing_current, "full", ["FAKE_QUERY" = "700"], || {
    let device = Device::open(0)?;
    let green = GreenContext::with_sms(&device, 16)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let stream = device.stream()?;
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
    say(stream.synchronize_default().unwrap_err());
    say(device.make_current().unwrap_err());
    say(green.make_current().unwrap_err());
    say(stream.launch(&kernel, &LaunchConfig::new(1, 1), &args).unwrap_err());
    Ok(())
});

/// Two GPUs: which of them is queried, and in which context.
fn peers() -> Result<()> {
    let (device, peer) = (Device::open(0)?, Device::open(1)?);
    say(format!("{} {}", device.can_access_peer(&peer)?, peer.can_access_peer(&device)?));
    say(format!("{:?}", device.peer_attributes(&peer)?));
    device.enable_peer_access(&peer)?;
    device.disable_peer_access(&peer)?;
    let mut to = Buffer::<u32>::alloc_zeroed(&device, 2)?;
    to.copy_from(&Buffer::from_slice(&peer, &[1, 2])?)?;
    say(format!("{:?}", to.to_vec()?));
    // Each buffer belongs to the device of its memory.
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    say(peer.stream()?.launch(&kernel, &LaunchConfig::new(1, 1), &args).unwrap_err());
    say(device.stream()?.record(&Event::new(&peer)?).unwrap_err());
    let cpu = Device::open_cpu(CpuConfig::default())?;
    say(device.enable_peer_access(&cpu).unwrap_err());
    say(to.copy_from(&Buffer::from_slice(&cpu, &[1, 2])?).unwrap_err());
    Ok(())
}

scenario!(peers_are_asked_in_the_right_order, "full", ["FAKE_GPUS" = "2"], peers);
// Access that is already enabled, or already disabled, is a success.
scenario!(access_may_be_there_already, "full", ["FAKE_GPUS" = "2", "FAKE_PEER" = "704"], || {
    let (device, peer) = (Device::open(0)?, Device::open(1)?);
    device.enable_peer_access(&peer)?;
    say(device.disable_peer_access(&peer).unwrap_err());
    Ok(())
});
scenario!(access_may_be_gone_already, "full", ["FAKE_GPUS" = "2", "FAKE_PEER" = "705"], || {
    let (device, peer) = (Device::open(0)?, Device::open(1)?);
    device.disable_peer_access(&peer)?;
    say(device.enable_peer_access(&peer).unwrap_err());
    Ok(())
});

scenario!(
    launches_end_before_access_is_taken,
    "full",
    ["FAKE_GPUS" = "2", "FAKE_POLLS" = "3"],
    || {
        let (device, peer) = (Device::open(0)?, Device::open(1)?);
        let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
        let stream = device.stream()?;
        let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
        stream.launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
        device.disable_peer_access(&peer)?;
        device.synchronize(Duration::from_secs(1))
    }
);

scenario!(empty_ranges_and_lists_reach_no_driver, "full", [], || {
    let device = Device::open(0)?;
    let (managed, stream) = (ManagedBuffer::<u32>::alloc(&device, 4)?, device.stream()?);
    let nothing = managed.range(2..2)?;
    nothing.advise(Advice::ReadMostly)?;
    nothing.prefetch(Location::Host, &stream)?;
    say("no processors");
    // The driver accepts no empty list.
    say(format!("{:?}", managed.whole().accessed_by(0)?));
    say(format!("{:?}", managed.whole().attributes(0)?.accessed_by));
    say(format!("{:?}", managed.whole().accessed_by(1)?));
    Ok(())
});

scenario!(a_prefetch_ends_before_its_memory_goes, "full", ["FAKE_POLLS" = "3"], || {
    let device = Device::open(0)?;
    let (managed, stream) = (ManagedBuffer::<u32>::alloc(&device, 4)?, device.stream()?);
    managed.whole().prefetch(Location::Host, &stream)?;
    drop(managed);
    say("gone");
    Ok(())
});

scenario!(
    a_batch_does_without_decompression,
    "full",
    ["FAKE_VERSION" = "13000", "FAKE_NO_DECOMPRESSION" = "1"],
    || {
        let device = Device::open(0)?;
        let info = device.pointer(0x1000).info()?.unwrap();
        say(format!("{} {:?}", info.range_bytes, info.is_hardware_decompress_capable));
        Ok(())
    }
);

scenario!(a_green_context_serves_the_next_of_its_resources, "full", [], || {
    let device = Device::open(0)?;
    for sms in [16, 24, 16, 24] {
        say(GreenContext::with_sms(&device, sms)?.sm_count());
    }
    Ok(())
});

scenario!(a_peer_that_broke_is_refused, "full", ["FAKE_GPUS" = "2", "FAKE_QUERY" = "700"], || {
    let (device, peer) = (Device::open(0)?, Device::open(1)?);
    let kernel = Program::load(&peer, &common::artifact()?)?.kernel("lose")?;
    let stream = peer.stream()?;
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
    say(stream.synchronize_default().unwrap_err());
    say(device.enable_peer_access(&peer).unwrap_err());
    say(device.disable_peer_access(&peer).unwrap_err());
    Ok(())
});

scenario!(
    the_stream_that_copies_counts_too,
    "full",
    ["FAKE_QUIET" = "1", "FAKE_EVENT_POLLS" = "1000000", "CUDA_SCALE_LAUNCH_QUEUES" = "0.25x"],
    || {
        let device = Device::open(0)?;
        let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
        let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
        // With the copying stream, 7 streams have one channel each, and 8 share the 8 channels.
        for count in [7, 8] {
            let streams: Vec<_> = (0..count).map(|_| device.stream()).collect::<Result<_>>()?;
            let launch = || streams[0].try_launch(&kernel, &LaunchConfig::new(1, 1), &args);
            say((0..1000).take_while(|_| launch().is_ok()).count());
        }
        Ok(())
    }
);

// The driver reports CUDA 12.8, and supports all attributes in one call.
scenario!(
    newer_drivers_tell_of_decompression_in_the_batch,
    "full",
    ["FAKE_VERSION" = "12080"],
    || {
        let device = Device::open(0)?;
        say(format!("{:?}", device.pointer(0x1000).info()?));
        Ok(())
    }
);
