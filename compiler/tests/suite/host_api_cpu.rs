//! The host API on the CPU device: the scenarios that `runtime/tests/gpu/` tests on GPUs.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::time::Duration;

use gridlet::compile::{self, CpuOptions, Session};
use gridlet::launch::LaunchStrategy;
use gridlet::source::SourceMap;
use gridlet_runtime::unified::{
    HostBuffer, HostFlags, ManagedBuffer, RegisterFlags, RegisteredMemory,
};
use gridlet_runtime::{
    Arg, Artifact, Buffer, CpuConfig, Device, DeviceKind, DeviceMemory, Error, Event, GreenContext,
    LaunchConfig, Program,
};

const SOURCE: &str = "\
kernel add(to: *mut u32, n: u32) {
    let i = block_idx.x * block_dim.x + thread_idx.x;
    if i < n { to[i] += i; }
}
kernel stop() { trap(); }
kernel spin(flag: *mut u32) { while atomic_add(flag, 0) == 0 {} }
kernel set(flag: *mut u32) { atomic_add(flag, 1); }
kernel lose() { launch stop<<<1, block_dim.x * 1024>>>(); }
";

fn artifact() -> Artifact {
    let program = compile::check(SourceMap::single("api.grid", SOURCE)).unwrap();
    gridlet::artifact::build_cpu(&Session::new(), &program, &CpuOptions::default()).unwrap()
}

fn cpu() -> (Device, Program) {
    let device = Device::open_named("cpu").unwrap();
    let program = Program::load(&device, &artifact()).unwrap();
    (device, program)
}

#[test]
fn buffers_streams_and_events_work() {
    let (device, program) = cpu();
    assert_eq!((device.info().kind, device.to_string()), (DeviceKind::Cpu, "cpu".into()));
    let mut data = Buffer::from_slice(&device, &[100u32; 1000]).unwrap();
    let part = GreenContext::with_sms(&device, 1).unwrap();
    for stream in [device.stream().unwrap(), part.stream().unwrap()] {
        let (start, end, never) = (
            Event::new(&device).unwrap(),
            Event::new(&device).unwrap(),
            Event::new(&device).unwrap(),
        );
        stream.record(&start).unwrap();
        let arguments = [Arg::from(&mut data), Arg::from(1000u32)];
        stream
            .launch(&program.kernel("add").unwrap(), &LaunchConfig::new(8, 128), &arguments)
            .unwrap();
        stream.record(&end).unwrap();
        stream.synchronize_default().unwrap();
        let forward = start.elapsed_ms(&end).unwrap();
        assert!(forward > 0.0 && end.elapsed_ms(&start).unwrap() == -forward, "{forward} ms");
        assert_eq!(start.elapsed_ms(&never), Err(Error::NotRecorded));
    }
    let expected: Vec<u32> = (0..1000).map(|i| 100 + 2 * i).collect();
    assert_eq!(data.to_vec().unwrap(), expected);
}

#[test]
fn a_copy_waits_for_this_threads_launches_whatever_others_wait_for() {
    let (device, program) = cpu();
    let stream = device.stream().unwrap();
    let kernel = program.kernel("add").unwrap();
    let ended = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                while !ended.load(std::sync::atomic::Ordering::Relaxed) {
                    stream.synchronize_default().unwrap();
                }
            });
        }
        let mut missed = 0;
        for _ in 0..1500 {
            let mut data = Buffer::<u32>::alloc_zeroed(&device, 1 << 14).unwrap();
            let arguments = [Arg::from(&mut data), Arg::from(1u32 << 14)];
            stream.launch(&kernel, &LaunchConfig::new(16, 1024), &arguments).unwrap();
            missed += u32::from(data.to_vec().unwrap()[16_383] != 16_383);
        }
        ended.store(true, std::sync::atomic::Ordering::Relaxed);
        assert_eq!(missed, 0);
    });
}

