//! The values of `f32` under `--fast-math` and `#[fast_math]`, through each back end on a GPU. The bounds are those of the CUDA C++ Programming Guide,
//! "Intrinsic Functions", and of the PTX ISA, with a little room where a function consists of several. The CPU device, which
//! computes exactly, must keep them too: that shows that the expectations are right.
#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

use std::f64::consts::PI;
use std::time::Duration;

use crate::gpu::gpu_or_skip;
use gridlet::artifact;
use gridlet::compile::{self, Backend, BuildOptions, Checked, Session};
use gridlet::cpu::CpuOptions;
use gridlet::source::SourceMap;
use gridlet_runtime::cpu::CpuConfig;
use gridlet_runtime::{Arg, Artifact, Buffer, Device, LaunchConfig, Program};

const TIMEOUT: Duration = Duration::from_secs(60);
const BLOCK: u32 = 128;

/// An expression of `a` and `b`.
struct Case {
    expression: &'static str,
    exact: fn(f64, f64) -> f64,
    /// The greatest error, given `a`, `b` and the exact result.
    allowed: fn(f64, f64, f64) -> f64,
    a: Vec<f32>,
    b: Vec<f32>,
}

/// The distance between `f32` numbers of this size.
fn ulp(exact: f64) -> f64 {
    let magnitude = (exact.abs() as f32).max(f32::MIN_POSITIVE);
    f64::from(f32::from_bits(magnitude.to_bits() + 1)) - f64::from(magnitude)
}

/// Numbers with steps of equal size, or of equal ratio.
fn linear(from: f32, to: f32) -> Vec<f32> {
    (0..1000).map(|at| from + (to - from) * at as f32 / 999.0).collect()
}

fn geometric(from: f32, to: f32) -> Vec<f32> {
    let ratio = f64::from(to) / f64::from(from);
    (0..1000).map(|at| (f64::from(from) * ratio.powf(f64::from(at) / 999.0)) as f32).collect()
}

/// Near 1, logarithms have an absolute bound, and elsewhere one in units of the last place.
fn of_logarithm(a: f64, exact: f64, absolute: f64, ulps: f64) -> f64 {
    if (0.5..=2.0).contains(&a) { absolute.max(ulps * ulp(exact)) } else { ulps * ulp(exact) }
}

fn approximations() -> Vec<Case> {
    let positive = || geometric(1e-37, 1e37);
    let angles = || linear(-3.1, 3.1);
    let reversed = |mut values: Vec<f32>| {
        values.reverse();
        values
    };
    let case = |expression, exact, allowed, a, b| Case { expression, exact, allowed, a, b };
    vec![
        case(
            "a / b",
            |a, b| a / b,
            |_, _, x| 2.0 * ulp(x),
            linear(-9.0, 7.0),
            geometric(1e-30, 1e30),
        ),
        case("sqrt(a)", |a, _| a.sqrt(), |_, _, x| 3.0 * ulp(x), positive(), positive()),
        case("sin(a)", |a, _| a.sin(), |_, _, _| (-20.9f64).exp2(), angles(), angles()),
        case("cos(a)", |a, _| a.cos(), |_, _, _| (-20.9f64).exp2(), angles(), angles()),
        case(
            "tan(a)",
            |a, _| a.tan(),
            |_, _, x| (-19.0f64).exp2() * (1.0 + x * x),
            linear(-1.4, 1.4),
            angles(),
        ),
        case(
            "exp(a)",
            |a, _| a.exp(),
            |a, _, x| (3.0 + (1.173 * a).abs()) * ulp(x),
            linear(-80.0, 80.0),
            angles(),
        ),
        case(
            "log(a)",
            |a, _| a.ln(),
            |a, _, x| of_logarithm(a, x, (-21.0f64).exp2(), 4.0),
            positive(),
            angles(),
        ),
        case(
            "log2(a)",
            |a, _| a.log2(),
            |a, _, x| of_logarithm(a, x, (-21.0f64).exp2(), 3.0),
            positive(),
            angles(),
        ),
        case(
            "log10(a)",
            |a, _| a.log10(),
            |a, _, x| of_logarithm(a, x, (-22.0f64).exp2(), 4.0),
            positive(),
            angles(),
        ),
        // 2 to the power of b * log2(a): the error of the exponent counts.
        case(
            "pow(a, b)",
            |a, b| a.powf(b),
            |a, b, x| {
                x * ((-20.0f64).exp2() * b.abs() * (1.0 + a.log2().abs()) + (-21.0f64).exp2())
            },
            geometric(0.01, 100.0),
            linear(-9.0, 9.0),
        ),
        case(
            "tanh(a)",
            |a, _| a.tanh(),
            |_, _, x| (-10.5f64).exp2() * x.abs() + 1e-37,
            linear(-9.0, 9.0),
            angles(),
        ),
        // Of several rounded operations, each of which may be fused with the next.
        case(
            "a * b + a",
            |a, b| a * b + a,
            |a, b, x| ulp(a * b) + ulp(x),
            linear(-9.0, 7.0),
            reversed(geometric(1e-9, 1e9)),
        ),
        // What stays exact.
        case(
            "fma(a, b, a)",
            |a, b| a.mul_add(b, a),
            |_, _, x| 0.5 * ulp(x),
            linear(1.0, 7.0),
            linear(2.0, 3.0),
        ),
        case(
            "(a as f64 / b as f64) as f32",
            |a, b| a / b,
            |_, _, x| 0.5 * ulp(x),
            linear(1.0, 7.0),
            linear(2.0, 3.0),
        ),
    ]
}

