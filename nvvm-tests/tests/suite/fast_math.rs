//! `#[fast_math]`: each kernel of a program with kernels of both kinds has the code of its own kind.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use gridlet::arch::CudaArch;
use gridlet::compile::{self, Backend, BuildOptions, Checked, LinkInput, Session};
use gridlet::launch::LaunchStrategy;
use gridlet::source::SourceMap;
use gridlet::toolchain::Component;
use nvvm_tests::{FOR_CUBINS, FOR_PTX, toolchain_or_skip};

/// Kernels of both kinds that call the same functions. Those of libdevice have variants for subnormal numbers, and `%` has
/// a part that must not flush them.
const SOURCE: &str = "
    fn continued(x: f32, depth: u32) -> f32 {
        if depth == 0 { return x; }
        return x / (1.0 + continued(x * 0.75, depth - 1));
    }
    fn value(x: f32, y: f32, n: u32) -> f32 {
        let waves = sin(x) * cos(y) + tan(x) + atan2(x, y) + tanh(y);
        let powers = exp(x) + pow(x, y) + log(y) + rsqrt(x) + exp2(y) + cbrt(x) + erf(x);
        return waves + powers + sqrt(x) / y + hypot(x, y) % 7.0 + continued(x, n) + round(x) + trunc(y);
    }
    fn counted(n: u32) -> u32 { if n < 2 { return n; } return counted(n - 1) + counted(n - 2); }

    #[fast_math]
    kernel fast(p: *mut f32, n: u32) {
        shared sums: [f32; 64];
        sums[thread_idx.x] = p[thread_idx.x];
        sync_threads();
        p[0] = value(p[1], sums[63 - thread_idx.x], counted(n));
        p[2] = (p[3] as f16 / 3.0) as f32;
    }
    kernel exact(p: *mut f32, n: u32) {
        shared sums: [f32; 64];
        sums[thread_idx.x] = p[thread_idx.x];
        sync_threads();
        p[0] = value(p[1], sums[63 - thread_idx.x], counted(n));
        p[2] = (p[3] as f16 / 3.0) as f32;
    }
";

/// Kernels that launch each other.
const LAUNCHES: &str = "
    #[fast_math]
    kernel first(p: *mut f32, n: u32) {
        p[n] = value(p[1], p[2], n);
        if n > 0 { launch second<<<1, 32>>>(p, n - 1); }
    }
    kernel second(p: *mut f32, n: u32) {
        p[n] = value(p[1], p[2], n);
        if n > 0 { launch first<<<1, 32>>>(p, n - 1); }
    }
";

/// Instructions of fast mathematics alone.
const APPROXIMATE: [&str; 7] = [
    "\tdiv.approx.ftz.",
    "\tsqrt.approx.ftz.",
    "\tsin.approx.",
    "\tcos.approx.",
    "\tadd.ftz.",
    "\tmul.ftz.",
    "\tfma.rn.ftz.",
];

fn program(source: &str) -> Checked {
    compile::check(SourceMap::single("test.grid", source)).unwrap()
}

fn ways() -> impl Iterator<Item = BuildOptions> {
    ["sm_90", "sm_100"].into_iter().flat_map(|arch| {
        let arch: CudaArch = arch.parse().unwrap();
        [Backend::LibNvvm, Backend::Nvptx]
            .map(|backend| BuildOptions::for_arch(arch).with_backend(backend))
    })
}

/// The functions with code, by name.
fn functions(ptx: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for text in ptx.split("\n}\n") {
        let Some((head, code)) = text.split_once("\n{\n") else { continue };
        let start = [".entry ", ".func "].iter().filter_map(|word| head.rfind(word)).max().unwrap();
        let head = head[start..].split_once(' ').unwrap().1.trim_start();
        let head = head.strip_prefix('(').map_or(head, |rest| rest.split_once(')').unwrap().1);
        let name = head.trim_start().split('(').next().unwrap().trim().to_owned();
        found.insert(name, code.to_owned());
    }
    found
}

/// The names of functions that a function calls, directly or indirectly, with its own.
fn reached(functions: &BTreeMap<String, String>, name: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut open = vec![name.to_owned()];
    while let Some(name) = open.pop() {
        let Some(code) = functions.get(&name) else { continue };
        if found.insert(name) {
            let words = code.split(|c: char| !c.is_alphanumeric() && !"_$".contains(c));
            open.extend(words.map(str::to_owned));
        }
    }
    found
}

/// Code without the numbers of calls and functions that back ends count through a module, and without the names of copies.
fn uncounted(code: &str) -> String {
    let mut text = String::new();
    for line in code.lines() {
        let line = line.split("// callseq").next().unwrap().replace("$fast", "");
        let mut parts = line.split("$L__BB");
        text += parts.next().unwrap();
        for part in parts {
            text += "$L__BB";
            text += part.trim_start_matches(|digit: char| digit.is_ascii_digit());
        }
        text.push('\n');
    }
    text
}