/// Runs a future to its end: the simplest executor there is.
fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Unpark(std::thread::Thread);
    impl std::task::Wake for Unpark {
        fn wake(self: std::sync::Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = std::sync::Arc::new(Unpark(std::thread::current())).into();
    let mut context = std::task::Context::from_waker(&waker);
    let mut future = std::pin::pin!(future);
    loop {
        if let std::task::Poll::Ready(value) = future.as_mut().poll(&mut context) {
            return value;
        }
        std::thread::park();
    }
}

#[test]
fn events_and_streams_can_be_awaited() {
    // A kernel that spins takes one of the workers.
    let config = CpuConfig { threads: Some(3), ..CpuConfig::default() };
    let device = Device::open_cpu(config).unwrap();
    let program = Program::load(&device, &artifact()).unwrap();
    let kernel = |name| program.kernel(name).unwrap();
    let (add, spin, set) = (kernel("add"), kernel("spin"), kernel("set"));
    let one = LaunchConfig::new(1, 1);
    let streams: Vec<_> = (0..4).map(|_| device.stream().unwrap()).collect();
    let mut flag = Buffer::<u32>::alloc_zeroed(&device, 1).unwrap();
    let mut data = Buffer::from_slice(&device, &[100u32; 1000]).unwrap();
    let event = Event::new(&device).unwrap();

    // Ready at once: nothing was recorded.
    block_on(event.done()).unwrap();
    streams[0].launch(&spin, &one, &[Arg::from(&mut flag)]).unwrap();
    streams[0].record(&event).unwrap();
    let spinning = streams[0].done().unwrap();
    let arguments = [Arg::from(&mut data), Arg::from(1000u32)];
    streams[1].launch(&add, &LaunchConfig::new(8, 128), &arguments).unwrap();
    block_on(streams[1].done().unwrap()).unwrap();
    assert!(!event.is_done().unwrap());
    streams[2].launch(&set, &one, &[Arg::from(&mut flag)]).unwrap();
    block_on(async {
        (&event).await.unwrap();
        spinning.await.unwrap();
    });
    assert_eq!(data.to_vec().unwrap()[999], 1099);

    // One that is dropped ends nothing but the wait.
    streams[3].launch(&kernel("stop"), &one, &[]).unwrap();
    drop(streams[3].done().unwrap());
    let error = block_on(streams[3].done().unwrap()).unwrap_err();
    assert!(error.to_string().contains("kernel `stop` stopped itself"), "{error}");
    block_on(streams[3].done().unwrap()).unwrap();
    streams[3].launch(&kernel("lose"), &LaunchConfig::new(1, 2), &[]).unwrap();
    let lost = streams[3].done().unwrap();
    streams[3].launch(&add, &one, &[Arg::null(), Arg::from(0u32)]).unwrap();
    let error = block_on(lost).unwrap_err();
    assert!(matches!(error, Error::LostLaunches(_)), "{error}");
    streams[3].synchronize_default().unwrap();
}

/// Polls futures in turns, all with one waker, as executors with many tasks on one thread do.
fn block_on_all<F: Future>(futures: Vec<F>) -> Vec<F::Output> {
    let mut futures: Vec<_> = futures.into_iter().map(|it| Some(Box::pin(it))).collect();
    let mut values: Vec<_> = futures.iter().map(|_| None).collect();
    block_on(std::future::poll_fn(|context| {
        for (future, value) in futures.iter_mut().zip(&mut values) {
            if let Some(std::task::Poll::Ready(ended)) =
                future.as_mut().map(|it| it.as_mut().poll(context))
            {
                (*future, *value) = (None, Some(ended));
            }
        }
        match futures.iter().all(Option::is_none) {
            true => std::task::Poll::Ready(()),
            false => std::task::Poll::Pending,
        }
    }));
    values.into_iter().flatten().collect()
}

/// The number of threads of this process that wake those who wait.
#[cfg(target_os = "linux")]
fn wakers() -> usize {
    let threads = std::fs::read_dir("/proc/self/task").unwrap();
    let names = threads.filter_map(|it| std::fs::read_to_string(it.ok()?.path().join("comm")).ok());
    names.filter(|name| name.trim() == "gridlet-await").count()
}

#[test]
#[cfg(target_os = "linux")]
fn one_thread_wakes_all_who_wait() {
    let config = CpuConfig { threads: Some(2), ..CpuConfig::default() };
    let device = Device::open_cpu(config).unwrap();
    let program = Program::load(&device, &artifact()).unwrap();
    let kernel = |name| program.kernel(name).unwrap();
    let (one, mut flag) =
        (LaunchConfig::new(1, 1), Buffer::<u32>::alloc_zeroed(&device, 1).unwrap());
    let spinning = device.stream().unwrap();
    spinning.launch(&kernel("spin"), &one, &[Arg::from(&mut flag)]).unwrap();
    let streams: Vec<_> = (0..64).map(|_| device.stream().unwrap()).collect();
    let event = Event::new(&device).unwrap();
    spinning.record(&event).unwrap();
    // They wait for the kernel that spins, and so are woken many times.
    let waiting = streams.iter().map(|stream| {
        stream.wait_event(&event).unwrap();
        stream.launch(&kernel("add"), &one, &[Arg::null(), Arg::from(0u32)]).unwrap();
        stream.done().unwrap()
    });
    let waiting: Vec<_> = waiting.collect();
    let (ended, meanwhile) = std::thread::scope(|scope| {
        let all = scope.spawn(|| block_on_all(waiting));
        while wakers() == 0 {
            std::thread::yield_now();
        }
        // Checked once nothing waits any more: a failure here would wait for the kernel.
        let meanwhile = wakers();
        let setting = device.stream().unwrap();
        setting.launch(&kernel("set"), &one, &[Arg::from(&mut flag)]).unwrap();
        (all.join().unwrap(), meanwhile)
    });
    assert_eq!(ended.len(), 64);
    assert!(ended.iter().all(Result::is_ok), "{ended:?}");
    assert_eq!((meanwhile, wakers()), (1, 1));
}

#[test]
fn memory_of_the_process_is_borrowed() {
    let (device, program) = cpu();
    let stream = device.stream().unwrap();
    let owner = std::sync::Arc::new(());
    let mut theirs = vec![7u32; 4];
    let (address, kept) = (theirs.as_mut_ptr() as u64, std::sync::Arc::clone(&owner));
    // SAFETY: the vector outlives the memory, and nobody else uses it meanwhile.
    let memory = unsafe { DeviceMemory::borrow_raw(&device, address, 16, kept) }.unwrap();
    assert_eq!(memory.host_address().unwrap() as u64, address);
    let arguments = [Arg::address(memory.address()), Arg::from(4u32)];
    stream.launch(&program.kernel("add").unwrap(), &LaunchConfig::new(1, 4), &arguments).unwrap();
    assert_eq!(std::sync::Arc::strong_count(&owner), 2);
    drop(memory);
    assert_eq!((std::sync::Arc::strong_count(&owner), theirs), (1, vec![7, 8, 9, 10]));
}

#[test]
fn a_fault_and_a_time_out_leave_the_device_usable() {
    let (device, program) = cpu();
    let stream = device.stream().unwrap();
    let one = LaunchConfig::new(1, 1);
    let mut data = Buffer::<u32>::alloc_zeroed(&device, 4).unwrap();
    for _ in 0..3 {
        stream.launch(&program.kernel("stop").unwrap(), &one, &[]).unwrap();
        let error = stream.synchronize_default().unwrap_err();
        assert!(error.to_string().contains("kernel `stop` stopped itself with a trap"), "{error}");
        stream.launch(&program.kernel("spin").unwrap(), &one, &[Arg::from(&mut data)]).unwrap();
        let error = stream.synchronize(Duration::from_millis(50)).unwrap_err();
        let said = "not finished after 0.05 s: a stream with `spin`; kernel `spin` was cancelled, in block";
        assert!(error.to_string().starts_with(said), "{error}");
    }
    let arguments = [Arg::from(&mut data), Arg::from(4u32)];
    stream.launch(&program.kernel("add").unwrap(), &LaunchConfig::new(1, 4), &arguments).unwrap();
    assert_eq!(data.to_vec().unwrap(), [0, 1, 2, 3]);
}

#[test]
fn lost_launches_are_reported_once() {
    let (device, program) = cpu();
    let (stream, kernel) = (device.stream().unwrap(), program.kernel("lose").unwrap());
    for _ in 0..2 {
        stream.launch(&kernel, &LaunchConfig::new(1, 3), &[]).unwrap();
        let Err(Error::LostLaunches(lost)) = stream.synchronize_default() else {
            panic!("no launch was lost");
        };
        assert_eq!((lost.count, lost.error, lost.line), (3, 9, 8));
        assert_eq!(
            (lost.file.as_str(), lost.name.as_str()),
            ("api.grid", "cudaErrorInvalidConfiguration")
        );
        stream.synchronize_default().unwrap();
    }
}

#[test]
fn what_belongs_elsewhere_or_comes_too_late_is_refused() {
    let ((device, program), other) = (cpu(), Device::open_named("cpu").unwrap());
    device.set_pending_launch_limit(7).unwrap();
    assert_eq!(device.pending_launch_limit(), Ok(7));
    let kernel = program.kernel("add").unwrap();
    let mut data = Buffer::<u32>::alloc_zeroed(&other, 4).unwrap();
    let arguments = [Arg::from(&mut data), Arg::from(4u32)];
    let launch = |device: &Device, arguments: &[Arg<'_>]| {
        device.stream().unwrap().launch(&kernel, &LaunchConfig::new(1, 4), arguments)
    };
    for refused in [launch(&device, &arguments), launch(&other, &arguments)] {
        assert!(matches!(refused, Err(Error::OtherDevice { .. })), "{refused:?}");
    }
    let arguments = [Arg::null(), Arg::from(0u32)];
    launch(&device, &arguments).unwrap();
    assert!(matches!(device.set_pending_launch_limit(9), Err(Error::LimitTooLate { .. })));

    let described = gridlet::artifact::describe(
        &compile::check(SourceMap::single("api.grid", SOURCE)).unwrap(),
        LaunchStrategy::Cdp,
    );
    let empty = Artifact::new(described, Vec::new()).unwrap();
    let error = Program::load(&device, &empty).unwrap_err();
    assert!(error.is_missing() && error.to_string().contains("cpu-"), "{error}");
    assert!(matches!(Device::open_named("tpu"), Err(Error::DeviceName { .. })));
}

/// Neither the host nor the waiting stream's earlier work is held up.
#[test]
fn streams_wait_for_each_other_without_the_host() {
    let (device, program) = cpu();
    let kernel = |name: &str| program.kernel(name).unwrap();
    let one = LaunchConfig::new(1, 1);
    let part = GreenContext::with_sms(&device, 1).unwrap();
    let [first, second, third] = [(); 3].map(|()| device.stream().unwrap());
    let of_part = part.stream().unwrap();
    let mut flag = Buffer::from_slice(&device, &[0u32]).unwrap();
    let mut data = Buffer::from_slice(&device, &[100u32; 4]).unwrap();
    let [spinning, added, last] = [(); 3].map(|()| Event::new(&device).unwrap());
    first.launch(&kernel("spin"), &one, &[Arg::from(&mut flag)]).unwrap();
    first.record(&spinning).unwrap();
    second.wait_event(&spinning).unwrap();
    let arguments = [Arg::from(&mut data), Arg::from(4u32)];
    second.launch(&kernel("add"), &LaunchConfig::new(1, 4), &arguments).unwrap();
    second.record(&added).unwrap();
    // A stream that waits for a waiting stream waits too, and so does a stream that is created
    // later.
    part.wait_event(&added).unwrap();
    let late = part.stream().unwrap();
    for stream in [&of_part, &late] {
        stream.record(&last).unwrap();
        assert!(!last.is_done().unwrap());
    }
    assert!(!spinning.is_done().unwrap() && !added.is_done().unwrap());
    third.launch(&kernel("set"), &one, &[Arg::from(&mut flag)]).unwrap();
    late.synchronize_default().unwrap();
    assert!(last.is_done().unwrap() && added.is_done().unwrap());
    of_part.synchronize_default().unwrap();
    assert_eq!(data.to_vec().unwrap(), [100, 101, 102, 103]);

    // Waiting longer than the limit stops the waiting stream and no other.
    let mut other = Buffer::from_slice(&device, &[0u32]).unwrap();
    first.launch(&kernel("spin"), &one, &[Arg::from(&mut other)]).unwrap();
    first.record(&spinning).unwrap();
    second.wait_event(&spinning).unwrap();
    let arguments = [Arg::from(&mut data), Arg::from(4u32)];
    second.launch(&kernel("add"), &LaunchConfig::new(1, 4), &arguments).unwrap();
    let late = second.synchronize(Duration::from_millis(50));
    assert!(matches!(late, Err(Error::TimedOut { .. })), "{late:?}");
    assert!(!spinning.is_done().unwrap());
    third.launch(&kernel("set"), &one, &[Arg::from(&mut other)]).unwrap();
    first.synchronize_default().unwrap();
    second.synchronize_default().unwrap();
    assert_eq!(data.to_vec().unwrap(), [100, 101, 102, 103]);
}

/// A block has only the shared memory of its own kernel, though all variables of a program have places of their own.
#[test]
fn a_programs_kernels_may_have_more_shared_memory_together_than_a_block() {
    let kernel = |at: u32| {
        format!(
            "kernel k{at}(p: *mut u32) {{\n    shared a: [u32; 4096];\n    a[thread_idx.x] = {at};\n    sync_threads();\n    \
             p[0] = a[0];\n    if {at} < 39 {{ launch k{}<<<1, 1>>>(p); }}\n}}\n",
            (at + 1).min(39)
        )
    };
    let source: String = (0..40).map(kernel).collect();
    let program = compile::check(SourceMap::single("many.grid", source)).unwrap();
    for check in [false, true] {
        let options = CpuOptions::default().with_check(check);
        let bundle = gridlet::artifact::build_cpu(&Session::new(), &program, &options).unwrap();
        let device = Device::open_cpu(CpuConfig { check, ..CpuConfig::default() }).unwrap();
        let program = Program::load(&device, &bundle).unwrap();
        let kernel = program.kernel("k0").unwrap();
        let mut out = Buffer::<u32>::alloc_zeroed(&device, 1).unwrap();
        let stream = device.stream().unwrap();
        stream.launch(&kernel, &LaunchConfig::new(1, 1), &[Arg::from(&mut out)]).unwrap();
        stream.synchronize(Duration::from_secs(60)).unwrap();
        assert_eq!(out.to_vec().unwrap(), [39]);
        // Dynamic shared memory counts, too.
        let config = LaunchConfig::new(1, 1).with_shared(232_448 - 16_384 + 1);
        let error =
            stream.launch(&kernel, &config, &[Arg::from(&mut out)]).unwrap_err().to_string();
        assert!(error.contains("16384 bytes of static shared memory are too much"), "{error}");
    }
}

/// A checked device also knows memory that is visible to the host.
#[test]
fn checks_know_all_kinds_of_memory() {
    const SOURCE: &str = "kernel next(x: *const u32, y: *mut u32) { y[0] = x[0] + 1; }";

    let program = compile::check(SourceMap::single("next.grid", SOURCE)).unwrap();
    let options = CpuOptions::default().with_check(true);
    let artifact = gridlet::artifact::build_cpu(&Session::new(), &program, &options).unwrap();
    let device = Device::open_cpu(CpuConfig { check: true, ..CpuConfig::default() }).unwrap();
    let kernel = Program::load(&device, &artifact).unwrap().kernel("next").unwrap();
    let stream = device.stream().unwrap();
    let next = |from: Arg<'_>, to: Arg<'_>| {
        stream.launch(&kernel, &LaunchConfig::new(1, 1), &[from, to]).unwrap();
        stream.synchronize_default()
    };
    let finding = |result: Result<(), Error>| match result {
        Err(Error::Checked(findings)) => findings.reports[0].kind.id(),
        other => panic!("{other:?}"),
    };
    let mut managed = ManagedBuffer::from_slice(&device, &[1u32]).unwrap();
    let mut host = HostBuffer::<u32>::alloc_zeroed(&device, 1, HostFlags::default()).unwrap();
    let flags = RegisterFlags::default();
    let mut registered = RegisteredMemory::new(&device, vec![7u32], flags).unwrap();
    next(Arg::from(&Buffer::from_slice(&device, &[1u32]).unwrap()), Arg::from(&mut host)).unwrap();
    next(Arg::from(&managed), Arg::from(&mut host)).unwrap();
    assert_eq!(host.host().unwrap(), [2]);
    host.host().unwrap()[0] = 5;
    next(Arg::from(&host), Arg::from(&mut registered)).unwrap();
    next(Arg::from(&registered), Arg::from(&mut managed)).unwrap();
    assert_eq!(managed.host().unwrap(), [7]);

    // Out of bounds, uninitialised, and freed.
    let past = Arg::address(host.address() + 4);
    assert_eq!(finding(next(past, Arg::from(&mut managed))), "out-of-bounds");
    let raw = ManagedBuffer::<u32>::alloc(&device, 1).unwrap();
    assert_eq!(finding(next(Arg::from(&raw), Arg::from(&mut managed))), "uninitialised");
    let gone = Arg::address(registered.address());
    let _vector = registered.into_vec().unwrap();
    assert_eq!(finding(next(gone, Arg::from(&mut managed))), "use-after-free");
    let gone = Arg::address(host.address());
    drop(host);
    assert_eq!(finding(next(gone, Arg::from(&mut managed))), "use-after-free");
}
