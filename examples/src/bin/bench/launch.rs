//! The cost of a launch on the host: by a generated method, by name with arguments checked at run time, and by the
//! driver's `cuLaunchKernel` alone, for one kernel and one configuration in one process.

use std::ffi::{c_char, c_int, c_uint, c_void};
use std::ptr;
use std::time::Instant;

use anyhow::Context as _;
use gridlet_examples::particles::Program;
use gridlet_runtime::{Arg, Artifact, Buffer, Device, LaunchConfig, Stream};

use crate::bare::{check, symbol};
use crate::measure::{Options, Report, Times};

/// Launches that are timed together: few enough for the driver's queue, so that none waits.
const LAUNCHES: u32 = 400;

type LaunchKernel = unsafe extern "C" fn(
    *mut c_void,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    c_uint,
    *mut c_void,
    *mut *mut c_void,
    *mut *mut c_void,
) -> c_int;

/// The driver's own interface, called directly.
struct Bare {
    launch: LaunchKernel,
    function: *mut c_void,
    stream: *mut c_void,
}

impl Bare {
    /// The kernel `saxpy` of the image in the current context, and a stream there.
    fn new(image: &[u8]) -> anyhow::Result<Bare> {
        let mut image = image.to_vec();
        image.push(0);
        let (mut module, mut function, mut stream) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: the signatures are the driver API's; a context is current, the image is PTX that ends in a NUL byte,
        // and all pointers are valid. The objects created here live until the process ends.
        unsafe {
            type Load = unsafe extern "C" fn(*mut *mut c_void, *const c_void) -> c_int;
            type Function =
                unsafe extern "C" fn(*mut *mut c_void, *mut c_void, *const c_char) -> c_int;
            type Stream = unsafe extern "C" fn(*mut *mut c_void, c_uint) -> c_int;
            let load = symbol::<Load>(c"cuModuleLoadData")?;
            check("cuModuleLoadData", load(&mut module, image.as_ptr().cast()))?;
            let get = symbol::<Function>(c"cuModuleGetFunction")?;
            check("cuModuleGetFunction", get(&mut function, module, c"saxpy".as_ptr()))?;
            // CU_STREAM_NON_BLOCKING, like the streams of gridlet-runtime.
            check("cuStreamCreate", symbol::<Stream>(c"cuStreamCreate")?(&mut stream, 1))?;
            Ok(Bare { launch: symbol(c"cuLaunchKernel")?, function, stream })
        }
    }

    fn launch(&self, n: u32, a: f32, x: u64, y: u64, swapped: bool) -> c_int {
        let mut parameters: [*mut c_void; 5] = [
            (&raw const n).cast_mut().cast(),
            (&raw const a).cast_mut().cast(),
            (&raw const x).cast_mut().cast(),
            (&raw const y).cast_mut().cast(),
            (&raw const swapped).cast_mut().cast(),
        ];
        let (function, stream) = (self.function, self.stream);
        // SAFETY: function and stream live; the parameters are the kernel's, which touches no memory for `n` 0.
        unsafe {
            (self.launch)(
                function,
                1,
                1,
                1,
                32,
                1,
                1,
                0,
                stream,
                parameters.as_mut_ptr(),
                ptr::null_mut(),
            )
        }
    }

    fn synchronize(&self) -> anyhow::Result<()> {
        type Synchronize = unsafe extern "C" fn(*mut c_void) -> c_int;
        // SAFETY: the stream lives.
        check("cuStreamSynchronize", unsafe {
            symbol::<Synchronize>(c"cuStreamSynchronize")?(self.stream)
        })
    }
}

/// Microseconds of each of [`LAUNCHES`] launches.
fn each(mut launch: impl FnMut() -> anyhow::Result<()>) -> anyhow::Result<f64> {
    let started = Instant::now();
    for _ in 0..LAUNCHES {
        launch()?;
    }
    Ok(started.elapsed().as_secs_f64() * 1e6 / f64::from(LAUNCHES))
}

pub(crate) fn launch_times(options: &Options, report: &mut Report) -> anyhow::Result<()> {
    let device = Device::open(0)?;
    println!("\nlaunches by the host, on {}:", device.info().name);
    let program = Program::load(&device).context("the typed program")?;
    let kernel = program.saxpy_kernel();
    let (stream, config) = (device.stream()?, LaunchConfig::new(1, 32));
    let x = Buffer::from_slice(&device, &[1f32])?;
    let mut y = Buffer::from_slice(&device, &[1f32])?;
    let artifact = Artifact::from_bytes(Program::BUNDLE)?;
    let (_, image) = artifact
        .image_for(device.info().compute_capability)
        .context("the typed program has no image for this GPU")?;

    let mut typed =
        |stream: &Stream| each(|| Ok(program.saxpy(stream, &config, 0, 2.0, &x, &mut y, false)?));
    let (x2, mut y2) =
        (Buffer::from_slice(&device, &[1f32])?, Buffer::from_slice(&device, &[1f32])?);
    let mut dynamic = |stream: &Stream| {
        each(|| {
            let arguments = [
                Arg::from(0u32),
                Arg::from(2f32),
                Arg::from(&x2),
                Arg::from(&mut y2),
                Arg::from(false),
            ];
            Ok(stream.launch(kernel, &config, &arguments)?)
        })
    };

    // Alternating, so that other load on the machine affects all alike; the first round warms up.
    let current = device.make_current()?;
    let bare = Bare::new(image)?;
    let mut times: [Vec<f64>; 3] = Default::default();
    for round in 0..=options.repeat.max(1) * 4 {
        let bare_time =
            each(|| check("cuLaunchKernel", bare.launch(0, 2.0, x.address(), x.address(), false)))?;
        bare.synchronize()?;
        let typed_time = typed(&stream)?;
        stream.synchronize_default()?;
        let dynamic_time = dynamic(&stream)?;
        stream.synchronize_default()?;
        if round > 0 {
            for (times, time) in times.iter_mut().zip([bare_time, typed_time, dynamic_time]) {
                times.push(time);
            }
        }
    }
    drop(current);
    let outside = Times::measure(options.repeat, || {
        let time = typed(&stream)?;
        stream.synchronize_default()?;
        Ok(time)
    })?;
    let [bare, typed, dynamic] = times.map(Times::of);
    report.add_times("launch by the host, cuLaunchKernel alone", &bare, "µs each");
    for (what, times) in [
        ("a generated method", typed),
        ("arguments checked at run time", dynamic),
        ("a generated method, context not current", outside),
    ] {
        report.add_times(format!("launch by the host, {what}"), &times, "µs each");
        report.add("  of cuLaunchKernel alone", times.median / bare.median, "times");
    }
    Ok(())
}
