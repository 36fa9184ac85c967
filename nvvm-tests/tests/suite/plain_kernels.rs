//! The PTX of kernels through both back ends, compared with what nvcc makes of them.

use std::collections::BTreeMap;
use std::path::Path;

use gridlet::arch::CudaArch;
use gridlet::compile::{self, Backend, BuildOptions, Session};
use gridlet::launch::LaunchStrategy;
use gridlet::link::cubin::kernel_resources;
use gridlet::source::SourceMap;
use nvvm_tests::{FOR_PTX, toolchain_or_skip};

/// The PTX of each kernel of a program, by its name, through each back end; `None` if the test is skipped.
pub(super) fn kernels(
    test: &str,
    source: &str,
) -> Option<[(Backend, BTreeMap<String, String>); 2]> {
    kernels_with(test, source, |backend| BuildOptions::default().with_backend(backend))
}

pub(super) fn kernels_with(
    test: &str,
    source: &str,
    options: impl Fn(Backend) -> BuildOptions,
) -> Option<[(Backend, BTreeMap<String, String>); 2]> {
    let session = Session::with_toolchain(toolchain_or_skip(test, &FOR_PTX)?);
    let program = compile::check(SourceMap::single("test.grid", source)).unwrap();
    Some([Backend::LibNvvm, Backend::Nvptx].map(|backend| {
        let (ptx, _) = session.ptx(&program, &options(backend)).unwrap();
        let kernels = ptx.0.split(".entry ").skip(1).map(|text| {
            let name = text.split(['(', '\n']).next().unwrap().to_owned();
            (name, text.split_once("\n}").unwrap().0.to_owned())
        });
        (backend, kernels.collect())
    }))
}

/// The number of instructions whose word starts like this.
pub(super) fn count(ptx: &str, word: &str) -> usize {
    let starts = |line: &&str| {
        let line = line.trim_start();
        // A predicate comes first.
        let line =
            line.strip_prefix('@').and_then(|rest| rest.split_once(' ')).map_or(line, |it| it.1);
        line.trim_start().starts_with(word)
    };
    ptx.lines().filter(starts).count()
}

/// The instruction with which a division begins that is written out.
pub(super) const RECIPROCAL: &str = "cvt.rp.f32.u";

/// Where a `bool` is a byte, libNVVM joins branches once more, with a convergence barrier, and converts it in registers of 16 bits.
#[test]
fn variables_of_bool_are_predicates() {
    let source = "
        fn is_new(value: *mut u32) -> bool {
            return atomic_load(value, relaxed) == 7 && atomic_cas(value, 7, 8) == 7;
        }
        kernel k(values: *mut u32, out: *mut u32, n: u32) {
            let i = thread_idx.x;
            for base in (0..n).step(256) {
                let mut found = false;
                if base + i < n { found = is_new(&values[base + i]); }
                let lanes = ballot(0xffff_ffff, found);
                if found { out[base + i] = lanes; }
            }
        }";
    let Some(both) = kernels("variables_of_bool_are_predicates", source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        assert!(!ptx.contains("%rs"), "{backend:?}: a register of 16 bits\n{ptx}");
    }
}

/// They are assembly, whose state space no back end changes. A function that is also called with `shared` memory stays generic.
#[test]
fn atomic_accesses_of_global_memory_say_so() {
    let source = "
        fn both(at: *mut u32) -> u32 { return atomic_load(at, acquire); }
        fn only_global(at: *mut u32, n: u32) { atomic_store(at + 1, n, relaxed); }
        kernel k(values: *mut u32) {
            shared own: u32;
            if thread_idx.x == 0 { own = 1; }
            sync_threads();
            let n = atomic_add_block(&values[n_of(values)], both(&own)) + both(values);
            atomic_store(&own, n, relaxed);
            only_global(values, atomic_cas_system(&values[2], n, 5));
        }
        fn n_of(at: *mut u32) -> u32 { return at[3] % 2; }";
    let Some(both) = kernels("atomic_accesses_of_global_memory_say_so", source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        let all = [
            "ld.acquire.gpu.b32",
            "st.relaxed.gpu.b32",
            "ld.acquire.gpu.global",
            "st.relaxed.gpu.global.b32",
            "atom.cta.global.add.u32",
            "atom.sys.global.cas.b32",
        ];
        assert_eq!(all.map(|word| count(ptx, word)), [2, 1, 0, 1, 1, 1], "{backend:?}\n{ptx}");
    }
}

