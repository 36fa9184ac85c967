//! The programs in `in/right` give the same results on the CPU device, in any order of their
//! threads, and on a GPU if there is one: bit by bit, because they compute with integers.
//!
//! `//@` lines give the launch of kernel `k`, as in `check_mode.rs`. All memory starts as zeros.
//! `//@ varies=1` marks a program whose results depend on the order of its threads: it only has to
//! run.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::path::Path;
use std::time::Duration;

use crate::gpu::gpu_or_skip;
use crate::settings::{WORDS, settings};
use gridlet::artifact;
use gridlet::compile::{self, Backend, BuildOptions, Checked, Session};
use gridlet::cpu::CpuOptions;
use gridlet::source::SourceMap;
use gridlet::types::Type;
use gridlet_runtime::cpu::CpuConfig;
use gridlet_runtime::{Arg, Artifact, Device, DeviceMemory, LaunchConfig, Program};

const TIMEOUT: Duration = Duration::from_secs(60);

macro_rules! programs {
    ($($name:literal)*) => { [$(($name, include_str!(concat!("../in/right/", $name, ".grid")))),*] };
}

/// All of `in/right`, embedded in the test.
const PROGRAMS: &[(&str, &str)] = &programs![
    "atomics_by_pointers" "atomics_of_chosen_memory" "atomics_through_local_structs" "built_ins" "bytes"
    "children_count_down" "copies_in_streams" "copies_of_padding" "count_of_blocks_without_wait"
    "dynamic_as_two_types" "flag" "half_selections" "handover" "heap" "heap_handover"
    "heap_last_block_frees" "heap_written_before_use" "histogram" "join" "last_block" "locals"
    "locals_by_pointers" "lock" "lock_of_children" "long_loop" "neighbours" "noalias_halves"
    "order_of_a_block" "order_of_fence_and_store" "order_of_same_writer" "order_of_updates"
    "order_there_and_back" "pipeline" "pointer_before_static" "published_pointer" "reduction"
    "release_to_the_same" "scope_chain" "scope_fence_in_block" "scope_of_both_sides"
    "scope_of_ordered_children" "scope_of_own_block" "set_atomically" "set_by_parts" "set_in_loops"
    "set_last_element" "set_where_read" "static_from_its_end" "static_of_streams"
    "statics_from_end_to_end" "streams" "string_at_the_end" "strings" "tails" "ticket_of_blocks" "tile"
    "wait_for_ticket" "wait_in_block" "wait_of_few_rounds" "warp_barrier_after_half" "warp_edges"
    "warp_exchange" "warp_groups" "warp_halves" "warp_lane_alone_first" "warp_lane_skips_by_mask"
    "warp_mask_by_vote" "warp_mask_shrinks" "warp_masks_of_groups" "warp_of_returned_lanes"
    "warp_of_small_block" "warp_returns_from_loop" "warp_rounds_for_all" "warp_shuffle_within_mask"
    "warps"
];

fn check(name: &str, text: &str) -> Checked {
    let sources = SourceMap::single(format!("{name}.grid"), text);
    compile::check(sources).unwrap_or_else(|error| panic!("{name}: {error}"))
}

/// Runs kernel `k` and returns the contents of its buffers, in parameter order.
fn run(
    name: &str,
    device: &Device,
    program: &Checked,
    artifact: &Artifact,
    text: &str,
) -> Vec<Vec<u8>> {
    let values = settings(text);
    let value = |name: &str, default: u32| values.get(name).copied().unwrap_or(default);
    let layout = program.parameter_buffers().find(|layout| layout.kernel == "k").unwrap();
    let is_pointer = |ty: &Type| matches!(ty, Type::Pointer { .. });
    let pointers = layout.slots.iter().filter(|slot| is_pointer(&slot.ty));
    let mut buffers: Vec<DeviceMemory> = pointers
        .map(|slot| {
            DeviceMemory::alloc_zeroed(device, 4 * u64::from(value(&slot.name, WORDS as u32)))
        })
        .collect::<Result<_, _>>()
        .unwrap();
    let mut free = buffers.iter_mut();
    let arguments: Vec<Arg<'_>> = layout
        .slots
        .iter()
        .map(|slot| match slot.ty {
            Type::U32 => Arg::from(values[slot.name.as_str()]),
            _ => Arg::from(free.next().unwrap()),
        })
        .collect();
    let loaded = Program::load(device, artifact).unwrap();
    let stream = device.stream().unwrap();
    let config = LaunchConfig::new(value("grid", 1), value("block", WORDS as u32));
    let config = config.with_shared(value("shared", 0));
    stream.launch(&loaded.kernel("k").unwrap(), &config, &arguments).unwrap();
    stream.synchronize(TIMEOUT).unwrap_or_else(|error| panic!("{name}: {error}"));
    let copy = |buffer: &DeviceMemory| {
        let mut bytes = vec![0; buffer.len() as usize];
        buffer.copy_to_host(&mut bytes).unwrap();
        bytes
    };
    buffers.iter().map(copy).collect()
}

fn on_cpu(name: &str, text: &str, seed: Option<u64>, optimize: bool) -> Vec<Vec<u8>> {
    let program = check(name, text);
    let options = CpuOptions::default().with_optimize(optimize);
    let artifact = artifact::build_cpu(&Session::new(), &program, &options).unwrap();
    let device = Device::open_cpu(CpuConfig { seed, ..CpuConfig::default() }).unwrap();
    run(name, &device, &program, &artifact, text)
}

/// The results that do not depend on the order of threads: none if the program varies.
fn fixed(text: &str, results: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
    if settings(text).contains_key("varies") { vec![] } else { results }
}

#[test]
fn the_list_of_programs_is_the_folder() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/in/right");
    if !folder.exists() {
        // A bundle on another machine, without the sources.
        return;
    }
    let entries = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let stem = |path: std::path::PathBuf| path.file_stem().unwrap().to_string_lossy().into_owned();
    let mut stems: Vec<String> = entries.map(stem).collect();
    stems.sort();
    assert_eq!(stems, PROGRAMS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
}

#[test]
fn results_are_the_same_in_any_order_on_the_cpu() {
    for (name, text) in PROGRAMS {
        let straight = fixed(text, on_cpu(name, text, None, true));
        assert!(straight.iter().flatten().any(|byte| *byte != 0) || straight.is_empty(), "{name}");
        for (seed, optimize) in [(Some(1), true), (Some(2), false), (Some(3), true)] {
            let results = fixed(text, on_cpu(name, text, seed, optimize));
            assert!(results == straight, "{name}, seed {seed:?}: {results:?}, not {straight:?}");
        }
    }
}

#[test]
fn results_are_the_same_on_a_gpu() {
    let Some((device, arch)) = gpu_or_skip("results_are_the_same_on_a_gpu") else { return };
    let session = Session::new();
    for (name, text) in PROGRAMS {
        let program = check(name, text);
        let expected = fixed(text, on_cpu(name, text, None, true));
        for backend in [Backend::LibNvvm, Backend::Nvptx] {
            let options = BuildOptions::for_arch(arch).with_backend(backend);
            let artifact = artifact::build(&session, &program, &[arch], &options).unwrap();
            let results = fixed(text, run(name, &device, &program, &artifact, text));
            assert!(
                results == expected,
                "{name}: {results:?} on the GPU by {backend:?}, {expected:?} on the CPU"
            );
        }
    }
}
