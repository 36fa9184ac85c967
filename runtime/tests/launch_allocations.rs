//! Checks that a launch allocates nothing, with the fake driver. A separate test program, because its allocator
//! counts.

#![cfg(target_os = "linux")]
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "test helpers panic, and a child process reports by printing"
)]

#[path = "suite/common.rs"]
mod common;
#[path = "suite/fake_driver/driver.rs"]
mod driver;
#[path = "suite/resident_artifact.rs"]
mod resident_artifact;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use driver::{driven, say};
use gridlet_runtime::typed::Parameters;
use gridlet_runtime::{Arg, Device, GreenContext, Kernel, LaunchConfig, Program, Result, Stream};

/// Counts allocations per thread.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: passes everything on to the system's allocator.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // A thread may allocate while it ends, after its counter is gone.
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: passed on to the caller.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: passed on to the caller.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = ALLOCATIONS.try_with(|count| count.set(count.get() + 1));
        // SAFETY: passed on to the caller.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(work: impl FnOnce() -> Result<()>) -> Result<u64> {
    let before = ALLOCATIONS.get();
    work()?;
    Ok(ALLOCATIONS.get() - before)
}

const LAUNCHES: usize = 1000;

/// Counts the allocations of a launch with dynamically typed arguments.
fn dynamic(stream: &Stream, kernel: &Kernel, config: &LaunchConfig) -> Result<u64> {
    let config = config.with_priority(-1);
    allocations(|| {
        for _ in 0..LAUNCHES {
            stream.launch(kernel, &config, &[Arg::from(1), Arg::from(2u32), Arg::from(3u32)])?;
        }
        Ok(())
    })
}

/// Counts the allocations of a launch by generated methods.
fn typed(stream: &Stream, kernel: &Kernel) -> Result<u64> {
    let config = LaunchConfig::new(1, 32);
    allocations(|| {
        for _ in 0..LAUNCHES {
            let mut parameters = Parameters::<12>::new();
            parameters.put::<0, _>(1i32);
            parameters.put::<4, _>(2u32);
            parameters.put::<8, _>(3u32);
            // SAFETY: these are the parameters of `lose`.
            unsafe { parameters.launch(stream, kernel, &config) }?;
        }
        Ok(())
    })
}

fn scenario() -> Result<()> {
    let device = Device::open(0)?;
    let kernel = Program::load(&device, &common::artifact()?)?.kernel("lose")?;
    let resident =
        Program::load(&device, &resident_artifact::resident_artifact()?)?.kernel("lose")?;
    let green = GreenContext::with_sms(&device, 16)?.stream()?;
    let whole = device.stream()?;
    say(format!(
        "the counter counts: {}",
        allocations(|| {
            std::hint::black_box(vec![0u8; 10]);
            Ok(())
        })?
    ));
    // The first launch finds the record, opts in to shared memory, and allocates launch memory.
    let large = LaunchConfig::new(1, 32).with_shared(100_000);
    for (name, stream) in [("the whole device", &whole), ("a green context", &green)] {
        let args = [Arg::from(1), Arg::from(2u32), Arg::from(3u32)];
        stream.launch(&kernel, &large, &args)?;
        stream.launch(&resident, &large, &args)?;
        stream.launch(&resident, &LaunchConfig::new(1, 32), &args)?;
        let (dynamic, typed) =
            (dynamic(stream, &kernel, &large.with_cluster(1))?, typed(stream, &kernel)?);
        say(format!("{name}: {dynamic} allocations of {LAUNCHES} launches, {typed} of typed ones"));
        let (dynamic, typed) =
            (self::dynamic(stream, &resident, &large)?, self::typed(stream, &resident)?);
        say(format!("{name}: {dynamic} of resident launches, {typed} of typed ones"));
        stream.synchronize_default()?;
    }
    Ok(())
}

#[test]
fn launches_allocate_nothing() {
    let quiet = [("FAKE_QUIET", "1")];
    if let Some(seen) =
        driven("launch_allocations::launches_allocate_nothing", "full", &quiet, scenario)
    {
        let said: Vec<&str> = seen.lines().filter(|line| line.starts_with("> ")).collect();
        assert_eq!(
            said,
            [
                "> the counter counts: 1",
                "> the whole device: 0 allocations of 1000 launches, 0 of typed ones",
                "> the whole device: 0 of resident launches, 0 of typed ones",
                "> a green context: 0 allocations of 1000 launches, 0 of typed ones",
                "> a green context: 0 of resident launches, 0 of typed ones",
            ]
        );
    }
}
