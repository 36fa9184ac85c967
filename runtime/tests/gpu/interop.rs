//! cudarc's safe API and this crate on the same memory and streams.

use std::sync::Arc;

use cudarc::driver::CudaContext;
use gridlet_runtime::{Arg, Buffer, DeviceMemory, Event, GreenContext, LaunchConfig, Stream};

use super::{gpu, load, note};

const N: u32 = 1 << 20;

fn values() -> Vec<f32> {
    (0..N).map(|i| i as f32).collect()
}

fn assert_sums(sums: &[f32]) {
    assert_eq!(sums.len(), N as usize);
    for (i, sum) in sums.iter().enumerate() {
        assert_eq!(*sum, 2.0 * i as f32, "element {i}");
    }
}

#[test]
fn slices_and_streams_of_cudarc_are_launched_on() {
    let Some((_alone, device)) = gpu("slices_and_streams_of_cudarc_are_launched_on") else {
        return;
    };
    let program = load(&device);
    let kernel = program.kernel("vector_add").unwrap();
    let context = CudaContext::new(0).unwrap();
    let (stream, other) = (context.new_stream().unwrap(), context.new_stream().unwrap());
    let ours = Stream::from_cudarc(&stream).unwrap();
    assert_eq!(ours.device().raw_context().unwrap(), context.cu_ctx().cast());
    // Allocated and written on the other stream: cudarc's events order the uses.
    let x = other.clone_htod(&values()).unwrap();
    let mut out = other.alloc_zeros::<f32>(N as usize).unwrap();
    {
        let (x, _read) = Arg::cudarc(&x, &stream);
        let (out, _written) = Arg::cudarc_mut(&mut out, &stream);
        let args = [x.clone(), x, out, Arg::from(N)];
        ours.launch(&kernel, &LaunchConfig::new(N.div_ceil(256), 256), &args).unwrap();
    }
    // No synchronization: the copy waits for the event recorded after the launch.
    assert_sums(&other.clone_dtoh(&out).unwrap());
    ours.synchronize_default().unwrap();
    drop((stream, context));
    // The stream is still alive, although cudarc's own handles are gone.
    ours.synchronize_default().unwrap();
    let buffer = Buffer::from_cudarc(out).unwrap();
    assert_sums(&buffer.to_vec().unwrap());
}

#[test]
fn buffers_and_streams_are_used_by_cudarc() {
    let Some((_alone, device)) = gpu("buffers_and_streams_are_used_by_cudarc") else { return };
    let ours = device.stream().unwrap();
    let stream = ours.to_cudarc().unwrap();
    let mut buffer = Buffer::from_slice(&device, &values()).unwrap();
    let copied = buffer.with_cudarc(&stream, |view| stream.clone_dtoh(&view)).unwrap();
    assert_eq!(copied.unwrap(), values());
    buffer
        .with_cudarc_mut(&stream, |mut view| {
            let mut half = view.slice_mut(0..N as usize / 2);
            stream.memset_zeros(&mut half)
        })
        .unwrap()
        .unwrap();
    let seen = buffer.to_vec().unwrap();
    assert!(seen[..N as usize / 2].iter().all(|value| *value == 0.0));
    assert_eq!(seen[N as usize / 2..], values()[N as usize / 2..]);

    // Within one stream, work runs in call order.
    let program = load(&device);
    let mut slice = stream.alloc_zeros::<u32>(1).unwrap();
    let (to, launched) = Arg::cudarc_mut(&mut slice, &stream);
    ours.launch(&program.kernel("poke").unwrap(), &LaunchConfig::new(1, 1), &[to]).unwrap();
    drop(launched);
    assert_eq!(stream.clone_dtoh(&slice).unwrap(), [1]);
    drop(slice);
    drop(ours);
    // The cudarc stream outlives ours and stays usable.
    let after = stream.clone_htod(&[7u32]).unwrap();
    assert_eq!(stream.clone_dtoh(&after).unwrap(), [7]);
}

#[test]
fn raw_handles_are_the_drivers() {
    let Some((_alone, device)) = gpu("raw_handles_are_the_drivers") else { return };
    let program = load(&device);
    let kernel = program.kernel("poke").unwrap();
    assert!(!kernel.raw().unwrap().is_null());
    let context = device.to_cudarc().unwrap();
    let theirs = context.new_stream().unwrap();
    let marks = context
        .new_event(Some(cudarc::driver::sys::CUevent_flags::CU_EVENT_DEFAULT))
        .map(Arc::new)
        .unwrap();
    let memory = DeviceMemory::alloc_zeroed(&device, 4).unwrap();
    // SAFETY: handles of the primary context, kept alive by their owners; the memory lives until the end.
    let (stream, event, borrowed) = unsafe {
        let handle = theirs.cu_stream().cast();
        (
            Stream::borrow_raw(&device, handle, Arc::clone(&theirs)).unwrap(),
            Event::borrow_raw(&device, marks.cu_event().cast(), Arc::clone(&marks)).unwrap(),
            DeviceMemory::borrow_raw(&device, memory.address(), 4, ()).unwrap(),
        )
    };
    let address = Arg::at_mut::<u32>(&device, borrowed.address());
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &[address]).unwrap();
    stream.record(&event).unwrap();
    stream.synchronize_default().unwrap();
    assert!(marks.is_complete() && event.is_done().unwrap());
    assert_eq!(Buffer::<u32>::from_memory(borrowed).unwrap().to_vec().unwrap(), [1]);
    let (address, bytes) = memory.into_raw().unwrap();
    // SAFETY: ownership was just released.
    let again = unsafe { DeviceMemory::from_raw(&device, address, bytes) }.unwrap();
    assert_eq!(Buffer::<u32>::from_memory(again).unwrap().to_vec().unwrap(), [1]);

    // `to_cudarc` refuses streams of green contexts; this is how cudarc would treat one.
    let green = GreenContext::with_sms(&device, 8).unwrap();
    assert!(!green.raw().unwrap().is_null());
    let stream = green.stream().unwrap();
    stream.to_cudarc().unwrap_err();
    // SAFETY: the stream lives until the end; that it belongs to another context is the point of the test.
    let wrapped = unsafe { context.wrap_borrowed_stream(stream.raw().unwrap().cast()) };
    let copied = wrapped.clone_htod(&[5u32]).and_then(|slice| wrapped.clone_dtoh(&slice));
    note(format!("a green context's stream in cudarc's hands copies: {copied:?}"));
}
