//! Constant texts, `printf`, assertions and traps.

use super::*;

fn number(scalar: Scalar) -> Operand {
    Operand::Const(Const::Zero(Type::Scalar(scalar)))
}

#[test]
fn texts_are_printed_and_asserted() {
    let build = |program: &mut ProgramBuilder, body: &mut Body, _: KernelId| {
        let [format, word] = ["%u is %s\n", "ten"].map(|text| program.text(text));
        assert_eq!(program.text("ten"), word);
        let bytes = Type::pointer_const(Type::Scalar(Scalar::U8));
        let word = body.emit(InstKind::Cast(word), bytes);
        body.printf(&format, &[Body::parameter(1), word]);
        let small = body.binary(BinaryOp::Lt, Body::parameter(1), body.number(10), Type::BOOL);
        body.at(program.at(4));
        program.assert(body, small, "n is small", "main");
        body.at(program.at(5)).trap();
    };
    insta::assert_snapshot!(print(&program(["child", "n"], build).unwrap().module));
}

#[test]
fn wrong_texts_are_mistakes() {
    type Build<'a> = &'a dyn Fn(&mut ProgramBuilder, &mut Body);
    let printf = |format: &'static str, arguments: &'static [Scalar]| {
        move |program: &mut ProgramBuilder, body: &mut Body| {
            let format = program.text(format);
            let arguments: Vec<_> = arguments.iter().map(|scalar| number(*scalar)).collect();
            body.printf(&format, &arguments);
            body.end();
        }
    };
    let cases: &[(&str, Build<'_>)] = &[
        ("too few arguments", &printf("%u %u", &[Scalar::U32])),
        ("too many arguments", &printf("n", &[Scalar::U32])),
        ("a float for an integer", &printf("%d", &[Scalar::F64])),
        ("an integer for a float", &printf("%u %f", &[Scalar::I32, Scalar::I64])),
        ("a short integer for a long one", &printf("%lld", &[Scalar::I32])),
        ("an integer for a text", &printf("%s", &[Scalar::U64])),
        ("an integer that C widens", &printf("%c", &[Scalar::U8])),
        ("no conversion", &printf("%y", &[Scalar::U32])),
        ("half a conversion", &printf("100%", &[])),
        ("a zero byte", &printf("a\0b", &[])),
        ("a variable as a format", &|program, body| {
            let format = program.variable("format", Type::Array(Box::new(Type::U32), 4));
            body.printf(&format, &[]);
            body.end();
        }),
        ("a number as a format", &|_, body| {
            body.printf(&Body::parameter(1), &[]);
            body.end();
        }),
        ("an assertion of a number", &|program, body| {
            program.assert(body, Body::parameter(1), "n", "main");
            body.end();
        }),
        ("an assertion after the end", &|program, body| {
            body.end();
            body.at(program.at(4));
            program.assert(body, Operand::Const(Const::Bool(true)), "n", "main");
        }),
        ("an assertion at no position", &|program, body| {
            body.at(program.at(40));
            program.assert(body, Operand::Const(Const::Bool(false)), "n", "main");
            body.end();
        }),
        ("code behind a trap", &|_, body| {
            body.trap();
            body.end();
        }),
    ];
    let mut seen = String::new();
    for (what, build) in cases {
        let error =
            program(["child", "n"], |program, body, _| build(program, body)).expect_err(what);
        assert!(error.to_string().starts_with("your module: "), "{what}: {error}");
        seen += &format!("{what}\n    {error}\n");
    }
    insta::assert_snapshot!(seen);
}
