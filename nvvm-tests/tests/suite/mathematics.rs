//! The instructions of every operation on `f32`, exact and with fast mathematics, compared with those of nvcc.

use std::collections::{BTreeMap, BTreeSet};
use std::process::Command;

use gridlet::arch::CudaArch;
use gridlet::builtins::MathOp;
use gridlet::compile::{self, Backend, BuildOptions, Session};
use gridlet::source::SourceMap;
use gridlet::toolchain::Component;
use nvvm_tests::toolchain_or_skip;

/// The integer and float types that `f32` is converted to and from, in both languages.
const TYPES: [(&str, &str); 11] = [
    ("i8", "signed char"),
    ("i16", "short"),
    ("i32", "int"),
    ("i64", "long long"),
    ("u8", "unsigned char"),
    ("u16", "unsigned short"),
    ("u32", "unsigned"),
    ("u64", "unsigned long long"),
    ("f16", "__half"),
    ("bf16", "__nv_bfloat16"),
    ("f64", "double"),
];

/// Whatever is no call of a mathematical function: name, and the expression in both languages.
const OPERATORS: [(&str, &str, &str); 16] = [
    ("add", "x + y", "x + y"),
    ("sub", "x - y", "x - y"),
    ("mul", "x * y", "x * y"),
    ("div", "x / y", "x / y"),
    ("rem", "x % y", "fmodf(x, y)"),
    ("neg", "-x", "-x"),
    ("sum_of_products", "x * y + z", "x * y + z"),
    ("negative_abs", "-abs(x)", "-fabsf(x)"),
    ("if_abs", "if abs(x) < y { z } else { x }", "fabsf(x) < y ? z : x"),
    ("if_eq", "if x == y { z } else { x }", "x == y ? z : x"),
    ("if_ne", "if x != y { z } else { x }", "x != y ? z : x"),
    ("if_lt", "if x < y { z } else { x }", "x < y ? z : x"),
    ("if_le", "if x <= y { z } else { x }", "x <= y ? z : x"),
    ("if_gt", "if x > y { z } else { x }", "x > y ? z : x"),
    ("if_ge", "if x >= y { z } else { x }", "x >= y ? z : x"),
    ("if_nan", "if x != x { z } else { y }", "x != x ? z : y"),
];

/// Kernels in both languages, each of one operation.
fn sources() -> [String; 2] {
    let mut ours = String::new();
    let mut theirs = String::from("#include <cuda_bf16.h>\n#include <cuda_fp16.h>\n");
    let single = ("f32", "float");
    let mut kernel = |name: &str, [from, to]: [(&str, &str); 2], [own, cuda]: [&str; 2]| {
        ours += &format!(
            "kernel {name}_(o: *mut {}, p: *const {}) {{ let x = p[0]; let y = p[1]; let z = p[2]; o[0] = {own}; }}\n",
            to.0, from.0
        );
        theirs += &format!(
            "extern \"C\" __global__ void {name}_({} *o, const {} *p) {{ auto x = p[0]; auto y = p[1]; auto z = p[2]; o[0] = {cuda}; }}\n",
            to.1, from.1
        );
    };
    for (op, name, count) in MathOp::all() {
        let arguments = ["x", "x, y", "x, y, z"][count - 1];
        let cuda = match op {
            MathOp::Clamp => "fminf(fmaxf(x, y), z)".to_owned(),
            MathOp::Saturate => "fminf(fmaxf(x, 0.0f), 1.0f)".to_owned(),
            MathOp::Abs => "fabsf(x)".to_owned(),
            MathOp::Min | MathOp::Max => format!("f{name}f({arguments})"),
            _ => format!("{name}f({arguments})"),
        };
        kernel(name, [single; 2], [&format!("{name}({arguments})"), &cuda]);
    }
    for (name, own, cuda) in OPERATORS {
        kernel(name, [single; 2], [own, cuda]);
    }
    for other in TYPES {
        let (to, from) = (format!("to_{}", other.0), format!("from_{}", other.0));
        let cast = |to: (&str, &str)| [format!("x as {}", to.0), format!("({})x", to.1)];
        kernel(&to, [single, other], cast(other).each_ref().map(String::as_str));
        kernel(&from, [other, single], cast(single).each_ref().map(String::as_str));
    }
    [ours, theirs]
}

