//! Who destroys handles shared with cudarc or as raw handles.

use std::sync::Arc;
use std::time::Duration;

use cudarc::driver::{CudaContext, CudaStream, DriverError};
use gridlet_runtime::{
    Arg, Buffer, CpuConfig, Device, DeviceMemory, Error, Event, GreenContext, LaunchConfig,
    Program, Result, Stream,
};

use super::{common, say, scenario};

/// Converts cudarc's error to ours, for `?`.
fn theirs<T>(result: Result<T, DriverError>) -> Result<T> {
    result.map_err(|error| Error::DeviceName { reason: format!("{error:?}") })
}

fn launch(stream: &Stream) -> Result<()> {
    let kernel = Program::load(&stream.device(), &common::artifact()?)?.kernel("lose")?;
    let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
    stream.launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
    stream.synchronize_default()
}

scenario!(a_stream_of_cudarc_is_destroyed_by_cudarc, "full", ["FAKE_TALLY" = "1"], || {
    let _device = Device::open(0)?;
    let context = theirs(CudaContext::new(0))?;
    let stream = theirs(context.new_stream())?;
    let ours = Stream::from_cudarc(&stream)?;
    say(ours.raw()? == stream.cu_stream().cast());
    drop((stream, context));
    say("ours keeps it alive");
    launch(&ours)?;
    say("the last of both");
    drop(ours);
    Ok(())
});

scenario!(a_stream_given_to_cudarc_is_destroyed_here, "full", ["FAKE_TALLY" = "1"], || {
    let device = Device::open(0)?;
    let ours = device.stream()?;
    let stream = ours.to_cudarc()?;
    say(Arc::ptr_eq(&stream, &ours.to_cudarc()?));
    say(ours.raw()? == stream.cu_stream().cast());
    drop(stream);
    say("cudarc destroys nothing");
    drop(ours);
    say("ours does");
    Ok(())
});

scenario!(a_stream_that_cudarc_still_has_is_leaked, "full", ["FAKE_TALLY" = "1"], || {
    let device = Device::open(0)?;
    let ours = device.stream()?;
    let stream = ours.to_cudarc()?;
    drop((ours, device));
    say("it still works");
    let slice = theirs(stream.clone_htod(&[1u32, 2]))?;
    say(format!("{:?}", theirs(stream.clone_dtoh(&slice))?));
    Ok(())
});

scenario!(the_current_context_stays, "full", [], || {
    let device = Device::open(0)?;
    let context = device.to_cudarc()?;
    say(context.is_primary() && device.raw_context()? == context.cu_ctx().cast());
    say(Device::from_cudarc(&context)?.raw_context()? == device.raw_context()?);
    let stream = device.stream()?.to_cudarc()?;
    say("no cuCtxSetCurrent so far");
    drop((context, stream));
    Ok(())
});

scenario!(slices_are_arguments_and_buffers, "full", ["FAKE_TALLY" = "1"], || {
    let device = Device::open(0)?;
    let context = theirs(CudaContext::new(0))?;
    let stream = theirs(context.new_stream())?;
    let mut slice = theirs(stream.clone_htod(&[1.0f32, 2.0]))?;
    let ours = Stream::from_cudarc(&stream)?;
    let program = Program::load(&device, &common::artifact()?)?;
    let (read, _until_launched) = Arg::cudarc(&slice, &stream);
    let kernels = [Arg::from(0), read, Arg::from(0u32)];
    // Arguments are type-checked: `lose` takes no pointer.
    say(ours.launch(&program.kernel("lose")?, &LaunchConfig::new(1, 1), &kernels).unwrap_err());
    drop((kernels, _until_launched));
    let (_written, until_launched) = Arg::cudarc_mut(&mut slice, &stream);
    drop(until_launched);
    let buffer = Buffer::from_cudarc(slice)?;
    say(format!("{:?}", buffer.to_vec()?));
    say(buffer.into_memory().into_raw().unwrap_err());
    say("cudarc freed it");
    Ok(())
});

scenario!(buffers_are_views_for_cudarc, "full", ["FAKE_TALLY" = "1"], || {
    let device = Device::open(0)?;
    let context = device.to_cudarc()?;
    let stream = theirs(context.new_stream())?;
    let mut buffer = Buffer::from_slice(&device, &[1u32, 2, 3])?;
    let sum = buffer.with_cudarc(&stream, |view| stream.clone_dtoh(&view))?;
    say(format!("{:?}", theirs(sum)?));
    let written = buffer.with_cudarc_mut(&stream, |mut view| stream.memset_zeros(&mut view))?;
    theirs(written)?;
    say(format!("{:?}", buffer.to_vec()?));
    // A panic inside the closure frees nothing, and the drop waits.
    let panicked = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        let _ = buffer.with_cudarc(&stream, |_| -> u32 { panic!("on purpose") });
    }));
    say(panicked.is_err());
    say(format!("{:?}", buffer.to_vec()?));
    Ok(())
});

scenario!(
    a_buffer_is_lent_between_launches,
    "full",
    ["FAKE_POLLS" = "3", "FAKE_GPUS" = "2"],
    || {
        let device = Device::open(0)?;
        let context = device.to_cudarc()?;
        let theirs_stream = theirs(context.new_stream())?;
        let (ours, other) = (Stream::from_cudarc(&theirs_stream)?, device.stream()?);
        let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
        let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
        let one = LaunchConfig::new(1, 1);
        let buffer = Buffer::from_slice(&device, &[1u32])?;
        other.launch(&kernel, &one, &args)?;
        buffer.with_cudarc(&theirs_stream, |_| {
            say("lent");
            ours.launch(&kernel, &one, &args)
        })??;
        say("back");
        let elsewhere = theirs(theirs(CudaContext::new(1))?.new_stream())?;
        say(buffer.with_cudarc(&elsewhere, |_| ()).unwrap_err());
        Ok(())
    }
);