/// nvcc drops the status of a launch. The code that keeps it is a comparison and a call.
#[test]
fn lost_launches_are_recorded_out_of_line() {
    let source = "
        kernel child(p: *mut u32, n: u32) { p[0] = n; }
        kernel root(p: *mut u32, n: u32) { if n > 7 { launch child<<<n, 32>>>(p, n); } }";
    let by_cdp = |backend| {
        BuildOptions::default().with_backend(backend).with_launch(LaunchStrategy::Cdp.into())
    };
    let Some(both) = kernels_with("lost_launches_are_recorded_out_of_line", source, by_cdp) else {
        return;
    };
    for (backend, kernels) in both {
        let root = &kernels["root"];
        let counts = ["atom", "st.global", "call", "setp"].map(|word| count(root, word));
        assert_eq!(counts, [0, 0, 3, 3], "{backend:?}\n{root}");
    }
}

/// ptxas computes the reciprocal of the divisor before the loop only then.
#[test]
fn divisions_by_the_same_number_follow_all_tests_of_it() {
    let source = "
        kernel k(out: *mut u32, rounds: u32, value: u32, divisors: *const u32) {
            let divisor = divisors[thread_idx.x];
            let mut sum: u32 = 0;
            for k in 0..rounds { sum += (value + k) / divisor; }
            out[0] = sum;
        }";
    let Some(both) = kernels("divisions_by_the_same_number_follow_all_tests_of_it", source) else {
        return;
    };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        let words: Vec<&str> = ptx
            .lines()
            .map(str::trim)
            .filter(|line| *line == "trap;" || line.starts_with(RECIPROCAL))
            .collect();
        let unrolled = words.split(|word| *word == "trap;").any(|divisions| divisions.len() == 4);
        assert!(unrolled, "{backend:?}:\n{ptx}");
    }
}

/// As with CUDA's `float4`, a copy of a vector counts as one instruction when libNVVM decides how often to unroll.
#[test]
fn copies_of_vectors_do_not_count_for_each_lane() {
    let source = "
        kernel copied(out: *mut f32, bodies: *const f32x4) {
            let own = bodies[thread_idx.x];
            let mut sum = f32x3(0.0, 0.0, 0.0);
            for j in 0u32..256 {
                let other = bodies[j];
                let x = other.x - own.x;
                let y = other.y - own.y;
                let z = other.z - own.z;
                let inverse = rsqrt(x * x + y * y + z * z + 0.01);
                let strength = other.w * inverse * inverse * inverse;
                sum.x += x * strength;
                sum.y += y * strength;
                sum.z += z * strength;
            }
            out[0] = sum.x + sum.y + sum.z;
        }
        fn product(a: f32x4, b: f32x4) -> f32x4 {
            f32x4(a.x * b.x, a.y * b.y, a.z * b.z, a.w * b.w)
        }
        kernel kept(out: *mut f32x4, bodies: *const f32x4) {
            let mut all = bodies[0];
            for j in 1u32..256 { all = product(all, bodies[j]); }
            out[0] = all;
            out[1] = bodies[7];
        }";
    let Some(both) = kernels("copies_of_vectors_do_not_count_for_each_lane", source) else {
        return;
    };
    let (_, by_libnvvm) = &both[0];
    let copied = &by_libnvvm["copied"];
    assert_eq!(count(copied, "rsqrt.approx.f32"), 8, "{copied}");
    for (backend, kernels) in &both {
        for kernel in ["copied", "kept"] {
            let ptx = &kernels[kernel];
            // All loads and stores of a vector stay one access.
            assert_eq!(
                count(ptx, "ld.global.f32") + count(ptx, "ld.global.b32"),
                0,
                "{backend:?}:\n{ptx}"
            );
            assert!(count(ptx, "ld.global.v4") > 0, "{backend:?}:\n{ptx}");
        }
        assert_eq!(count(&kernels["kept"], "st.global.v4"), 2, "{backend:?}");
    }
}

