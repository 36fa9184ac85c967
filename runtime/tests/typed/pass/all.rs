//! Every kind of parameter, with every kind of memory.
#![deny(warnings, missing_docs, unreachable_pub, unsafe_code, unused_results)]

use gridlet_runtime::typed::{Bool, DevicePointer, F32x2, F32x4, F64x4, U8x3, U16x3, bf16, f16};
use gridlet_runtime::unified::{HostBuffer, ManagedBuffer, RegisteredMemory};
use gridlet_runtime::{Buffer, Device, LaunchConfig, Result, Stream};

mod kinds {
    include!("../kinds.rs");
}
use kinds::{Mixed, Node, Program};

struct Memories {
    buffer: Buffer<f32>,
    managed: ManagedBuffer<f32>,
    host: HostBuffer<f32>,
    registered: RegisteredMemory<f32>,
}

fn launch(program: &Program, stream: &Stream, memories: &mut Memories) -> Result<()> {
    let Memories { buffer, managed, host, registered } = memories;
    let config = LaunchConfig::new(1, 32);
    program.saxpy(stream, &config, 1, 2.0, &*buffer, &mut *managed)?;
    program.saxpy(stream, &config, 1, 2.0, &mut *managed, &mut *host)?;
    program.saxpy(stream, &config, 1, 2.0, &*host, &mut *registered)?;
    program.saxpy(stream, &config, 1, 2.0, &*registered, &mut *buffer)?;
    let pointer = DevicePointer::from(&*buffer);
    program.saxpy(stream, &config, 1, 2.0, pointer, pointer.add(16))?;
    program.scalars(
        stream, &config, true, -1, -2, -3, -4, 1, 2, 3, 4, f16::from_f32(0.5), bf16::from_f32(1.5), 0.25, 0.75,
    )?;
    let node = Node::new(DevicePointer::null(), F32x2::new(1.0, 2.0), true.into());
    let flags = [true, false, true].map(Bool::from);
    let mixed = Mixed::new(1, 2.0, flags, f16::ONE, U8x3::new(1, 2, 3), node, [node; 2], -5);
    assert_eq!(mixed.node.value.y, 2.0);
    program.values(
        stream,
        &config,
        mixed,
        kinds::whole::new(3, 4),
        F64x4::default(),
        U16x3::from([1, 2, 3]),
        [1, 2, 3],
        kinds::dim3::new(1, 1, 1),
        0,
    )?;
    program.tile_minus_1_false(stream, &config, DevicePointer::null())
}

fn pointers(
    program: &Program,
    stream: &Stream,
    nodes: &mut Buffer<Node>,
    flags: &Buffer<Bool>,
    lists: &Buffer<DevicePointer<f32>>,
    rows: &mut Buffer<[f32; 4]>,
    points: &Buffer<F32x4>,
    halves: &Buffer<bf16>,
) -> Result<()> {
    program.pointers(stream, &LaunchConfig::new(1, 1), nodes, flags, lists, rows, points, halves)
}

fn main() {
    let _ = (launch as fn(&_, &_, &mut _) -> _, pointers as fn(&_, &_, &mut _, &_, &_, &mut _, &_, &_) -> _);
    let padded = Node::new(DevicePointer::new(1), F32x2::default(), Bool::default());
    let mut other = padded;
    assert_eq!(padded, other);
    other.live = true.into();
    assert_ne!(padded, other);
    assert!(format!("{padded:?}").starts_with("Node { next: DevicePointer(0x1), value: F32x2"));
    assert!(!format!("{padded:?}").contains("padding"));
    let device = Device::open_cpu(gridlet_runtime::CpuConfig::default()).expect("the CPU");
    // This test includes the source in place of the bundle.
    assert!(Program::load(&device).is_err());
}
