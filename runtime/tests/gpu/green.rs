//! Green contexts.

use std::thread;

use gridlet_runtime::resources::Resource;
use gridlet_runtime::unified::{HostBuffer, HostFlags};
use gridlet_runtime::{
    Arg, Buffer, CudaVersion, Error, Event, GreenContext, LaunchConfig, ResourceDescriptor,
    ResourceProblem, SmGroup, SplitFlags, WorkqueueScope,
};

use super::asleep::spawn_until_asleep;
use super::{gpu, load, note, sms_used, under_memcheck};

#[test]
fn green_contexts_confine_kernels() {
    let Some((_alone, device)) = gpu("green_contexts_confine_kernels") else { return };
    let program = load(&device);
    let whole = sms_used(&device, &program, &device.stream().unwrap());
    let green = GreenContext::with_sms(&device, 16).unwrap();
    let stream = green.stream().unwrap();
    let part = sms_used(&device, &program, &stream);
    note(format!(
        "SMs used: {whole} by the device's stream, {part} by a green context of {}",
        green.sm_count()
    ));
    assert!(green.sm_count() >= 16 && green.sm_count() < device.info().sm_count);
    assert!(whole > green.sm_count() as usize + 2, "the measure tells nothing: {whole} SMs");
    // Two more are documented for compute capability 9.x once a program with device-side launches is loaded.
    assert!(part <= green.sm_count() as usize + 2, "{part} SMs");

    // Events and further streams work there too, as does a second partition beside the first.
    let other = GreenContext::with_sms(&device, 16).unwrap();
    let (start, end) = (Event::new(&device).unwrap(), Event::new(&device).unwrap());
    let other_stream = other.stream().unwrap();
    other_stream.record(&start).unwrap();
    assert!(sms_used(&device, &program, &other_stream) <= other.sm_count() as usize + 2);
    other_stream.record(&end).unwrap();
    assert!(start.elapsed_ms(&end).unwrap() > 0.0);

    let total = device.info().sm_count;
    for asked in [0, total + 1] {
        let error = GreenContext::with_sms(&device, asked).unwrap_err();
        assert!(
            matches!(error, Error::Partition { available, .. } if available == total),
            "{error}"
        );
    }
    // Handles may be dropped before the handles that use them.
    drop((device, green, other, program, other_stream));
    stream.synchronize_default().unwrap();
}

#[test]
fn a_green_context_may_be_the_whole_device() {
    let Some((_alone, device)) = gpu("a_green_context_may_be_the_whole_device") else { return };
    let green = GreenContext::with_sms(&device, device.info().sm_count).unwrap();
    assert_eq!(green.sm_count(), device.info().sm_count);
    let program = load(&device);
    assert!(sms_used(&device, &program, &green.stream().unwrap()) > 16);
}

/// The version that introduced structured splits and workqueues.
const NEWEST: CudaVersion = CudaVersion::new(13, 1);

#[test]
fn sms_are_split_as_the_driver_says() {
    let Some((_alone, device)) = gpu("sms_are_split_as_the_driver_says") else { return };
    let all = device.sm_resource().unwrap();
    let granularity = all.granularity();
    note(format!("{} SMs, {granularity:?}", all.sm_count()));
    assert_eq!(all.sm_count(), device.info().sm_count);
    assert_eq!(device.context_sm_resource().unwrap().sm_count(), all.sm_count());
    let flags = SplitFlags::default();
    for asked in [1, granularity.minimum, 2 * granularity.minimum + 1, all.sm_count() / 2] {
        let counted = all.count_groups(asked, flags).unwrap();
        let split = all.split_by_count(u32::MAX, asked, flags).unwrap();
        let sizes: Vec<u32> = split.groups.iter().map(|group| group.sm_count()).collect();
        let rest = split.remainder.as_ref().map_or(0, |rest| rest.sm_count());
        note(format!("at least {asked}: {sizes:?}, {rest} left"));
        assert_eq!(counted as usize, sizes.len());
        assert!(sizes.iter().all(|size| *size == granularity.round_up(asked)), "{sizes:?}");
        assert_eq!(sizes.iter().sum::<u32>() + rest, all.sm_count());
    }
    let fine = flags.with_ignore_coscheduling(true);
    let finer = all.count_groups(1, fine).unwrap();
    note(format!("without co-scheduling: {finer} groups"));
    assert!(finer >= all.count_groups(1, flags).unwrap());
    if device.info().compute_capability.major >= 9 {
        let clusters = flags.with_max_potential_cluster_size(true);
        assert!(all.count_groups(16, clusters).unwrap() > 0);
    }
    let odd = granularity.minimum + granularity.alignment / 2;
    if granularity.alignment > 1 {
        let Error::Resource(problem) = GreenContext::with_exactly(&device, odd).unwrap_err() else {
            panic!("not a resource error")
        };
        note(problem.to_string());
        assert!(matches!(*problem, ResourceProblem::Rounded { asked, .. } if asked == odd));
    }
}