scenario!(
    nothing_of_cudarc_is_freed_after_a_time_out,
    "full",
    ["FAKE_POLLS" = "100000000", "FAKE_TALLY" = "1"],
    || {
        let device = Device::open(0)?;
        let context = device.to_cudarc()?;
        let owner = theirs(context.new_stream())?;
        let buffer = Buffer::from_cudarc(theirs(owner.alloc_zeros::<u32>(4))?)?;
        let stream = Stream::from_cudarc(&owner)?;
        drop((owner, context));
        let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
        let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
        stream.launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
        say(stream.synchronize(Duration::from_millis(20)).unwrap_err());
        drop((buffer, stream, kernel, device));
        Ok(())
    }
);

scenario!(
    a_stream_that_cudarc_had_is_not_let_go_after_a_time_out,
    "full",
    ["FAKE_POLLS" = "100000000", "FAKE_TALLY" = "1"],
    || {
        let device = Device::open(0)?;
        let stream = device.stream()?;
        drop(stream.to_cudarc()?);
        let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
        let args = [Arg::from(0), Arg::from(0u32), Arg::from(0u32)];
        stream.launch(&kernel, &LaunchConfig::new(1, 1), &args)?;
        say(stream.synchronize(Duration::from_millis(20)).unwrap_err());
        drop((stream, kernel, device));
        Ok(())
    }
);

scenario!(events_for_a_view_may_fail, "full", ["FAKE_FAIL" = "cuEventCreate:46"], || {
    let device = Device::open(0)?;
    let stream: Arc<CudaStream> = device.to_cudarc()?.default_stream();
    let buffer = Buffer::from_slice(&device, &[1u32])?;
    buffer.with_cudarc(&stream, |_| ())
});

scenario!(raw_handles_keep_their_owner, "full", ["FAKE_TALLY" = "1"], || {
    /// Prints when it is dropped.
    struct Owner(&'static str);
    impl Drop for Owner {
        fn drop(&mut self) {
            say(format!("{} is free", self.0));
        }
    }
    let device = Device::open(0)?;
    let (made, event) = (device.stream()?, Event::new(&device)?);
    let memory = DeviceMemory::alloc_zeroed(&device, 8)?;
    // SAFETY: handles of that device, which live until the end.
    let (stream, marked, seen) = unsafe {
        (
            Stream::borrow_raw(&device, made.raw()?, Owner("the stream"))?,
            Event::borrow_raw(&device, event.raw()?, Owner("the event"))?,
            DeviceMemory::borrow_raw(&device, memory.address(), 8, Owner("the memory"))?,
        )
    };
    stream.record(&marked)?;
    launch(&stream)?;
    let words = Buffer::<u32>::from_memory(seen)?;
    say(format!("{:?}", words.to_vec()?));
    drop((stream, marked, words));
    say("none is destroyed so far");
    let (address, bytes) = memory.into_raw()?;
    say(format!("{bytes} bytes"));
    // SAFETY: ownership was just released.
    drop(unsafe { DeviceMemory::from_raw(&device, address, bytes) }?);
    // SAFETY: never used: the handle is refused.
    say(unsafe { Stream::borrow_raw(&device, 2 as _, ()) }.unwrap_err());
    // SAFETY: never used: the memory is refused, and not freed.
    let odd = unsafe { DeviceMemory::borrow_raw(&device, 6, 8, ()) }?;
    say(Buffer::<u32>::from_memory(odd).unwrap_err());
    // SAFETY: as above.
    let half = unsafe { DeviceMemory::borrow_raw(&device, 8, 6, ()) }?;
    say(Buffer::<u32>::from_memory(half).unwrap_err());
    Ok(())
});

scenario!(what_cannot_be_shared_says_why, "full", [], || {
    let device = Device::open(0)?;
    let green = GreenContext::with_sms(&device, 16)?;
    say(green.stream()?.to_cudarc().map(|_| ()).unwrap_err());
    say(format!("{:?}", green.raw()?));
    let context = theirs(CudaContext::new(0))?;
    say(Stream::from_cudarc(&context.per_thread_stream()).map(|_| ()).unwrap_err());
    let program = Program::load(&device, &common::artifact()?)?;
    say(format!("{:?}", program.kernel("lose")?.raw()?));

    let cpu = Device::open_cpu(CpuConfig::default())?;
    say(cpu.raw_context().unwrap_err());
    say(cpu.to_cudarc().map(|_| ()).unwrap_err());
    say(cpu.stream()?.to_cudarc().map(|_| ()).unwrap_err());
    say(Event::new(&cpu)?.raw().unwrap_err());
    let mut buffer = Buffer::<u32>::alloc_zeroed(&cpu, 1)?;
    say(buffer.with_cudarc_mut(&context.default_stream(), |_| ()).unwrap_err());
    say(buffer.into_memory().into_raw().unwrap_err());
    Ok(())
});

// With a driver that does not report parameters: the fake one knows only those of `lose`.
scenario!(addresses_have_a_type_and_a_device, "old", [], || {
    let device = Device::open(0)?;
    let stream = device.stream()?;
    let other = Device::open_cpu(CpuConfig::default())?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("poke")?;
    let one = LaunchConfig::new(1, 1);
    for argument in [
        Arg::at_mut::<u32>(&device, 0x1000),
        Arg::at::<u32>(&device, 0x1000),
        Arg::at_mut::<f32>(&device, 0x1000),
        Arg::at_mut::<u32>(&other, 0x1000),
    ] {
        match stream.launch(&kernel, &one, &[argument]) {
            Ok(()) => say("launched"),
            Err(error) => say(error),
        }
    }
    Ok(())
});