/// The code of a kernel and of what it calls.
fn code(ptx: &str, name: &str) -> BTreeMap<String, String> {
    let functions = functions(ptx);
    let reached = reached(&functions, name);
    assert!(reached.len() > 1, "`{name}` calls nothing in\n{ptx}");
    let named = |name: &String| (name.replace("$fast", ""), uncounted(&functions[name]));
    reached.iter().map(named).collect()
}

#[test]
fn each_kernel_is_as_in_a_program_of_its_own_kind() {
    let test = "each_kernel_is_as_in_a_program_of_its_own_kind";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_PTX) else { return };
    let session = Session::with_toolchain(toolchain);
    let (mixed, plain) = (program(SOURCE), program(&SOURCE.replace("#[fast_math]", "")));
    for options in ways() {
        let ptx = |program, fast_math| {
            session.ptx(program, &options.with_fast_math(fast_math)).unwrap().0.0
        };
        let mixed = ptx(&mixed, false);
        let (fast, exact) = (ptx(&plain, true), ptx(&plain, false));
        assert_eq!(code(&mixed, "fast"), code(&fast, "fast"), "{options:?}");
        assert_eq!(code(&mixed, "exact"), code(&exact, "exact"), "{options:?}");
        // The function without numbers is there once.
        assert_eq!(mixed.matches("own_$_counted$fast").count(), 0, "{options:?}");
        assert!(mixed.contains("own_$_continued$fast"), "{options:?}");
        for (name, code) in code(&mixed, "exact") {
            for word in APPROXIMATE {
                assert!(!code.contains(word), "{word} in {name}, {options:?}:\n{code}");
            }
        }
        let all: String = code(&mixed, "fast").into_values().collect();
        for word in APPROXIMATE {
            assert!(all.contains(word), "no {word}, {options:?}:\n{all}");
        }
    }
}

#[test]
fn programs_of_one_kind_are_compiled_once() {
    let test = "programs_of_one_kind_are_compiled_once";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_PTX) else { return };
    let session = Session::with_toolchain(toolchain);
    let all = SOURCE.replace("kernel exact", "#[fast_math] kernel exact");
    let none = program(&SOURCE.replace("#[fast_math]", ""));
    for options in ways() {
        let ptx =
            |program: &Checked, options: &BuildOptions| session.ptx(program, options).unwrap().0.0;
        let fast = ptx(&none, &options.with_fast_math(true));
        assert_eq!(ptx(&program(&all), &options), fast, "{options:?}");
        // The option includes kernels without the attribute.
        assert_eq!(ptx(&program(SOURCE), &options.with_fast_math(true)), fast, "{options:?}");
    }
}

#[test]
fn kernels_that_run_resident_keep_their_kind() {
    let test = "kernels_that_run_resident_keep_their_kind";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_PTX) else { return };
    let session = Session::with_toolchain(toolchain);
    let program = program(&format!("{SOURCE}{LAUNCHES}"));
    for options in ways() {
        let options = options.with_launch(LaunchStrategy::Resident.into());
        let functions = functions(&session.ptx(&program, &options).unwrap().0.0);
        let of_fast = reached(&functions, "own_$_first_$_body");
        let fast: String = of_fast.iter().map(|name| functions[name].as_str()).collect();
        for word in APPROXIMATE {
            assert!(fast.contains(word), "no {word}, {options:?}");
        }
        // The scheduler and the other kernel.
        let others = reached(&functions, "__gridlet_resident");
        assert!(others.contains("own_$_first_$_body"), "{options:?}: {others:?}");
        let own = others.iter().filter(|name| !of_fast.contains(*name));
        let exact: String = own.map(|name| functions[name].as_str()).collect();
        assert!(exact.contains("div.rn.f32"), "{options:?}");
        let shared = of_fast.iter().filter(|name| name.starts_with("own_$_gridlet"));
        let shared: String = shared.map(|name| functions[name].as_str()).collect();
        assert!(!shared.is_empty() && !shared.contains(".f32"), "{options:?}: {of_fast:?}");
        for word in APPROXIMATE {
            assert!(!exact.contains(word), "{word}, {options:?}");
        }
    }
}

