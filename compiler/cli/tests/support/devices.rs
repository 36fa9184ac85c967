//! Tests that every kind of device passes, each with what differs between devices as arguments.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use super::{Gridlet, OVERFLOW, Output, json, program};
use tempfile::TempDir;

/// How `gridlet` reaches a kind of device.
pub(crate) struct TestDevice {
    /// Chooses the device in `gridlet run`.
    options: &'static [&'static str],
    /// The architectures of a bundle that runs on it.
    archs: &'static str,
    /// Sets a limit of pending launches that [`OVERFLOW`] exceeds; empty where the default is low enough.
    few_launches: &'static str,
    needs_toolkit: bool,
}

/// The CPU device.
#[allow(dead_code, reason = "each test program has one kind of device")]
pub(crate) const CPU: TestDevice = TestDevice {
    options: &["--device", "cpu"],
    archs: "cpu",
    few_launches: "--pending-launches 2",
    needs_toolkit: false,
};

/// The first GPU, which `gridlet run` prefers.
#[allow(dead_code, reason = "each test program has one kind of device")]
pub(crate) const GPU: TestDevice = TestDevice {
    options: &[],
    archs: "sm_80,sm_90,sm_100",
    few_launches: "--launch cdp",
    needs_toolkit: true,
};

impl TestDevice {
    fn gridlet(&self, folder: &TempDir) -> Gridlet {
        let gridlet = Gridlet::new(folder);
        if self.needs_toolkit { gridlet } else { gridlet.without_toolkit() }
    }

    /// `gridlet run FILE` with additional arguments, given as one text.
    pub(crate) fn run(&self, folder: &TempDir, file: &str, rest: &str) -> Output {
        let device = self.options.iter().copied();
        let arguments: Vec<&str> =
            ["run", file].into_iter().chain(device).chain(rest.split_whitespace()).collect();
        self.gridlet(folder).run(&arguments)
    }

    /// Recursive launches sort 1,000 numbers, to the same result with each of the additional arguments.
    pub(crate) fn sorts_alike(&self, ways: &[&str]) {
        let folder = program(include_str!("../../../tests/in/ok/quicksort_by_one_thread.grid"));
        let call = "--kernel quicksort --grid 1 --block 1 --arg [1000]=random:3 --arg 0 --arg 999 --arg 0 \
                    --print data:1000 --json";
        let run = |more: &str| self.run(&folder, "p.grid", &format!("{call} {more}"));
        let whole = json(&run(""));
        assert_eq!(whole["device"] == "cpu", self.options.contains(&"cpu"), "{whole}");
        let data: Vec<u64> = whole["buffers"]["data"]
            .as_array()
            .unwrap()
            .iter()
            .map(|value| value.as_u64().unwrap())
            .collect();
        assert_eq!(data.len(), 1000);
        assert!(data.is_sorted() && data[0] < data[999]);
        for more in ways {
            let output = run(more);
            assert_eq!(output.status, 0, "{more}: {output:?}");
            assert_eq!(json(&output)["buffers"], whole["buffers"], "{more}");
        }
        let made = json(&run("--stats"))["launches"]["made"].as_u64().unwrap();
        assert!(made > 30, "{made} launches for 1,000 elements in leaves of 32");
        assert!(whole["launches"]["made"].is_null(), "not counted unless asked");
    }

    /// Lost launches are counted, and reported with their line. None is lost at the `enough` limits.
    pub(crate) fn reports_lost_launches(&self, enough: &[u32]) {
        let folder = program(OVERFLOW);
        let call = "--kernel parent --grid 132 --block 32 --arg [1] --print done --json";
        let output = self.run(&folder, "p.grid", &format!("{call} {}", self.few_launches));
        assert_eq!(output.status, 4, "{output:?}");
        let result = json(&output);
        let ran = result["buffers"]["done"][0].as_u64().unwrap();
        let lost = result["launches"]["lost"].as_u64().unwrap();
        assert!(lost > 0 && ran + lost == 132 * 32, "{ran} ran, {lost} lost");
        let count = lost.to_string();
        for said in [count.as_str(), "p.grid:6", "69", "cudaErrorLaunchPendingCountExceeded"] {
            assert!(output.stderr.contains(said), "`{said}` is not in: {}", output.stderr);
        }
        let told = format!("{call} {} --message-format json", self.few_launches);
        let message: serde_json::Value =
            serde_json::from_str(&self.run(&folder, "p.grid", &told).stderr).unwrap();
        assert_eq!((&message["file"], &message["line"]), (&"p.grid".into(), &6.into()));
        for limit in enough {
            let call = format!("{call} --pending-launches {limit}");
            let output = self.run(&folder, "p.grid", &call);
            assert_eq!(output.status, 0, "{output:?}");
            assert_eq!(json(&output)["buffers"]["done"][0], 132 * 32, "{output:?}");
        }
    }