/// By kernel, its instructions that compute with `f32`.
fn operations(ptx: &str) -> BTreeMap<&str, Vec<&str>> {
    let kernels = ptx.split(".entry ").skip(1).map(|text| {
        let name = text.split(['(', '\n']).next().unwrap().trim();
        let code = text.split_once("\n}").unwrap().0;
        // nvcc's headers have assembly in braces.
        let words = code.lines().filter_map(|line| {
            let mut words = line.split_whitespace();
            words.find(|word| !word.starts_with(['@', '{']))
        });
        let is_operation = |word: &&str| {
            let name = word.split('.').next().unwrap_or_default();
            let moves = ["", "ld", "st", "mov", "selp"].contains(&name);
            word.contains(".f32") && !moves
        };
        (name, words.filter(is_operation).collect())
    });
    kernels.collect()
}

/// The instructions that must be the same: those that are approximate, or that are not with other options, and absolute values
/// that flush subnormal numbers. Exact ones are operations on bits.
fn telling<'p>(words: &[&'p str], is_fast: bool) -> Vec<&'p str> {
    let is_telling = |word: &&str| {
        let name = word.split('.').next().unwrap_or_default();
        let is_abs = is_fast && name == "abs";
        word.contains(".approx") || is_abs || ["div", "rcp", "sqrt"].contains(&name)
    };
    let mut words: Vec<&str> = words.iter().copied().filter(is_telling).collect();
    words.sort_unstable();
    words
}

/// What differs in a kernel.
fn difference(ours: &[&str], theirs: &[&str], is_fast: bool) -> Option<String> {
    let [own, other] = [ours, theirs].map(|words| telling(words, is_fast));
    if own != other {
        return Some(format!("{own:?} instead of {other:?}"));
    }
    let theirs: BTreeSet<&str> = theirs.iter().copied().collect();
    let other = |word: &&&str| {
        // A subnormal `f32` is zero as `f16`, and none comes from one.
        let of_half = word.starts_with("cvt.") && word.contains("f16");
        word.contains(".ftz") != is_fast && !theirs.contains(**word) && !of_half
    };
    ours.iter().find(other).map(|word| format!("{word}, but nvcc has {theirs:?}"))
}

#[test]
fn operations_on_f32_are_as_exact_as_those_of_nvcc() {
    let test = "operations_on_f32_are_as_exact_as_those_of_nvcc";
    let needed = [Component::LibNvvm, Component::LibDevice, Component::Nvcc];
    let Some(toolchain) = toolchain_or_skip(test, &needed) else { return };
    let folder = tempfile::tempdir().unwrap();
    let [ours, theirs] = sources();
    let path = folder.path().join("k.cu");
    std::fs::write(&path, theirs).unwrap();
    let nvcc = toolchain.path(Component::Nvcc).unwrap().to_path_buf();
    let session = Session::with_toolchain(toolchain);
    let program = compile::check(SourceMap::single("k.grid", ours)).unwrap();
    let mut wrong = vec![];
    for (arch, is_fast) in
        ["sm_80", "sm_90", "sm_100"].into_iter().flat_map(|arch| [(arch, false), (arch, true)])
    {
        let target = folder.path().join("k.ptx");
        let output = Command::new(&nvcc)
            .args(["-ptx", "-w", "-arch", arch, "-o"])
            .args([&target, &path])
            .args(is_fast.then_some("-use_fast_math"))
            .output()
            .unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let theirs = std::fs::read_to_string(&target).unwrap();
        let theirs = operations(&theirs);
        let of_arch = BuildOptions::for_arch(arch.parse::<CudaArch>().unwrap());
        for backend in [Backend::LibNvvm, Backend::Nvptx] {
            let options = of_arch.with_backend(backend).with_fast_math(is_fast);
            let (ptx, _) = session.ptx(&program, &options).unwrap();
            let ours = operations(&ptx.0);
            assert_eq!(Vec::from_iter(ours.keys()), Vec::from_iter(theirs.keys()));
            for (name, words) in ours {
                let kind = if is_fast { "fast" } else { "exact" };
                if let Some(difference) = difference(&words, &theirs[name], is_fast) {
                    wrong.push(format!("{arch} {backend:?} {kind} {name}: {difference}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
