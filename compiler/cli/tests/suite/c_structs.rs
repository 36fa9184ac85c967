//! Structs and vectors by value between images for the CPU and C, in both directions and in every
//! shape that calling conventions distinguish. Generates a program and a C file, each of which
//! checks every number that the other passes or returns. Needs a C compiler, as images for the CPU
//! do.

#![allow(clippy::unwrap_used, reason = "helpers of tests panic")]

#[path = "../../../tests/support/c_shapes.rs"]
mod c_shapes;
use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::sync::OnceLock;

use crate::support::{Gridlet, Output, folder, json};
use c_shapes::{STRUCTS, VECTORS};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};
use tempfile::TempDir;

/// A type that exists in both languages.
#[derive(Clone)]
enum Ty {
    Scalar(&'static str),
    Vector(&'static str, usize),
    Array(Box<Ty>, usize),
    /// The struct `S<number>`.
    Struct(usize, Vec<Ty>),
    Pointer,
}

const SCALARS: [(&str, &str); 13] = [
    ("bool", "_Bool"),
    ("i8", "signed char"),
    ("u8", "unsigned char"),
    ("i16", "short"),
    ("u16", "unsigned short"),
    ("i32", "int"),
    ("u32", "unsigned"),
    ("i64", "long long"),
    ("u64", "unsigned long long"),
    ("f16", "_Float16"),
    // Compilers without `__bf16` pass another float of its size in the same way; the test compares
    // the bits.
    ("bf16", "_Float16"),
    ("f32", "float"),
    ("f64", "double"),
];

/// Whether the C compiler has `_Float16`; if not, prints a note, and `f32` replaces the 16-bit
/// floats.
fn has_float16() -> bool {
    static KNOWN: OnceLock<bool> = OnceLock::new();
    *KNOWN.get_or_init(|| {
        let folder = folder();
        fs::write(folder.path().join("half.c"), "_Float16 f(_Float16 x) { return x; }").unwrap();
        let tried = Command::new("cc").args(["-c", "half.c"]).current_dir(folder.path()).output();
        let has = tried.unwrap().status.success();
        if !has {
            eprintln!("SKIPPED: structs of f16 and bf16 need a C compiler that has _Float16");
        }
        has
    })
}

fn scalar(name: &str) -> &'static str {
    let name = if matches!(name, "f16" | "bf16") && !has_float16() { "f32" } else { name };
    SCALARS.iter().find(|(known, _)| *known == name).unwrap().0
}

fn parse(text: &str, structs: &[Ty]) -> Ty {
    if let Some(inner) = text.strip_prefix('[') {
        let (element, count) = inner.strip_suffix(']').unwrap().rsplit_once("; ").unwrap();
        return Ty::Array(Box::new(parse(element, structs)), count.parse().unwrap());
    }
    if let Some(number) = text.strip_prefix('S') {
        return structs[number.parse::<usize>().unwrap()].clone();
    }
    match text.rsplit_once('x') {
        _ if text == "ptr" => Ty::Pointer,
        Some((element, count)) => Ty::Vector(scalar(element), count.parse().unwrap()),
        None => Ty::Scalar(scalar(text)),
    }
}

/// The shapes above, and random ones.
fn shapes() -> Vec<Ty> {
    let mut structs: Vec<Ty> = vec![];
    let mut random = ChaCha8Rng::seed_from_u64(1);
    let mut below = |count: usize| random.next_u32() as usize % count;
    for shape in STRUCTS {
        let fields = shape.split(", ").map(|field| parse(field, &structs)).collect();
        structs.push(Ty::Struct(structs.len(), fields));
    }
    for _ in 0..40 {
        let fields = (0..1 + below(5)).map(|_| match below(12) {
            0 => Ty::Pointer,
            1 => Ty::Vector(scalar(SCALARS[1 + below(12)].0), 2 + below(3)),
            2 => Ty::Array(Box::new(Ty::Scalar(scalar(SCALARS[below(13)].0))), 1 + below(5)),
            3 => structs[below(STRUCTS.len())].clone(),
            _ => Ty::Scalar(scalar(SCALARS[below(13)].0)),
        });
        let fields = fields.collect();
        structs.push(Ty::Struct(structs.len(), fields));
    }
    let vectors = VECTORS.iter().map(|text| parse(text, &[]));
    let vectors: Vec<Ty> = vectors.collect();
    structs.extend(vectors);
    structs
}

impl Ty {
    fn grid(&self) -> String {
        match self {
            Ty::Scalar(name) => (*name).into(),
            Ty::Vector(element, count) => format!("{element}x{count}"),
            Ty::Array(element, count) => format!("[{}; {count}]", element.grid()),
            Ty::Struct(number, _) => format!("S{number}"),
            Ty::Pointer => "*const u8".into(),
        }
    }

