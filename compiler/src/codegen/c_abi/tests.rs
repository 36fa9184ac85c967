//! The registers of many shapes, as clang 22 chooses them for x86-64 and for 64-bit Arm on Linux.

use std::fmt::Write as _;

use super::{Convention, Passing, Register};
use crate::compile;
use crate::ir::Module;
use crate::source::SourceMap;
use crate::types::{Scalar, Type};

/// The fields of structs. `S` is a struct of two `f32`, `V` of an `i32x4`.
const STRUCTS: &[&str] = &[
    "f32",
    "f32, f32",
    "f32, f32, f32",
    "f32, f32, f32, f32",
    "f32, f32, f32, f32, f32",
    "f64",
    "f32, f64",
    "f64, f64, f64, f64",
    "f64, f64, f64, f64, f64",
    "bool",
    "i8, i8, i8",
    "i16, i8",
    "u8, u32",
    "i64, i8",
    "i64, i64, i8",
    "i32, i32, i32",
    "[u8; 5]",
    "[u8; 11]",
    "[u8; 17]",
    "i32, f32",
    "f32, f32, i32",
    "i32, f32, f32",
    "f64, i8",
    "*const u8, f32",
    "u8, *const u8",
    "stream",
    "f16",
    "f16, f16",
    "f16, f16, f16",
    "f16, f16, f16, f16",
    "f16, f16, f16, f16, f16",
    "f16, f32",
    "f32, f16",
    "f32, f16, f16",
    "f16, i8",
    "f16, f64",
    "bf16, bf16",
    "bf16, f16",
    "bf16, f32",
    "f32x2, f32",
    "f32, f32x2",
    "f32x4",
    "f32x4, f32",
    "i32x4",
    "V",
    "f64x2",
    "u8x4, u8x3",
    "i64x2, i8",
    "S, S",
    "S, f64",
    "[S; 2]",
    "[f32; 3], u8",
    "dim3",
];

/// Vectors, by themselves.
const VECTORS: &[&str] = &[
    "f32x2", "f32x3", "f32x4", "f64x2", "f64x3", "f64x4", "i8x2", "i8x3", "i16x3", "i16x4",
    "i32x4", "u64x2", "u64x3", "f16x2", "f16x3", "f16x4", "bf16x4", "dim3",
];

/// A program with the functions `f0`, `f1` and so on of these parameters and this result.
fn module(functions: &[(String, String)], structs: &str) -> Module {
    let mut source = format!("struct S {{ x: f32, y: f32 }}\nstruct V {{ v: i32x4 }}\n{structs}");
    for (at, (parameters, result)) in functions.iter().enumerate() {
        writeln!(source, "extern fn f{at}({parameters}){result};").unwrap();
    }
    source += "kernel k() {}\n";
    let checked = compile::check(SourceMap::single("test.grid", source)).unwrap();
    checked.module.clone()
}

fn register(register: Register) -> String {
    let float = |scalar| match scalar {
        Scalar::F16 => "half",
        Scalar::Bf16 => "bfloat",
        Scalar::F32 => "float",
        _ => "double",
    };
    match register {
        Register::Int(bits) => format!("i{bits}"),
        Register::Pointer => "ptr".into(),
        Register::Float(scalar) => float(scalar).into(),
        Register::Floats(scalar, count) => format!("<{count} x {}>", float(scalar)),
    }
}

fn shown(passing: &Passing) -> String {
    match passing {
        Passing::Itself => "itself".into(),
        Passing::Pieces(pieces) => {
            let pieces = pieces.iter().map(|piece| register(piece.1));
            pieces.collect::<Vec<_>>().join(", ")
        }
        Passing::Array { element, count, stack_alignment } => {
            let stack =
                stack_alignment.map_or(String::new(), |bytes| format!(" alignstack({bytes})"));
            format!("[{count} x {}]{stack}", register(*element))
        }
        Passing::Memory => "memory".into(),
        Passing::Address => "address".into(),
    }
}

