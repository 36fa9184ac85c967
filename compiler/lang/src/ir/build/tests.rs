//! Builds IR from trees and compares the text; checks arithmetic and loops by evaluating the IR.

mod evaluate;
mod source;

use super::*;
use crate::builtins::Builtin;
use crate::check::tree::{BinaryOp, ExprKind, GeometryField, StreamExpr, UnaryOp};
use crate::ir::print::print;
use crate::ir::testing::*;
use crate::types::{Structs, Type};

fn text(structs: Structs, functions: Vec<tree::Function>) -> String {
    print(&build(structs, functions))
}

fn lt(left: tree::Expr, right: tree::Expr) -> tree::Expr {
    binary(BinaryOp::Lt, left, right)
}

fn add(left: tree::Expr, right: tree::Expr) -> tree::Expr {
    binary(BinaryOp::Add, left, right)
}

#[test]
fn kernels_become_bodies_and_entries() {
    let child = kernel("child").with(&[("n", Type::U32)]).bounds(128, Some(2));
    let n = || local(0, Type::U32);
    let handle = || local(1, Type::Stream);
    let parent = kernel("parent")
        .with(&[("n", Type::U32), ("s", Type::Stream)])
        .locals(&[("status", Type::I32)])
        .bounds(64, None)
        .body(vec![
            do_(launch(10, 0, StreamExpr::Default, vec![n()], false)),
            do_(launch(11, 0, StreamExpr::FireAndForget, vec![add(n(), u32_(1))], false)),
            let_(2, launch(12, 0, StreamExpr::Value(Box::new(handle())), vec![n()], true)),
            do_(launch(13, 1, StreamExpr::Tail, vec![n(), handle()], false)),
        ]);
    insta::assert_snapshot!(text(Structs::new(), vec![child, parent]));
}

#[test]
fn the_geometry_is_passed_to_those_who_read_it() {
    let thread = |index| geometry(GeometryField::ThreadIdx, index);
    let pointer = Type::pointer_mut(Type::F32);
    let functions = vec![
        // Reads the geometry only through two other functions.
        device("far", Type::U32).body(vec![return_(call(1, vec![u32_(8)], Type::U32))]),
        // Recursive, and reads the geometry only through the other function.
        device("even", Type::U32).with(&[("n", Type::U32)]).body(vec![return_(call(
            2,
            vec![local(0, Type::U32)],
            Type::U32,
        ))]),
        device("odd", Type::U32)
            .with(&[("n", Type::U32)])
            .body(vec![return_(add(call(1, vec![thread(0)], Type::U32), thread(1)))]),
        device("plain", Type::U32).body(vec![return_(u32_(1))]),
        device("dynamic", Type::F32).body(vec![return_(index(
            expr(ExprKind::DynamicShared, pointer),
            call(3, vec![], Type::U32),
        ))]),
        kernel("k").body(vec![
            do_(call(3, vec![], Type::U32)),
            do_(call(4, vec![], Type::F32)),
            do_(call(1, vec![geometry(GeometryField::GridDim, 2)], Type::U32)),
        ]),
    ];
    insta::assert_snapshot!(text(Structs::new(), functions));
}

#[test]
fn places_are_addresses() {
    let mut structs = Structs::new();
    let inner = Type::Struct(add_struct(&mut structs, "Inner", vec![Type::F32, Type::F32]));
    let elements = array_of(inner.clone(), 4);
    let outer = add_struct(&mut structs, "Outer", vec![inner.clone(), elements.clone()]);
    let outer = Type::Struct(outer);
    let vector = Type::Vector(Scalar::F32, 2);
    let pointer = Type::pointer_mut(outer.clone());
    let given = || local(0, outer.clone());
    let behind = || deref(local(1, pointer.clone()));
    let kept = || local(2, vector.clone());
    let written = || local(3, vector.clone());
    let number = || local(4, Type::I64);
    let f = device("f", Type::F32)
        .with(&[
            ("given", outer.clone()),
            ("p", pointer.clone()),
            ("kept", vector.clone()),
            ("written", vector.clone()),
            ("number", Type::I64),
        ])
        .locals(&[("copy", inner.clone())])
        .body(vec![
            // let copy = given.b[number];
            let_(5, index(field(given(), 1, elements.clone()), number())),
            // written.x += kept.y;
            assign(
                field(written(), 0, Type::F32),
                Some(BinaryOp::Add),
                field(kept(), 1, Type::F32),
            ),
            // p.b[2].a = copy.b;
            assign(
                field(index(field(behind(), 1, elements.clone()), u32_(2)), 0, Type::F32),
                None,
                field(local(5, inner.clone()), 1, Type::F32),
            ),
            // *p = given;
            assign(behind(), None, given()),
            // `number` is a plain value until its address is taken.
            do_(address(number())),
            // return [f(…).a, 2.0][1];
            return_(index(
                expr(
                    ExprKind::Array(vec![
                        field(field(given(), 0, inner.clone()), 0, Type::F32),
                        f32_(2.0),
                    ]),
                    array_of(Type::F32, 2),
                ),
                u32_(1),
            )),
        ]);
    insta::assert_snapshot!(text(structs, vec![f]));
}

