//! Tests that the legacy dialect writer's replacements for intrinsics and instructions that LLVM 7
//! lacks compute the same results: runs both versions on this processor, on values around every
//! bound.
//!
//! The functions have no pointers, so LLVM 22 can also read their LLVM 7 text. Models replace
//! libNVVM's own intrinsics: they follow PTX's documentation, and are deliberately wrong where it
//! promises nothing.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::BTreeSet;

use gridlet::nvvm::legacy::{self, LegacyOptions};
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::targets::{InitializationConfig, Target};

/// PTX's `cvt` to integers saturates, with any result for NaN. `round` rounds to nearest, ties to
/// even.
const MODELS: &str = "
declare float @llvm.roundeven.f32(float)
declare double @llvm.roundeven.f64(double)
declare float @llvm.trunc.f32(float)
declare double @llvm.trunc.f64(double)
declare float @llvm.fabs.f32(float)
declare double @llvm.fabs.f64(double)
declare i32 @llvm.fptosi.sat.i32.f32(float)
declare i32 @llvm.fptoui.sat.i32.f32(float)
declare i64 @llvm.fptosi.sat.i64.f32(float)
declare i64 @llvm.fptoui.sat.i64.f32(float)
declare i32 @llvm.fptosi.sat.i32.f64(double)
declare i32 @llvm.fptoui.sat.i32.f64(double)
declare i64 @llvm.fptosi.sat.i64.f64(double)
declare i64 @llvm.fptoui.sat.i64.f64(double)
declare float @llvm.copysign.f32(float, float)
declare double @llvm.copysign.f64(double, double)
";

/// The models of all conversions.
fn models() -> String {
    let mut text = MODELS.to_owned();
    for (letter, float, short) in [('f', "float", "f32"), ('d', "double", "f64")] {
        for (name, intrinsic, bits) in
            [("i", "fptosi", 32), ("ui", "fptoui", 32), ("ll", "fptosi", 64), ("ull", "fptoui", 64)]
        {
            text += &format!(
                "define i{bits} @model.{letter}2{name}.rz({float} %x) {{
                   %n = call i{bits} @llvm.{intrinsic}.sat.i{bits}.{short}({float} %x)
                   %nan = fcmp uno {float} %x, %x
                   %r = select i1 %nan, i{bits} 123456789, i{bits} %n
                   ret i{bits} %r
                 }}\n"
            );
        }
        for (name, intrinsic) in [("round", "roundeven"), ("trunc", "trunc"), ("fabs", "fabs")] {
            text += &format!(
                "define {float} @model.{name}.{letter}({float} %x) {{
                   %r = call {float} @llvm.{intrinsic}.{short}({float} %x)
                   ret {float} %r
                 }}\n"
            );
        }
    }
    text
}

/// A function of LLVM 22: its result type, parameter types and body.
struct Case {
    result: String,
    parameters: Vec<String>,
    body: String,
}

impl Case {
    /// A call of `intrinsic`, which is overloaded on `suffix`, with additional arguments after the
    /// parameters.
    fn call(intrinsic: &str, suffix: &str, result: &str, parameters: &[&str], more: &str) -> Case {
        let names: Vec<String> =
            parameters.iter().zip('a'..).map(|(ty, name)| format!("{ty} %{name}")).collect();
        Case {
            result: result.to_owned(),
            parameters: parameters.iter().map(|&ty| ty.to_owned()).collect(),
            body: format!(
                "  %r = call {result} @llvm.{intrinsic}.{suffix}({}{more})",
                names.join(", ")
            ),
        }
    }

    fn function(&self, name: &str) -> String {
        let names: Vec<String> =
            self.parameters.iter().zip('a'..).map(|(ty, name)| format!("{ty} %{name}")).collect();
        let result = &self.result;
        format!(
            "define {result} @{name}({}) {{\n{}\n  ret {result} %r\n}}\n",
            names.join(", "),
            self.body
        )
    }

    /// `@run_NAME`, which loads the arguments, calls `@NAME` and stores the result.
    fn runner(&self, name: &str) -> String {
        let mut text = format!("define void @run_{name}(ptr %a, ptr %b, ptr %r) {{\n");
        let mut arguments = vec![];
        for (ty, parameter) in self.parameters.iter().zip('a'..) {
            text += &format!("  %{parameter}.value = load {ty}, ptr %{parameter}, align 1\n");
            arguments.push(format!("{ty} %{parameter}.value"));
        }
        let result = &self.result;
        text += &format!("  %v = call {result} @{name}({})\n", arguments.join(", "));
        text + &format!("  store {result} %v, ptr %r, align 1\n  ret void\n}}\n")
    }
}

/// The writer's definition of `@legacy` for the case, with models in place of libNVVM's intrinsics.
fn legacy_function(case: &Case) -> String {
    let context = Context::create();
    let buffer =
        MemoryBuffer::create_from_memory_range_copy(case.function("legacy").as_bytes(), "case");
    let module = context.create_module_from_ir(buffer).unwrap();
    let text = legacy::write(&module, &LegacyOptions::default()).unwrap();
    let definition = text.split_once("define ").unwrap().1;
    let definition = definition.split_once("\n}\n").unwrap().0;
    format!("define {definition}\n}}\n").replace("@llvm.nvvm.", "@model.")
}

