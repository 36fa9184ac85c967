//! Launch configurations, kernel attributes and occupancy.

use gridlet_runtime::occupancy::{Carveout, ClusterScheduling};
use gridlet_runtime::typed::Parameters;
use gridlet_runtime::{Arg, Buffer, Device, Error, GreenContext, LaunchConfig, Program, Stream};

use super::{gpu, load, note};

const N: usize = 4096;

/// Runs `out[i] = x[i] + y[i]` in the given configuration.
fn add(device: &Device, program: &Program, stream: &Stream, config: LaunchConfig) {
    let values: Vec<f32> = (0..N).map(|i| i as f32).collect();
    let x = Buffer::from_slice(device, &values).unwrap();
    let y = Buffer::from_slice(device, &values).unwrap();
    let mut out = Buffer::<f32>::alloc_zeroed(device, N).unwrap();
    let kernel = program.kernel("vector_add").unwrap();
    let args = [Arg::from(&x), Arg::from(&y), Arg::from(&mut out), Arg::from(N as u32)];
    stream.launch(&kernel, &config, &args).unwrap_or_else(|error| panic!("{config:?}: {error}"));
    stream.synchronize_default().unwrap();
    let expected: Vec<f32> = values.iter().map(|v| v + v).collect();
    assert_eq!(out.to_vec().unwrap(), expected, "{config:?}");
}

#[test]
fn attributes_do_not_change_results() {
    let Some((_alone, device)) = gpu("attributes_do_not_change_results") else { return };
    let (program, stream) = (load(&device), device.stream().unwrap());
    let config = LaunchConfig::new(16, 256);
    let priorities = device.stream_priorities().unwrap();
    for priority in [*priorities.start(), *priorities.end()] {
        add(&device, &program, &stream, config.with_priority(priority));
    }
    add(&device, &program, &stream, config.cooperative());
    let kernel = program.kernel("vector_add").unwrap();
    if device.info().compute_capability.major >= 9 {
        for blocks in [1, 2, 4, 8] {
            add(&device, &program, &stream, config.with_cluster(blocks).with_priority(0));
        }
        let blocks = kernel.max_cluster_blocks(&config).unwrap();
        note(format!("the largest portable cluster has {blocks} blocks"));
        assert!(blocks >= 8, "{blocks}");
        kernel.allow_non_portable_clusters(true).unwrap();
        let most = kernel.max_cluster_blocks(&config).unwrap();
        note(format!("the largest cluster has {most} blocks"));
        add(&device, &program, &stream, config.with_cluster(most));
        kernel.set_cluster_scheduling(ClusterScheduling::Spread).unwrap();
        let attributes = kernel.attributes().unwrap();
        assert!(attributes.allows_non_portable_clusters);
        assert_eq!(attributes.cluster_scheduling, ClusterScheduling::Spread);
        let active = kernel.max_active_clusters(&config.with_cluster(4)).unwrap();
        assert!(active > 0 && active <= device.info().sm_count * 32, "{active}");
    } else {
        let error = kernel.max_cluster_blocks(&config).unwrap_err();
        assert!(matches!(error, Error::Launch { .. }), "{error}");
    }
}

#[test]
fn cooperative_grids_fit_or_are_refused() {
    let Some((_alone, device)) = gpu("cooperative_grids_fit_or_are_refused") else { return };
    let (program, stream) = (load(&device), device.stream().unwrap());
    let kernel = program.kernel("mark_sms").unwrap();
    let per_sm = kernel.max_active_blocks(128, 0).unwrap();
    let mut seen = Buffer::<u32>::alloc_zeroed(&device, 4096).unwrap();
    let mut launch = |stream: &Stream, blocks: u32| {
        let config = LaunchConfig::new(blocks, 128).cooperative();
        let launched = stream.launch(&kernel, &config, &[Arg::from(&mut seen)]);
        stream.synchronize_default().unwrap();
        launched
    };
    let whole = per_sm * device.info().sm_count;
    launch(&stream, whole).unwrap();
    let error = launch(&stream, whole + 1).unwrap_err();
    assert!(matches!(error, Error::Launch { .. }), "{error}");
    // The driver also counts only the green context's SMs.
    match GreenContext::with_sms(&device, 16) {
        Ok(green) => {
            let inside = green.stream().unwrap();
            let fits = per_sm * green.sm_count();
            launch(&inside, fits).unwrap();
            let error = launch(&inside, fits + 1).unwrap_err();
            assert!(matches!(error, Error::Launch { .. }), "{error}");
        }
        Err(error) if error.is_missing() => note(format!("no green contexts: {error}")),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn kernels_tell_what_they_need() {
    let Some((_alone, device)) = gpu("kernels_tell_what_they_need") else { return };
    let kernel = load(&device).kernel("vector_add").unwrap();
    let attributes = kernel.attributes().unwrap();
    note(format!("{attributes:?}"));
    assert!(attributes.registers > 0 && attributes.registers <= 255);
    assert_eq!(attributes.max_threads_per_block, kernel.limits().max_threads_per_block);
    assert_eq!(attributes.static_shared_bytes, 0);
    // The kernels are PTX for compute capability 7.5.
    assert_eq!(attributes.ptx_version.to_string(), "7.5");
    assert_eq!(attributes.binary_version.major, device.info().compute_capability.major);
    kernel.set_carveout(Carveout::Percent(50)).unwrap();
    assert_eq!(kernel.attributes().unwrap().carveout, Carveout::Percent(50));
    kernel.set_carveout(Carveout::Default).unwrap();

    let info = device.info();
    let per_sm = kernel.max_active_blocks(256, 0).unwrap();
    assert!(per_sm > 0 && per_sm * 256 <= info.max_threads_per_sm, "{per_sm}");
    let best = kernel.best_block(0, 0).unwrap();
    assert!(best.threads.is_multiple_of(info.warp_size) && best.threads <= 1024, "{best:?}");
    assert!(best.blocks >= info.sm_count, "{best:?}");
    assert!(kernel.best_block(0, 64).unwrap().threads <= 64);
    let one = kernel.available_shared_bytes(1, 256).unwrap();
    let two = kernel.available_shared_bytes(2, 256).unwrap();
    // Both may return the most that a kernel gets without opting in.
    assert!(one >= two && two > 0, "{one}, {two}");
    let shared = u32::try_from(two).unwrap();
    assert!(kernel.max_active_blocks(256, shared).unwrap() >= 2);
}

#[test]
fn launches_find_contexts_current() {
    let Some((_alone, device)) = gpu("launches_find_contexts_current") else { return };
    let (program, stream) = (load(&device), device.stream().unwrap());
    let poke = program.kernel("poke").unwrap();
    let to = Buffer::<u32>::alloc_zeroed(&device, 1).unwrap();
    let one = LaunchConfig::new(1, 1);
    let launch = |stream: &Stream| {
        let mut parameters = Parameters::<8>::new();
        parameters.put::<0, _>(to.address());
        // SAFETY: `poke` takes one pointer.
        unsafe { parameters.launch(stream, &poke, &one) }.unwrap();
        stream.synchronize_default().unwrap();
    };
    launch(&stream);
    let current = device.make_current().unwrap();
    launch(&stream);
    if let Ok(green) = GreenContext::with_sms(&device, 16) {
        let inside = green.stream().unwrap();
        launch(&inside);
        let green_current = green.make_current().unwrap();
        // Would deadlock unless it found the context already current.
        launch(&inside);
        launch(&stream);
        drop(green_current);
    }
    launch(&stream);
    drop(current);
    launch(&stream);
}