    /// A C declaration of `name`.
    fn c(&self, name: &str) -> String {
        match self {
            Ty::Scalar(ty) => {
                format!("{} {name}", SCALARS.iter().find(|(known, _)| known == ty).unwrap().1)
            }
            Ty::Vector(..) => format!("{} {name}", self.grid()),
            Ty::Array(element, count) => element.c(&format!("{name}[{count}]")),
            Ty::Struct(number, _) => format!("struct S{number} {name}"),
            Ty::Pointer => format!("const unsigned char *{name}"),
        }
    }

    /// The parts of a struct, array or vector, each with the suffix that selects it.
    fn parts(&self) -> Vec<(String, Ty)> {
        match self {
            Ty::Scalar(_) | Ty::Pointer => vec![],
            Ty::Vector(element, count) => {
                let names = [".x", ".y", ".z", ".w"].into_iter().take(*count);
                names.map(|name| (name.into(), Ty::Scalar(element))).collect()
            }
            Ty::Array(element, count) => {
                (0..*count).map(|at| (format!("[{at}]"), (**element).clone())).collect()
            }
            Ty::Struct(_, fields) => {
                (0..).zip(fields).map(|(at, ty)| (format!(".f{at}"), ty.clone())).collect()
            }
        }
    }

    /// The numbers in a value, each with the path that selects it.
    fn leaves(&self) -> Vec<(String, Ty)> {
        let parts = self.parts();
        if parts.is_empty() {
            return vec![(String::new(), self.clone())];
        }
        let nested = |(way, ty): (String, Ty)| {
            let inner = ty.leaves().into_iter();
            inner.map(move |(rest, ty)| (way.clone() + &rest, ty)).collect::<Vec<_>>()
        };
        parts.into_iter().flat_map(nested).collect()
    }

    /// A literal of the language with `numbers` in it.
    fn literal(&self, numbers: &mut Numbers) -> String {
        let parts = self.parts().into_iter();
        let mut parts = parts.map(|(way, ty)| (way, ty.literal(numbers))).peekable();
        if parts.peek().is_none() {
            return numbers.next(self).grid;
        }
        match self {
            Ty::Struct(number, _) => {
                let fields = parts.map(|(way, value)| format!("{}: {value}", &way[1..]));
                format!("S{number} {{ {} }}", fields.collect::<Vec<_>>().join(", "))
            }
            Ty::Array(..) => {
                format!("[{}]", parts.map(|part| part.1).collect::<Vec<_>>().join(", "))
            }
            _ => format!(
                "{}({})",
                self.grid(),
                parts.map(|part| part.1).collect::<Vec<_>>().join(", ")
            ),
        }
    }
}

/// A number as written in both languages.
struct Number {
    grid: String,
    c: String,
}

/// Random numbers that use all of their bytes.
struct Numbers(ChaCha8Rng);

impl Numbers {
    fn new(seed: usize) -> Self {
        Numbers(ChaCha8Rng::seed_from_u64(seed as u64))
    }

