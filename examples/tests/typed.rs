//! The program whose launches Rust's compiler checks, run on the CPU device and, where there is one, on a GPU.

use gridlet_examples::particles::{Particle, Program, World};
use gridlet_runtime::typed::{DevicePointer, F32x2};
use gridlet_runtime::{Buffer, CpuConfig, Device, Error, LaunchConfig, Result};

const N: usize = 1000;

fn particle(i: usize) -> Particle {
    let velocity = F32x2::new(i as f32, 0.0);
    Particle::new(F32x2::new(0.0, i as f32), velocity, (!i.is_multiple_of(10)).into())
}

/// The kernel `step` in Rust.
fn stepped(mut p: Particle, dt: f32, world: &World) -> Particle {
    if p.alive.get() {
        p.velocity.y -= world.gravity * dt;
        p.position.x += p.velocity.x * dt;
        p.position.y += p.velocity.y * dt;
        if p.position.y < world.floor {
            p.position.y = world.floor;
            p.velocity.y = -p.velocity.y;
            p.alive = world.bounces;
        }
    }
    p
}

fn run(device: &Device) -> Result<()> {
    let program = Program::load(device)?;
    let stream = device.stream()?;
    let config = LaunchConfig::new(8, 128);
    // Numbers that make every step exact, however it is rounded.
    let (dt, world) = (0.5, World::new(2.0, 100.25, false.into()));
    let start: Vec<Particle> = (0..N).map(particle).collect();
    let mut particles = Buffer::from_slice(device, &start)?;
    program.step(&stream, &config, N as u32, dt, world, &mut particles)?;
    let mut heights = Buffer::<f32>::alloc_zeroed(device, N)?;
    program.coordinates_1(&stream, &config, N as u32, &particles, &mut heights)?;
    let mut widths = Buffer::<f32>::alloc_zeroed(device, N)?;
    program.coordinates_0(&stream, &config, N as u32, &particles, &mut widths)?;
    let expected: Vec<Particle> = start.iter().map(|p| stepped(*p, dt, &world)).collect();
    assert_eq!(particles.to_vec()?, expected);
    assert_eq!(heights.to_vec()?, expected.iter().map(|p| p.position.y).collect::<Vec<_>>());
    assert_eq!(widths.to_vec()?, expected.iter().map(|p| p.position.x).collect::<Vec<_>>());
    let hits = expected.iter().zip(&start).filter(|(now, then)| now.alive != then.alive).count();
    assert_eq!(program.hits()?.to_vec()?, [hits as u32]);
    assert!(hits > 50);

    // One buffer for two parameters, and a `bool`.
    let mut y = Buffer::from_slice(device, &[1f32, 2.0, 3.0])?;
    let x = DevicePointer::from(&y);
    program.saxpy(&stream, &config, 3, 2.0, x, &mut y, false)?;
    program.saxpy(&stream, &config, 3, 9.0, x, x, true)?;
    stream.synchronize_default()?;
    assert_eq!(y.to_vec()?, [3.0, 6.0, 9.0]);

    let error = program.saxpy(&stream, &LaunchConfig::new(1, 4096), 3, 2.0, x, &mut y, false);
    assert!(matches!(error, Err(Error::Launch { .. })), "{error:?}");
    assert_eq!(program.saxpy_kernel().name(), "saxpy");
    Ok(())
}

#[test]
fn typed_launches_run_on_the_cpu() -> Result<()> {
    let device = Device::open_cpu(CpuConfig::default())?;
    run(&device)?;
    // Memory of another device, passed by an otherwise correct host.
    let other = Device::open_cpu(CpuConfig::default())?;
    let (program, mut y) = (Program::load(&device)?, Buffer::from_slice(&other, &[1f32])?);
    let (stream, config) = (device.stream()?, LaunchConfig::new(1, 1));
    let error = program.saxpy(&stream, &config, 1, 1.0, DevicePointer::null(), &mut y, false);
    assert!(matches!(error, Err(Error::OtherDevice { .. })), "{error:?}");
    let error = program.program().global_as::<u64>("hits").map(|_| ());
    assert_eq!(
        error.map_err(|error| error.to_string()),
        Err("the variable `hits` is `u32`, which does not hold `u64` elements".into())
    );
    Ok(())
}

#[test]
fn typed_launches_run_on_a_gpu() -> Result<()> {
    match Device::open(0) {
        Ok(device) => run(&device),
        Err(error) => {
            let text = format!("SKIPPED: typed_launches_run_on_a_gpu needs an NVIDIA GPU: {error}");
            let required =
                std::env::var_os("GRIDLET_REQUIRE_GPU").is_some_and(|value| value == "1");
            assert!(!required, "{text}");
            eprintln!("{text}");
            Ok(())
        }
    }
}