#[test]
fn linked_functions_follow_their_callers() {
    let test = "linked_functions_follow_their_callers";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_PTX) else { return };
    let linked = "target triple = \"nvptx64-nvidia-cuda\"
        define float @sum(float %a, float %b) noinline {
          %c = fadd float %a, %b
          ret float %c
        }";
    let input = LinkInput::new("sum.ll", linked.as_bytes().to_vec()).unwrap();
    let session = Session::with_toolchain(toolchain).linking(vec![input]);
    let program = program(
        "extern fn sum(a: f32, b: f32) -> f32;
        #[fast_math] kernel fast(p: *mut f32) { p[0] = sum(p[1], p[2]); }
        kernel exact(p: *mut f32) { p[0] = sum(p[1], p[2]); }",
    );
    for options in ways() {
        let ptx = session.ptx(&program, &options).unwrap().0.0;
        assert!(code(&ptx, "fast")["sum"].contains("add.ftz.f32"), "{options:?}:\n{ptx}");
        assert!(code(&ptx, "exact")["sum"].contains("add.f32"), "{options:?}:\n{ptx}");
    }
}

#[test]
fn programs_of_both_kinds_assemble() {
    let test = "programs_of_both_kinds_assemble";
    let Some(toolchain) = toolchain_or_skip(test, &FOR_CUBINS) else { return };
    let session = Session::with_toolchain(toolchain);
    let program = program(&format!("{SOURCE}{LAUNCHES}"));
    for options in ways() {
        for strategy in LaunchStrategy::ALL {
            session.cubin(&program, &options.with_launch(strategy.into())).unwrap();
        }
    }
    let options = BuildOptions::default();
    session.cubin(&program, &options.with_optimize(false)).unwrap();
    session.cubin(&program, &options.with_statistics(true)).unwrap();
    session.cubin(&program, &options.with_debug_lines(true)).unwrap();
    session.object(&program, &options).unwrap();
}

/// The instructions that compute with `f32`, and how often they occur.
fn operations(code: &str) -> BTreeMap<&str, usize> {
    let words = code.lines().filter_map(|line| {
        let word = line.split_whitespace().find(|word| !word.starts_with('@'))?;
        let is_move = ["ld", "st", "mov", "selp"].contains(&word.split('.').next()?);
        (word.contains(".f32") && !is_move).then_some(word)
    });
    words.fold(BTreeMap::new(), |mut counts, word| {
        *counts.entry(word).or_default() += 1;
        counts
    })
}

#[test]
fn fast_kernels_compute_as_those_of_nvcc() {
    const CUDA: &str = "
        extern \"C\" __global__ void k(float *p) {
            p[0] = p[1] / p[2];
            p[3] = sqrtf(p[4]);
            p[5] = sinf(p[6]) * cosf(p[7]);
            p[8] = expf(p[9]);
            p[10] = logf(p[11]) - log2f(p[12]);
            p[13] = powf(p[14], p[15]);
            p[16] = tanhf(p[17]);
            p[18] = p[19] > 0.0f ? p[20] : fminf(p[20], p[21]);
            p[22] = atan2f(p[23], p[24]) + hypotf(p[25], p[26]);
            p[27] = fmodf(p[28], p[29]);
        }";
    const OURS: &str = "
        #[fast_math]
        kernel k(p: *mut f32) {
            p[0] = p[1] / p[2];
            p[3] = sqrt(p[4]);
            p[5] = sin(p[6]) * cos(p[7]);
            p[8] = exp(p[9]);
            p[10] = log(p[11]) - log2(p[12]);
            p[13] = pow(p[14], p[15]);
            p[16] = tanh(p[17]);
            p[18] = if p[19] > 0.0 { p[20] } else { min(p[20], p[21]) };
            p[22] = atan2(p[23], p[24]) + hypot(p[25], p[26]);
            p[27] = p[28] % p[29];
        }
        kernel exact(p: *mut f32) { p[0] = p[1] / p[2]; }";
    let test = "fast_kernels_compute_as_those_of_nvcc";
    let needed = [Component::LibNvvm, Component::LibDevice, Component::Nvcc];
    let Some(toolchain) = toolchain_or_skip(test, &needed) else { return };
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("k.cu");
    std::fs::write(&path, CUDA).unwrap();
    let nvcc = toolchain.path(Component::Nvcc).unwrap().to_path_buf();
    let session = Session::with_toolchain(toolchain);
    for arch in ["sm_90", "sm_100"] {
        let target = folder.path().join("k.ptx");
        let output = Command::new(&nvcc)
            .args(["-ptx", "-use_fast_math", "-arch", arch, "-o"])
            .args([&target, &path])
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let theirs = functions(&std::fs::read_to_string(&target).unwrap());
        let options = BuildOptions::for_arch(arch.parse().unwrap());
        let ours = functions(&session.ptx(&program(OURS), &options).unwrap().0.0);
        assert_eq!(operations(&ours["k"]), operations(&theirs["k"]), "{arch}");
    }
}