#[test]
fn a_green_context_of_several_groups_has_all_their_sms() {
    let Some((_alone, device)) = gpu("a_green_context_of_several_groups_has_all_their_sms") else {
        return;
    };
    let split = device.sm_resource().unwrap().split_by_count(3, 16, SplitFlags::default()).unwrap();
    assert_eq!(split.groups.len(), 3);
    let two = ResourceDescriptor::new(split.groups[..2].to_vec()).unwrap();
    let green = GreenContext::new(&two).unwrap();
    assert_eq!(green.sm_count(), two.sm_count());
    let program = load(&device);
    let used = sms_used(&device, &program, &green.stream().unwrap());
    note(format!("{used} SMs ran blocks of a green context of {}", green.sm_count()));
    assert!(used <= green.sm_count() as usize + 2);
    // "The output results cannot be split again without first creating … a green context".
    assert!(split.groups[2].split_by_count(1, 8, SplitFlags::default()).is_err());
    let again = green.sm_resource().unwrap().split_by_count(2, 8, SplitFlags::default()).unwrap();
    let part =
        GreenContext::new(&ResourceDescriptor::new([again.groups[0].clone()]).unwrap()).unwrap();
    assert!(sms_used(&device, &program, &part.stream().unwrap()) <= part.sm_count() as usize + 2);
    assert!(part.sm_count() < green.sm_count());
}

#[test]
fn green_contexts_have_ids_priorities_and_events() {
    let Some((_alone, device)) = gpu("green_contexts_have_ids_priorities_and_events") else {
        return;
    };
    let (one, two) =
        (GreenContext::with_sms(&device, 8).unwrap(), GreenContext::with_sms(&device, 8).unwrap());
    match (one.id(), two.id()) {
        (Ok(a), Ok(b)) => assert_ne!(a, b),
        (Err(Error::MissingCall { since, .. }), _) => assert_eq!(since, CudaVersion::new(13, 0)),
        (other, _) => panic!("{other:?}"),
    }
    let priorities = device.stream_priorities().unwrap();
    note(format!("stream priorities {priorities:?}"));
    assert!(priorities.contains(&0));
    for priority in [*priorities.start(), *priorities.end()] {
        assert_eq!(one.stream_with_priority(priority).unwrap().priority().unwrap(), priority);
        assert_eq!(device.stream_with_priority(priority).unwrap().priority().unwrap(), priority);
    }
    let beyond = device.stream_with_priority(priorities.start() - 10).unwrap();
    assert_eq!(beyond.priority().unwrap(), *priorities.start());

    // Work in the second context waits for the first.
    let program = load(&device);
    let poke = program.kernel("poke").unwrap();
    let mut flag = Buffer::<u32>::alloc_zeroed(&device, 1).unwrap();
    let (first, second) = (one.stream().unwrap(), two.stream().unwrap());
    assert!(first.is_in_its_green_context().unwrap());
    assert_eq!(first.green_context().unwrap().sm_count(), one.sm_count());
    let (recorded, whole) = (Event::new(&device).unwrap(), device.stream().unwrap());
    assert!(whole.green_context().is_none() && whole.is_in_its_green_context().unwrap());
    let launch = LaunchConfig::new(1, 1);
    first.launch(&poke, &launch, &[Arg::from(&mut flag)]).unwrap();
    one.record(&recorded).unwrap();
    two.wait_event(&recorded).unwrap();
    second.launch(&poke, &launch, &[Arg::from(&mut flag)]).unwrap();
    let after = Event::new(&device).unwrap();
    two.record(&after).unwrap();
    whole.wait_event(&after).unwrap();
    whole.launch(&poke, &launch, &[Arg::from(&mut flag)]).unwrap();
    whole.synchronize_default().unwrap();
    assert_eq!(flag.to_vec().unwrap(), [1]);
    assert!(recorded.elapsed_ms(&after).unwrap() >= 0.0);
}

