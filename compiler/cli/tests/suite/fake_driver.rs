//! The `gridlet` program with a fake driver, `runtime/tests/suite/fake_driver/fake.c`, whose launch queue
//! blocks like the real one, or forever.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{Gridlet, Output, folder, json};
use gridlet_runtime::artifact::describe_image;
use gridlet_runtime::manifest::{ImageKind, Manifest, Resident};
use gridlet_runtime::{Artifact, LaunchStrategy};
use tempfile::TempDir;

/// The folder with the driver; without a C compiler `None`, and a note that `test` is skipped.
fn driver(test: &str) -> Option<&'static Path> {
    static DRIVER: OnceLock<Option<PathBuf>> = OnceLock::new();
    let driver = DRIVER.get_or_init(|| {
        let name = format!("fake_driver-{}", std::process::id());
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
        fs::create_dir_all(&folder).unwrap();
        let source = folder.join("fake.c");
        fs::write(&source, include_str!("../../../../runtime/tests/suite/fake_driver/fake.c"))
            .unwrap();
        let library = folder.join("libcuda.so");
        let mut cc = Command::new("cc");
        cc.args(["-shared", "-fPIC", "-w", "-o"]).arg(&library).arg(&source);
        match cc.status() {
            Ok(status) => assert!(status.success(), "cc: {status}"),
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return None,
            Err(error) => panic!("cc: {error}"),
        }
        fs::copy(&library, folder.join("libcuda.so.1")).unwrap();
        Some(folder)
    });
    if driver.is_none() {
        eprintln!("SKIPPED: {test} needs a C compiler: no `cc` on the path");
    }
    driver.as_deref()
}

/// Runs the program with that driver and these driver settings. The driver's own output is removed.
fn call(folder: &TempDir, driver: &Path, settings: &[(&str, &str)], call: &str) -> Output {
    let mut gridlet = Gridlet::new(folder)
        .env("LD_LIBRARY_PATH", &driver.display().to_string())
        // As if a user had set them: they must not affect the measurements without a setting.
        .env("CUDA_DEVICE_MAX_CONNECTIONS", "2")
        .env("CUDA_SCALE_LAUNCH_QUEUES", "4x");
    for (name, value) in settings {
        gridlet = gridlet.env(name, value);
    }
    let call: Vec<&str> = call.split_whitespace().collect();
    let mut output = gridlet.run(&call);
    let is_call = |line: &str| {
        line.strip_prefix("cu").is_some_and(|rest| rest.starts_with(|c: char| c.is_uppercase()))
    };
    let is_ours = |line: &&str| !is_call(line);
    output.stdout = output.stdout.lines().filter(is_ours).map(|line| format!("{line}\n")).collect();
    output
}

/// A queue of 100 launches per channel. `hold` has two parameters of 8 bytes.
const QUEUE: [(&str, &str); 4] = [
    ("FAKE_QUEUE", "100"),
    ("FAKE_GRID", "65536"),
    ("FAKE_PARAMETERS", "2"),
    ("FAKE_PARAMETER_BYTES", "8"),
];

#[test]
fn the_launch_queue_is_measured_in_every_setting() {
    let Some(driver) = driver("the_launch_queue_is_measured_in_every_setting") else { return };
    let folder = folder();
    let probe = "probe launch-queue --streams 1,3,8,12 --plot depth.svg";
    let output = call(&folder, driver, &QUEUE, probe);
    assert_eq!((output.status, output.stderr.as_str()), (0, "note: plot written to depth.svg\n"));
    // The order of streams that share a channel differs from run to run.
    let mut filters = insta::Settings::clone_current();
    filters.add_filter(r" +\d+ to \d+ │", "   not alike │");
    filters.bind(|| insta::assert_snapshot!(output.stdout));

    let svg = fs::read_to_string(folder.path().join("depth.svg")).unwrap();
    assert!(svg.starts_with("<svg ") && svg.trim_end().ends_with("</svg>"), "{svg}");
    // A dot per measurement and a name per line.
    assert_eq!(svg.matches("<circle ").count(), 2 * 4 + 3 + 4 + 2, "{svg}");
    for name in ["1728 × 128 threads", "CUDA_SCALE_LAUNCH_QUEUES=0.25x", "pending launches: 128"] {
        assert!(svg.contains(name), "{name}: {svg}");
    }
}

