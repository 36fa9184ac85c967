//! Addresses of local and shared memory that reach a launch in a roundabout way.

use super::*;
use crate::ir::UnaryOp;

/// A kernel `views(v)` whose parameter is a struct of a pointer and a number.
struct Views {
    kernel: KernelId,
    ty: Type,
    pointer: Type,
}

type Build<'a> = &'a dyn Fn(&mut ProgramBuilder, &mut Body, &Views, KernelId);

fn error(build: Build<'_>) -> String {
    let with_views = |program: &mut ProgramBuilder, body: &mut Body, child: KernelId| {
        let pointer = Type::pointer_mut(Type::U32);
        let fields = [("at", pointer.clone()), ("n", Type::U64)];
        let fields = fields.map(|(name, ty)| Field { name: name.into(), ty }).into();
        let view = Struct { name: "View".into(), fields, span: None };
        let ty = Type::Struct(program.structs().add(view));
        let kernel = program.kernel("views", &[("v", ty.clone())], program.at(4));
        let mut end = Body::new(program.at(4));
        end.end();
        program.define(kernel, end);
        build(program, body, &Views { kernel, ty, pointer }, child);
        body.end();
    };
    program(["child", "n"], with_views).map_or_else(|error| error.to_string(), |_| String::new())
}

fn field(body: &mut Body, base: &Operand, index: u32, ty: &Type) -> Operand {
    let kind = InstKind::FieldAddress { base: base.clone(), index };
    body.emit(kind, Type::pointer_mut(ty.clone()))
}

/// Stores a pointer and a number into the fields of a new variable.
fn fill(body: &mut Body, views: &Views, pointer: Operand) -> Operand {
    let whole = body.local("view", views.ty.clone());
    let at = field(body, &whole, 0, &views.pointer);
    body.store(at, pointer);
    let n = field(body, &whole, 1, &Type::U64);
    body.store(n, Operand::Const(Const::Int(Scalar::U64, 7)));
    whole
}

fn pass(body: &mut Body, views: &Views, whole: Operand) {
    let value = body.load(whole, views.ty.clone());
    launch(body, views.kernel, &[value]);
}

#[test]
fn addresses_in_parts_of_variables_are_found() {
    let local = "points to the local variable `sum`";
    let shared = "points to the shared variable `tile`";
    let cases: &[(&str, &str, Build<'_>)] = &[
        ("a field", local, &|_, body, views, _| {
            let sum = body.local("sum", Type::U32);
            let whole = fill(body, views, sum);
            pass(body, views, whole);
        }),
        ("a field with shared memory", shared, &|program, body, views, _| {
            let tile = program.shared("tile", Type::U32);
            let whole = fill(body, views, tile);
            pass(body, views, whole);
        }),
        ("a field that is loaded", local, &|_, body, views, child| {
            let sum = body.local("sum", Type::U32);
            let whole = fill(body, views, sum);
            let at = field(body, &whole, 0, &views.pointer);
            let pointer = body.load(at, views.pointer.clone());
            launch(body, child, &[pointer, Body::parameter(1)]);
        }),
        ("a part of a struct that is loaded", local, &|_, body, views, child| {
            let sum = body.local("sum", Type::U32);
            let whole = fill(body, views, sum);
            let base = body.load(whole, views.ty.clone());
            let pointer = body.emit(InstKind::Extract { base, index: 0 }, views.pointer.clone());
            launch(body, child, &[pointer, Body::parameter(1)]);
        }),
        ("a struct that is copied", local, &|_, body, views, _| {
            let sum = body.local("sum", Type::U32);
            let whole = fill(body, views, sum);
            let copy = body.local("copy", views.ty.clone());
            let value = body.load(whole, views.ty.clone());
            body.store(copy.clone(), value);
            pass(body, views, copy);
        }),
        ("an element", shared, &|program, body, views, child| {
            let tile = program.shared("tile", Type::U32);
            let all = body.local("all", Type::Array(Box::new(views.pointer.clone()), 2));
            let to = Type::pointer_mut(views.pointer.clone());
            let place = body.element(all.clone(), body.number(1), to.clone());
            body.store(place, tile);
            let first = body.element(all.clone(), body.number(0), to.clone());
            body.store(first, Body::parameter(0));
            let place = body.element(all, body.number(1), to);
            let pointer = body.load(place, views.pointer.clone());
            launch(body, child, &[pointer, Body::parameter(1)]);
        }),
        ("the sum of a number and an address", shared, &|program, body, views, child| {
            let tile = program.shared("tile", Type::U32);
            let number = body.emit(InstKind::Cast(tile), Type::U64);
            let index = body.emit(InstKind::Cast(Body::parameter(1)), Type::U64);
            let sum = body.binary(BinaryOp::Add, index, number, Type::U64);
            let pointer = body.emit(InstKind::Cast(sum), views.pointer.clone());
            launch(body, child, &[pointer, Body::parameter(1)]);
        }),
        // What may be right.
        ("a field with another pointer", "", &|_, body, views, _| {
            let whole = fill(body, views, Body::parameter(0));
            pass(body, views, whole);
        }),
        ("a field that is changed", "", &|_, body, views, _| {
            let sum = body.local("sum", Type::U32);
            let whole = fill(body, views, sum);
            let at = field(body, &whole, 0, &views.pointer);
            body.store(at, Body::parameter(0));
            pass(body, views, whole);
        }),
        ("a struct that is replaced", "", &|_, body, views, _| {
            let sum = body.local("sum", Type::U32);
            let whole = fill(body, views, sum);
            body.store(whole.clone(), Operand::Const(Const::Zero(views.ty.clone())));
            pass(body, views, whole);
        }),
        ("a variable whose address is kept", "", &|program, body, views, _| {
            let sum = body.local("sum", Type::U32);
            let kept = program.variable("kept", Type::pointer_mut(views.ty.clone()));
            let whole = fill(body, views, sum);
            body.store(kept, whole.clone());
            pass(body, views, whole);
        }),
        ("some element", "", &|_, body, views, child| {
            let sum = body.local("sum", Type::U32);
            let all = body.local("all", Type::Array(Box::new(views.pointer.clone()), 2));
            let to = Type::pointer_mut(views.pointer.clone());
            let place = body.element(all.clone(), body.number(1), to.clone());
            body.store(place, sum);
            let first = body.element(all.clone(), Body::parameter(1), to.clone());
            body.store(first, Body::parameter(0));
            let place = body.element(all, body.number(1), to);
            let pointer = body.load(place, views.pointer.clone());
            launch(body, child, &[pointer, Body::parameter(1)]);
        }),
        ("the distance to another address", "", &|_, body, views, child| {
            let sum = body.local("sum", Type::U32);
            let number = body.emit(InstKind::Cast(sum), Type::U64);
            let negative = body.emit(InstKind::Unary(UnaryOp::Not, number.clone()), Type::U64);
            let far = body.emit(InstKind::Cast(Body::parameter(0)), Type::U64);
            let distance = body.binary(BinaryOp::Add, far, negative, Type::U64);
            let sum = body.binary(BinaryOp::Add, number, distance, Type::U64);
            let pointer = body.emit(InstKind::Cast(sum), views.pointer.clone());
            launch(body, child, &[pointer, Body::parameter(1)]);
        }),
    ];
    for (what, wanted, build) in cases {
        let found = error(build);
        assert!(found.contains(wanted) && found.is_empty() == wanted.is_empty(), "{what}: {found}");
    }
}