#[test]
fn what_waits_for_an_event_does_not_run_before() {
    let name = "what_waits_for_an_event_does_not_run_before";
    if under_memcheck(name, "its kernel waits for the host") {
        return;
    }
    let Some((_alone, device)) = gpu(name) else { return };
    let program = load(&device);
    let (spin, poke) = (program.kernel("spin").unwrap(), program.kernel("poke").unwrap());
    let green = || GreenContext::with_sms(&device, 8).unwrap();
    let (one, two) = (green(), green());
    let streams = [one.stream().unwrap(), two.stream().unwrap(), device.stream().unwrap()];
    let [spinning, waiting, whole] = &streams;
    let mut marks = [(); 3].map(|()| Buffer::<u32>::alloc_zeroed(&device, 1).unwrap());
    let flag = HostBuffer::<u32>::alloc_zeroed(&device, 1, HostFlags::default()).unwrap();
    let launch = LaunchConfig::new(1, 1);
    // Launch once first: the driver's one-time work for a kernel in a context could wait for the spinning kernel.
    for (stream, mark) in streams.iter().zip(&mut marks) {
        stream.launch(&poke, &launch, &[Arg::from(&mut *mark)]).unwrap();
        stream.synchronize_default().unwrap();
        mark.fill(0).unwrap();
    }
    let [_, two_mark, whole_mark] = &mut marks;
    let events = [(); 3].map(|()| Event::new(&device).unwrap());
    let [spun, two_done, whole_done] = &events;
    spinning.launch(&spin, &launch, &[Arg::from(&flag)]).unwrap();
    one.record(spun).unwrap();
    two.wait_event(spun).unwrap();
    waiting.launch(&poke, &launch, &[Arg::from(&mut *two_mark)]).unwrap();
    waiting.record(two_done).unwrap();
    whole.wait_event(spun).unwrap();
    whole.launch(&poke, &launch, &[Arg::from(&mut *whole_mark)]).unwrap();
    whole.record(whole_done).unwrap();
    thread::sleep(std::time::Duration::from_millis(100));
    let early = [spun, two_done, whole_done].map(|event| event.is_done().unwrap());
    // SAFETY: an element of the buffer, which `spin` reads as volatile.
    unsafe { (flag.host_address() as *mut u32).write_volatile(1) };
    assert_eq!(early, [false; 3], "an event came, or was not waited for, while its kernel ran");
    device.synchronize(std::time::Duration::from_secs(10)).unwrap();
    assert!(events.iter().all(|event| event.is_done().unwrap()));
    assert_eq!(marks.map(|mark| mark.to_vec().unwrap()), [[0], [1], [1]]);
}

#[test]
fn contexts_are_let_go_in_any_order() {
    let Some((_alone, device)) = gpu("contexts_are_let_go_in_any_order") else { return };
    let green = GreenContext::with_sms(&device, 8).unwrap();
    let first = green.make_current().unwrap();
    let second = device.make_current().unwrap();
    drop(first);
    // Another thread can take the green context, although it was not released last.
    thread::scope(|scope| {
        scope.spawn(|| drop(green.make_current().unwrap()));
    });
    let program = load(&device);
    assert!(sms_used(&device, &program, &green.stream().unwrap()) <= green.sm_count() as usize + 2);
    drop(second);
    assert!(sms_used(&device, &program, &device.stream().unwrap()) > 16);
}

