//! Shared memory of the grid that the host launches.

use gridlet_simulate::{Device, Grid, Options};

use super::{Nested, Root, Workers};

// `common` lies behind `other`, because `child` uses both, and instances of functions come last. So the root needs more than the
// size of its own variables.
const SOURCE: &str = "
kernel child(out: *mut u32) {
    shared other: [u32; 61];
    other[thread_idx.x] = 5;
    *common::<1>() = 1;
    sync_threads();
    if thread_idx.x == 0 { atomic_add(out, other[31] + *common::<1>()); }
}

fn common<const N: u32>() -> *mut u32 {
    shared common: [u32; N];
    return &common[0];
}

kernel root(out: *mut u32) {
    shared own: [u8; 7];
    dynamic shared words: [u32];
    own[thread_idx.x % 7] = 1;
    for i in (thread_idx.x..64).step(32) { words[i] = i; }
    *common::<1>() = 3;
    sync_threads();
    if thread_idx.x == 0 { launch child<<<1, 32, stream = fire_and_forget>>>(out); }
    if words[63] == 63 && own[6] == 1 && thread_idx.x == 0 { atomic_add(out, 1000 * *common::<1>()); }
}";

#[test]
fn the_root_has_room_for_its_variables_and_its_dynamic_memory() {
    let nested = Nested::new(SOURCE);
    let mut device = Device::new(&nested.program);
    let out = device.allocate(4);
    let workers = Workers { count: 2, more_warps: 0, more_records: 64 };
    let memory = nested.memory(&mut device, &workers);
    let parameters = out.to_le_bytes();
    let grid = Grid { shared: 64 * 4, ..Grid::new(1, 32) };
    let root = Root { kernel: "root", grid, parameters: &parameters };
    let launched = nested.launch(&mut device, memory, &root, &workers, &Options::seed(1));
    launched.unwrap_or_else(|failure| panic!("{failure}"));
    assert_eq!(device.read_words(out, 1), [3 * 1000 + 5 + 1]);
}