#[test]
fn pointers_count_in_elements() {
    let pointer = Type::pointer_const(Type::F64);
    let p = || local(0, pointer.clone());
    let n = || local(1, Type::U32);
    let f = device("f", Type::I64)
        .with(&[("p", pointer.clone()), ("n", Type::U32)])
        .locals(&[("a", pointer.clone())])
        .body(vec![
            let_(2, add(p(), n())),
            let_(2, binary(BinaryOp::Sub, p(), n())),
            let_(2, binary(BinaryOp::Sub, p(), int(Scalar::U64, 3))),
            do_(binary(BinaryOp::Lt, p(), local(2, pointer.clone()))),
            do_(cast(p(), Type::pointer_mut(Type::F64))),
            do_(cast(p(), Type::U64)),
            return_(binary(BinaryOp::Sub, p(), local(2, pointer.clone()))),
        ]);
    insta::assert_snapshot!(text(Structs::new(), vec![f]));
}

#[test]
fn aggregates_are_constructed_in_place() {
    let mut structs = Structs::new();
    let row = array_of(Type::U32, 3);
    let big = array_of(Type::F32, 1000);
    let holder = Type::Struct(add_struct(&mut structs, "Holder", vec![Type::U32, row.clone()]));
    let array = |parts, ty: &Type| expr(ExprKind::Array(parts), ty.clone());
    let repeat = |value, ty: &Type| expr(ExprKind::ArrayRepeat(Box::new(value)), ty.clone());
    let f = device("f", big.clone())
        .locals(&[
            ("row", row.clone()),
            ("zero", big.clone()),
            ("ones", big.clone()),
            ("holder", holder.clone()),
            ("few", row.clone()),
        ])
        .body(vec![
            let_(0, array(vec![u32_(1), u32_(2), u32_(3)], &row)),
            let_(1, repeat(f32_(0.0), &big)),
            let_(2, repeat(f32_(1.0), &big)),
            let_(
                3,
                expr(
                    ExprKind::Aggregate(vec![
                        u32_(9),
                        array(vec![u32_(4), u32_(5), u32_(6)], &row),
                    ]),
                    holder.clone(),
                ),
            ),
            assign(local(4, row.clone()), None, repeat(u32_(7), &row)),
            return_(repeat(f32_(-0.0), &big)),
        ]);
    insta::assert_snapshot!(text(structs, vec![f]));
}

#[test]
fn conditions_become_branches_and_simple_values_become_selects() {
    let x = || local(0, Type::I32);
    let p = || local(1, Type::pointer_mut(Type::I32));
    let positive = || lt(i32_(0), x());
    let set = || lt(i32_(0), deref(p()));
    let f = device("f", Type::I32)
        .with(&[("x", Type::I32), ("p", Type::pointer_mut(Type::I32))])
        .locals(&[("a", Type::BOOL), ("b", Type::I32)])
        .body(vec![
            let_(2, logical(true, set(), positive())),
            let_(2, logical(false, positive(), set())),
            let_(3, if_(set(), value_block(x()), Some(value_block(i32_(0))), Type::I32)),
            let_(3, if_(positive(), value_block(deref(p())), Some(value_block(x())), Type::I32)),
            do_(if_(
                logical(false, unary(UnaryOp::Not, logical(true, positive(), set())), set()),
                block(vec![return_(x())]),
                None,
                Type::Unit,
            )),
            do_(if_(
                local(2, Type::BOOL),
                block(vec![return_(i32_(1))]),
                Some(block(vec![return_(i32_(2))])),
                Type::Unit,
            )),
            // Unreachable, so not emitted.
            do_(printf("never\n", vec![])),
        ]);
    insta::assert_snapshot!(text(Structs::new(), vec![f]));
}

#[test]
fn loops_and_jumps() {
    let i = || local(0, Type::U32);
    let n = || local(2, Type::U32);
    let f = device("f", Type::Unit)
        .locals(&[("i", Type::U32), ("i", Type::U32), ("n", Type::U32)])
        .body(vec![
            let_(2, u32_(10)),
            for_(
                0,
                u32_(0),
                n(),
                None,
                vec![
                    do_(if_(lt(i(), u32_(5)), block(vec![continue_(0)]), None, Type::Unit)),
                    for_(
                        1,
                        i(),
                        n(),
                        Some(n()),
                        vec![do_(if_(
                            lt(i(), n()),
                            block(vec![continue_(1)]),
                            Some(block(vec![break_(1)])),
                            Type::Unit,
                        ))],
                    ),
                ],
            ),
            for_(0, u32_(0), u32_(64), Some(u32_(16)), vec![do_(i())]),
            for_(0, u32_(0), n(), Some(u32_(0)), vec![continue_(0)]),
            while_(lt(n(), u32_(20)), vec![assign(n(), Some(BinaryOp::Add), u32_(1)), break_(0)]),
            while_(bool_(false), vec![do_(n())]),
            loop_(vec![do_(if_(
                lt(n(), u32_(3)),
                block(vec![return_nothing()]),
                None,
                Type::Unit,
            ))]),
            do_(n()),
        ]);
    insta::assert_snapshot!(text(Structs::new(), vec![f]));
}

