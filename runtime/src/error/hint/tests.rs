//! Every variant with its message and its hint.

use gridlet_artifact::{ArtifactProblem, Dim3, LaunchStrategy};
use gridlet_cpu::{CpuFault, FaultKind, SourceLine};

use crate::error::*;
use crate::strategy::full_pool;

/// The variants' names, and a function that returns a value's name; a variant missing here does not compile.
macro_rules! variants {
    ($($variant:ident)*) => {
        const VARIANTS: &[&str] = &[$(stringify!($variant)),*];

        fn variant(error: &Error) -> &'static str {
            match error {
                $(Error::$variant { .. } => stringify!($variant),)*
            }
        }
    };
}
variants!(NoDriver DriverTooOld MissingCall MissingFeature NotOnCpu Resource NoDevice DeviceName Cuda Fault Artifact
    NoImage UnknownKernel UnknownGlobal GlobalType ArgumentCount Argument NotRecorded NotChecked Launch WouldBlock
    ParameterMismatch Partition LimitTooLate LaunchMemory Length OtherDevice TimedOut Unusable Broken HostMemoryInUse NotRecovered LostLaunches
    CpuFault Checked CpuImage CpuThreads CpuMemory Foreign);

fn fault(code: i32) -> Box<Fault> {
    let kernels = vec!["walk".into()];
    Box::new(Fault { call: "cuStreamQuery", code, name: "CUDA_ERROR_SO".into(), kernels })
}

fn cuda(code: i32) -> Error {
    let (name, message) = ("CUDA_ERROR_SO".into(), "so it is".into());
    Error::Cuda(Box::new(CudaError {
        call: "cuMemAlloc_v2",
        code,
        name,
        message,
        log: String::new(),
    }))
}

fn artifact(problem: ArtifactProblem) -> Error {
    ArtifactError { artifact: "a.gridlet".into(), problem }.into()
}

fn cpu_fault(kind: FaultKind, is_checked: bool) -> Error {
    Error::CpuFault(Box::new(CpuFault {
        kind,
        kernel: "walk".into(),
        block: None,
        thread: None,
        address: None,
        location: None,
        launched_at: None,
        is_checked,
    }))
}

/// `stopped`: the line of the block that was stopped, and whether its accesses were checked.
fn timed_out(is_cpu: bool, stopped: Option<(Option<u32>, bool)>) -> Error {
    let stopped = stopped.map(|(line, is_checked)| {
        Box::new(CpuFault {
            kind: FaultKind::Cancelled,
            kernel: "walk".into(),
            block: Some(Dim3::new(1, 0, 0)),
            thread: None,
            address: None,
            location: line.map(|line| SourceLine { file: "tree.grid".into(), line }),
            launched_at: None,
            is_checked,
        })
    });
    Error::TimedOut { seconds: 60.0, what: "a stream with `walk`".into(), is_cpu, stopped }
}

fn launch(problem: LaunchProblem) -> Error {
    Error::Launch { kernel: "walk".into(), problem }
}

fn lost(strategy: LaunchStrategy, error: i32) -> Error {
    Error::LostLaunches(Box::new(LostLaunches {
        program: "tree".into(),
        count: 2,
        error,
        name: cuda_error_name(error).into(),
        file: "tree.grid".into(),
        line: 7,
        full_pool: full_pool(strategy, false, error),
    }))
}