/// Two accesses of 32 bits at a distance of 64 conflict in shared memory.
#[test]
fn llvm_merges_accesses_of_neighbours_in_shared_memory() {
    let source = "
        kernel pairs(out: *mut u32, from: *const u32) {
            shared data: [u32; 1024];
            let t = thread_idx.x;
            data[t] = from[t];
            sync_threads();
            let a = data[2 * t];
            let b = data[2 * t + 1];
            if a > b { data[2 * t] = b; data[2 * t + 1] = a; }
            sync_threads();
            out[t] = data[t];
        }";
    let test = "llvm_merges_accesses_of_neighbours_in_shared_memory";
    let Some([_, (_, by_llvm)]) = kernels(test, source) else { return };
    let merged = ["ld.shared.v2", "st.shared.v2"].map(|word| count(&by_llvm["pairs"], word));
    assert_eq!(merged, [1, 1], "{}", by_llvm["pairs"]);
}

#[test]
fn divisors_that_are_not_zero_are_not_tested() {
    let source = "
        fn quotient(x: u32, by: u32) -> u32 { x / by }
        kernel tested(out: *mut u32, n: u32, d: u32) { if d != 0 { out[0] = n / d; } }
        kernel positive(out: *mut i32, n: i32, d: i32) { if d > 0 { out[0] = n / d; } }
        kernel left(out: *mut u32, n: u32, d: u32) { if d == 0 { return; } out[0] = n % d; }
        kernel odd(out: *mut u32, n: u32, d: u32) { out[0] = n / (d | 1); }
        kernel dimensions(out: *mut u32, n: u32) { out[0] = n / block_dim.x + n % grid_dim.y; }
        kernel at_least(out: *mut u32, n: u32, d: u32) { let w = max(d, 1); out[0] = n / w; }
        kernel signed(out: *mut i32, n: i32, d: i32) { let w = max(d, 3) as i64; out[0] = (n as i64 / w) as i32; }
        kernel power(out: *mut u32, n: u32, d: u32) { out[0] = n / (1 << (d & 7)); }
        kernel counter(out: *mut u32, n: u32) { for i in 1..n { out[i] = n / i; } }
        kernel narrow(out: *mut u32, n: u32, d: u8) { out[0] = n / (d as u32 + 1); }
        kernel called(out: *mut u32, n: u32) { out[0] = quotient(n, 64); }
    ";
    let unknown = "
        kernel unknown(out: *mut u32, n: u32, d: u32) { out[0] = n / d; }
        kernel changed(out: *mut u32, n: u32) { let mut d = n | 1; d -= 1; out[0] = n / d; }
        kernel may_be_negative(out: *mut i32, n: i32, d: i32) { out[0] = n / max(d, -1); }
        kernel truncated(out: *mut u32, n: u32, d: u32) { out[0] = n / ((d | 256) as u8 as u32); }
        kernel aliased(out: *mut u32, n: u32) {
            let d: u32 = n | 1;
            *(&d as *mut u32) = out[0];
            out[0] = n / d;
        }
    ";
    let test = "divisors_that_are_not_zero_are_not_tested";
    let (Some(known), Some(unknown)) = (kernels(test, source), kernels(test, unknown)) else {
        return;
    };
    for ((backend, known), (_, unknown)) in known.into_iter().zip(unknown) {
        for (name, ptx) in known {
            assert_eq!(count(&ptx, "trap;"), 0, "{backend:?}, {name}:\n{ptx}");
        }
        for (name, ptx) in unknown {
            assert_eq!(count(&ptx, "trap;"), 1, "{backend:?}, {name}:\n{ptx}");
        }
    }
}