/// Subnormal arguments and results are zero.
fn subnormal_numbers() -> Vec<Case> {
    let tiny = || geometric(1e-44, 1e-38);
    let zero = |_: f64, _: f64| 0.0;
    let case = |expression, a, b| Case { expression, exact: zero, allowed: |_, _, _| 0.0, a, b };
    vec![
        case("a + b * 0.0", tiny(), linear(1.0, 2.0)),
        case("a * b", tiny(), geometric(1.0, 1e30)),
        case("b * 1.0e-30", linear(1.0, 2.0), geometric(1e-15, 1e-9)),
        case("a / b", tiny(), linear(1.0, 2.0)),
        case("sqrt(a)", tiny(), tiny()),
        case("if a > 0.0 { 1.0 } else { 0.0 }", tiny(), tiny()),
    ]
}

/// For each case, a kernel `k…` with `attribute`, and one without it, `e…`, that calls the same function.
fn source(cases: &[Case], attribute: &str) -> String {
    let kernels = |(at, case): (usize, &Case)| {
        let kernel = |head: &str| {
            format!(
                "{head}{at}(x: *const f32, y: *const f32, out: *mut f32, n: u32) {{
                    let i = block_idx.x * block_dim.x + thread_idx.x;
                    if i < n {{ out[i] = f{at}(x[i], y[i]); }}
                }}\n"
            )
        };
        let function = format!("fn f{at}(a: f32, b: f32) -> f32 {{ {} }}\n", case.expression);
        [function, kernel(&format!("{attribute} kernel k")), kernel("kernel e")].concat()
    };
    cases.iter().enumerate().map(kernels).collect()
}

fn load(
    device: &Device,
    build: impl Fn(&Checked) -> Artifact,
    cases: &[Case],
    attribute: &str,
) -> Program {
    let source = source(cases, attribute);
    let program = compile::check(SourceMap::single("fast.grid", source)).unwrap();
    Program::load(device, &build(&program)).unwrap()
}

