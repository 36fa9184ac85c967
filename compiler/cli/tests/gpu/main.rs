//! `gridlet run` and related commands on a GPU. Without one, each test prints that it was skipped,
//! unless `GRIDLET_REQUIRE_GPU=1`.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

#[path = "../../../tests/devices/gpu.rs"]
mod gpu;
#[path = "../support/mod.rs"]
mod support;

use gpu::under_memcheck;
use gridlet_runtime::Device;
use support::devices::GPU;
use support::{Gridlet, NESTED, Output, folder, json, program};
use tempfile::TempDir;

/// Whether there is a GPU; if not, prints that `test` is skipped.
fn gpu(test: &str) -> bool {
    let missing = match Device::list() {
        Ok(devices) if !devices.is_empty() => return true,
        Ok(_) => "the driver lists no device".to_owned(),
        Err(error) => error.to_string(),
    };
    gpu::skip(test, &missing);
    false
}

/// Why memcheck reports errors where launches are lost: when the pool is full,
/// `cudaGetParameterBufferV2` gives every thread the same address, which is in no allocation, and
/// `cudaLaunchDeviceV2` fails.
const LOST_BUFFERS: &str = "the device runtime's buffers of lost launches are in no allocation";

/// `gridlet run p.grid` with additional arguments, given as one text.
fn run(folder: &TempDir, rest: &str) -> Output {
    GPU.run(folder, "p.grid", rest)
}

#[test]
fn lost_launches_are_counted_and_placed() {
    let name = "lost_launches_are_counted_and_placed";
    if under_memcheck(name, LOST_BUFFERS) || !gpu(name) {
        return;
    }
    GPU.reports_lost_launches(&[8192]);
}

#[test]
fn try_launch_hands_the_status_to_the_program() {
    let name = "try_launch_hands_the_status_to_the_program";
    if under_memcheck(name, LOST_BUFFERS) || !gpu(name) {
        return;
    }
    GPU.gives_statuses_to_try_launch();
}

#[test]
fn results_are_the_same_in_a_partition_and_by_every_way_to_machine_code() {
    if !gpu("results_are_the_same_in_a_partition_and_by_every_way_to_machine_code") {
        return;
    }
    let ways = ["--sms 16", "-O 0", "--backend nvptx", "--backend nvptx -O 0", "--stats"];
    GPU.sorts_alike(&ways);
}

#[test]
fn statistics_say_how_deep_launches_nest_and_where_they_run() {
    if !gpu("statistics_say_how_deep_launches_nest_and_where_they_run") {
        return;
    }
    let device = Device::open(0).unwrap();
    let info = device.info();
    let folder = program(NESTED);
    let call = "--kernel tree --grid 1 --block 1 --arg [1] --arg 4 --print count --stats --json";
    for more in ["", "-O 0", "--backend nvptx"] {
        let output = run(&folder, &format!("{call} {more}"));
        assert_eq!(output.status, 0, "{more}: {output:?}");
        let result = json(&output);
        assert_eq!(result["launches"]["made"], 4 + 16 + 64 + 256, "{more}");
        assert_eq!(result["launches"]["deepest_nesting"], 4, "{more}");
        assert_eq!(result["launches"]["may_be_deeper"], false, "{more}");
        assert_eq!(result["buffers"]["count"][0], 341, "{more}");
        assert_eq!(result["sms"]["host"].as_array().unwrap().len(), 1, "one block: {more}");
        let children = result["sms"]["kernels"].as_array().unwrap().len();
        eprintln!("{children} of {} SMs ran children{more}", info.sm_count);
        assert!(children >= 1 && children <= info.sm_count as usize, "{children}");
    }
    let outer = "--kernel outer --grid 1 --block 1 --arg [1] --stats --json";
    let result = json(&run(&folder, outer));
    assert_eq!(result["launches"]["deepest_nesting"], 3, "{result}");
    assert_eq!(result["launches"]["may_be_deeper"], true, "{result}");

    // With `cdp`, a partition confines the host's grids, apart from SMs shared by all partitions, but not
    // their children; with `resident` it confines all.
    let wide = "kernel child(p: *mut u32) { let end = clock64() + 200000; while clock64() < end {} atomic_add(p, 1); }\n\
                kernel wide(p: *mut u32) { let end = clock64() + 200000; while clock64() < end {} \
                if block_idx.x == 0 && thread_idx.x == 0 { \
                launch child<<<2048, 64, stream = fire_and_forget>>>(p); } }\n";
    let folder = program(wide);
    for strategy in ["cdp", "resident"] {
        let call = "--kernel wide --grid 2048 --block 64 --arg [1] --stats --json --sms 20";
        let output = run(&folder, &format!("{call} --launch {strategy}"));
        assert_eq!(output.status, 0, "{output:?}");
        let count = |of: &str| json(&output)["sms"][of].as_array().unwrap().len();
        let (host, kernels) = (count("host"), count("kernels"));
        let said = &output.stderr;
        eprintln!(
            "--sms 20, {strategy}: {host} SMs ran the host's grid, {kernels} its child; {said}"
        );
        if info.compute_capability.major != 9 {
            continue;
        }
        assert!(said.contains("note: 20 SMs requested, 24 given"), "{said}");
        let warns = said.contains("warning: --sms 20: kernels launched from the device leave");
        if strategy == "cdp" {
            assert!((24..=26).contains(&host), "{host}");
            assert!(kernels > 26 && warns, "{kernels} {said}");
        } else {
            assert_eq!((host, kernels, warns), (24, 24, false), "{said}");
        }
    }
}