#[test]
fn products_and_sums_may_be_fused_unless_they_must_be_rounded() {
    let source = "
        kernel single(p: *mut f32) { p[0] = p[1] * p[2] + p[3]; }
        kernel twice(p: *mut f64) { let t = p[1] * p[2]; p[0] = t - p[3]; p[4] = t; }
        kernel half(p: *mut f16) { p[0] = p[1] * p[2] + p[3]; }
        kernel library(p: *mut f32) { p[0] = pow(p[1], p[2]); }
    ";
    let test = "products_and_sums_may_be_fused_unless_they_must_be_rounded";
    let Some(ways) = kernels(test, source) else { return };
    for (backend, kernels) in ways {
        for (name, rounded) in
            [("single", false), ("twice", false), ("half", true), ("library", true)]
        {
            let ptx = &kernels[name];
            let found = ["mul.rn.", "add.rn.f32", "add.rn.f64", "sub.rn."];
            let found = found.into_iter().any(|word| count(ptx, word) > 0);
            assert_eq!(found, rounded, "{backend:?}, {name}:\n{ptx}");
        }
    }
}

#[test]
fn conversions_to_integers_leave_saturation_to_the_gpu() {
    let kernel = |from: &str, to: &str| {
        format!("kernel {from}_{to}(p: *const {from}, q: *mut {to}) {{ q[0] = p[0] as {to}; }}\n")
    };
    let pairs = [
        ("f32", "i32", 0),
        ("f32", "u32", 0),
        ("f16", "u32", 0),
        ("f32", "u8", 0),
        ("f32", "i64", 1),
        ("f64", "i32", 1),
        ("f64", "u64", 1),
    ];
    let source: String = pairs.iter().map(|(from, to, _)| kernel(from, to)).collect();
    let test = "conversions_to_integers_leave_saturation_to_the_gpu";
    let Some(ways) = kernels(test, &source) else { return };
    for (backend, kernels) in ways {
        for (from, to, comparisons) in pairs {
            let ptx = &kernels[&format!("{from}_{to}")];
            assert_eq!(count(ptx, "cvt.rzi."), 1, "{backend:?}:\n{ptx}");
            assert_eq!(count(ptx, "setp."), comparisons, "{backend:?}:\n{ptx}");
        }
    }
}

/// A kernel with the attribute that launches itself, and one that launches nothing.
const NOALIAS: &str = "
    #[noalias]
    kernel nested(n: u32, x: *const f32, out: *mut f32) {
        out[thread_idx.x] = x[thread_idx.x];
        if n > 0 { launch nested<<<1, 32>>>(n - 1, x, out); }
    }
    #[noalias]
    kernel plain(x: *const f32, y: *const f32, out: *mut f32) {
        let i = thread_idx.x;
        out[i] = x[i] + 1.0;
        out[i + 32] = x[i] + y[i];
    }
    #[noalias]
    kernel exchange(x: *const f32, out: *mut f32) {
        let i = thread_idx.x;
        let first = out[i];
        out[31 - i] = x[i];
        sync_threads();
        out[i + 32] = out[i] + first;
    }
    kernel unknown(x: *const f32, out: *mut f32) {
        let i = thread_idx.x;
        out[i] = x[i] + 1.0;
        out[i + 32] = x[i];
    }
";

#[test]
fn pointers_that_do_not_overlap_are_read_once_and_without_coherence() {
    let test = "pointers_that_do_not_overlap_are_read_once_and_without_coherence";
    let Some(ways) = kernels(test, NOALIAS) else { return };
    for (backend, kernels) in ways {
        // A barrier may change what `out` points to.
        for (name, constant, other) in [("plain", 2, 0), ("exchange", 1, 2), ("unknown", 0, 2)] {
            let ptx = &kernels[name];
            let incoherent = count(ptx, "ld.global.nc.");
            let all = count(ptx, "ld.global");
            assert_eq!((incoherent, all - incoherent), (constant, other), "{backend:?}:\n{ptx}");
        }
    }
}

