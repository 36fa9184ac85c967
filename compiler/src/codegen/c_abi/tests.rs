//! The registers for many struct shapes, compared with clang 22's choice for x86-64 and for 64-bit
//! Arm on Linux.

use std::fmt::Write as _;

use c_shapes::{STRUCTS, VECTORS};

use super::{Convention, Passing, Register};
use crate::compile;
use gridlet_lang::ir::Module;
use gridlet_lang::source::SourceMap;
use gridlet_lang::types::{Scalar, Type};

#[path = "../../../tests/support/c_shapes.rs"]
mod c_shapes;

/// Types of the language without a C counterpart of their own.
const OWN: [&str; 2] = ["stream", "dim3"];

/// A program with functions `f0`, `f1` and so on, each with the given parameters and result.
fn module(functions: &[(String, String)], structs: &str) -> Module {
    let mut source = structs.to_owned();
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
fn structs_and_vectors_use_clangs_registers() {
    let structs: Vec<_> =
        STRUCTS.iter().chain(&OWN).map(|fields| fields.replace("ptr", "*const u8")).collect();
    let declared = structs.iter().enumerate().map(|(at, fields)| {
        let fields = fields.split(", ").enumerate().map(|(at, ty)| format!("f{at}: {ty}"));
        format!("struct S{at} {{ {} }}\n", fields.collect::<Vec<_>>().join(", "))
    });
    let names = (0..structs.len()).map(|at| format!("S{at}"));
    let vectors = || VECTORS.iter().chain(&OWN[1..]).map(|name| (*name).to_owned());
    let functions: Vec<_> =
        names.chain(vectors()).map(|name| (format!("p: {name}"), format!(" -> {name}"))).collect();
    let module = module(&functions, &declared.collect::<String>());
    let mut text = String::new();
    let shapes = (0..).zip(&structs).map(|(at, fields)| format!("S{at} {{ {fields} }}"));
    for (shape, item) in shapes.chain(vectors()).zip(&module.externs) {
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
    let structs = "struct S { x: f32, y: f32 }\nstruct I { a: i64, b: i64 }\nstruct M { a: i64, b: f64 }\nstruct L { a: [u8; 24] }";
    // Six general registers; a parameter after a struct on the stack may still get the last one.
    assert_eq!(
        text("a: I, b: I, c: i32, d: I, e: u8, f: i32", "", structs),
        "i64, i64; i64, i64; itself; memory; itself; itself"
    );
    assert_eq!(
        text("a: I, b: I, c: i32, d: M, e: M", "", structs),
        "i64, i64; i64, i64; itself; i64, double; memory"
    );
    // With no register free, up to eight bytes are an integer on the stack.
    assert_eq!(
        text("a: I, b: I, c: I, d: S, e: T, f: I", "", &format!("{structs}\nstruct T {{ a: u8 }}")),
        "i64, i64; i64, i64; i64, i64; <2 x float>; i8; memory"
    );
    // The address of a result in memory takes a register; a struct in memory takes none.
    assert_eq!(text("a: I, b: I, c: I", " -> L", structs), "i64, i64; i64, i64; memory");
    assert_eq!(text("l: L, a: I, b: I, c: I", "", structs), "memory; i64, i64; i64, i64; i64, i64");
    // Eight floating-point registers.
    assert_eq!(
        text("a: f32x4, b: f32x4, c: f32x4, d: f32, e: f32x4, f: M, g: M", "", structs),
        "<2 x float>, <2 x float>; <2 x float>, <2 x float>; <2 x float>, <2 x float>; itself; memory; \
         i64, double; memory"
    );
}

#[test]
fn conventions_depend_on_the_target() {
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