#[test]
fn a_bundle_runs_as_its_source_does() {
    if gpu("a_bundle_runs_as_its_source_does") {
        GPU.runs_bundles();
    }
}

#[test]
fn faults_traps_and_endless_kernels_exit_4() {
    let name = "faults_traps_and_endless_kernels_exit_4";
    if under_memcheck(name, "its kernels are wrong on purpose") || !gpu(name) {
        return;
    }
    GPU.exits_4_after_faults(&[("*p = 1;", "--arg null", "CUDA_ERROR_ILLEGAL_ADDRESS")]);
}

#[test]
fn a_launch_the_device_cannot_make_is_a_wrong_call() {
    if !gpu("a_launch_the_device_cannot_make_is_a_wrong_call") {
        return;
    }
    let folder = GPU.refuses_launches(&[("--grid 1 --block 1 --sms 1000", "1000")]);
    let output = run(&folder, "--kernel k --grid 1 --block 1 --device cuda:99");
    assert_eq!(output.status, 3, "{output:?}");
}

#[test]
fn device_and_doctor_describe_the_machine() {
    if !gpu("device_and_doctor_describe_the_machine") {
        return;
    }
    let folder = folder();
    let device = Gridlet::new(&folder).run(&["device", "--json"]);
    assert_eq!(device.status, 0, "{device:?}");
    let first = &json(&device)["devices"][0];
    assert_eq!(first["driver_limits"]["pending_launches"], 2048, "{first}");
    assert!(first["stream_priorities"][0].as_i64() < Some(0), "{first}");
    eprintln!("{}", first["green_context_features"]);
    assert!(first["sm_count"].as_u64().unwrap() > 0 && !first["name"].as_str().unwrap().is_empty());
    let doctor = Gridlet::new(&folder).run(&["doctor", "--json"]);
    assert_eq!(doctor.status, 0, "{doctor:?}");
    assert_eq!(json(&doctor)["gpu"]["found"], true);
}

#[test]
fn the_launch_queue_is_measured() {
    let name = "the_launch_queue_is_measured";
    let why = "its kernels wait for the host, and a launch waits for its kernel";
    if under_memcheck(name, why) || !gpu(name) {
        return;
    }
    let folder = folder();
    let probe = ["probe", "launch-queue", "--streams", "1,3", "--plot", "p.svg", "--json"];
    let output = Gridlet::new(&folder).run(&probe);
    assert_eq!(output.status, 0, "{output:?}");
    let result = json(&output);
    let rows = result["measurements"].as_array().unwrap();
    let depths: Vec<u64> =
        rows.iter().map(|row| row["result"]["launches"].as_u64().unwrap()).collect();
    eprintln!("{depths:?}");
    let &[one, three, one_large, three_large, a, b, c, quarter, half, twice, four, few, many] =
        depths.as_slice()
    else {
        panic!("{depths:?}")
    };
    assert!(one > 500 && three == 3 * one, "a channel for each stream: {depths:?}");
    assert_eq!((one_large, three_large), (one, three), "the size of grids does not matter");
    assert_eq!((few, many), (one, one), "nor does the pool of pending launches");
    assert!(a < b && b < c, "more connections, more channels: {depths:?}");
    assert!(quarter < half && half < one && one < twice && twice < four, "{depths:?}");
    assert!(folder.path().join("p.svg").exists());
}

/// nvcc's output for `float g(float x, bool take, signed char c, S s)`, abridged.
const DEFINITION: &str = "\
.version 6.4
.target sm_70
.address_size 64
.visible .func (.param .b32 result) g(
    .param .b32 x, .param .b32 take, .param .b32 c, .param .align 8 .b8 s[16]
)
{
    .reg .pred %p;
    .reg .b16 %h;
    .reg .f32 %f<4>;
    .reg .f64 %d<3>;
    ld.param.f32 %f0, [x];
    ld.param.s8 %h, [c];
    cvt.rn.f32.s16 %f1, %h;
    ld.param.s8 %h, [take];
    setp.eq.s16 %p, %h, 0;
    @%p mov.f32 %f1, 0f00000000;
    ld.param.f32 %f2, [s];
    ld.param.f64 %d0, [s+8];
    cvt.rn.f32.f64 %f3, %d0;
    add.f32 %f0, %f0, %f1;
    add.f32 %f0, %f0, %f2;
    add.f32 %f0, %f0, %f3;
    st.param.f32 [result], %f0;
    ret;
}
";

