//! Types that nest deep.

use super::*;

/// A pointer or an array around another, so many times.
fn deep(levels: usize, is_array: bool) -> Type {
    (0..levels).fold(Type::U32, |inner, _| match is_array {
        true => Type::Array(Box::new(inner), 1),
        false => Type::pointer_mut(inner),
    })
}

#[test]
fn types_that_nest_too_deep_are_refused() {
    type Build<'a> = &'a dyn Fn(&mut ProgramBuilder, &mut Body, Type);
    let cases: &[(&str, Build<'_>)] = &[
        ("a parameter of a kernel", &|program, _, ty| {
            let parameters = [("deep", ty)];
            program.extern_kernel("far", &parameters, program.at(4));
            // Dropping it recurses, which is the caller's business.
            std::mem::forget(parameters);
        }),
        ("a parameter of a function", &|program, _, ty| {
            let parameters = [("deep", ty)];
            program.function("f", &parameters, Type::Unit, program.at(4));
            std::mem::forget(parameters);
        }),
        ("a result", &|program, _, ty| {
            program.function("f", &[], ty, program.at(4));
        }),
        ("a variable", &|program, _, ty| {
            program.variable("deep", ty);
        }),
        ("a shared variable", &|program, _, ty| {
            program.shared("deep", ty);
        }),
        ("a local variable", &|_, body, ty| {
            body.local("deep", ty);
        }),
        ("a value", &|_, body, ty| {
            body.load(Body::parameter(0), ty);
        }),
        ("an operator", &|_, body, ty| {
            body.binary(BinaryOp::Add, Body::parameter(1), Body::parameter(1), ty);
        }),
        ("a constant", &|_, body, ty| {
            body.store(Body::parameter(0), Operand::Const(Const::Zero(ty)));
        }),
        ("a field", &|program, _, ty| {
            let fields = vec![Field { name: "deep".into(), ty }];
            program.structs().add(Struct { name: "S".into(), fields, span: None });
        }),
    ];
    let mut seen = String::new();
    for (what, build) in cases {
        for (levels, is_array) in [(256, false), (256, true), (200_000, false), (200_000, true)] {
            let build = |program: &mut ProgramBuilder, body: &mut Body, _: KernelId| {
                build(program, body, deep(levels, is_array));
                body.end();
            };
            let error = program(["child", "n"], build).unwrap_err().to_string();
            assert!(error.starts_with("your module: "), "{what}: {error}");
            if (levels, is_array) == (256, true) {
                seen += &format!("{what}\n    {error}\n");
            }
        }
    }
    insta::assert_snapshot!(seen);
}

/// A program with a chain of so many structs, each in the next.
fn chain(structs: usize) -> crate::error::Result<Checked> {
    program(["child", "n"], |program, body, _| {
        let mut inner = Type::U32;
        for at in 0..structs {
            inner = Type::Struct(add_struct(program, &format!("S{at}"), &["x"], inner));
        }
        body.local("all", inner);
        body.end();
    })
}

#[test]
fn structs_that_nest_too_deep_are_refused() {
    assert!(chain(200).is_ok());
    for structs in [300, 20_000] {
        let error = chain(structs).map(|_| ()).unwrap_err().to_string();
        let said = ": it is nested over 256 levels deep";
        assert!(error.starts_with("your module: struct `S") && error.ends_with(said), "{error}");
    }
    let mut text = "launches symbolic\nstruct S0 { x: u32 }\n".to_owned();
    (1..20_000).for_each(|at| text += &format!("struct S{at} {{ x: S{} }}\n", at - 1));
    let error = read("a.gir", &text).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("is nested over 256 levels deep"), "{error}");
}

/// As deep as programs may nest; the text of the IR can have types of a few levels more.
#[test]
fn types_up_to_the_limit_have_a_text() {
    for is_array in [false, true] {
        let build = |_: &mut ProgramBuilder, body: &mut Body, _: KernelId| {
            body.local("deep", deep(255, is_array));
            body.end();
        };
        let text = print(&program(["child", "n"], build).unwrap().module);
        assert_eq!(print(&read("a.gir", &text).unwrap().module), text);
    }
}
