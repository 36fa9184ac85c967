//! Values, variables and blocks of another [`Body`].

use super::*;
use crate::ir::{BlockId, InstId, SlotId};

/// `other(p, n)` is a kernel whose body stays open while `main` is built.
type Build<'a> = &'a dyn Fn(&mut Body, &mut Body);

/// The error of a program in which `main` is built beside the body of `other`, which is part of the program if `is_given`.
fn error(build: Build<'_>, is_given: bool) -> String {
    let with_other = |program: &mut ProgramBuilder, body: &mut Body, _: KernelId| {
        let pointer = Type::pointer_mut(Type::U32);
        let parameters = [("p", pointer), ("n", Type::U32)];
        let line = program.at(4);
        let mut other = Body::new(line);
        // Some numbers that both bodies have.
        for body in [&mut other, &mut *body] {
            body.local("sum", Type::U32);
            body.load(Body::parameter(0), Type::U32);
        }
        build(body, &mut other);
        other.end();
        if is_given {
            let kernel = program.kernel("other", &parameters, line);
            program.define(kernel, other);
        }
    };
    program(["child", "n"], with_other).unwrap_err().to_string()
}

#[test]
fn what_another_body_made_is_refused() {
    let cases: &[(&str, Build<'_>)] = &[
        ("a value", &|body, other| {
            let value = other.load(Body::parameter(0), Type::U32);
            body.store(Body::parameter(0), value);
            body.end();
        }),
        ("a local variable", &|body, other| {
            let local = other.local("other", Type::U32);
            body.load(local, Type::U32);
            body.end();
        }),
        ("a temporary variable as an argument of an operator", &|body, other| {
            let local = other.temporary("other", Type::U32);
            body.binary(BinaryOp::Eq, local.clone(), local, Type::BOOL);
            body.end();
        }),
        ("a divisor", &|body, other| {
            let value = other.load(Body::parameter(0), Type::U32);
            body.binary(BinaryOp::Div, Body::parameter(1), value, Type::U32);
            body.end();
        }),
        ("a condition", &|body, other| {
            let value = other.load(Body::parameter(0), Type::BOOL);
            let next = body.block();
            body.branch(value, next, next);
            body.place(next);
            body.end();
        }),
        ("a target", &|body, other| {
            let next = other.block();
            other.jump(next);
            other.place(next);
            body.block();
            body.jump(next);
        }),
        ("a target of a branch", &|body, other| {
            let [own, next] = [body.block(), other.block()];
            let condition = body.load(Body::parameter(0), Type::BOOL);
            body.branch(condition, own, next);
            body.place(own);
            body.end();
        }),
        ("a block to place", &|body, other| {
            let next = other.block();
            let own = body.block();
            body.jump(own);
            body.place(next);
            body.end();
        }),
        ("a result", &|body, other| {
            let value = other.load(Body::parameter(0), Type::U32);
            body.give(value);
        }),
        ("a number that no body made", &|body, _| {
            body.store(Body::parameter(0), Operand::Inst(InstId(0)));
            body.end();
        }),
        ("a variable that no body made", &|body, _| {
            body.load(Operand::Slot(SlotId(0)), Type::U32);
            body.end();
        }),
        ("a block that no body made", &|body, _| body.jump(BlockId(1))),
    ];
    let mut seen = String::new();
    for (what, build) in cases {
        let error = error(build, true);
        assert!(error.starts_with("your module: a.toy:3: `main`: "), "{what}: {error}");
        seen += &format!("{what}\n    {error}\n");
    }
    let elsewhere = error(cases[0].1, false);
    seen += &format!("a value of a body that is not in the program\n    {elsewhere}\n");
    insta::assert_snapshot!(seen);
}

/// A launch's sizes, stream and arguments are operands like others.
#[test]
fn a_launch_refuses_what_another_body_made() {
    let one = |body: &Body| [body.number(1)];
    type Part = fn(&mut Body, KernelId, Operand, &[Operand]);
    let parts: [Part; 4] = [
        |body, child, value, one| body.launch(child, &[value], one, &both()),
        |body, child, value, one| body.launch(child, one, &[value], &both()),
        |body, child, value, one| {
            body.launch_with_shared(Stream::Tail, child, one, one, value, &both())
        },
        |body, child, value, one| body.launch(child, one, one, &[Body::parameter(0), value]),
    ];
    for part in parts {
        let build = |program: &mut ProgramBuilder, body: &mut Body, child: KernelId| {
            let mut other = Body::new(program.at(4));
            let value = other.load(Body::parameter(0), Type::U32);
            body.load(Body::parameter(0), Type::U32);
            let one = one(body);
            part(body, child, value, &one);
            body.end();
        };
        let error = program(["child", "n"], build).unwrap_err().to_string();
        assert!(error.contains("another function"), "{error}");
    }
}

/// Far more bodies than most programs have, of which each refuses the others' values.
#[test]
fn bodies_of_large_programs_tell_their_values_apart() {
    let line = Span::new(crate::source::FileId(0), 0..0);
    let bodies: Vec<_> = (0..20_000).map(|_| Body::new(line)).collect();
    let mut bases: Vec<_> = bodies.iter().map(|body| body.handles.base()).collect();
    bases.sort_unstable();
    let nearest = bases.windows(2).map(|two| two[1] - two[0]).min();
    assert!(nearest > Some(50_000), "{nearest:?}");
}
