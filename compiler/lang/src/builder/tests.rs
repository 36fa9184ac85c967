//! Mistakes of callers, and what the builder adds by itself.

mod nesting;
mod owners;
mod pointers;
mod programs;
mod text;
mod texts;

use super::{Body, Error, Geometry, ProgramBuilder, read};
use crate::diagnostics::{Diagnostic, ids};
use crate::ir::print::print;
use crate::ir::verify::verify;
use crate::ir::{BinaryOp, Const, InstKind, KernelId, Launch, LaunchBounds, Operand, Stream};
use crate::program::Checked;
use crate::source::Span;
use crate::types::{Field, Scalar, Struct, StructId, Type};

const LINES: &str = "child\nmain\nfirst\nsecond\nthird\n";

/// A program of `child(p, n)` and `main(p, n, f)`, whose code is built at line 3.
fn program(
    names: [&str; 2],
    build: impl FnOnce(&mut ProgramBuilder, &mut Body, KernelId),
) -> crate::error::Result<Checked> {
    let mut program = ProgramBuilder::new("a.toy", LINES);
    let lines: Vec<_> = (1..=5).map(|line| program.at(line)).collect();
    let pointer = Type::pointer_mut(Type::U32);
    let parameters = [("p", pointer), (names[1], Type::U32), ("f", Type::F32)];
    let child = program.kernel(names[0], &parameters[..2], lines[0]);
    let main = program.kernel("main", &parameters, lines[1]);
    let mut body = Body::new(lines[0]);
    body.end();
    program.define(child, body);
    let mut body = Body::new(lines[1]);
    body.at(lines[2]);
    build(&mut program, &mut body, child);
    program.define(main, body);
    program.finish()
}

fn launch(body: &mut Body, child: KernelId, arguments: &[Operand]) {
    let one = [body.number(1)];
    body.launch(child, &one, &one, arguments);
}

/// Adds a function with parameters of one type.
fn declare(program: &mut ProgramBuilder, name: &str, parameters: &[&str], ty: Type) {
    let line = program.at(4);
    let parameters: Vec<_> = parameters.iter().map(|name| (*name, ty.clone())).collect();
    let function = program.function(name, &parameters, Type::Unit, line);
    let mut body = Body::new(line);
    body.end();
    program.define_function(function, body);
}

/// Adds a struct with fields of one type.
fn add_struct(program: &mut ProgramBuilder, name: &str, fields: &[&str], ty: Type) -> StructId {
    let field = |name: &&str| Field { name: (*name).into(), ty: ty.clone() };
    let fields = fields.iter().map(field).collect();
    program.structs().add(Struct { name: name.into(), fields, span: None })
}

/// Adds a kernel, of which every program has one.
fn add_kernel(program: &mut ProgramBuilder) {
    let line = program.at(1);
    let kernel = program.kernel("k", &[], line);
    let mut body = Body::new(line);
    body.end();
    program.define(kernel, body);
}

fn both() -> [Operand; 2] {
    [0, 1].map(Body::parameter)
}