#[test]
fn measurements_are_json_too() {
    let Some(driver) = driver("measurements_are_json_too") else { return };
    let output =
        call(&folder(), driver, &QUEUE, "probe launch-queue --streams 2 --json --device cuda:0");
    assert_eq!(output.status, 0, "{output:?}");
    let result = json(&output);
    assert_eq!(result["name"], "Fake GPU");
    let rows = result["measurements"].as_array().unwrap();
    assert_eq!(rows.len(), 2 + 3 + 4 + 2);
    assert_eq!(rows[1]["grid"], 1728);
    let depth = serde_json::json!({"launches": 200, "per_stream": [100, 100], "blocked": true});
    assert_eq!(rows[1]["result"], depth);
    assert_eq!(rows[2]["max_connections"], 1);
    assert_eq!(rows[2]["result"]["launches"], 100);
    assert_eq!(rows[5]["scale_launch_queues"], "0.25x");
    assert_eq!(rows[5]["result"]["launches"], 25);
    assert_eq!(rows[9]["pending_launches"], 128);
}

#[test]
fn a_measurement_that_hangs_is_ended() {
    let Some(driver) = driver("a_measurement_that_hangs_is_ended") else { return };
    let stuck = [QUEUE.as_slice(), &[("FAKE_STUCK", "1")]].concat();
    let output =
        call(&folder(), driver, &stuck, "probe launch-queue --streams 1 --timeout 0.8 --json");
    assert_eq!(output.status, 4, "{output:?}");
    let rows = json(&output)["measurements"].clone();
    for row in rows.as_array().unwrap() {
        assert_eq!(row["result"], serde_json::json!({"hung_after_s": 0.8}), "{row}");
    }
    assert_eq!(output.stderr, "error: 11 of 11 measurements gave no result\n");
}

#[test]
fn a_measurement_that_fails_says_why() {
    let Some(driver) = driver("a_measurement_that_fails_says_why") else { return };
    let broken = [QUEUE.as_slice(), &[("FAKE_LOAD", "218")]].concat();
    let output = call(&folder(), driver, &broken, "probe launch-queue --streams 1");
    assert_eq!(output.status, 4, "{output:?}");
    assert_eq!(
        output.stdout.matches("failed: `cuLibraryLoadData` failed").count(),
        11,
        "{output:?}"
    );
}

/// A stand-in for machine code that never runs.
const CUBIN: &[u8] = b"\x7fELF and machine code of k and __gridlet_resident";

#[test]
fn devices_are_described_with_what_the_driver_can_do() {
    let Some(driver) = driver("devices_are_described_with_what_the_driver_can_do") else { return };
    let text = |settings: &[(&str, &str)], more: &str| {
        let output = call(&folder(), driver, settings, &format!("device{more}"));
        assert_eq!((output.status, output.stderr.as_str()), (0, ""));
        output.stdout
    };
    let gpu = text(&[("FAKE_VERSION", "13000")], "");
    let (gpu, _) = gpu.split_once("\ncpu ").unwrap();
    insta::assert_snapshot!(gpu);
    let all: serde_json::Value = serde_json::from_str(&text(&[], " --json")).unwrap();
    let gpu = &all["devices"][0];
    assert_eq!(gpu["stream_priorities"], serde_json::json!([-5, 0]));
    assert_eq!(gpu["driver_limits"]["pending_launches"], 2048);
    assert_eq!(gpu["green_context_features"]["ids"], true);
    assert_eq!(gpu["green_context_features"]["workqueues"], false);
    assert!(all["devices"][1].get("stream_priorities").is_none());

    let broken = text(&[("FAKE_FAIL", "cuDevicePrimaryCtxRetain:46")], "");
    assert!(
        broken.contains("cannot be opened") && broken.contains("cuDevicePrimaryCtxRetain"),
        "{broken}"
    );
}

/// A bundle for the fake driver's GPU whose kernel has no parameters, and launches grids if
/// `launches`.
fn bundle(folder: &TempDir, launches: bool) {
    let runtime = serde_json::json!({"lost_launch_record": "__gridlet_lost_launches"});
    let kernel = serde_json::json!({
        "name": "k", "parameters": [], "parameter_bytes": 0, "static_shared_bytes": 0, "dynamic_shared": false,
        "launches": [],
    });
    let images = ["sm_90", "sm_120"]
        .map(|arch| describe_image(ImageKind::Cubin, arch, &format!("p.{arch}.cubin"), CUBIN));
    let manifest: Manifest = serde_json::from_value(serde_json::json!({
        "manifest_version": 1, "program": "p", "sources": ["p.grid"], "source_sha256": "00",
        "launch_strategy": "cdp", "kernels": [kernel], "structs": [],
        "device_runtime": if launches { runtime } else { serde_json::Value::Null },
        "images": images,
    }))
    .unwrap();
    write(folder, manifest);
}

