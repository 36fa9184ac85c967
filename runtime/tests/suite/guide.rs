//! Checks `docs/runtime.md` against the code: its tables are complete and correct.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use gridlet_runtime::unified::{
    HostBuffer, ManagedBuffer, ManagedRange, PointerQuery, RegisteredMemory,
};
use gridlet_runtime::{
    Device, DeviceMemory, Event, GreenContext, Kernel, ResourceDescriptor, SmResource, Stream,
};

const PAGE: &str = include_str!("../../../docs/runtime.md");
const CALLS: &str = include_str!("../../src/driver/calls.rs");

/// Every function that NVIDIA's pages describe or mention.
const NAMED: &str = "
    cuCtxFromGreenCtx cuCtxGetDevResource cuDevResourceGenerateDesc cuDevSmResourceSplit
    cuDevSmResourceSplitByCount cuDeviceGetDevResource cuGreenCtxCreate cuGreenCtxDestroy
    cuGreenCtxGetDevResource cuGreenCtxGetId cuGreenCtxRecordEvent cuGreenCtxStreamCreate cuGreenCtxWaitEvent
    cuStreamGetDevResource cuStreamGetGreenCtx
    cuMemAdvise cuMemAdvise_v2 cuMemPrefetchAsync cuMemPrefetchAsync_v2 cuMemRangeGetAttribute
    cuMemRangeGetAttributes cuPointerGetAttribute cuPointerGetAttributes cuPointerSetAttribute
    cuArrayCreate cuCtxCreate cuCtxCreate_v3 cuCtxDestroy cuCtxEnablePeerAccess cuCtxGetId
    cuCtxGetStreamPriorityRange cuCtxPushCurrent cuCtxRecordEvent cuCtxSetCurrent cuCtxWaitEvent
    cuDeviceGetAttribute cuDevicePrimaryCtxRetain cuEventQuery cuEventRecord cuMemAddressReserve cuMemAlloc
    cuMemAllocHost cuMemAllocManaged cuMemAllocPitch cuMemExportToShareableHandle cuMemFree cuMemFreeHost
    cuMemGetAddressRange cuMemHostAlloc cuMemHostGetDevicePointer cuMemHostRegister cuMemHostUnregister
    cuMemcpy cuMemcpy3DPeerAsync cuMemcpyAsync cuMemcpyDtoD cuMemcpyDtoH cuMemcpyHtoD cuMemcpyPeer
    cuOccupancyMaxPotentialClusterSize cuStreamAddCallback cuStreamCreate cuStreamCreateWithPriority
    cuStreamDestroy cuStreamGetCtx cuStreamGetCtx_v2 cuStreamGetDevice cuStreamGetFlags cuStreamGetPriority
    cuStreamQuery cuStreamSynchronize cuStreamWaitEvent
    cudaGetParameterBuffer cudaGetParameterBufferV2 cudaLaunchDevice cudaLaunchDeviceV2 cudaDeviceSetLimit
    cudaLimitDevRuntimePendingLaunchCount cudaIpcGetMemHandle";

/// Each name as the page spells it; the compiler checks that it exists.
macro_rules! names {
    ($($ty:ty $([$method:ident])?,)*) => {
        fn names() -> BTreeSet<String> {
            BTreeSet::from([$({
                let _ = size_of::<$ty>();
                $(let _ = <$ty>::$method;)?
                let ty = stringify!($ty).split('<').next().unwrap_or_default().trim();
                let method: &[&str] = &[$(stringify!($method))?];
                method.first().map_or(ty.to_string(), |method| format!("{ty}::{method}"))
            }),*])
        }
    };
}
names! {
    Device [can_access_peer],
    Device [context_sm_resource],
    Device [disable_peer_access],
    Device [enable_peer_access],
    Device [info],
    Device [make_current],
    Device [open],
    Device [peer_attributes],
    Device [set_limit],
    Device [set_pending_launch_limit],
    Device [sm_resource],
    Device [stream_priorities],
    Device [stream_with_priority],
    DeviceMemory,
    DeviceMemory [alloc],
    DeviceMemory [copy_from],
    DeviceMemory [copy_from_host],
    DeviceMemory [copy_to_host],
    Event [is_done],
    GreenContext,
    GreenContext [id],
    GreenContext [make_current],
    GreenContext [new],
    GreenContext [record],
    GreenContext [sm_resource],
    GreenContext [stream_with_priority],
    GreenContext [wait_event],
    HostBuffer<u8>,
    HostBuffer<u8> [address],
    HostBuffer<u8> [alloc_zeroed],
    HostBuffer<u8> [is_write_combined],
    Kernel [attributes],
    Kernel [max_active_clusters],
    Kernel [max_cluster_blocks],
    Kernel [set_carveout],
    Kernel [best_block],
    ManagedBuffer<u8> [alloc],
    ManagedRange<'_> [accessed_by],
    ManagedRange<'_> [advise],
    ManagedRange<'_> [attributes],
    ManagedRange<'_> [prefetch],
    PointerQuery<'_> [info],
    PointerQuery<'_> [memory_type],
    PointerQuery<'_> [set_sync_memops],
    RegisteredMemory<u8> [into_vec],
    RegisteredMemory<u8> [new],
    SmResource [split],
    SmResource [split_by_count],
    Stream,
    Stream [is_in_its_green_context],
    Stream [launch],
    Stream [priority],
    Stream [record],
    Stream [sm_resource],
    Stream [synchronize],
    Stream [wait_event],
}

