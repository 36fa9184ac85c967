//! 10,000 runs on the CPU device must not leak threads, descriptors, mappings or memory. A separate test program,
//! because it counts the resources of the whole process.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[path = "device/c_image.rs"]
mod c_image;

use std::fs;
use std::time::Duration;

use gridlet_cpu::{CpuConfig, CpuDevice, Error};

const RUNS: u32 = 10_000;

#[derive(Debug)]
struct Holdings {
    threads: usize,
    descriptors: usize,
    mappings: usize,
    kib: usize,
}

fn holdings() -> Holdings {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let field = |name: &str| -> usize {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap();
        line.split_whitespace().next().unwrap().parse().unwrap()
    };
    Holdings {
        threads: field("Threads:"),
        descriptors: fs::read_dir("/proc/self/fd").unwrap().count(),
        mappings: fs::read_to_string("/proc/self/maps").unwrap().lines().count(),
        kib: field("VmRSS:"),
    }
}

/// Opens a device, loads the image, launches nested grids, sometimes with a fault, and closes everything.
fn run(image: &[u8], number: u32) {
    let config = CpuConfig { threads: Some(2), ..CpuConfig::default() };
    let device = CpuDevice::new(config).unwrap();
    let image = device.load(image).unwrap();
    let stream = device.stream();
    let counter = device.alloc(64).unwrap().cast::<u32>();
    // SAFETY: the allocation has 64 bytes.
    unsafe { counter.write_bytes(0, 16) };
    let words = [counter as u64, 5, u64::from(number % 2 * 4)];
    let parameters: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    stream.launch(&image.kernel("tree").unwrap(), [1; 3], [1; 3], 0, &parameters).unwrap();
    if number.is_multiple_of(3) {
        stream.wait(Duration::from_secs(60)).unwrap();
        // SAFETY: no kernel is running.
        assert_eq!(unsafe { counter.read() }, 63);
        let trapper =
            image.kernel(if number.is_multiple_of(2) { "trapper" } else { "wild" }).unwrap();
        stream.launch(&trapper, [3, 1, 1], [33, 1, 1], 0, &[0; 8]).unwrap();
        let failed = stream.wait(Duration::from_secs(60)).unwrap_err();
        assert!(matches!(failed, Error::Fault(_)), "{failed}");
        assert_eq!(device.live(), (0, 1));
    }
    drop(stream);
    if number.is_multiple_of(3) {
        assert!(device.free(counter.cast()));
    }
    // In the other runs, the device ends the grids when it is dropped and then frees the memory.
}

#[test]
fn runs_leave_no_resources_behind() {
    let Some(image) = c_image::image(&[]) else { return };

    for number in 0..200 {
        run(&image, number);
    }
    let before = holdings();
    for number in 0..RUNS {
        run(&image, number);
    }
    let after = holdings();
    assert_eq!(after.threads, before.threads, "{before:?} {after:?}");
    assert_eq!(after.descriptors, before.descriptors, "{before:?} {after:?}");
    assert!(after.mappings <= before.mappings + 20, "{before:?} {after:?}");
    // Less than a kilobyte per run.
    assert!(after.kib <= before.kib + RUNS as usize / 2, "{before:?} {after:?}");
}