#[test]
fn structs_and_vectors_go_where_clang_puts_them() {
    let declared = STRUCTS.iter().enumerate().map(|(at, fields)| {
        let fields = fields.split(", ").enumerate().map(|(at, ty)| format!("f{at}: {ty}"));
        format!("struct T{at} {{ {} }}\n", fields.collect::<Vec<_>>().join(", "))
    });
    let names = (0..STRUCTS.len()).map(|at| format!("T{at}"));
    let names = names.chain(VECTORS.iter().map(|name| (*name).to_owned()));
    let functions: Vec<_> =
        names.map(|name| (format!("p: {name}"), format!(" -> {name}"))).collect();
    let module = module(&functions, &declared.collect::<String>());
    let mut text = String::new();
    let shapes = STRUCTS.iter().map(|fields| format!("{{ {fields} }}"));
    let shapes = shapes.chain(VECTORS.iter().map(|name| (*name).to_owned()));
    for (shape, item) in shapes.zip(&module.externs) {
        writeln!(text, "{shape}").unwrap();
        for convention in [Convention::SystemV, Convention::Aapcs64, Convention::Cuda] {
            let signature = convention.signature(&item.parameters, &item.result, &module.structs);
            let (taken, given) = (shown(&signature.parameters[0]), shown(&signature.result));
            writeln!(text, "    {convention:?}: {taken} -> {given}").unwrap();
        }
    }
    insta::assert_snapshot!(text);
}

#[test]
fn a_struct_goes_into_registers_as_a_whole_or_not_at_all() {
    let text = |parameters: &str, result: &str, structs: &str| {
        let module = module(&[(parameters.into(), result.into())], structs);
        let item = &module.externs[0];
        let signature =
            Convention::SystemV.signature(&item.parameters, &item.result, &module.structs);
        let passed: Vec<String> = signature.parameters.iter().map(shown).collect();
        passed.join("; ")
    };
    let structs =
        "struct I { a: i64, b: i64 }\nstruct M { a: i64, b: f64 }\nstruct L { a: [u8; 24] }";
    // Six general registers; what comes behind a struct that is on the stack may still have the last.
    assert_eq!(
        text("a: I, b: I, c: i32, d: I, e: u8, f: i32", "", structs),
        "i64, i64; i64, i64; itself; memory; itself; itself"
    );
    assert_eq!(
        text("a: I, b: I, c: i32, d: M, e: M", "", structs),
        "i64, i64; i64, i64; itself; i64, double; memory"
    );
    // Where none is left, up to eight bytes are an integer on the stack.
    assert_eq!(
        text("a: I, b: I, c: I, d: S, e: T, f: I", "", &format!("{structs}\nstruct T {{ a: u8 }}")),
        "i64, i64; i64, i64; i64, i64; <2 x float>; i8; memory"
    );
    // The address of a result in memory takes one; a struct in memory takes none.
    assert_eq!(text("a: I, b: I, c: I", " -> L", structs), "i64, i64; i64, i64; memory");
    assert_eq!(text("l: L, a: I, b: I, c: I", "", structs), "memory; i64, i64; i64, i64; i64, i64");
    // Eight registers of floats.
    assert_eq!(
        text("a: f32x4, b: f32x4, c: f32x4, d: f32, e: f32x4, f: M, g: M", "", structs),
        "<2 x float>, <2 x float>; <2 x float>, <2 x float>; <2 x float>, <2 x float>; itself; memory; \
         i64, double; memory"
    );
}

#[test]
fn conventions_are_those_of_the_target() {
    for (triple, convention) in [
        ("x86_64-pc-linux-gnu", Some(Convention::SystemV)),
        ("x86_64-apple-darwin23", Some(Convention::SystemV)),
        ("x86_64-unknown-linux-gnux32", None),
        ("x86_64-pc-windows-msvc", None),
        ("aarch64-unknown-linux-gnu", Some(Convention::Aapcs64)),
        ("aarch64-apple-darwin", None),
        ("riscv64-unknown-linux-gnu", None),
    ] {
        assert_eq!(Convention::of_c(triple), convention, "{triple}");
    }
    let scalar = Convention::SystemV.signature(&[Type::F32], &Type::Unit, &Default::default());
    assert_eq!((scalar.parameters, scalar.result), (vec![Passing::Itself], Passing::Itself));
}