    fn next(&mut self, ty: &Ty) -> Number {
        let bits = self.0.next_u64();
        let Ty::Scalar(name) = ty else {
            let address = bits >> 8;
            return Number {
                grid: format!("({address:#x}u64 as *const u8)"),
                c: format!("(const unsigned char *){address:#x}ULL"),
            };
        };
        if *name == "bool" {
            let value = bits & 1 == 1;
            return Number { grid: value.to_string(), c: u8::from(value).to_string() };
        }
        if name.contains('f') {
            // With few significant bits, so that every float type can represent it.
            let value = (bits % 61) as f32 - 30.5;
            let c = match *name {
                "bf16" => format!("bf16({:#x})", value.to_bits() >> 16),
                _ => format!("{value:.1}f"),
            };
            return Number { grid: format!("({value:.1})"), c };
        }
        let width: u32 = name[1..].parse().unwrap();
        let bits = bits >> (64 - width);
        // Excludes the least number: its literal without the sign does not fit.
        let value = match name.starts_with('i') {
            true => i128::from(bits) - (1 << (width - 1)) + i128::from(bits == 0),
            false => i128::from(bits),
        };
        let suffix = if name.starts_with('i') { "LL" } else { "ULL" };
        Number { grid: format!("({value})"), c: format!("({value}{suffix})") }
    }
}

/// C statements that count the numbers in `name` that differ from those of `seed`.
fn check_c(ty: &Ty, name: &str, seed: usize) -> String {
    let mut numbers = Numbers::new(seed);
    let leaves = ty.leaves().into_iter();
    let checks = leaves.map(|(way, leaf)| {
        let number = numbers.next(&leaf).c;
        match leaf {
            Ty::Scalar("bf16") => format!("    wrong += bits({name}{way}) != bits({number});\n"),
            _ => format!("    wrong += {name}{way} != {number};\n"),
        }
    });
    checks.collect()
}

/// C statements that initialise `name` with the numbers of `seed`.
fn make_c(ty: &Ty, name: &str, seed: usize) -> String {
    let mut numbers = Numbers::new(seed);
    let leaves = ty.leaves().into_iter();
    let sets = leaves.map(|(way, leaf)| format!("    {name}{way} = {};\n", numbers.next(&leaf).c));
    format!("    {};\n{}", ty.c(name), sets.collect::<String>())
}

fn literal(ty: &Ty, seed: usize) -> String {
    ty.literal(&mut Numbers::new(seed))
}

fn check_grid(ty: &Ty, name: &str, seed: usize) -> String {
    let mut numbers = Numbers::new(seed);
    let leaves = ty.leaves().into_iter();
    let checks = leaves.map(|(way, leaf)| {
        format!("    if {name}{way} != {} {{ wrong += 1; }}\n", numbers.next(&leaf).grid)
    });
    checks.collect()
}

/// The parameters of a function with many: more than the registers hold, with scalars in between.
fn many(shapes: &[Ty], at: usize) -> Vec<Ty> {
    let shape = |ahead: usize| shapes[(at + ahead) % shapes.len()].clone();
    vec![
        Ty::Scalar("f64"),
        shape(0),
        Ty::Scalar("u8"),
        shape(1),
        Ty::Scalar("f32"),
        shape(0),
        Ty::Pointer,
        shape(7),
        Ty::Scalar("i16"),
        shape(23),
        shape(0),
        Ty::Scalar("bool"),
        shape(3),
        Ty::Scalar("f32"),
    ]
}

/// A distinct seed for each value.
fn seed(shape: usize, value: usize) -> usize {
    shape * 100 + value
}

fn program(shapes: &[Ty]) -> String {
    let mut text = String::new();
    for ty in shapes {
        if let Ty::Struct(number, _) = ty {
            let fields = ty.parts().into_iter();
            let fields = fields.map(|(way, ty)| format!("{}: {}", &way[1..], ty.grid()));
            let fields = fields.collect::<Vec<_>>().join(", ");
            writeln!(text, "struct S{number} {{ {fields} }}").unwrap();
        }
    }
    let mut calls = String::new();
    for (at, ty) in shapes.iter().enumerate() {
        let name = ty.grid();
        let parameters = many(shapes, at);
        let declared = (0..).zip(&parameters).map(|(at, ty)| format!("p{at}: {}", ty.grid()));
        let declared = declared.collect::<Vec<_>>().join(", ");
        let given = (1..).zip(&parameters).map(|(value, ty)| literal(ty, seed(at, value)));
        let given = given.collect::<Vec<_>>().join(", ");
        write!(
            text,
            "extern fn give{at}() -> {name};\n\
             extern fn take{at}(value: {name}) -> u32;\n\
             extern fn many{at}({declared}, count: *mut u32) -> {name};\n\
             fn shape{at}() -> u32 {{\n    let mut wrong: u32 = 0;\n    let given = give{at}();\n{}\
             \x20   wrong += take{at}({});\n    let many = many{at}({given}, &wrong);\n{}    wrong\n}}\n",
            check_grid(ty, "given", seed(at, 50)),
            literal(ty, seed(at, 51)),
            check_grid(ty, "many", seed(at, 52)),
        )
        .unwrap();
        writeln!(calls, "    atomic_add(&out[{at}], shape{at}());").unwrap();
    }
    // Wrong numbers on purpose, which the function must detect.
    let wrong = literal(&shapes[0], seed(0, 60));
    let at = shapes.len();
    writeln!(calls, "    atomic_add(&out[{at}], take0({wrong}));").unwrap();
    text + &format!("kernel k(out: *mut u32) {{\n{calls}}}\n")
}

const PRELUDE: &str = "\
static unsigned short bits(_Float16 x) { unsigned short n; __builtin_memcpy(&n, &x, 2); return n; }
static _Float16 bf16(unsigned short n) { _Float16 x; __builtin_memcpy(&x, &n, 2); return x; }
";

fn definitions(shapes: &[Ty]) -> String {
    let mut text = if has_float16() { PRELUDE.to_owned() } else { String::new() };
    for (name, ty) in SCALARS[1..].iter().filter(|item| has_float16() || item.1 != "_Float16") {
        for count in 2..=4 {
            let fields = ["x", "y", "z", "w"][..count].join(", ");
            // As declared in CUDA's headers.
            let aligned = match count {
                3 => String::new(),
                _ => format!(
                    "__attribute__((aligned(sizeof({ty}) * {count} > 16 ? 16 : sizeof({ty}) * {count}))) "
                ),
            };
            writeln!(text, "typedef struct {aligned}{{ {ty} {fields}; }} {name}x{count};").unwrap();
        }
    }
    for ty in shapes {
        if let Ty::Struct(number, fields) = ty {
            let fields = (0..).zip(fields).map(|(at, ty)| ty.c(&format!("f{at}")) + "; ");
            writeln!(text, "struct S{number} {{ {}}};", fields.collect::<String>()).unwrap();
        }
    }
    for (at, ty) in shapes.iter().enumerate() {
        let parameters = many(shapes, at);
        let declared = (0..).zip(&parameters).map(|(at, ty)| ty.c(&format!("p{at}")));
        let declared = declared.collect::<Vec<_>>().join(", ");
        let checks = (0..)
            .zip(&parameters)
            .map(|(number, ty)| check_c(ty, &format!("p{number}"), seed(at, number + 1)));
        write!(
            text,
            "{} {{\n{}    return made;\n}}\n\
             unsigned take{at}({}) {{\n    unsigned wrong = 0;\n{}    return wrong;\n}}\n\
             {} {{\n    unsigned wrong = 0;\n{}    *count += wrong;\n{}    return made;\n}}\n",
            ty.c(&format!("give{at}(void)")),
            make_c(ty, "made", seed(at, 50)),
            ty.c("value"),
            check_c(ty, "value", seed(at, 51)),
            ty.c(&format!("many{at}({declared}, unsigned *count)")),
            checks.collect::<String>(),
            make_c(ty, "made", seed(at, 52)),
        )
        .unwrap();
    }
    text
}

#[test]
fn structs_and_vectors_pass_by_value_between_the_cpu_device_and_c() {
    let shapes = shapes();
    let folder = folder();
    fs::write(folder.path().join("p.grid"), program(&shapes)).unwrap();
    fs::write(folder.path().join("defs.c"), definitions(&shapes)).unwrap();
    let compiled = Command::new("cc")
        .args(["-c", "-fPIC", "-O1", "-w", "defs.c", "-o", "defs.o"])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(compiled.status.success(), "{}", String::from_utf8_lossy(&compiled.stderr));
    for level in ["0", "3"] {
        let run = format!(
            "run p.grid --device cpu --kernel k --grid 1 --block 2 --arg [{0}] --print out:{0} --json \
             --link defs.o -O {level}",
            shapes.len() + 1
        );
        let output = call(&folder, &run);
        assert_eq!(output.status, 0, "-O {level}: {}", output.stderr);
        let counts = json(&output)["buffers"]["out"].as_array().unwrap().clone();
        let counts: Vec<u64> = counts.iter().map(|count| count.as_u64().unwrap()).collect();
        for (at, (ty, count)) in shapes.iter().zip(&counts).enumerate() {
            let fields = ty.parts().into_iter().map(|part| part.1.grid()).collect::<Vec<_>>();
            assert_eq!(*count, 0, "-O {level}: shape {at}, {} of {}", ty.grid(), fields.join(", "));
        }
        // Two threads pass three wrong numbers each.
        assert_eq!(counts[shapes.len()], 6, "-O {level}: the check found nothing wrong");
    }
}

fn call(folder: &TempDir, line: &str) -> Output {
    let arguments: Vec<&str> = line.split_whitespace().collect();
    Gridlet::new(folder).without_toolkit().run(&arguments)
}

/// clang's output for these functions on x86-64, without attributes.
#[cfg(target_arch = "x86_64")]
const IR: &str = "\
define { <2 x float>, float } @moved(<2 x float> %xy, float %z) {
  %x = extractelement <2 x float> %xy, i64 0
  %y = extractelement <2 x float> %xy, i64 1
  %1 = insertelement <2 x float> poison, float %y, i64 0
  %2 = insertelement <2 x float> %1, float %z, i64 1
  %3 = insertvalue { <2 x float>, float } poison, <2 x float> %2, 0
  %4 = insertvalue { <2 x float>, float } %3, float %x, 1
  ret { <2 x float>, float } %4
}
%struct.Large = type { [5 x i64], i8 }
define void @changed(ptr sret(%struct.Large) align 8 %to, ptr byval(%struct.Large) align 8 %from) {
  %last = getelementptr inbounds i8, ptr %from, i64 32
  store i64 77, ptr %last
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %to, ptr align 8 %from, i64 48, i1 false)
  ret void
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
";