/// Runs the kernels whose names start with `kind` and returns the failures, at most three of each.
fn run(device: &Device, program: &Program, cases: &[Case], kind: &str) -> Vec<String> {
    let stream = device.stream().unwrap();
    let mut wrong = vec![];
    for (at, case) in cases.iter().enumerate() {
        let (a, b) = (
            Buffer::from_slice(device, &case.a).unwrap(),
            Buffer::from_slice(device, &case.b).unwrap(),
        );
        let mut out = Buffer::<f32>::alloc_zeroed(device, case.a.len()).unwrap();
        let count = case.a.len() as u32;
        let config = LaunchConfig::new(count.div_ceil(BLOCK), BLOCK);
        let arguments = [Arg::from(&a), Arg::from(&b), Arg::from(&mut out), Arg::from(count)];
        let kernel = program.kernel(&format!("{kind}{at}")).unwrap();
        stream.launch(&kernel, &config, &arguments).unwrap();
        stream.synchronize(TIMEOUT).unwrap();
        let results = out.to_vec().unwrap();
        let failures = case.a.iter().zip(&case.b).zip(results).filter_map(|((a, b), found)| {
            let (a, b) = (f64::from(*a), f64::from(*b));
            let exact = (case.exact)(a, b);
            let is_right = (f64::from(found) - exact).abs() <= (case.allowed)(a, b, exact);
            let text =
                || format!("{}, a = {a:e}, b = {b:e}: {found:e}, not {exact:e}", case.expression);
            (!is_right).then(text)
        });
        wrong.extend(failures.take(3));
    }
    wrong
}

fn check(way: &str, wrong: &[String]) {
    assert!(wrong.is_empty(), "{way}:\n{}", wrong.join("\n"));
}

#[test]
fn fast_math_keeps_its_bounds_on_a_gpu() {
    let Some((device, arch)) = gpu_or_skip("fast_math") else { return };
    let session = Session::new();
    for backend in [Backend::LibNvvm, Backend::Nvptx] {
        let options = BuildOptions::for_arch(arch).with_backend(backend).with_fast_math(true);
        let build =
            |program: &Checked| artifact::build(&session, program, &[arch], &options).unwrap();
        for (what, cases) in [("", approximations()), (", subnormal", subnormal_numbers())] {
            let program = load(&device, build, &cases, "");
            check(&format!("{backend:?}{what}"), &run(&device, &program, &cases, "k"));
        }
    }
}

#[test]
fn kernels_with_fast_math_keep_its_bounds_on_a_gpu_and_others_are_exact() {
    let Some((device, arch)) = gpu_or_skip("fast_math of kernels") else { return };
    let session = Session::new();
    for backend in [Backend::LibNvvm, Backend::Nvptx] {
        let options = BuildOptions::for_arch(arch).with_backend(backend);
        let build =
            |program: &Checked| artifact::build(&session, program, &[arch], &options).unwrap();
        let cases = approximations();
        let program = load(&device, build, &cases, "#[fast_math]");
        check(&format!("{backend:?}"), &run(&device, &program, &cases, "k"));
        check(&format!("{backend:?}, exact"), &run(&device, &program, &cases, "e"));
        let cases = subnormal_numbers();
        let program = load(&device, build, &cases, "#[fast_math]");
        check(&format!("{backend:?}, subnormal"), &run(&device, &program, &cases, "k"));
        assert!(!run(&device, &program, &cases, "e").is_empty(), "{backend:?}");
    }
}

/// Nothing bounds the errors of angles beyond half a turn, so the cases have none. The CPU device ignores the attribute.
#[test]
fn exact_results_keep_the_bounds_of_fast_math() {
    let session = Session::new();
    let device = Device::open_cpu(CpuConfig::default()).unwrap();
    let build =
        |program: &Checked| artifact::build_cpu(&session, program, &CpuOptions::default()).unwrap();
    let cases = approximations();
    assert!(cases.iter().all(|case| case.a.iter().all(|a| f64::from(a.abs()) <= PI)
        || !["sin", "cos", "tan("].iter().any(|name| case.expression.starts_with(name))));
    let program = load(&device, build, &cases, "#[fast_math]");
    check("the CPU", &run(&device, &program, &cases, "k"));
    // Exactly computed, no subnormal number is zero.
    let cases = subnormal_numbers();
    let program = load(&device, build, &cases, "#[fast_math]");
    for kind in ["k", "e"] {
        assert!(!run(&device, &program, &cases, kind).is_empty());
    }
}
