//! Handles of the CPU device, where all memory belongs to this process: accessing or freeing memory waits for the
//! kernels that use it, copies check lengths, and GPU-only features are refused.

use std::process::Command;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use crate::asleep::{ThreadFiles, spawn_until_asleep};
use crate::c_image;
use gridlet_runtime::unified::{
    HostBuffer, HostFlags, ManagedBuffer, RegisterFlags, RegisteredMemory,
};
use gridlet_runtime::{
    Arg, Artifact, Buffer, Confinement, CpuConfig, Device, DeviceMemory, Error, GreenContext,
    LaunchConfig, Program, Stream,
};

/// `spin` of `cpu/tests/device/kernels.c`, which runs until its parameter points to a nonzero value; `None`
/// without a C compiler.
fn artifact() -> Option<&'static Artifact> {
    static ARTIFACT: OnceLock<Option<Artifact>> = OnceLock::new();
    ARTIFACT.get_or_init(build).as_ref()
}

fn build() -> Option<Artifact> {
    c_image::artifact(serde_json::json!({
        "name": "spin", "parameter_bytes": 8, "static_shared_bytes": 0,
        "parameters": [{
            "name": "flag", "offset": 0, "size": 8, "alignment": 8,
            "type": { "pointer": { "mutable": false, "to": { "scalar": "u32" } } },
        }],
        "dynamic_shared": false, "launches": [],
    }))
}

fn device() -> Device {
    Device::open_cpu(CpuConfig { threads: Some(2), ..CpuConfig::default() }).unwrap()
}

/// Runs `act` while a kernel runs, and checks that it returns only after the kernel ends: another thread sets the
/// flag that the kernel waits for, once this thread is blocked. The result of `act` lives until then.
fn waits<T>(what: &str, device: &Device, stream: Stream, act: impl FnOnce(Stream) -> T) {
    waits_after(what, device, stream, |stream| stream, act);
}

/// Same, with a step to run first while the kernel runs.
fn waits_after<S, T>(
    what: &str,
    device: &Device,
    stream: Stream,
    before: impl FnOnce(Stream) -> S,
    act: impl FnOnce(S) -> T,
) {
    let Some(artifact) = artifact() else { return };
    let kernel = Program::load(device, artifact).unwrap().kernel("spin").unwrap();
    let flag = AtomicU32::new(0);
    let address = Arg::address(&raw const flag as u64);
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &[address]).unwrap();
    let state = before(stream);
    let this = ThreadFiles::own();
    thread::scope(|scope| {
        scope.spawn(|| {
            this.wait_until_asleep();
            flag.store(1, Ordering::Release);
        });
        let _until_checked = act(state);
        assert_eq!(flag.load(Ordering::Acquire), 1, "{what} did not wait");
    });
    device.synchronize(Duration::from_secs(10)).unwrap();
}

/// Same, with a stream of the device that stays alive.
fn waits_on(what: &str, device: &Device, act: impl FnOnce()) {
    waits(what, device, device.stream().unwrap(), |stream| {
        act();
        stream
    });
}

#[test]
fn copies_and_fills_wait() {
    let device = device();
    let mut buffer = Buffer::from_slice(&device, &[1u32, 2]).unwrap();
    let from = Buffer::from_slice(&device, &[3u32, 4]).unwrap();
    let mut words = [0; 2];
    waits_on("a copy to the host", &device, || buffer.copy_to_host(&mut words).unwrap());
    waits_on("a copy from the host", &device, || buffer.copy_from_host(&words).unwrap());
    waits_on("a fill", &device, || buffer.fill(7).unwrap());
    waits_on("a copy", &device, || buffer.copy_from(&from).unwrap());
    assert_eq!((words, buffer.to_vec().unwrap()), ([1, 2], vec![3, 4]));
}

#[test]
fn a_copy_between_devices_waits_for_both() {
    let (here, there) = (device(), device());
    let mut to = Buffer::<u32>::alloc_zeroed(&here, 1).unwrap();
    let from = Buffer::from_slice(&there, &[5u32]).unwrap();
    waits_on("a copy to this device", &here, || to.copy_from(&from).unwrap());
    waits_on("a copy from the other", &there, || to.copy_from(&from).unwrap());
    assert_eq!(to.to_vec().unwrap(), [5]);
}

