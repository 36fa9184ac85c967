//! Declarations of another [`ProgramBuilder`].

use super::*;
use crate::builtins::Builtin;
use crate::ir::{FunctionId, GlobalId};

/// What both programs have, declared in the same order.
struct Declarations {
    kernel: KernelId,
    function: FunctionId,
    shared: Operand,
    variable: Operand,
    pair: Type,
}

fn declarations(program: &mut ProgramBuilder) -> Declarations {
    let line = program.at(4);
    let kernel = program.kernel("other", &[("p", Type::pointer_mut(Type::U32))], line);
    let function = program.function("f", &[], Type::Unit, line);
    for what in [None, Some(kernel)] {
        let mut body = Body::new(line);
        body.end();
        match what {
            Some(kernel) => program.define(kernel, body),
            None => program.define_function(function, body),
        }
    }
    let shared = program.shared("tile", Type::U32);
    let variable = program.variable("total", Type::U32);
    let pair = Type::Struct(add_struct(program, "Pair", &["a", "b"], Type::U32));
    Declarations { kernel, function, shared, variable, pair }
}

type Build<'a> = &'a dyn Fn(&mut ProgramBuilder, &mut Body, &Declarations);

/// The result of a program that is built with its own declarations or with those of another one.
fn built(build: Build<'_>, is_own: bool) -> Result<Checked, Error> {
    let mut elsewhere = ProgramBuilder::new("b.toy", LINES);
    let theirs = declarations(&mut elsewhere);
    program(["child", "n"], |program, body, _| {
        let own = declarations(program);
        build(program, body, if is_own { &own } else { &theirs });
        body.end();
    })
}

const CASES: &[(&str, Build<'_>)] = &[
    ("a launch", &|_, body, from| launch(body, from.kernel, &[Body::parameter(0)])),
    ("a launch after the end", &|_, body, from| {
        body.end();
        launch(body, from.kernel, &[Body::parameter(0)]);
    }),
    ("the address of a kernel", &|_, body, from| {
        body.emit(InstKind::Cast(Operand::Kernel(from.kernel)), Type::U64);
    }),
    ("a call", &|_, body, from| _ = body.call(from.function, &[], Type::Unit)),
    ("a shared variable", &|_, body, from| _ = body.load(from.shared.clone(), Type::U32)),
    ("a variable", &|_, body, from| body.store(from.variable.clone(), Body::parameter(1))),
    ("a struct of a local variable", &|_, body, from| _ = body.local("pair", from.pair.clone())),
    ("a struct of a constant", &|_, body, from| {
        let zero = Operand::Const(Const::Zero(from.pair.clone()));
        body.emit(InstKind::Extract { base: zero, index: 1 }, Type::U32);
    }),
    ("a struct of a value", &|_, body, from| {
        let one = body.number(1);
        body.emit(InstKind::Aggregate(vec![one.clone(), one]), from.pair.clone());
    }),
    ("a struct of a parameter", &|program, _, from| {
        declare(program, "g", &["pair"], Type::pointer_mut(from.pair.clone()));
    }),
    ("a struct of a result", &|program, _, from| {
        let line = program.at(4);
        let function = program.function("g", &[], from.pair.clone(), line);
        let mut body = Body::new(line);
        body.give(Operand::Const(Const::Zero(from.pair.clone())));
        program.define_function(function, body);
    }),
    ("a struct of a kernel's parameter", &|program, _, from| {
        let line = program.at(4);
        let kernel = program.kernel("g", &[("pair", from.pair.clone())], line);
        let mut body = Body::new(line);
        body.end();
        program.define(kernel, body);
    }),
    ("a struct of a variable", &|program, _, from| {
        program.variable("pairs", Type::Array(Box::new(from.pair.clone()), 3));
    }),
    ("a struct of a field", &|program, _, from| {
        add_struct(program, "Outer", &["pair"], from.pair.clone());
    }),
    ("an attribute", &|program, _, from| program.noalias(from.kernel)),
    ("launch bounds", &|program, _, from| {
        program.launch_bounds(from.kernel, LaunchBounds { max_threads: 32, min_blocks: None });
    }),
];

#[test]
fn what_another_program_declared_is_refused() {
    let mut seen = String::new();
    for (what, build) in CASES {
        let error = built(build, false).expect_err(what).to_string();
        assert!(error.starts_with("your module: "), "{what}: {error}");
        seen += &format!("{what}\n    {error}\n");
        // Only the declarations are wrong.
        if *what != "a launch after the end" {
            built(build, true).unwrap_or_else(|error| panic!("{what}: {error}"));
        }
    }
    insta::assert_snapshot!(seen);
}

#[test]
fn code_belongs_to_the_program_of_its_function() {
    let give = |program: &mut ProgramBuilder, from: &Declarations, is_kernel: bool| {
        let mut body = Body::new(program.at(5));
        body.end();
        match is_kernel {
            true => program.define(from.kernel, body),
            false => program.define_function(from.function, body),
        }
    };
    for is_kernel in [true, false] {
        let error = built(&|program, _, from| give(program, from, is_kernel), false).unwrap_err();
        let message = "your module: a.toy:5: a body for a function of another program";
        assert_eq!(error.to_string(), message);
    }
}

/// The text, and so the key in the cache, does not depend on how many programs were built before.
#[test]
fn finished_programs_have_ids_from_0() {
    let [one, other] = [(); 2].map(|()| {
        let all = |program: &mut ProgramBuilder, body: &mut Body, from: &Declarations| {
            for (what, build) in CASES {
                if *what != "a launch after the end" {
                    build(program, body, from);
                }
            }
        };
        built(&all, true)
    });
    // Two functions `g`, so the names are wrong in both.
    assert_eq!(one.unwrap_err().to_string(), other.unwrap_err().to_string());
    let module = |build: Build<'_>| format!("{:?}", built(build, true).unwrap().module);
    for (what, build) in CASES.iter().filter(|(what, _)| *what != "a launch after the end") {
        assert_eq!(module(build), module(build), "{what}");
    }
}

#[test]
fn numbers_from_elsewhere_are_refused() {
    let cases: [(&str, Build<'_>); 4] = [
        ("kernel", &|_, body, _| launch(body, KernelId(0), &[Body::parameter(0)])),
        ("function", &|_, body, _| _ = body.call(FunctionId(1), &[], Type::Unit)),
        ("global variable", &|_, body, _| _ = body.load(Operand::Global(GlobalId(0)), Type::U32)),
        ("global variable", &|_, body, _| {
            let (builtin, arguments) = (Builtin::Printf, vec![]);
            let format = Some(GlobalId(1));
            body.emit(InstKind::Builtin { builtin, arguments, format }, Type::I32);
        }),
    ];
    for (what, build) in cases {
        let error = built(build, true).unwrap_err().to_string();
        let wanted = format!("a {what} of another program; declare it in this one");
        assert!(error.contains(&wanted), "{error}");
    }
    let text = |structs: &[u32]| {
        let structs = structs.iter().map(|id| Type::Struct(StructId(*id)));
        let local = |body: &mut Body| structs.clone().for_each(|ty| _ = body.local("a", ty));
        built(&|_, body, _| local(body), true).map(|_| ()).map_err(|error| error.to_string())
    };
    // The built-in ones are those of every program.
    assert_eq!(text(&[0, 1]), Ok(()));
    assert!(text(&[2]).unwrap_err().contains("a struct of another program"));
}