    /// `try launch` gives the program the status of a launch that fails.
    pub(crate) fn gives_statuses_to_try_launch(&self) {
        let source = OVERFLOW.replace(
            "(done: *mut u32) {\n    launch",
            "(done: *mut u32, failed: *mut i32) {\n    launch",
        );
        let source = source.replace(
            "    launch child<<<1, 1>>>(done);",
            "    let status = try launch child<<<1, 1>>>(done);\n    if status != 0 { atomic_add(failed, 1); atomic_max(failed + 1, status); }",
        );
        let folder = program(&source);
        let call = "--kernel parent --grid 132 --block 32 --arg [1] --arg [2] --print done --print failed --json";
        let output = self.run(&folder, "p.grid", &format!("{call} {}", self.few_launches));
        assert_eq!(output.status, 0, "{output:?}");
        let result = json(&output);
        let ran = result["buffers"]["done"][0].as_i64().unwrap();
        let failed = result["buffers"]["failed"][0].as_i64().unwrap();
        assert!(failed > 0 && ran + failed == 132 * 32, "{ran} ran, {failed} failed");
        assert_eq!(result["buffers"]["failed"][1], 69, "cudaErrorLaunchPendingCountExceeded");
    }

    /// A bundle runs as its source does. Returns the folder with the bundle, `p.gridlet`, and how to run it.
    pub(crate) fn runs_bundles(&self) -> (TempDir, &'static str) {
        let source = "struct P { a: f32, b: f32x2, n: u32 }\n\
                      kernel k(out: *mut f32, p: P, on: bool) { if on { out[thread_idx.x] = p.a + p.b.y * (thread_idx.x + p.n) as f32; } }";
        let folder = program(source);
        let call = "--kernel k --grid 1 --block 4 --arg [4] --arg {0.5,{7,2},1} --arg true --print out:4 --json";
        let from_source = json(&self.run(&folder, "p.grid", call));
        assert_eq!(from_source["buffers"]["out"], serde_json::json!([2.5, 4.5, 6.5, 8.5]));

        let build = ["build", "p.grid", "--arch", self.archs, "-o", "p.gridlet"];
        let built = self.gridlet(&folder).run(&build);
        assert_eq!(built.status, 0, "{built:?}");
        let output = self.run(&folder, "p.gridlet", call);
        assert_eq!(output.status, 0, "{output:?}");
        assert_eq!(json(&output)["buffers"], from_source["buffers"]);
        (folder, call)
    }

    /// Traps, time-outs and launches that are too large, or whose sizes do not fit 32 bits, end with exit status 4; so do the kernels of `others`: their
    /// bodies, additional arguments, and what the message says.
    pub(crate) fn exits_4_after_faults(&self, others: &[(&str, &str, &str)]) {
        let everywhere = [
            ("trap();", "--arg [1]", "trap"),
            ("while atomic_add(p, 0) == 0 {}", "--arg [1] --timeout 1.5", "1.5"),
            ("launch k<<<1, block_dim.x * 2048>>>(p);", "--arg [1]", "p.grid:1"),
            (
                "if *p == 0 { *p = 1; launch k<<<(1u64 << 32) + *p as u64, 1>>>(p); }",
                "--arg [1]",
                "p.grid:1",
            ),
            (
                "if *p == 0 { *p = 1; launch k<<<1, -4294967296 + *p as i64>>>(p); }",
                "--arg [1]",
                "p.grid:1",
            ),
            ("if *p == 0 { *p = 1; launch k<<<-(*p as i32), 1>>>(p); }", "--arg [1]", "p.grid:1"),
        ];
        for (body, rest, said) in everywhere.iter().chain(others) {
            let folder = program(&format!("kernel k(p: *mut u32) {{ {body} }}"));
            let call = format!("--kernel k --grid 1 --block 1 {rest}");
            let output = self.run(&folder, "p.grid", &call);
            assert_eq!(output.status, 4, "{body}: {output:?}");
            assert!(output.stderr.contains(said), "{body}: `{said}` is not in: {}", output.stderr);
        }
    }

    /// Launches that the device cannot make are wrong calls, with exit status 2; so are those of `others`: options,
    /// and what the message says. Returns the folder with the program.
    pub(crate) fn refuses_launches(&self, others: &[(&str, &str)]) -> TempDir {
        let folder = program("#[launch_bounds(64)] kernel k() {}");
        let everywhere = [
            ("--grid 1 --block 2048", "1024"),
            ("--grid 1 --block 128", "64"),
            ("--grid 0 --block 1", "0"),
            ("--grid 1 --block 1 --shared 1000000", "1000000"),
        ];
        for (rest, said) in everywhere.iter().chain(others) {
            let output = self.run(&folder, "p.grid", &format!("--kernel k {rest}"));
            assert_eq!(output.status, 2, "{rest}: {output:?}");
            assert!(output.stderr.contains(said), "{rest}: `{said}` is not in: {}", output.stderr);
        }
        folder
    }
}