#[test]
fn the_host_waits_before_it_has_elements() {
    let device = device();
    let mut managed = ManagedBuffer::from_slice(&device, &[1u32]).unwrap();
    let mut host = HostBuffer::<u32>::alloc_zeroed(&device, 1, HostFlags::default()).unwrap();
    let flags = RegisterFlags::default();
    let mut registered = RegisteredMemory::new(&device, vec![1u32], flags).unwrap();
    waits_on("managed memory", &device, || managed.host().unwrap()[0] = 2);
    waits_on("host memory", &device, || host.host().unwrap()[0] = 2);
    waits_on("registered memory", &device, || registered.host().unwrap()[0] = 2);
    waits_on("a vector", &device, || assert_eq!(registered.into_vec().unwrap(), [2]));
}

#[test]
fn what_is_dropped_waits() {
    let device = device();
    let buffer = Buffer::from_slice(&device, &[1u32]).unwrap();
    waits_on("device memory", &device, || drop(buffer));
    let managed = ManagedBuffer::<u32>::alloc(&device, 1).unwrap();
    waits_on("managed memory", &device, || drop(managed));
    let host = HostBuffer::<u32>::alloc_zeroed(&device, 1, HostFlags::default()).unwrap();
    waits_on("host memory", &device, || drop(host));
    let registered = RegisteredMemory::new(&device, vec![1u32], RegisterFlags::default()).unwrap();
    waits_on("registered memory", &device, || drop(registered));
    if let Some(artifact) = artifact() {
        let program = Program::load(&device, artifact).unwrap();
        waits_on("a program", &device, || drop(program));
    }
    waits("a stream", &device, device.stream().unwrap(), drop);
    let green = GreenContext::with_sms(&device, 1).unwrap();
    let stream = green.stream().unwrap();
    waits("a green context", &device, stream, |stream| drop((green, stream)));
}

#[test]
fn what_a_thread_does_waits_for_streams_that_others_drop() {
    let device = device();
    let buffer = Buffer::from_slice(&device, &[1u32]).unwrap();
    let stream = device.stream().unwrap();
    thread::scope(|scope| {
        let before = |stream: Stream| {
            spawn_until_asleep(scope, || drop(stream));
            // The work is not forgotten because of another stream, and a wait that times out does not end the
            // device.
            let other = device.stream().unwrap();
            let error = device.synchronize(Duration::from_millis(5)).unwrap_err();
            assert!(matches!(error, Error::TimedOut { .. }), "{error}");
            other.synchronize_default().unwrap();
        };
        waits_after("a copy beside a stream's drop", &device, stream, before, |()| {
            assert_eq!(buffer.to_vec().unwrap(), [1]);
        });
    });
}

#[test]
fn managed_memory_is_written_before_the_host_has_it() {
    let device = device();
    for length in [1, 100, 10_000] {
        let old = Buffer::from_slice(&device, &vec![7u32; length]).unwrap();
        drop(old);
        let mut managed = ManagedBuffer::<u32>::alloc(&device, length).unwrap();
        assert!(managed.host().unwrap().iter().all(|element| *element == 0), "{length}");
    }
}

#[test]
fn copies_have_the_length_of_the_memory() {
    let device = device();
    let mut memory = DeviceMemory::alloc_zeroed(&device, 4).unwrap();
    let wrong = |given| Err(Error::Length { expected: 4, given });
    for given in [0usize, 3, 5] {
        let mut bytes = vec![1; given];
        assert_eq!(memory.copy_from_host(&bytes), wrong(given as u64));
        assert_eq!(memory.copy_to_host(&mut bytes), wrong(given as u64));
        assert!(bytes.iter().all(|byte| *byte == 1));
    }
    assert_eq!(memory.copy_start_to_host(&mut [1; 5]), wrong(5));
    memory.copy_from_host(&[1, 2, 3, 4]).unwrap();
    let mut start = [0; 3];
    memory.copy_start_to_host(&mut start).unwrap();
    assert_eq!(start, [1, 2, 3]);
    let mut words = Buffer::<u32>::alloc_zeroed(&device, 2).unwrap();
    assert_eq!(words.copy_from_host(&[1]), Err(Error::Length { expected: 8, given: 4 }));
    let error = words.copy_from(&Buffer::alloc_zeroed(&device, 3).unwrap());
    assert_eq!(error, Err(Error::Length { expected: 8, given: 12 }));
}