/// nvcc's output for functions that double the fields of a struct and reverse a `uchar2` and a
/// `float4`, abridged.
const RETURNING: &str = "\
.version 6.4
.target sm_70
.address_size 64
.visible .func (.param .align 8 .b8 result[16]) doubled(.param .align 8 .b8 s[16])
{
    .reg .f32 %f;
    .reg .f64 %d;
    ld.param.f32 %f, [s];
    ld.param.f64 %d, [s+8];
    add.f32 %f, %f, %f;
    add.f64 %d, %d, %d;
    st.param.f32 [result], %f;
    st.param.f64 [result+8], %d;
    ret;
}
.visible .func (.param .align 2 .b8 result[2]) swapped(.param .align 2 .b8 v[2])
{
    .reg .b16 %h<2>;
    ld.param.u8 %h0, [v];
    ld.param.u8 %h1, [v+1];
    st.param.b8 [result], %h1;
    st.param.b8 [result+1], %h0;
    ret;
}
.visible .func (.param .align 16 .b8 result[16]) turned(.param .align 16 .b8 v[16])
{
    .reg .f32 %f<4>;
    ld.param.v4.f32 {%f0, %f1, %f2, %f3}, [v];
    st.param.v4.f32 [result], {%f3, %f2, %f1, %f0};
    ret;
}
";

#[test]
fn structs_that_linked_functions_return_arrive() {
    if !gpu("structs_that_linked_functions_return_arrive") {
        return;
    }
    let folder = program(
        "struct S { a: f32, b: f64 }\n\
         extern fn doubled(s: S) -> S;\n\
         extern fn swapped(v: u8x2) -> u8x2;\n\
         extern fn turned(v: f32x4) -> f32x4;\n\
         kernel k(p: *mut f32) {\n\
         let s = doubled(S { a: p[2], b: p[1] as f64 });\n\
         let v = swapped(u8x2(p[2] as u8, 9));\n\
         let t = turned(f32x4(1.0, 2.0, 3.0, p[3]));\n\
         p[0] = s.a;\np[1] = s.b as f32;\np[2] = v.x as f32 + v.y as f32 * 16.0;\n\
         p[3] = t.x * 1000.0 + t.y * 100.0 + t.z * 10.0 + t.w;\n}\n",
    );
    std::fs::write(folder.path().join("r.ptx"), RETURNING).unwrap();
    let output =
        run(&folder, "--kernel k --block 1 --grid 1 --arg [4]=iota --print p --json --link r.ptx");
    assert_eq!(output.status, 0, "{output:?}");
    assert_eq!(json(&output)["buffers"]["p"], serde_json::json!([4.0, 2.0, 41.0, 3321.0]));
}

#[test]
fn functions_of_linked_modules_and_instances_in_used_files_run() {
    if !gpu("functions_of_linked_modules_and_instances_in_used_files_run") {
        return;
    }
    let folder = program(
        "use \"lib.grid\";\nkernel k(p: *mut f32) { launch fill::<3, -5><<<1, 3>>>(p); }\n",
    );
    let lib = "struct S { a: f32, b: f64 }\n\
               extern fn g(x: f32, take: bool, c: i8, s: S) -> f32;\n\
               kernel fill<const N: u32, const C: i8>(p: *mut f32) {\n\
               let i = thread_idx.x;\n\
               if i < N { p[i] = g(p[i], i != 1, C, S { a: 100.0, b: 1000.0 }); }\n}\n";
    std::fs::write(folder.path().join("lib.grid"), lib).unwrap();
    std::fs::write(folder.path().join("g.ptx"), DEFINITION).unwrap();
    for (kernel, block, expected) in
        [("k", 1, [1095, 1101, 1097, 3]), ("fill::<2,7>", 4, [1107, 1101, 2, 3])]
    {
        let rest = "--grid 1 --arg [4]=iota --print p --json --link g.ptx";
        let output = run(&folder, &format!("--kernel {kernel} --block {block} {rest}"));
        assert_eq!(output.status, 0, "{output:?}");
        let found = json(&output)["buffers"]["p"].clone();
        let found: Vec<f64> =
            found.as_array().unwrap().iter().map(|value| value.as_f64().unwrap()).collect();
        assert_eq!(found, expected.map(f64::from), "{kernel}");
    }
}