#[test]
fn integer_operations_have_no_undefined_cases() {
    let x = || local(0, Type::I32);
    let y = || local(1, Type::I32);
    let u = || local(2, Type::U64);
    let f = device("f", Type::I32)
        .with(&[("x", Type::I32), ("y", Type::I32), ("u", Type::U64)])
        .body(vec![
            do_(binary(BinaryOp::Div, x(), y())),
            do_(binary(BinaryOp::Rem, x(), y())),
            do_(binary(BinaryOp::Div, u(), u())),
            do_(binary(BinaryOp::Div, x(), i32_(3))),
            do_(binary(BinaryOp::Div, x(), i32_(-1))),
            do_(binary(BinaryOp::Div, f32_(1.0), f32_(0.0))),
            do_(binary(BinaryOp::Shl, x(), u())),
            do_(binary(BinaryOp::Shr, u(), i32_(-1))),
            return_(binary(BinaryOp::Rem, x(), i32_(0))),
        ]);
    insta::assert_snapshot!(text(Structs::new(), vec![f]));
}

#[test]
fn shared_variables_and_strings_are_globals_with_unique_names() {
    let functions = vec![
        // The symbols of a shared variable and of the kernel's body would collide.
        kernel("k").shared(&[("body", Type::U32), ("x", Type::U32), ("x", Type::F32)]).body(vec![
            assign(shared(0, Type::U32), None, u32_(1)),
            assign(shared(2, Type::F32), None, f32_(0.1)),
            do_(builtin(Builtin::SyncThreads, vec![], Type::Unit)),
            do_(printf("%d\n", vec![i32_(1)])),
            do_(printf("\"é\" 100%%\t\0", vec![])),
            do_(printf("%d\n", vec![shared(0, Type::U32)])),
        ]),
        device("malloc", Type::Unit)
            .body(vec![do_(builtin(Builtin::Trap, vec![], Type::Unit)), do_(printf("no", vec![]))]),
        device("user", Type::Unit).body(vec![do_(call(1, vec![], Type::Unit))]),
    ];
    insta::assert_snapshot!(text(Structs::new(), functions));
}

#[test]
fn assignments_go_from_left_to_right_and_find_the_place_once() {
    let array = array_of(Type::U32, 8);
    let f = device("f", Type::Unit).locals(&[("a", array.clone())]).body(vec![assign(
        index(local(0, array), call(1, vec![u32_(0)], Type::U32)),
        Some(BinaryOp::Mul),
        call(1, vec![u32_(1)], Type::U32),
    )]);
    let g =
        device("g", Type::U32).with(&[("n", Type::U32)]).body(vec![return_(local(0, Type::U32))]);
    insta::assert_snapshot!(text(Structs::new(), vec![f, g]));
}

fn error(functions: Vec<tree::Function>) -> Error {
    build_ir(
        &tree::Program { structs: Structs::new(), statics: vec![], externs: vec![], functions },
        sources(),
    )
    .unwrap_err()
}

#[test]
fn kernels_may_not_take_the_device_runtimes_names() {
    let Error::Program(errors) = error(vec![kernel("cudaLaunchDeviceV2")]) else {
        panic!("not the program's fault");
    };
    assert_eq!(errors[0].id, "reserved-name");
    assert_eq!(errors[0].message, "the name `cudaLaunchDeviceV2` is reserved");
}

#[test]
fn broken_trees_are_internal_errors() {
    let in_f = |statements| error(vec![device("f", Type::I32).body(statements)]).to_string();
    let messages = [
        in_f(vec![break_(0)]),
        in_f(vec![do_(local(7, Type::I32))]),
        in_f(vec![do_(shared(0, Type::I32))]),
        in_f(vec![do_(call(9, vec![], Type::I32))]),
        in_f(vec![do_(address(u32_(1)))]),
        in_f(vec![do_(launch(4, 0, StreamExpr::Tail, vec![], false))]),
        in_f(vec![do_(if_(lt(i32_(0), i32_(1)), block(vec![]), Some(block(vec![])), Type::I32))]),
        in_f(vec![do_(expr(ExprKind::Int(1), Type::DIM3))]),
    ];
    let first_lines: Vec<&str> =
        messages.iter().filter_map(|message| message.lines().next()).collect();
    insta::assert_snapshot!(first_lines.join("\n"));
}