#[test]
fn kernels_that_run_resident_read_coherently() {
    let test = "kernels_that_run_resident_read_coherently";
    let resident = |backend| {
        BuildOptions::default().with_backend(backend).with_launch(LaunchStrategy::Resident.into())
    };
    let Some(ways) = kernels_with(test, NOALIAS, resident) else { return };
    for (backend, kernels) in ways {
        assert!(kernels.len() >= 5, "{:?}", kernels.keys());
        for (name, ptx) in kernels {
            let is_own_grid = matches!(name.as_str(), "plain" | "exchange");
            assert_eq!(count(&ptx, "ld.global.nc") > 0, is_own_grid, "{backend:?}, {name}");
        }
    }
}

/// `counts` changes its variable, and `plain` promises nothing.
#[test]
fn variables_that_a_program_only_reads_are_read_without_coherence() {
    let source = "
        static table: [u8; 4] = [7, 5, 3, 1];
        static counter: u32 = 0;
        fn at(i: u32) -> u32 { return table[i & 3] as u32; }
        #[noalias]
        kernel promises(i: u32, p: *mut u32) { p[i] = at(i) + table[0] as u32; p[i + 1] = at(i + 1); }
        #[noalias]
        kernel counts(p: *mut u32) { counter += 1; p[0] = counter; }
        kernel plain(i: u32, p: *mut u32) { p[i] = table[i & 3] as u32; }";
    let test = "variables_that_a_program_only_reads_are_read_without_coherence";
    let Some(ways) = kernels(test, source) else { return };
    for (backend, kernels) in ways {
        // The function is called by one kernel alone, the variable read by both.
        for (name, constant, other) in [("promises", 3, 0), ("plain", 0, 1), ("counts", 0, 1)] {
            let ptx = &kernels[name];
            let incoherent = count(ptx, "ld.global.nc.");
            let all = count(ptx, "ld.global");
            assert_eq!((incoherent, all - incoherent), (constant, other), "{backend:?}:\n{ptx}");
        }
    }
}

/// An SM has room for a third more threads with 32 registers than with 34 or 40.
#[test]
fn kernels_with_registers_too_many_are_assembled_with_fewer() {
    let test = "kernels_with_registers_too_many_are_assembled_with_fewer";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_PTX) else { return };
    let session = Session::with_toolchain(toolchain);
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../examples/kernels");
    // The second one waits much. The last one, which has 35 or so, computes much.
    let cases = [
        ("half_ratio", Backend::LibNvvm, true),
        ("tridiagonal", Backend::LibNvvm, true),
        ("tridiagonal", Backend::Nvptx, true),
        ("asian_option", Backend::Nvptx, false),
    ];
    for (name, backend, is_limited) in cases {
        let path = folder.join(format!("{name}.grid"));
        let program = compile::check(compile::load(&path).unwrap()).unwrap();
        let built =
            session.cubin(&program, &BuildOptions::default().with_backend(backend)).unwrap();
        assert_eq!(built.ptx.0.contains(".maxnreg 32\n"), is_limited, "{name} by {backend:?}");
        let kernel = &kernel_resources(&built.cubin).unwrap()[0];
        assert_eq!(kernel.registers <= 32, is_limited, "{name} by {backend:?}: {kernel:?}");
        assert_eq!(kernel.local_bytes, 0, "{name} by {backend:?}");
    }
}