fn write(folder: &TempDir, manifest: Manifest) {
    let images = vec![CUBIN.to_vec(); manifest.images.len()];
    let artifact = Artifact::new(manifest, images).unwrap();
    fs::write(folder.path().join("p.gridlet"), artifact.to_bytes().unwrap()).unwrap();
}

#[test]
fn launch_memory_is_an_option() {
    let Some(driver) = driver("launch_memory_is_an_option") else { return };
    let folder = folder();
    bundle(&folder, true);
    let artifact = Artifact::open(folder.path().join("p.gridlet")).unwrap();
    let mut manifest = artifact.manifest().clone();
    manifest.launch_strategy = LaunchStrategy::Resident;
    manifest.kernels[0].resident = true;
    let mut resident = Resident::new("__gridlet_resident");
    resident.record_bytes = 128;
    resident.parameter_words = 2;
    resident.max_block_threads = 1024;
    manifest.resident = Some(resident);
    write(&folder, manifest);
    let run = |more: &str, lost: &str| {
        let settings = [("FAKE_PARAMETERS", "0"), ("FAKE_VERSION", "13000"), ("FAKE_LOST", lost)];
        let run = format!("run p.gridlet --device cuda --kernel k --grid 1 --block 1 {more}");
        call(&folder, driver, &settings, &run)
    };
    // 264 workers: a ring of 4,096 slots, and for each worker an area and 4 records.
    let needed = 4096 + 4096 * 128 + 264 * (4096 + 4 * 128);
    let small = run(&format!("--launch-memory {}", needed - 1), "0");
    let full = run("", "3");
    assert_eq!((small.status, full.status), (2, 4), "{small:?} {full:?}");
    insta::assert_snapshot!("launch_memory", format!("{}{}", small.stderr, full.stderr));
    let enough = run(&format!("--launch-memory {needed} --json"), "0");
    assert_eq!(enough.status, 0, "{enough:?}");
    assert_eq!(json(&enough)["launch"], "resident");
}

#[test]
fn a_partition_that_children_leave_is_told() {
    let Some(driver) = driver("a_partition_that_children_leave_is_told") else { return };
    let folder = folder();
    let said_on = |major: &str, more: &str| {
        let run = format!("run p.gridlet --device cuda --kernel k --grid 1 --block 1 {more}");
        let settings = [("FAKE_PARAMETERS", "0"), ("FAKE_VERSION", "13000"), ("FAKE_MAJOR", major)];
        let output = call(&folder, driver, &settings, &run);
        assert_eq!(output.status, 0, "{output:?}");
        format!("--- {more}\n{}", output.stderr)
    };
    let said = |more| said_on("9", more);
    bundle(&folder, true);
    let launching = [said("--sms 16"), said("--sms 20 --message-format json"), said("")].concat();
    let elsewhere = said_on("12", "--sms 16");
    bundle(&folder, false);
    let not = [said("--sms 16"), said("--sms 20"), said_on("12", "--sms 16")].concat();
    insta::assert_snapshot!(format!(
        "{launching}=== on compute capability 12.0\n{elsewhere}=== without launches\n{not}"
    ));
}

#[test]
fn a_run_that_a_gpu_broke_names_the_kernel() {
    let Some(driver) = driver("a_run_that_a_gpu_broke_names_the_kernel") else { return };
    let folder = folder();
    bundle(&folder, true);
    let settings = [("FAKE_PARAMETERS", "0"), ("FAKE_QUERY", "700")];
    let run = "run p.gridlet --device cuda:0 --kernel k --grid 1 --block 1 --pending-launches 77";
    let output = call(&folder, driver, &settings, run);
    assert_eq!(output.status, 4, "{output:?}");
    assert!(output.stderr.contains("`k`") || output.stderr.contains("kernel k"), "{output:?}");

    // Work that never ends.
    let settings = [("FAKE_PARAMETERS", "0"), ("FAKE_POLLS", "2000000000")];
    let output = call(&folder, driver, &settings, &format!("{run} --timeout 0.5"));
    assert_eq!(output.status, 4, "{output:?}");
    assert!(output.stderr.contains("0.5"), "{output:?}");
}