/// Same, for functions whose argument types must be given.
fn generic_names() -> [String; 3] {
    let _ = |sms: SmResource| ResourceDescriptor::new([sms]);
    let _ = |kernel: &Kernel| (kernel.max_active_blocks(1, 0), kernel.available_shared_bytes(1, 1));
    ["ResourceDescriptor::new", "Kernel::max_active_blocks", "Kernel::available_shared_bytes"]
        .map(String::from)
}

/// A row in a table of driver functions.
struct Row {
    function: &'static str,
    rust: &'static str,
    test: &'static str,
    run: &'static str,
}

fn code(cell: &'static str) -> &'static str {
    cell.split('`').nth(1).unwrap_or_else(|| panic!("no code in {cell:?}"))
}

fn cells(line: &'static str) -> Vec<&'static str> {
    line.trim_matches('|').split('|').map(str::trim).collect()
}

fn rows() -> Vec<Row> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `cu")).map(cells);
    let rows = rows.filter(|cells| cells.len() == 4);
    rows.map(|cells| Row {
        function: code(cells[0]),
        rust: cells[1],
        test: code(cells[2]),
        run: cells[3],
    })
    .collect()
}

/// The functions that the page lists as not called.
fn not_called() -> Vec<&'static str> {
    let rows = PAGE.lines().filter(|line| line.starts_with("| `cu")).map(cells);
    let rows = rows.filter(|cells| cells.len() == 2);
    rows.flat_map(|cells| cells[0].split('`').filter(|word| word.starts_with("cu"))).collect()
}

/// The calls in `calls.rs`, by the groups in its comments.
fn calls() -> BTreeMap<&'static str, Vec<&'static str>> {
    let mut groups = BTreeMap::<_, Vec<_>>::new();
    let (mut group, mut in_comment) = ("", false);
    for line in CALLS.lines().map(str::trim) {
        let comment = line.strip_prefix("// ");
        if let (Some(comment), false) = (comment, in_comment) {
            group = comment.split([',', '.']).next().unwrap_or_default();
        }
        in_comment = comment.is_some();
        if (line.starts_with("cudarc (") || line.starts_with("ours ("))
            && let Some(name) = line.split(") ").nth(1).and_then(|rest| rest.split('(').next())
        {
            groups.entry(group).or_default().push(name);
        }
    }
    groups
}

/// Removes the version suffix.
fn stem(function: &str) -> &str {
    function.rsplit_once("_v").map_or(function, |(stem, _)| stem)
}

#[test]
fn handles_go_between_threads() {
    fn both<T: Send + Sync>() {}
    both::<(Device, Stream, Event, Kernel)>();
    both::<(DeviceMemory, GreenContext, gridlet_runtime::Program, gridlet_runtime::Error)>();
    both::<(gridlet_runtime::Buffer<f32>, ManagedBuffer<f32>, HostBuffer<f32>)>();
}

#[test]
fn every_function_that_nvidia_names_has_a_row() {
    let rows = rows();
    let have: BTreeSet<&str> = rows.iter().map(|row| row.function).chain(not_called()).collect();
    let missing: Vec<&str> = NAMED
        .split_whitespace()
        .filter(|name| !have.iter().any(|row| row == name || stem(row) == *name))
        .collect();
    assert!(missing.is_empty(), "no row of {missing:?}");
    assert_eq!(have.len(), rows.len() + not_called().len(), "a function has two rows");
}

#[test]
fn every_name_of_the_page_exists() {
    let mut names = names();
    names.extend(generic_names());
    for row in rows() {
        let name = code(row.rust);
        let known = names.contains(name) || row.rust == "`launch` in a program";
        assert!(known, "{}: `{name}` is not in the list of this test", row.function);
    }
}

#[test]
fn every_test_of_the_page_exists() {
    fn sources(folder: &Path, all: &mut String) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                sources(&path, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                all.push_str(&fs::read_to_string(path).unwrap());
            }
        }
    }
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..");
    let (mut gpu, mut other) = (String::new(), String::new());
    sources(&root.join("runtime/tests/gpu"), &mut gpu);
    for folder in ["runtime/tests", "nvvm-tests/tests"] {
        sources(&root.join(folder), &mut other);
    }
    for Row { function, test, run, .. } in rows() {
        let is_test = |text: &str| {
            text.contains(&format!("fn {test}()")) || text.contains(&format!("scenario!({test},"))
        };
        assert!(is_test(&other), "{function}: no test `{test}`");
        // Tests with the fake driver did not run on a GPU, and tests on a GPU are in `gpu`.
        let on_gpu = run.starts_with("H200 ") || run.starts_with("Two H200s ");
        let elsewhere = run.starts_with("Fake") || run == "Compiler";
        assert!(on_gpu != elsewhere, "{function}: {run}");
        assert_eq!(is_test(&gpu), on_gpu, "{function}: `{test}` is said to be run so: {run}");
    }
}

#[test]
fn no_call_of_those_groups_is_missing() {
    let (groups, rows) = (calls(), rows());
    for group in ["Unified Addressing", "Peer Context Memory Access", "Green Contexts"] {
        for call in &groups[group] {
            assert!(rows.iter().any(|row| row.function == *call), "{group}: no row of {call}");
        }
    }
    // No row names a call that is not made.
    let made: BTreeSet<&str> = groups.values().flatten().copied().collect();
    for row in rows.iter().filter(|row| !row.function.starts_with("cuda")) {
        assert!(made.contains(row.function), "{} is not called", row.function);
    }
    for function in not_called() {
        assert!(!made.contains(function), "{function} is called");
    }
}