#[test]
fn mistakes_name_their_position() {
    type Build<'a> = &'a dyn Fn(&mut ProgramBuilder, &mut Body, KernelId);
    let cases: &[(&str, Build<'_>)] = &[
        ("a launch after the end", &|program, body, child| {
            body.end();
            launch(body.at(program.at(4)), child, &both());
        }),
        ("a launch after a jump", &|program, body, child| {
            let next = body.block();
            body.jump(next);
            launch(body.at(program.at(4)), child, &both());
            body.place(next);
            body.end();
        }),
        ("a store after the end", &|_, body, _| {
            body.end();
            body.store(Body::parameter(0), Body::parameter(1));
        }),
        ("an end after an end", &|_, body, _| {
            body.end();
            body.end();
        }),
        ("no end", &|_, _, _| ()),
        ("a block placed before the jump", &|program, body, _| {
            let [early, next] = [body.block(), body.block()];
            body.jump(next);
            body.at(program.at(4)).place(early);
            body.end();
            body.at(program.at(5)).place(next);
            body.jump(early);
        }),
        ("a branch on a number", &|program, body, _| {
            let [then, otherwise] = [body.block(), body.block()];
            body.binary(BinaryOp::Div, body.number(1), Body::parameter(1), Type::U32);
            body.at(program.at(4)).branch(Body::parameter(1), then, otherwise);
            body.at(program.at(5)).place(then);
            body.end();
            body.place(otherwise);
            body.end();
        }),
        ("a branch on a number to one block", &|program, body, _| {
            let end = body.block();
            body.at(program.at(4)).branch(Body::parameter(1), end, end);
            body.place(end);
            body.end();
        }),
        ("a line of another program", &|_, body, child| {
            let other = ProgramBuilder::new("other.toy", LINES);
            launch(body.at(other.at(4)), child, &both());
            body.end();
        }),
        ("a file of another program", &|program, body, child| {
            let mut other = ProgramBuilder::new("other.toy", LINES);
            let [_, second] = [other.source("second.toy", LINES), program.source("own.toy", LINES)];
            launch(body.at(program.line(second, 2)), child, &both());
            launch(body.at(program.line(other.first_file(), 2)), child, &both());
            body.end();
        }),
        ("two files of one name", &|program, body, _| {
            program.source("a.toy", LINES);
            body.end();
        }),
        ("a result of a kernel", &|program, body, _| {
            let next = body.block();
            body.jump(next);
            body.place(next);
            body.store(Body::parameter(0), Body::parameter(1));
            body.at(program.at(5)).give(Body::parameter(1));
        }),
        ("a block that is never placed", &|program, body, _| {
            let [placed, never] = [body.block(), body.block()];
            let known = body.binary(BinaryOp::Eq, Body::parameter(1), body.number(0), Type::BOOL);
            body.at(program.at(4)).branch(known, placed, never);
            body.at(program.at(5)).place(placed);
            body.jump(never);
        }),
        ("an end at line 0", &|program, body, _| {
            body.at(program.at(0)).end();
        }),
        ("a local variable", &|_, body, child| {
            let local = body.local("sum", Type::U32);
            launch(body, child, &[local, Body::parameter(1)]);
            body.end();
        }),
        ("a part of a local variable", &|_, body, child| {
            let local = body.local("sums", Type::Array(Box::new(Type::U32), 4));
            let place = body.element(local, body.number(1), Type::pointer_mut(Type::U32));
            launch(body, child, &[place, Body::parameter(1)]);
            body.end();
        }),
        ("a shared variable", &|program, body, child| {
            let shared = program.shared("tile", Type::U32);
            launch(body, child, &[shared, Body::parameter(1)]);
            body.end();
        }),
        ("a pointer in a struct", &|program, body, _| {
            let pointer = Type::pointer_mut(Type::U32);
            let fields = [("at", pointer), ("n", Type::U32)]
                .map(|(name, ty)| Field { name: name.into(), ty })
                .into();
            let view = Struct { name: "View".into(), fields, span: None };
            let view = Type::Struct(program.structs().add(view));
            let views = program.kernel("views", &[("v", view.clone())], program.at(4));
            let mut end = Body::new(program.at(4));
            end.end();
            program.define(views, end);
            let local = body.local("sum", Type::U32);
            let view = body.emit(InstKind::Aggregate(vec![local, Body::parameter(1)]), view);
            launch(body, views, &[view]);
            body.end();
        }),
        ("dynamic shared memory", &|_, body, child| {
            let words = body.dynamic_shared(Type::pointer_mut(Type::U32));
            launch(body, child, &[words, Body::parameter(1)]);
            body.end();
        }),
        ("a local variable through a variable", &|_, body, child| {
            let pointer = Type::pointer_mut(Type::U32);
            let local = body.local("sum", Type::U32);
            let kept = body.local("kept", pointer.clone());
            body.store(kept.clone(), local);
            let loaded = body.load(kept, pointer);
            launch(body, child, &[loaded, Body::parameter(1)]);
            body.end();
        }),
        ("a local variable through an integer", &|_, body, child| {
            let local = body.local("sum", Type::U32);
            let number = body.emit(InstKind::Cast(local), Type::U64);
            let again = body.emit(InstKind::Cast(number), Type::pointer_mut(Type::U32));
            launch(body, child, &[again, Body::parameter(1)]);
            body.end();
        }),
        ("one of two local variables", &|_, body, child| {
            let [one, other] = ["one", "other"].map(|name| body.local(name, Type::U32));
            let known = body.binary(BinaryOp::Eq, Body::parameter(1), body.number(0), Type::BOOL);
            let pointer = Type::pointer_mut(Type::U32);
            let chosen = body.emit(InstKind::Select(known, one, other), pointer);
            launch(body, child, &[chosen, Body::parameter(1)]);
            body.end();
        }),
        ("an array of nothing", &|program, body, _| {
            let nothing = Type::Array(Box::new(Type::U32), 0);
            let kernel = program.kernel("empty", &[("none", nothing)], program.at(4));
            let mut end = Body::new(program.at(4));
            end.end();
            program.define(kernel, end);
            body.end();
        }),
        ("an extern function of another program", &|program, body, _| {
            let mut other = ProgramBuilder::new("other.toy", LINES);
            let far = other.extern_function("far", &[Type::U32], Type::Unit, other.at(1));
            program.extern_function("far", &[Type::U32], Type::Unit, program.at(1));
            body.call_extern(far, &[Body::parameter(1)], Type::Unit);
            body.end();
        }),
        ("an extern function with another argument", &|program, body, _| {
            let far = program.extern_function("far", &[Type::U32], Type::U32, program.at(1));
            body.call_extern(far, &[Body::parameter(2)], Type::U32);
            body.end();
        }),
        ("an extern function that takes an array", &|program, body, _| {
            let two = Type::Array(Box::new(Type::U32), 2);
            program.extern_function("far", &[two], Type::Unit, program.at(4));
            body.end();
        }),
        ("an extern function with the name of a kernel", &|program, body, _| {
            program.extern_function("main", &[], Type::Unit, program.at(4));
            body.end();
        }),
        ("a body for no kernel", &|program, body, _| {
            let mut other = Body::new(program.at(4));
            other.end();
            program.define(KernelId(9), other);
            body.end();
        }),
        ("fast mathematics for a kernel elsewhere", &|program, body, _| {
            let far = program.extern_kernel("far", &[], program.at(5));
            program.fast_math(far);
            body.end();
        }),
        ("fast mathematics for no kernel", &|program, body, _| {
            program.fast_math(KernelId(9));
            body.end();
        }),
        ("launch bounds that no block has", &|program, body, child| {
            program.launch_bounds(child, LaunchBounds { max_threads: 1025, min_blocks: None });
            body.end();
        }),
        ("a launch over the launch bounds", &|program, body, child| {
            program.launch_bounds(child, LaunchBounds { max_threads: 32, min_blocks: Some(2) });
            body.launch(child, &[body.number(1)], &[body.number(64)], &both());
            body.end();
        }),
        ("too much dynamic shared memory", &|_, body, child| {
            let (one, bytes) = ([body.number(1)], body.number(1 << 20));
            body.launch_with_shared(Stream::Tail, child, &one, &one, bytes, &both());
            body.end();
        }),
        ("a promise of a kernel elsewhere", &|program, body, _| {
            let far = program.extern_kernel("far", &[], program.at(5));
            program.noalias(far);
            body.end();
        }),
        ("a function's name", &|program, body, _| {
            declare(program, "a b", &["x"], Type::U32);
            body.end();
        }),
        ("the name of a function's parameter", &|program, body, _| {
            declare(program, "f", &["1x"], Type::U32);
            body.end();
        }),
        ("a local variable's name", &|program, body, _| {
            body.at(program.at(4)).local("a-b", Type::U32);
            body.end();
        }),
        ("a temporary variable's name", &|_, body, _| {
            body.temporary("", Type::U32);
            body.end();
        }),
        ("a shared variable's name", &|program, body, _| {
            program.shared("a.b", Type::U32);
            body.end();
        }),
        ("a variable's name", &|program, body, _| {
            program.variable("", Type::U32);
            body.end();
        }),
        ("two variables of one name", &|program, body, _| {
            program.variable("v", Type::U32);
            program.variable("v", Type::F32);
            body.end();
        }),
        ("a variable with the name of a kernel", &|program, body, _| {
            program.variable("child", Type::U32);
            body.end();
        }),
        ("a variable with a reserved name", &|program, body, _| {
            program.variable("malloc", Type::U32);
            body.end();
        }),
        ("a kernel with a reserved name", &|program, body, _| {
            program.extern_kernel("__k", &[], program.at(5));
            body.end();
        }),
        ("two functions of one name", &|program, body, _| {
            declare(program, "f", &["x"], Type::U32);
            declare(program, "f", &["x"], Type::F32);
            body.end();
        }),
        ("two parameters of one name", &|program, body, _| {
            program.extern_kernel("k", &[("a", Type::U32), ("a", Type::F32)], program.at(5));
            body.end();
        }),
        ("two parameters of a function of one name", &|program, body, _| {
            declare(program, "f", &["x", "y", "x"], Type::U32);
            body.end();
        }),
        ("a struct's name", &|program, body, _| {
            add_struct(program, "a b", &["x"], Type::U32);
            body.end();
        }),
        ("two structs of one name", &|program, body, _| {
            add_struct(program, "dim3", &["x"], Type::U32);
            body.end();
        }),
        ("a field's name", &|program, body, _| {
            add_struct(program, "S", &["0"], Type::U32);
            body.end();
        }),
        ("two fields of one name", &|program, body, _| {
            let id = add_struct(program, "S", &["x", "x"], Type::U32);
            program.structs().get_mut(id).span = Some(program.at(5));
            body.end();
        }),
        ("a field without a value", &|program, body, _| {
            add_struct(program, "S", &["x"], Type::Unit);
            body.end();
        }),
        ("a parameter without a value", &|program, body, _| {
            program.extern_kernel("far", &[("x", Type::Unit)], program.at(5));
            body.end();
        }),
        ("a parameter of a vector that does not exist", &|program, body, _| {
            declare(program, "f", &["x"], Type::Vector(Scalar::F32, 7));
            body.end();
        }),
        ("a local variable without a value", &|program, body, _| {
            body.at(program.at(5)).local("sum", Type::Unit);
            body.end();
        }),
        ("a shared variable without a value", &|program, body, _| {
            program.shared("tile", Type::Unit);
            body.end();
        }),
        ("another type", &|_, body, child| {
            launch(body, child, &[Body::parameter(0), Body::parameter(2)]);
            body.end();
        }),
        ("an argument too few", &|_, body, child| {
            launch(body, child, &both()[..1]);
            body.end();
        }),
        ("an argument too many", &|_, body, child| {
            launch(body, child, &[0, 1, 1].map(Body::parameter));
            body.end();
        }),
        ("four extents", &|_, body, child| {
            let ones = [1; 4].map(|one| body.number(one));
            body.launch(child, &ones[..1], &ones, &both());
            body.end();
        }),
        ("no extent", &|_, body, child| {
            body.launch(child, &[], &[body.number(1)], &both());
            body.end();
        }),
        ("an extent of 64 bits", &|_, body, child| {
            let one = Operand::Const(Const::Int(Scalar::U64, 1));
            body.launch(child, &[one], &[body.number(1)], &both());
            body.end();
        }),
        ("a block of numbers with a sign", &|_, body, child| {
            let one = Operand::Const(Const::Int(Scalar::I32, 1));
            body.launch(child, &[body.number(1)], &[body.number(1), one], &both());
            body.end();
        }),
        ("a `dim3` that is not of a launch", &|_, body, _| {
            let parts = [0, 1, 1].map(Body::parameter);
            body.emit(InstKind::Aggregate(parts.into()), Type::DIM3);
            body.end();
        }),
        ("no such parameter", &|_, body, _| {
            body.load(Body::parameter(7), Type::U32);
            body.end();
        }),
        ("the last of all parameters", &|_, body, _| {
            body.load(Body::parameter(u32::MAX), Type::U32);
            body.end();
        }),
        ("no such kernel", &|_, body, _| {
            launch(body, KernelId(9), &both());
            body.end();
        }),
        ("a stream that is a number", &|_, body, child| {
            let stream = Stream::Value(Body::parameter(1));
            let one = [body.number(1)];
            body.launch_into(stream, child, &one, &one, &both());
            body.end();
        }),
        ("line 0", &|program, body, child| {
            launch(body.at(program.at(0)), child, &both());
            body.end();
        }),
        ("a line behind the end", &|program, body, child| {
            launch(body.at(program.at(7)), child, &both());
            body.end();
        }),
        ("a division by the constant 0", &|_, body, _| {
            let zero = body.number(0);
            body.binary(BinaryOp::Div, Body::parameter(1), zero, Type::U32);
            body.end();
        }),
        ("a division by the constant 0 of its type", &|_, body, _| {
            let zero = Operand::Const(Const::Zero(Type::U32));
            body.binary(BinaryOp::Div, Body::parameter(1), zero, Type::U32);
            body.end();
        }),
        ("a plain division by the constant 0 of its type", &|_, body, _| {
            let zero = Operand::Const(Const::Zero(Type::U32));
            body.emit(InstKind::Binary(BinaryOp::Rem, Body::parameter(1), zero), Type::U32);
            body.end();
        }),
        ("a division by a constant of another type", &|_, body, _| {
            let zero = Operand::Const(Const::Zero(Type::F32));
            body.binary(BinaryOp::Div, Body::parameter(1), zero, Type::U32);
            body.end();
        }),
        ("an extent of the constant 0 of its type", &|_, body, child| {
            let zero = Operand::Const(Const::Zero(Type::U32));
            body.launch(child, &[body.number(1)], &[zero], &both());
            body.end();
        }),
        ("a grid of the constant 0 of its type", &|_, body, child| {
            let zero = Operand::Const(Const::Zero(Type::DIM3));
            let one = body.number(1);
            let block = body.emit(InstKind::Aggregate(vec![one; 3]), Type::DIM3);
            let launch = Launch {
                kernel: child,
                grid: zero,
                block,
                shared: body.number(0),
                stream: Stream::Default,
                arguments: both().into(),
                is_try: false,
            };
            body.emit(InstKind::Launch(Box::new(launch)), Type::Unit);
            body.end();
        }),
        ("two bodies", &|program, body, child| {
            let mut again = Body::new(program.at(4));
            again.end();
            program.define(child, again);
            body.end();
        }),
        ("a kernel without a body", &|program, body, _| {
            program.kernel("third", &[], program.at(5));
            body.end();
        }),
        ("two kernels of one name", &|program, body, _| {
            let again = program.kernel("child", &[], program.at(4));
            let mut end = Body::new(program.at(4));
            end.end();
            program.define(again, end);
            body.end();
        }),
    ];
    let mut seen = String::new();
    for &(what, build) in cases {
        let error = program(["child", "n"], build).unwrap_err().to_string();
        assert!(error.starts_with("your module: "), "{what}: {error}");
        seen += &format!("{what}\n    {}\n", error.replace('\n', "\n    "));
    }
    for names in [["a b", "n"], ["a.b", "n"], ["", "n"], ["7k", "n"], ["k::<x>", "n"], ["k", "a b"]]
    {
        let error = program(names, |_, body, _| body.end()).unwrap_err().to_string();
        seen += &format!("names {names:?}\n    {error}\n");
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn source_files_have_names_that_tools_read() {
    let named = |first: &str, other: &str| {
        let mut program = ProgramBuilder::new(first, "k\n");
        program.source(other, "f\n");
        add_kernel(&mut program);
        program.finish().map(|_| ()).map_err(|error| error.to_string())
    };
    let wrong = |name: &str| {
        format!(
            "your module: {name:?} cannot be the name of a source file: give one with a file at its end, and without quotation \
             marks, line breaks and other control characters"
        )
    };
    for name in ["", "models/", "..", "a\"b", "a\nb", "a\0b"] {
        assert_eq!(named(name, "b.toy"), Err(wrong(name)));
        assert_eq!(named("a.toy", name), Err(wrong(name)));
    }
    assert_eq!(named("models/ä b.toy", "b.toy"), Ok(()));
    let error = read("models/", "launches symbolic\n").unwrap_err().to_string();
    assert_eq!(error, wrong("models/"));
}

#[test]
fn programs_without_kernels_are_refused() {
    let program = ProgramBuilder::new("a.toy", "");
    let errors = [program.finish(), read("a.toy", "launches symbolic\n")];
    for error in errors.map(|result| result.unwrap_err().to_string()) {
        assert!(error.starts_with("your module: the program has no kernel"), "{error}");
    }
}

/// What may be right is not refused.
#[test]
fn pointers_of_unknown_origin_are_no_mistakes() {
    let build = |_: &mut ProgramBuilder, body: &mut Body, child: KernelId| {
        let pointer = Type::pointer_mut(Type::U32);
        let local = body.local("sum", Type::U32);
        let kept = body.local("kept", pointer.clone());
        body.store(kept.clone(), local.clone());
        body.store(kept.clone(), Body::parameter(0));
        let loaded = body.load(kept, pointer.clone());
        let known = body.binary(BinaryOp::Eq, Body::parameter(1), body.number(0), Type::BOOL);
        let chosen = body.emit(InstKind::Select(known, local, Body::parameter(0)), pointer);
        for place in [loaded, chosen] {
            launch(body, child, &[place, Body::parameter(1)]);
        }
        body.end();
    };
    program(["child", "n"], build).unwrap();
}

/// By use of the status of a `try launch`, whether that reads it.
#[test]
fn launches_whose_status_is_dropped_record_failures() {
    type Use<'a> = &'a dyn Fn(&mut ProgramBuilder, &mut Body, Operand);
    let is_zero = |body: &mut Body, status| {
        body.binary(BinaryOp::Eq, status, Operand::Const(Const::Zero(Type::I32)), Type::BOOL)
    };
    let pointer = || Type::pointer_mut(Type::I32);
    let identity = |program: &mut ProgramBuilder| {
        let line = program.at(4);
        let function = program.function("same", &[("s", Type::I32)], Type::I32, line);
        let mut giver = Body::new(line);
        giver.give(Body::parameter(0));
        program.define_function(function, giver);
        function
    };
    let cases: &[(&str, bool, Use<'_>)] = &[
        ("nothing", false, &|_, _, _| ()),
        ("a comparison", false, &|_, body, status| {
            is_zero(body, status);
        }),
        ("a local variable", false, &|_, body, status| {
            let local = body.local("status", Type::I32);
            body.store(local, status);
        }),
        ("a local variable that is loaded in vain", false, &|_, body, status| {
            let local = body.local("status", Type::Array(Box::new(Type::I32), 2));
            let place = body.element(local, body.number(1), pointer());
            body.store(place.clone(), status);
            let status = body.load(place, Type::I32);
            is_zero(body, status);
        }),
        ("a local variable that is returned", true, &|_, body, status| {
            let local = body.local("status", Type::I32);
            body.store(local.clone(), status);
            let status = body.load(local, Type::I32);
            let place = body.emit(InstKind::Cast(Body::parameter(0)), pointer());
            body.store(place, status);
        }),
        ("a local variable whose address is kept", true, &|program, body, status| {
            let local = body.local("status", Type::I32);
            let kept = program.variable("kept", pointer());
            body.store(local.clone(), status);
            body.store(kept, local);
        }),
        ("a variable", true, &|program, body, status| {
            let last = program.variable("last", Type::I32);
            body.store(last, status);
        }),
        ("a branch", true, &|_, body, status| {
            let (good, bad) = (body.block(), body.block());
            let condition = is_zero(body, status);
            body.branch(condition, good, bad);
            body.place(bad);
            body.store(Body::parameter(0), Body::parameter(1));
            body.jump(good);
            body.place(good);
        }),
        ("a branch to the same block", false, &|_, body, status| {
            let end = body.block();
            let condition = is_zero(body, status);
            body.branch(condition, end, end);
            body.place(end);
        }),
        ("an argument that the function ignores", false, &|program, body, status| {
            let line = program.at(4);
            let function = program.function("f", &[("s", Type::I32)], Type::Unit, line);
            let mut taker = Body::new(line);
            taker.end();
            program.define_function(function, taker);
            body.call(function, &[status], Type::Unit);
        }),
        ("an argument that the function keeps", true, &|program, body, status| {
            let line = program.at(4);
            let last = program.variable("last", Type::I32);
            let function = program.function("f", &[("s", Type::I32)], Type::Unit, line);
            let mut taker = Body::new(line);
            taker.store(last, Body::parameter(0));
            taker.end();
            program.define_function(function, taker);
            body.call(function, &[status], Type::Unit);
        }),
        ("a function's result that the caller drops", false, &|program, body, status| {
            let same = identity(program);
            let result = body.call(same, &[status], Type::I32);
            is_zero(body, result);
        }),
        ("a function's result that the caller reads", true, &|program, body, status| {
            let same = identity(program);
            let last = program.variable("last", Type::I32);
            let result = body.call(same, &[status], Type::I32);
            body.store(last, result);
        }),
    ];
    for (what, is_read, uses) in cases {
        let build = |program: &mut ProgramBuilder, body: &mut Body, child: KernelId| {
            let one = [body.number(1)];
            let status = body.try_launch_into(Stream::Tail, child, &one, &one, &both());
            uses(program, body, status);
            body.end();
        };
        let module = program(["child", "n"], build).unwrap().module;
        verify(&module).unwrap();
        let text = print(&module);
        assert_eq!(text.contains("try launch"), *is_read, "{what}: {text}");
        let launch = text.lines().find(|line| line.contains("launch @child")).unwrap();
        assert!(launch.ends_with("  ; line 3"), "{launch}");
    }
}

#[test]
fn a_launch_with_a_status_may_have_dynamic_shared_memory() {
    let build = |_: &mut ProgramBuilder, body: &mut Body, child: KernelId| {
        let (one, bytes) = ([body.number(1)], body.number(64));
        let status =
            body.try_launch_with_shared(Stream::Default, child, &one, &one, bytes, &both());
        let [then, end] = [body.block(), body.block()];
        let none = body.emit(InstKind::Cast(status), Type::BOOL);
        body.branch(none, then, end);
        body.place(then);
        body.jump(end);
        body.place(end);
        body.end();
    };
    let module = program(["child", "n"], build).unwrap().module;
    verify(&module).unwrap();
    let text = print(&module);
    let launch = text.lines().find(|line| line.contains("try launch @child")).unwrap();
    assert!(launch.contains("64u32"), "{launch}");
}

/// `#line` is Gridlet's: in another language it is what that language says.
#[test]
fn lines_are_those_of_the_text() {
    let text = "#line 500 \"other.toy\"\nkernel\n";
    let build = |parameters: u32| {
        let mut program = ProgramBuilder::new("h.toy", text);
        let second = program.source("i.toy", text);
        let (line, other) = (program.at(2), program.line(second, 2));
        let kernel = program.kernel("k", &[], line);
        let mut body = Body::new(line);
        body.at(other);
        let parameters: Vec<_> = (0..parameters).map(Body::parameter).collect();
        launch(&mut body, kernel, &parameters);
        body.end();
        program.define(kernel, body);
        program.finish()
    };
    let error = build(1).unwrap_err().to_string();
    assert!(error.starts_with("your module: i.toy:2: "), "{error}");
    let text = print(&build(0).unwrap().module);
    assert!(text.contains("; i.toy:2\n") && text.contains("  ; line 2\n"), "{text}");
}

#[test]
fn shared_variables_may_have_one_name() {
    let build = |program: &mut ProgramBuilder, body: &mut Body, _: KernelId| {
        declare(program, "tile", &["x"], Type::U32);
        for ty in [Type::U32, Type::F32] {
            let tile = program.shared("tile", ty.clone());
            body.store(tile, Operand::Const(Const::Zero(ty)));
        }
        body.end();
    };
    let module = program(["child", "n"], build).unwrap().module;
    let globals = module.globals.iter();
    let names: Vec<_> =
        globals.map(|one| (&*one.name, &*one.variable.as_ref().unwrap().name)).collect();
    assert_eq!(names, [("own.tile.2", "tile"), ("own.tile.3", "tile")]);
    let text = print(&module);
    assert_eq!(print(&read("a.gir", &text).unwrap().module), text);
}

/// Without the sources, an error still says what is wrong.
#[test]
fn errors_of_programs_list_their_messages() {
    let error = |text: &str| read("a.gir", text).unwrap_err().to_string();
    let one = error("launches symbolic\nkernel @k(\n");
    assert!(one.contains("expected") && !one.contains('\n'), "{one}");
    let warning = Diagnostic::general_warning(ids::UNUSED_RESULT, "unused");
    let wrong = Diagnostic::error(ids::PROGRAM, Span::NOWHERE, "wrong").note("why").hint("how");
    let mut all = vec![warning, wrong.clone()];
    assert_eq!(Error::Program(all.clone()).to_string(), "wrong\n  why\n  how");
    all.extend(std::iter::repeat_n(wrong, 11));
    assert!(Error::Program(all).to_string().ends_with("how\nand 2 more errors"));
}

/// An instance of a kernel of the language.
#[test]
fn a_kernel_may_be_called_as_an_instance() {
    let made = program(["child::<8>", "n"], |_, body, _| body.end()).unwrap();
    assert_eq!(made.module.kernels[0].name, "child::<8>");
}

#[test]
fn a_block_without_a_jump_is_left_out() {
    let build = |_: &mut ProgramBuilder, body: &mut Body, child: KernelId| {
        let [next, never] = [body.block(), body.block()];
        body.jump(next);
        body.place(never);
        launch(body, child, &both());
        body.end();
        body.place(next);
        body.store(Body::parameter(0), Body::parameter(1));
        body.end();
    };
    let text = print(&program(["child", "n"], build).unwrap().module);
    assert!(text.contains("store") && !text.contains("launch @child"), "{text}");
}

#[test]
fn divisions_are_guarded() {
    let build = |_: &mut ProgramBuilder, body: &mut Body, _: KernelId| {
        let index = body.geometry(Geometry::ThreadIndex, 0);
        let quotient = body.binary(BinaryOp::Div, index.clone(), Body::parameter(1), Type::U32);
        let rest = body.binary(BinaryOp::Rem, quotient, index, Type::U32);
        let constant = body.binary(BinaryOp::Div, rest, body.number(7), Type::U32);
        let ratio = body.binary(BinaryOp::Div, Body::parameter(2), Body::parameter(2), Type::F32);
        let whole = body.emit(InstKind::Cast(ratio), Type::U32);
        let sum = body.binary(BinaryOp::Add, constant, whole, Type::U32);
        body.store(Body::parameter(0), sum);
        body.end();
    };
    let text = print(&program(["child", "n"], build).unwrap().module);
    assert_eq!(text.matches("trap()").count(), 1, "{text}");
    assert_eq!(text.matches("by_zero").count(), 3, "two branches lead to one block: {text}");
    let again = print(&read("a.gir", &text).unwrap().module);
    assert_eq!(again, text);
}

/// A search of the text for each line, or of the program for each function, would take minutes.
#[test]
fn large_programs_take_linear_time() {
    let build = |kernels: u32| {
        let start = std::time::Instant::now();
        let mut program = ProgramBuilder::new("a.toy", &"kernel\n".repeat(kernels as usize));
        for at in 0..kernels {
            let line = program.at(at + 1);
            let kernel = program.kernel(&format!("k{at}"), &[], line);
            let mut body = Body::new(line);
            let blocks: Vec<_> = (0..10).map(|_| body.block()).collect();
            for block in blocks {
                body.jump(block);
                body.place(block);
            }
            body.end();
            program.define(kernel, body);
        }
        program.finish().unwrap();
        start.elapsed()
    };
    let (small, large) = (build(500), build(16_000));
    assert!(large < small * 100, "{small:?}, {large:?}");
}
