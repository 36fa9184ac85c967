//! The cost of loading on the host: a program's image by the driver's `cuModuleLoadData` alone and by `Program`,
//! alternating in one process. Both read the image from memory. A time ends when the module, or its first kernel, is
//! available, because a loader may postpone most of its work until the first kernel is requested.

use std::env;
use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr;

use anyhow::{Context as _, anyhow};
use gridlet::arch::CudaArch;
use gridlet::artifact;
use gridlet::compile::{self, BuildOptions, Session};
use gridlet::source::SourceMap;
use gridlet_examples::quicksort;
use gridlet_runtime::{Device, Program};

use crate::bare::{check, symbol};
use crate::measure::{Options, Report, Times, checked, timed};

/// A program whose kernels launch nothing: its image has no device runtime.
const SMALL: &str = "kernel fill(p: *mut u32, value: u32) { p[thread_idx.x] = value; }\n";

/// The driver's modules.
struct Modules {
    load: unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> c_int,
    function: unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> c_int,
    unload: unsafe extern "C" fn(*mut c_void) -> c_int,
}

impl Modules {
    fn new() -> anyhow::Result<Modules> {
        // SAFETY: the signatures are the driver API's.
        unsafe {
            Ok(Modules {
                load: symbol(c"cuModuleLoadData")?,
                function: symbol(c"cuModuleGetFunction")?,
                unload: symbol(c"cuModuleUnload")?,
            })
        }
    }

    /// Milliseconds to load a cubin into the current context, with a kernel of it if one is named.
    fn load(&self, cubin: &[u8], kernel: Option<&CStr>) -> anyhow::Result<f64> {
        let (mut module, mut function) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: a context is current, the cubin is whole, and all pointers are valid. No kernel of the module runs when
        // it is unloaded.
        unsafe {
            let (time, ()) = timed(|| {
                check("cuModuleLoadData", (self.load)(&mut module, cubin.as_ptr().cast()))?;
                match kernel {
                    Some(name) => check(
                        "cuModuleGetFunction",
                        (self.function)(&mut function, module, name.as_ptr()),
                    ),
                    None => Ok(()),
                }
            })?;
            check("cuModuleUnload", (self.unload)(module))?;
            Ok(time)
        }
    }
}

pub(crate) fn load_times(
    session: &Session,
    options: &Options,
    report: &mut Report,
) -> anyhow::Result<()> {
    let device = Device::open(0)?;
    let capability = device.info().compute_capability;
    let arch = CudaArch::for_device(capability.major, capability.minor).ok_or_else(|| {
        anyhow!("Gridlet cannot build for GPUs of compute capability {capability}")
    })?;
    let mode = env::var("CUDA_MODULE_LOADING").unwrap_or_else(|_| "the driver's choice".into());
    println!("\nloading, on {}, CUDA_MODULE_LOADING: {mode}:", device.info().name);
    // A bundle as it would be distributed, with an image for other GPUs as well.
    let [oldest, ..] = CudaArch::SUPPORTED;
    let archs = [oldest, arch];
    let small = compile::check(SourceMap::single("small.grid", SMALL))?;
    let nested = checked(&quicksort::EXAMPLE)?;
    let modules = Modules::new()?;
    for (what, program, kernel) in
        [("a kernel", &small, "fill"), ("nested launches", &nested, "quicksort")]
    {
        let archs = if arch == oldest { &archs[1..] } else { &archs };
        let built = artifact::build(session, program, archs, &BuildOptions::for_arch(arch))?;
        let bundle: &'static [u8] = built.to_bytes()?.leak();
        let (_, cubin) = built.image_for(capability).context("no image for this GPU")?;
        let (bytes, name) = (cubin.len(), CString::new(kernel)?);
        println!("a program with {what}: {bytes} bytes of cubin, a bundle of {}", bundle.len());
        let current = device.make_current()?;
        // Alternating, so that other load on the machine affects all alike; the first rounds warm up.
        let mut times: [Vec<f64>; 7] = Default::default();
        for round in 0..3 + options.repeat.max(1) * 8 {
            let (copied, _) = timed(|| Ok(Program::from_bundle(&device, bundle)?))?;
            let (contained, _) = timed(|| Ok(Program::from_static_bundle(&device, bundle)?))?;
            let (loaded, _) = timed(|| Ok(Program::load(&device, &built)?))?;
            let kernel_of = |program: Program| Ok((program.kernel(kernel)?, program));
            let (with_kernel, _) = timed(|| kernel_of(Program::load(&device, &built)?))?;
            let (with_both, _) =
                timed(|| kernel_of(Program::from_static_bundle(&device, bundle)?))?;
            let bare = modules.load(cubin, None)?;
            let bare_kernel = modules.load(cubin, Some(&name))?;
            if round >= 3 {
                let round = [bare, loaded, copied, contained, bare_kernel, with_kernel, with_both];
                times.iter_mut().zip(round).for_each(|(times, time)| times.push(time));
            }
        }
        drop(current);
        let [bare, loaded, copied, contained, bare_kernel, with_kernel, with_both] =
            times.map(|times| Times::of(times).scaled(1e3));
        report.add_times(format!("load {what}, cuModuleLoadData alone"), &bare, "µs");
        compare(report, format!("load {what}, Program::load"), &loaded, &bare);
        compare(report, format!("load {what}, Program::from_bundle"), &copied, &bare);
        compare(report, format!("load {what}, Program::from_static_bundle"), &contained, &bare);
        let with = format!("load {what}, and get it,");
        report.add_times(format!("{with} by the driver alone"), &bare_kernel, "µs");
        compare(report, format!("{with} by Program::kernel"), &with_kernel, &bare_kernel);
        compare(report, format!("{with} from a static bundle"), &with_both, &bare_kernel);
    }
    Ok(())
}

/// Times, and their ratio to the driver's.
fn compare(report: &mut Report, what: String, times: &Times, bare: &Times) {
    report.add_times(what, times, "µs");
    report.add("  of the driver alone", times.median / bare.median, "times");
    report.add("  of the driver alone, at best", times.best / bare.best, "times");
}