/// At least one value of each variant, and one for each kind of hint.
fn samples() -> Vec<Error> {
    let version = CudaVersion::new;
    let dim = Dim3::from(0);
    let mut samples = vec![
        Error::NoDriver { reason: "no libcuda.so".into() },
        Error::DriverTooOld { found: version(11, 8), needed: version(12, 0) },
        Error::MissingCall {
            call: "cuDevSmResourceSplit",
            since: version(13, 1),
            found: version(13, 0),
        },
        Error::MissingFeature {
            call: "cuDeviceGetDevResource",
            feature: "workqueues",
            since: version(13, 1),
            found: version(13, 0),
        },
        Error::NotOnCpu { what: "launch queue" },
        Error::Resource(Box::new(ResourceProblem::NoGroups)),
        Error::NoDevice { ordinal: 0, found: 0 },
        Error::NoDevice { ordinal: 3, found: 2 },
        Error::DeviceName { reason: "no device `gpu`".into() },
        Error::NoImage { device: "a GPU".into(), available: vec!["PTX for compute_90".into()] },
        Error::UnknownKernel { name: "walk".into(), known: vec!["run".into()] },
        Error::UnknownGlobal { name: "total".into(), known: vec![] },
        Error::GlobalType { name: "total".into(), is: "u32".into(), asked: "u64".into() },
        Error::ArgumentCount { kernel: "walk".into(), expected: 2, given: 1 },
        Error::Argument {
            kernel: "walk".into(),
            index: 0,
            parameter: "n".into(),
            expected: "a value of type `u32`".into(),
            given: "a value of type `i32`".into(),
        },
        Error::NotRecorded,
        Error::NotChecked { program: "tree".into(), kernel: "walk".into() },
        Error::WouldBlock { launches: 958, allowed: 958 },
        Error::ParameterMismatch {
            kernel: "walk".into(),
            index: 1,
            manifest: "offset 4 and size 4".into(),
            driver: "none".into(),
        },
        Error::Partition { asked: 200, available: 132, minimum: 8, alignment: 8 },
        Error::LimitTooLate { limit: "limit of the kernels' heap" },
        Error::LaunchMemory { kernel: "walk".into(), bytes: 4096, workers: 528, needed: 700_000 },
        Error::Length { expected: 4, given: 8 },
        Error::OtherDevice { what: "the event".into(), expected: 0, given: CPU_DEVICES },
        timed_out(false, None),
        timed_out(true, None),
        timed_out(true, Some((None, false))),
        timed_out(true, Some((Some(7), true))),
        Error::Unusable { ordinal: 0, what: "a stream with `walk`".into() },
        Error::Broken { ordinal: 0, fault: fault(700) },
        Error::HostMemoryInUse { ordinal: 0, buffers: 2 },
        Error::NotRecovered { ordinal: 0, reason: Box::new(Error::Fault(fault(700))) },
        lost(LaunchStrategy::Cdp, 69),
        lost(LaunchStrategy::Resident, 69),
        lost(LaunchStrategy::Cdp, 9),
        cpu_fault(FaultKind::Access, false),
        cpu_fault(FaultKind::Access, true),
        cpu_fault(FaultKind::Trap, false),
        cpu_fault(FaultKind::StackOverflow, true),
        cpu_fault(FaultKind::NoMemory, false),
        Error::Checked(Box::new(Findings { reports: vec![], further: 1 })),
        Error::CpuImage { reason: "no `gridlet_abi`".into() },
        Error::CpuThreads { reason: "the system refuses".into() },
        Error::CpuMemory { bytes: 1 << 40 },
        Error::Foreign { what: "a cudarc stream", reason: "it is another in each thread".into() },
    ];
    samples.extend([1, 2, 3, 46, 100, 200, 218, 222, 304, 701, 802, 804, 805].map(cuda));
    samples.extend([214, 700, 702, 714].map(|code| Error::Fault(fault(code))));
    let file = || "a.cubin".to_string();
    samples.extend(
        [
            ArtifactProblem::Io("permission denied".into()),
            ArtifactProblem::NotABundle("it begins otherwise".into()),
            ArtifactProblem::Truncated("no end".into()),
            ArtifactProblem::NoManifest,
            ArtifactProblem::NotAManifest("line 1".into()),
            ArtifactProblem::TooNew { found: 9, supported: 1 },
            ArtifactProblem::Strategy("teleport".parse::<LaunchStrategy>().unwrap_err()),
            ArtifactProblem::Inconsistent("two kernels of one name".into()),
            ArtifactProblem::NoImage(file()),
            ArtifactProblem::ImageSize { file: file(), expected: 2, found: 1 },
            ArtifactProblem::ImageChecksum {
                file: file(),
                expected: "00".into(),
                found: "01".into(),
            },
            ArtifactProblem::ImageHash { file: file(), expected: "00".into(), found: "01".into() },
            ArtifactProblem::ImageCount { expected: 1, found: 2 },
        ]
        .map(artifact),
    );
    samples.extend(
        [
            LaunchProblem::Zero { what: "grid", dim },
            LaunchProblem::Extent { what: "grid", dim, axis: 'y', limit: 65_535 },
            LaunchProblem::BlockThreads { threads: 2048, limit: 1024 },
            LaunchProblem::LaunchBounds { threads: 256, limit: 128 },
            LaunchProblem::KernelThreads { threads: 1024, limit: 640 },
            LaunchProblem::Shared { dynamic_bytes: 300_000, static_bytes: 0, limit: 232_448 },
            LaunchProblem::NoClusters { device: "a GPU of 8.6".into() },
            LaunchProblem::ClusterGrid { grid: dim, cluster: dim, axis: 'x' },
            LaunchProblem::ClusterSize { cluster: dim, limit: 8 },
            LaunchProblem::NoCooperative { device: "the CPU device".into() },
            LaunchProblem::CooperativeGrid { blocks: 300, per_sm: 2, sms: 132 },
            LaunchProblem::Resident { what: "clusters" },
        ]
        .map(launch),
    );
    samples
}

#[test]
fn every_error_says_what_to_do() {
    let samples = samples();
    for name in VARIANTS {
        assert!(samples.iter().any(|error| variant(error) == *name), "no sample of {name}");
    }
    let lines = samples.iter().map(|error| {
        let hint = error.hint().map_or_else(String::new, |hint| format!("\n    hint: {hint}"));
        format!("{}: {error}{hint}", variant(error))
    });
    insta::assert_snapshot!(lines.collect::<Vec<_>>().join("\n"));
}