#[test]
fn launches_that_only_gpus_have_are_refused() {
    let Some(artifact) = artifact() else { return };
    let device = device();
    let kernel = Program::load(&device, artifact).unwrap().kernel("spin").unwrap();
    let stream = device.stream().unwrap();
    let one = LaunchConfig::new(1, 1);
    let refused = |config| {
        let error = stream.launch(&kernel, &config, &[Arg::null()]).unwrap_err();
        assert!(matches!(error, Error::Launch { .. }), "{error}");
        error.to_string()
    };
    assert_eq!(
        refused(one.cooperative()),
        "kernel `spin`: cooperative launches need a GPU that supports them, and this is the CPU device"
    );
    assert_eq!(
        refused(one.with_cluster(1)),
        "kernel `spin`: clusters need a GPU of compute capability 9.0 or later, and this is the CPU device"
    );
    device.synchronize(Duration::from_secs(10)).unwrap();
}

#[test]
fn partitions_confine_programs_that_launch() {
    let Some(artifact) = artifact() else { return };
    let device = device();
    let mut manifest = artifact.manifest().clone();
    // Any zeroed variable of the same size works.
    manifest.device_runtime = Some(
        serde_json::from_value(serde_json::json!({ "lost_launch_record": "counters" })).unwrap(),
    );
    let launching = Artifact::new(manifest, vec![c_image::image(&[]).unwrap()]).unwrap();
    let green = GreenContext::with_sms(&device, 1).unwrap();
    for artifact in [artifact, &launching] {
        let program = Program::load(&device, artifact).unwrap();
        assert_eq!(green.confinement(&program), Confinement::Confined);
    }
}

/// A process that ignores faults still dies of its own faults, as Linux ensured before the device installed its
/// handlers.
#[test]
fn a_fault_of_the_host_ends_a_process_that_ignores_faults() {
    use std::os::unix::process::ExitStatusExt;

    const CHILD: &str = "GRIDLET_FAULT_CHILD";
    if std::env::var_os(CHILD).is_some() {
        let limit = libc::rlimit { rlim_cur: 10, rlim_max: 10 };
        // SAFETY: ignoring a signal has no preconditions, and the limit is a live value. The limit ends a process
        // that faults forever.
        unsafe {
            libc::signal(libc::SIGSEGV, libc::SIG_IGN);
            libc::setrlimit(libc::RLIMIT_CPU, &limit);
        }
        let _device = device();
        // SAFETY: deliberately invalid, which is the test: nothing is mapped there.
        unsafe { std::ptr::without_provenance::<u8>(64).read_volatile() };
        unreachable!("the read faults");
    }
    let name = "cpu_handles::a_fault_of_the_host_ends_a_process_that_ignores_faults";
    let status = Command::new(std::env::current_exe().unwrap())
        .args([name, "--exact", "--test-threads=1"])
        .env(CHILD, "1")
        .stdout(std::process::Stdio::null())
        .status()
        .unwrap();
    assert_eq!(status.signal(), Some(libc::SIGSEGV), "{status}");
}

#[test]
fn a_device_has_so_many_workers_at_most() {
    for threads in [4097, 1 << 20, usize::MAX] {
        let config = CpuConfig { threads: Some(threads), ..CpuConfig::default() };
        let error = Device::open_cpu(config).unwrap_err();
        assert!(matches!(error, Error::CpuThreads { .. }), "{error}");
        assert!(error.to_string().ends_with("but the maximum is 4096"), "{error}");
    }
}