#[test]
fn large_shared_variables_are_aligned_to_16_bytes() {
    let source = "
        kernel k(p: *mut u32) {
            shared large: [u32; 4];
            shared small: [u32; 3];
            shared bytes: [u8; 32];
            large[thread_idx.x] = 1;
            small[thread_idx.x] = 2;
            bytes[thread_idx.x] = 3;
            sync_threads();
            p[0] = large[p[1]] + small[p[2]] + bytes[p[3]] as u32;
        }
    ";
    let Some(ways) = kernels("large_shared_variables_are_aligned_to_16_bytes", source) else {
        return;
    };
    for (backend, kernels) in ways {
        let ptx = &kernels["k"];
        let shared: Vec<&str> =
            ptx.lines().filter(|line| line.contains(".shared .align")).collect();
        assert_eq!(shared.len(), 3, "{backend:?}:\n{ptx}");
        // A word of bytes is taken apart at each use.
        assert!(shared.iter().any(|line| line.contains(".align 4") && line.contains("[32]")));
        assert!(shared.iter().any(|line| line.contains(".align 16") && line.contains("[16]")));
        assert!(shared.iter().any(|line| line.contains(".align 4") && line.contains("[12]")));
    }
}

#[test]
fn libnvvm_addresses_shared_memory_by_32_bits() {
    let source = "
        kernel k(p: *mut u32, n: u32) {
            shared words: [u32; 256];
            words[thread_idx.x] = p[thread_idx.x];
            sync_threads();
            let mut at = thread_idx.x;
            for _ in 0..n { at = words[at]; }
            p[thread_idx.x] = at;
        }
    ";
    let test = "libnvvm_addresses_shared_memory_by_32_bits";
    for arch in ["sm_75", "sm_90", "sm_100"] {
        let options = |backend| BuildOptions::for_arch(arch.parse().unwrap()).with_backend(backend);
        let Some([(_, kernels), _]) = kernels_with(test, source, options) else { return };
        let ptx = &kernels["k"];
        let loads: Vec<&str> = ptx.lines().filter(|line| line.contains("ld.shared.")).collect();
        assert!(!loads.is_empty(), "{arch}:\n{ptx}");
        assert!(
            loads.iter().all(|line| line.contains("[%r") && !line.contains("[%rd")),
            "{arch}:\n{ptx}"
        );
    }
}

const FAST: &str = "
    kernel k(p: *mut f32, d: *mut f64) {
        p[0] = p[1] / p[2];
        p[3] = sqrt(p[4]);
        p[5] = sin(p[6]) + cos(p[7]);
        p[8] = exp(p[9]);
        p[10] = log(p[11]) - log2(p[12]);
        p[13] = pow(p[14], p[15]);
        p[16] = tanh(p[17]);
        p[18] = p[19] * p[20] + p[21];
        d[0] = d[1] / d[2] + sqrt(d[3]);
    }
";

#[test]
fn fast_math_takes_the_approximations_of_nvcc() {
    let test = "fast_math_takes_the_approximations_of_nvcc";
    let exact = |backend| BuildOptions::default().with_backend(backend);
    let fast = |backend| exact(backend).with_fast_math(true);
    let Some(ways) = kernels_with(test, FAST, fast) else { return };
    for (backend, kernels) in ways {
        let ptx = &kernels["k"];
        let expected = [
            ("div.approx.ftz.f32", 1),
            ("sqrt.approx.ftz.f32", 1),
            ("sin.approx.ftz.f32", 1),
            ("cos.approx.ftz.f32", 1),
            ("ex2.approx.ftz.f32", 2),
            ("lg2.approx.ftz.f32", 3),
            ("tanh.approx.f32", 1),
            ("div.rn.f64", 1),
            ("sqrt.rn.f64", 1),
            // LLVM leaves fusing to ptxas.
            ("fma.rn.f32", 0),
            ("mul.rn.", 0),
        ];
        for (word, times) in expected {
            assert_eq!(count(ptx, word), times, "{word}, {backend:?}:\n{ptx}");
        }
        let single: Vec<&str> = ptx
            .lines()
            .map(str::trim_start)
            .filter(|line| ["add.", "sub.", "mul."].iter().any(|word| line.starts_with(word)))
            .filter(|line| line.contains("f32"))
            .collect();
        assert!(single.iter().all(|line| line.contains(".ftz.")), "{backend:?}: {single:?}");
    }
    let Some(ways) = kernels_with(test, FAST, exact) else { return };
    for (backend, kernels) in ways {
        let ptx = &kernels["k"];
        for word in ["div.approx", "sqrt.approx", "sin.approx", "tanh.approx", "mul.ftz."] {
            assert_eq!(count(ptx, word), 0, "{word}, {backend:?}:\n{ptx}");
        }
    }
}

