//! Finds a GPU for tests, or skips them.

use gridlet::arch::CudaArch;
use gridlet_runtime::Device;

/// The first GPU and its architecture; if there is none, prints that `test` is skipped.
#[allow(dead_code, reason = "not every test crate that has this module needs it")]
pub(crate) fn gpu_or_skip(test: &str) -> Option<(Device, CudaArch)> {
    let device = match Device::open(0) {
        Ok(device) => device,
        Err(error) => {
            skip(test, &error.to_string());
            return None;
        }
    };
    let capability = device.info().compute_capability;
    let arch = CudaArch::for_device(capability.major, capability.minor);
    Some((device, arch.expect("an architecture that gridlet knows")))
}

/// Prints that `test` is skipped and why. Fails if `GRIDLET_REQUIRE_GPU` is set.
pub(crate) fn skip(test: &str, missing: &str) {
    let text = format!("SKIPPED: {test} needs an NVIDIA GPU: {missing}");
    let required = std::env::var_os("GRIDLET_REQUIRE_GPU").is_some_and(|value| value == "1");
    assert!(!required, "{text}");
    eprintln!("{text}");
}

/// Whether this process runs under compute-sanitizer's memcheck; if so, prints that `name` is
/// skipped.
#[allow(dead_code, reason = "not every test has something that cannot")]
pub(crate) fn under_memcheck(name: &str, why: &str) -> bool {
    let under = std::env::var_os("GRIDLET_MEMCHECK").is_some();
    if under {
        eprintln!("SKIPPED: {name} under memcheck: {why}");
    }
    under
}