#[test]
fn what_a_driver_lacks_is_an_error_that_names_the_version() {
    let name = "what_a_driver_lacks_is_an_error_that_names_the_version";
    let Some((_alone, device)) = gpu(name) else { return };
    let all = device.sm_resource().unwrap();
    let green = GreenContext::with_sms(&device, 16).unwrap();
    let found = device.info().driver_version;
    if found < NEWEST {
        let errors = [
            all.split(&[SmGroup::new(16)]).unwrap_err(),
            green.stream().unwrap().sm_resource().unwrap_err(),
            device.workqueue_config().unwrap_err(),
            device.context_workqueue().unwrap_err(),
            green.workqueue_config().unwrap_err(),
        ];
        for error in errors {
            note(error.to_string());
            assert!(error.is_missing(), "{error:?}");
            assert!(error.to_string().contains("CUDA 13.1"), "{error}");
        }
        return;
    }
    let groups = [SmGroup::new(16), SmGroup::new(0).with_coscheduled(2).with_backfill(true)];
    let (discovered, rest) = all.discover(&groups).unwrap();
    note(format!("{discovered:?}, {rest} left"));
    let split = all.split(&groups).unwrap();
    assert_eq!(split.groups[0].sm_count(), 16);
    assert_eq!(split.groups[1].sm_count(), discovered[1].sm_count);
    let queues = device.workqueue_config().unwrap();
    let queues = queues.with_scope(WorkqueueScope::GreenContextBalanced).with_concurrency_limit(2);
    let resources = [Resource::from(split.groups[0].clone()), queues.into()];
    let green = GreenContext::new(&ResourceDescriptor::new(resources).unwrap()).unwrap();
    let config = green.workqueue_config().unwrap();
    note(format!("limit {}, {:?}", config.concurrency_limit(), config.scope()));
    assert_eq!(config.scope(), WorkqueueScope::GreenContextBalanced);
    let program = load(&device);
    let stream = green.stream().unwrap();
    assert_eq!(stream.sm_resource().unwrap().sm_count(), green.sm_count());
    assert!(sms_used(&device, &program, &stream) <= green.sm_count() as usize + 2);
}

#[test]
fn one_thread_at_a_time_has_a_green_context() {
    let Some((_alone, device)) = gpu("one_thread_at_a_time_has_a_green_context") else { return };
    let green = GreenContext::with_sms(&device, 8).unwrap();
    let program = load(&device);
    let poke = program.kernel("poke").unwrap();
    let current = green.make_current().unwrap();
    assert!(!current.raw().is_null());
    let launched = thread::scope(|scope| {
        // Another thread's launch waits until this thread releases the context.
        let other = spawn_until_asleep(scope, || {
            let mut flag = Buffer::<u32>::alloc_zeroed(&device, 1).unwrap();
            let stream = green.stream().unwrap();
            stream.launch(&poke, &LaunchConfig::new(1, 1), &[Arg::from(&mut flag)]).unwrap();
            flag.to_vec().unwrap()
        });
        assert!(!other.is_finished(), "two threads had the green context");
        drop(current);
        other.join().unwrap()
    });
    assert_eq!(launched, [1]);
}

#[test]
fn a_thousand_rounds_leave_the_memory_where_it_was() {
    let Some((_alone, device)) = gpu("a_thousand_rounds_leave_the_memory_where_it_was") else {
        return;
    };
    let round = || {
        let green = GreenContext::with_sms(&device, 16).unwrap();
        let (stream, whole) = (green.stream().unwrap(), device.stream().unwrap());
        let program = load(&device);
        let poke = program.kernel("poke").unwrap();
        let mut flag = Buffer::<u32>::alloc_zeroed(&device, 1 << 18).unwrap();
        stream.launch(&poke, &LaunchConfig::new(1, 1), &[Arg::from(&mut flag)]).unwrap();
        whole.synchronize_default().unwrap();
        drop(stream);
        drop(flag);
    };
    // The driver keeps some memory after the first rounds.
    (0..20).for_each(|_| round());
    let before = device.free_memory().unwrap();
    (0..1000).for_each(|_| round());
    let after = device.free_memory().unwrap();
    note(format!("free memory: {before} bytes before, {after} after 1,000 rounds"));
    assert!(after + (1 << 20) >= before, "{} bytes are gone", before - after);
}