/// Values around the bounds of integers of every width and of both float types.
fn values(ty: &str) -> Vec<u64> {
    let mut values = BTreeSet::new();
    match ty {
        "float" | "double" => {
            let mut floats = vec![
                0.0,
                0.25,
                0.5,
                1.0,
                1.5,
                2.5,
                3.7,
                1e10,
                1e300,
                f64::INFINITY,
                f64::NAN,
                5e-324,
            ];
            for bits in [7, 8, 15, 16, 23, 24, 31, 32, 52, 53, 63, 64] {
                let power = f64::from(bits).exp2();
                floats.extend([
                    power,
                    power - 1.0,
                    power - 0.5,
                    power + 0.5,
                    power + 1.0,
                    power * 1.5,
                ]);
            }
            floats.extend([f64::from(0.49999997f32), 0.499_999_999_999_999_94, 8_388_607.5]);
            for value in floats.into_iter().flat_map(|value| [value, -value]) {
                values.insert(if ty == "float" {
                    u64::from((value as f32).to_bits())
                } else {
                    value.to_bits()
                });
            }
        }
        _ => {
            for bits in [0, 1, 3, 7, 8, 12, 15, 16, 31, 32, 47, 63] {
                let power = 1u64 << bits;
                values.extend([power, power - 1, power + 1, power.wrapping_neg(), !power]);
            }
            values.extend([0, u64::MAX, 42, 0x0123_4567_89ab_cdef]);
        }
    }
    values.into_iter().collect()
}

/// Runs both functions on all pairs of values.
fn check(case: &Case) {
    let declarations: String = {
        let context = Context::create();
        let buffer =
            MemoryBuffer::create_from_memory_range_copy(case.function("modern").as_bytes(), "case");
        let module = context.create_module_from_ir(buffer).unwrap();
        let text = module.print_to_string().to_string();
        let known = |line: &&str| {
            line.starts_with("declare") && !MODELS.contains(line.split('#').next().unwrap().trim())
        };
        text.lines()
            .filter(known)
            .map(|line| format!("{}\n", line.split('#').next().unwrap()))
            .collect()
    };
    let text = [
        models(),
        declarations,
        case.function("modern"),
        case.runner("modern"),
        legacy_function(case),
        case.runner("legacy"),
    ]
    .concat();
    Target::initialize_native(&InitializationConfig::default()).unwrap();
    let context = Context::create();
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "case");
    let module =
        context.create_module_from_ir(buffer).unwrap_or_else(|error| panic!("{error}\n{text}"));
    let engine = module.create_jit_execution_engine(OptimizationLevel::None).unwrap();
    type Run = unsafe extern "C" fn(*const u64, *const u64, *mut [u64; 4]);
    // SAFETY: both take three pointers and return nothing.
    let (modern, legacy) = unsafe {
        (
            engine.get_function::<Run>("run_modern").unwrap(),
            engine.get_function::<Run>("run_legacy").unwrap(),
        )
    };
    let first = values(&case.parameters[0]);
    let second = case.parameters.get(1).map_or(vec![0], |ty| values(ty));
    for a in &first {
        for b in &second {
            let (mut expected, mut found) = ([0u64; 4], [0u64; 4]);
            // SAFETY: the functions read at most eight bytes of each argument and write at most 32.
            unsafe {
                modern.call(a, b, &mut expected);
                legacy.call(a, b, &mut found);
            }
            let nan = |bits: u64| match case.result.as_str() {
                "float" => f32::from_bits(bits as u32).is_nan(),
                "double" => f64::from_bits(bits).is_nan(),
                _ => false,
            };
            let same = expected == found || (nan(expected[0]) && nan(found[0]));
            assert!(same, "{a:#x}, {b:#x}: {expected:x?}, not {found:x?}\n{text}");
        }
    }
}

#[test]
fn integer_intrinsics() {
    for width in [8, 16, 32, 64] {
        let ty = format!("i{width}");
        for name in ["smax", "smin", "umax", "umin", "sadd.sat", "ssub.sat", "uadd.sat", "usub.sat"]
        {
            check(&Case::call(name, &ty, &ty, &[&ty, &ty], ""));
        }
        check(&Case::call("abs", &ty, &ty, &[&ty], ", i1 false"));
        for name in ["scmp", "ucmp"] {
            check(&Case::call(name, &format!("i8.{ty}"), "i8", &[&ty, &ty], ""));
        }
    }
    for name in ["sadd", "uadd", "ssub", "usub", "smul", "umul"] {
        for ty in ["i8", "i32"] {
            check(&Case::call(
                &format!("{name}.with.overflow"),
                ty,
                &format!("{{ {ty}, i1 }}"),
                &[ty, ty],
                "",
            ));
        }
    }
    for name in ["smax", "umin", "sadd.sat", "ssub.sat", "uadd.sat", "usub.sat"] {
        check(&Case::call(name, "v2i32", "<2 x i32>", &["<2 x i32>", "<2 x i32>"], ""));
    }
}

#[test]
fn conversions() {
    for (float, short) in [("float", "f32"), ("double", "f64")] {
        for width in [1, 7, 8, 16, 24, 32, 48, 63, 64] {
            for name in ["fptosi", "fptoui"] {
                check(&Case::call(
                    &format!("{name}.sat"),
                    &format!("i{width}.{short}"),
                    &format!("i{width}"),
                    &[float],
                    "",
                ));
            }
        }
    }
}

#[test]
fn rounding() {
    for (float, short) in [("float", "f32"), ("double", "f64")] {
        for name in ["round", "rint", "nearbyint", "roundeven", "trunc", "fabs"] {
            check(&Case::call(name, short, float, &[float], ""));
        }
    }
}

#[test]
fn negation() {
    for ty in ["float", "double"] {
        check(&Case {
            result: ty.to_owned(),
            parameters: vec![ty.to_owned()],
            body: format!("  %r = fneg {ty} %a"),
        });
    }
}