#[cfg(target_arch = "x86_64")]
#[test]
fn llvm_ir_of_clang_is_called_with_the_types_that_it_has() {
    let folder = folder();
    let source = "\
struct Large { words: [i64; 5], byte: i8 }
extern fn moved(v: f32x3) -> f32x3;
extern fn changed(from: Large) -> Large;
kernel k(out: *mut i64) {
    let v = moved(f32x3(1.0, 2.0, 3.0));
    out[0] = (v.x * 100.0 + v.y * 10.0 + v.z) as i64;
    let from = Large { words: [5; 5], byte: -3 };
    let to = changed(from);
    out[1] = from.words[4];
    out[2] = to.words[4];
    out[3] = to.words[3] + to.byte as i64;
}
";
    fs::write(folder.path().join("p.grid"), source).unwrap();
    fs::write(folder.path().join("p.ll"), IR).unwrap();
    let run = "run p.grid --device cpu --kernel k --grid 1 --block 1 --arg [4] --print out --json --link p.ll";
    for level in ["0", "3"] {
        let output = call(&folder, &format!("{run} -O {level}"));
        assert_eq!(output.status, 0, "-O {level}: {output:?}");
        // The function changed only its own copy.
        assert_eq!(
            json(&output)["buffers"]["out"],
            serde_json::json!([231, 5, 77, 2]),
            "-O {level}"
        );
    }
    fs::write(
        folder.path().join("p.ll"),
        IR.replace("(<2 x float> %xy, float %z)", "(<2 x float> %xy, i32 %n, float %z)"),
    )
    .unwrap();
    let output = call(&folder, run);
    assert_eq!(output.status, 1, "{output:?}");
    assert!(
        output.stderr.contains("defined:  { <2 x float>, float } (<2 x float>, i32, float)"),
        "{output:?}"
    );
}