#[test]
fn fast_math_compiles_for_every_architecture() {
    for arch in CudaArch::SUPPORTED {
        let options =
            |backend| BuildOptions::for_arch(arch).with_backend(backend).with_fast_math(true);
        let test = "fast_math_compiles_for_every_architecture";
        let Some(ways) = kernels_with(test, FAST, options) else { return };
        for (backend, kernels) in ways {
            assert_eq!(count(&kernels["k"], "div.approx.ftz.f32"), 1, "{backend:?}, {arch}");
        }
    }
}

#[test]
fn signed_divisions_by_unknown_numbers_need_no_guard_against_minus_one() {
    let source = "
        fn sum(x: i32, n: i32) -> i32 { x / n + x % n }
        kernel unknown(p: *mut i32) {
            let value = p[1];
            let divisor = p[2];
            let mut total = 0;
            for k in 0..p[3] { total += value / (divisor + k) + value % (divisor - k); }
            p[0] = total;
        }
        kernel parameter(p: *mut i32, n: i32) { p[0] = p[1] / n; }
        kernel constant(p: *mut i32) { let n = 7; p[0] = p[1] / n; }
        kernel argument(p: *mut i32) { p[0] = sum(p[1], 7); }
        kernel wide(p: *mut i64) { p[0] = p[1] / p[2]; }
    ";
    let test = "signed_divisions_by_unknown_numbers_need_no_guard_against_minus_one";
    let Some(ways) = kernels(test, source) else { return };
    for (backend, kernels) in ways {
        let of = |kernel: &str, word| count(&kernels[kernel], word);
        assert!(of("unknown", RECIPROCAL) >= 2, "{backend:?}");
        for kernel in ["unknown", "parameter"] {
            assert_eq!(of(kernel, "selp."), 0, "{kernel}, {backend:?}:\n{}", kernels[kernel]);
        }
        // LLVM replaces these by multiplications.
        for kernel in ["constant", "argument"] {
            assert_eq!(of(kernel, RECIPROCAL), 0, "{kernel}, {backend:?}:\n{}", kernels[kernel]);
        }
        assert!(of("wide", "selp.") > 0, "{backend:?}:\n{}", kernels["wide"]);
    }
}

/// libNVVM takes a NaN for a number if constants alone produce it and it is compared with itself; LLVM takes `minnum` of a
/// signalling NaN for a NaN.
#[test]
fn nan_is_no_number_where_constants_produce_it() {
    let source = "
        kernel itself(out: *mut u32, doubles: *mut i64) {
            let zero = 0.0f32;
            let x = zero / zero;
            let wide = (x as f64) + 1.0;
            let half = (x as f16) + 1.0f16;
            out[0] = if x == x { 1 } else { 2 };
            out[1] = if x != x { 3 } else { 4 };
            out[2] = if wide <= wide { 5 } else { 6 };
            out[3] = if half >= half { 7 } else { 8 };
            out[4] = if x < x || x > x { 9 } else { 10 };
            doubles[0] = wide as i64;
        }
        kernel smallest(out: *mut f64, x: f64) {
            out[0] = min(2.0, min(x, bitcast::<f64>(0x7ff0_0000_0000_0001u64)));
        }";
    let Some(kernels) = kernels("nan", source) else { return };
    for (backend, ptx) in kernels {
        let itself = &ptx["itself"];
        // Computed, or folded to the results of a NaN.
        for (right, wrong) in [(2, 1), (3, 4), (6, 5), (8, 7), (10, 9)] {
            let computed = itself.contains(&format!("{wrong}, {right}, "))
                || itself.contains(&format!("{right}, {wrong}, "));
            let folded = itself.contains(&format!(", {right};"));
            assert!(computed || folded, "{backend:?}: {right}: {itself}");
        }
        assert_eq!(count(&ptx["smallest"], "min.f64"), 1, "{backend:?}: {}", ptx["smallest"]);
    }
}

