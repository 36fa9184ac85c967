//! The driver's launch queue.

use gridlet_runtime::launch_queue::{QueueProbe, probe};
use gridlet_runtime::unified::{HostBuffer, HostFlags};
use gridlet_runtime::{Arg, Buffer, Device, Error, LaunchConfig};

use super::{gpu, in_a_process, load, note, under_memcheck};

#[test]
fn a_launch_that_would_block_says_so() {
    let name = "a_launch_that_would_block_says_so";
    if under_memcheck(name, "its kernel waits for the host, and a launch waits for its kernel") {
        return;
    }
    let Some((_alone, device)) = gpu(name) else { return };
    let program = load(&device);
    let (spin, poke) = (program.kernel("spin").unwrap(), program.kernel("poke").unwrap());
    let flag = HostBuffer::<u32>::alloc_zeroed(&device, 1, HostFlags::default()).unwrap();
    let mut to = Buffer::<u32>::alloc_zeroed(&device, 1).unwrap();
    let stream = device.stream().unwrap();
    let one = LaunchConfig::new(1, 1);
    stream.try_launch(&spin, &one, &[Arg::from(&flag)]).unwrap();
    // A launch that waited for the driver's queue would wait forever: `spin` runs until the flag is set below.
    let mut launches = 0;
    let error = loop {
        match stream.try_launch(&poke, &one, &[Arg::from(&mut to)]) {
            Ok(()) => launches += 1,
            Err(error) => break error,
        }
        assert!(launches < 2000, "the queue has no end");
    };
    // SAFETY: an element of the buffer, which `spin` reads as volatile.
    unsafe { (flag.host_address() as *mut u32).write_volatile(1) };
    note(format!("{launches} launches, then: {error}"));
    assert!(matches!(error, Error::WouldBlock { .. }), "{error}");
    assert!(launches > 400, "{launches}");
    stream.synchronize_default().unwrap();
    assert_eq!(to.to_vec().unwrap(), [1]);
    // There is room again, even without a wait in between.
    for _ in 0..3000 {
        while let Err(error) = stream.try_launch(&poke, &one, &[Arg::from(&mut to)]) {
            assert!(matches!(error, Error::WouldBlock { .. }), "{error}");
        }
    }
    stream.synchronize_default().unwrap();
}

#[test]
fn the_queue_is_as_deep_as_documented() {
    let output = in_a_process("queue::the_queue_is_as_deep_as_documented", |device: &Device| {
        let depth = probe(device, &QueueProbe::default().with_streams(2)).unwrap();
        // The capacity that `Stream::try_launch` assumes.
        assert!(depth.per_stream.iter().all(|launches| *launches >= 958), "{depth:?}");
        vec![format!("{depth:?}")]
    });
    let Some(output) = output else { return };
    note(output.lines().filter(|line| line.starts_with("> ")).collect::<Vec<_>>().join("\n"));
    assert!(output.contains("blocked: true") && output.contains("> done"), "{output}");
}