/// libNVVM keeps the order of the IR, and ptxas schedules loads worse around an address that only the store needs.
#[test]
fn places_are_computed_after_values() {
    let source = "
        #[noalias]
        kernel k(from: *const f32, to: *mut f32, at: u32) { to[at] = from[at] + from[at + 5]; }";
    let Some(both) = kernels("places_are_computed_after_values", source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        let after = ptx.rsplit_once("ld.global.nc").unwrap().1;
        assert_eq!(count(after, "add.s64"), 1, "{backend:?}\n{ptx}");
    }
}

/// Each test would end a block, and ptxas does not move divisions between blocks.
#[test]
fn tests_of_divisors_share_a_trap() {
    let source = "
        kernel k(p: *mut i32, a: i32, b: i32, c: i32) { p[0] = a / b + a % c; }";
    let Some(both) = kernels("tests_of_divisors_share_a_trap", source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        assert_eq!(count(ptx, "trap;"), 1, "{backend:?}\n{ptx}");
    }
}

/// ptxas forgets a negation when it makes one instruction of two `max` or `min`.
#[test]
fn extremes_of_negations_keep_the_sign() {
    let source = "
        kernel absolute(a: *const i32, out: *mut i32) { out[0] = max(a[0], abs(a[1])); }
        kernel negated(a: *const i32, out: *mut i32) { out[0] = min(a[0], min(a[1], -a[2])); }
        kernel alone(a: *const i32, out: *mut i32) { out[0] = -a[0]; }";
    let Some(both) = kernels("extremes_of_negations_keep_the_sign", source) else { return };
    for (backend, kernels) in both {
        // The absolute value is a negation under a condition.
        let (absolute, negated) = (&kernels["absolute"], &kernels["negated"]);
        for (ptx, word, times) in [
            (absolute, "abs.s32", 0),
            (absolute, "setp.lt.s32", 1),
            (absolute, "neg.s32", 1),
            (negated, "neg.s32", 0),
            (negated, "not.b32", 1),
            (negated, "add.s32", 1),
        ] {
            assert_eq!(count(ptx, word), times, "{backend:?}, {word}\n{ptx}");
        }
        assert_eq!(count(&kernels["alone"], "neg.s32"), 1, "{backend:?}");
    }
}

/// Shared memory is the block's own, so a scope changes nothing there; assembly would hide the address space.
#[test]
fn atomics_of_a_block_are_those_of_shared_memory() {
    let source = "
        fn count(of: *mut u32) { atomic_add_block(of, 1); }
        kernel k(from: *const u32, to: *mut u32) {
            shared counts: [u32; 64];
            let i = thread_idx.x;
            counts[i] = 0;
            sync_threads();
            count(&counts[from[i] & 63]);
            to[i + 64] = atomic_cas_system(&counts[i], 1, 7);
            atomic_max_block(to + i, i);
        }";
    let test = "atomics_of_a_block_are_those_of_shared_memory";
    let Some(both) = kernels(test, source) else { return };
    for (backend, kernels) in both {
        let ptx = &kernels["k"];
        let found = ["red.shared.add.u32", "red.cta.global.max.u32"].map(|it| count(ptx, it));
        assert_eq!(found, [1, 1], "{backend:?}\n{ptx}");
        assert!(ptx.contains("shared.cas.b32"), "{backend:?}\n{ptx}");
    }
}
