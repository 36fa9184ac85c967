use super::tree::*;
use super::*;
use crate::time::seconds;
use crate::types::Scalar;

/// The functions of a program without errors.
fn functions(text: &str) -> Vec<Function> {
    let sources = SourceMap::single("a.grid", text);
    let (program, diagnostics) = parse_and_check(&sources);
    let rendered = crate::diagnostics::render(&diagnostics, &sources, false);
    program.expect(&rendered).functions
}

/// The values of the `let`s of a kernel body.
fn lets(body: &str) -> Vec<Expr> {
    let text = format!(
        "struct S {{ a: u32, b: u32 }} fn f(n: u32) -> u32 {{ return n; }}
        kernel k(p: *mut u32, c: *const u32, n: u32, w: u64, s: i8, x: f32) {{ {body} }}"
    );
    let kernel = functions(&text).pop().expect("a kernel");
    let value = |statement: Statement| match statement.kind {
        StatementKind::Let { value, .. } => value,
        _ => None,
    };
    kernel.body.statements.into_iter().filter_map(value).collect()
}

fn ids_of(text: &str) -> Vec<&'static str> {
    let (program, diagnostics) = parse_and_check(&SourceMap::single("a.grid", text));
    let errors = diagnostics.iter().filter(|d| d.severity == Severity::Error);
    assert_eq!(program.is_none(), errors.clone().next().is_some());
    errors.map(|d| d.id).collect()
}

#[test]
fn literals_are_folded_in_the_type_that_they_need() {
    let values =
        lets("let a: u64 = 4 * 4; let b = n + (1 << 3); let c = 1.5 * 2.0; let d: f64 = 0.1;");
    assert!(matches!((&values[0].kind, &values[0].ty), (ExprKind::Int(16), &Type::U64)));
    let ExprKind::Binary(BinaryOp::Add, _, right) = &values[1].kind else { panic!("{values:?}") };
    assert!(matches!((&right.kind, &right.ty), (ExprKind::Int(8), &Type::U32)));
    assert!(matches!((&values[2].kind, &values[2].ty), (ExprKind::Float(3.0), &Type::F32)));
    // Rounded to f64 from the digits, not through f32.
    assert!(matches!(values[3].kind, ExprKind::Float(0.1)));
}

#[test]
fn constants_are_literals_where_they_are_used() {
    let text =
        "const A: u32 = B * 2; const B: u32 = 21; kernel k() { let a = A; let w = warp_size; }";
    let kernel = functions(text).remove(0);
    let StatementKind::Let { value: Some(value), .. } = &kernel.body.statements[0].kind else {
        panic!("{kernel:?}")
    };
    assert!(matches!((&value.kind, &value.ty), (ExprKind::Int(42), &Type::U32)));
}

#[test]
fn a_chain_of_constants_of_any_length_is_evaluated() {
    let mut text = String::from("const C0: u32 = 1;\nkernel k(p: *mut [u32; C20000]) {}\n");
    for i in (1..=20_000).rev() {
        text += &format!("const C{i}: u32 = C{} + 1;\n", i - 1);
    }
    let kernel = functions(&text).remove(0);
    let element = Type::Array(Box::new(Type::U32), 20_001);
    assert_eq!(kernel.parameters()[0].ty, Type::pointer_mut(element));
}

#[test]
fn arithmetic_wraps_but_not_in_constants() {
    let values = lets("let a: u8 = 200 + 100; let b = 0u32 - 1;");
    assert!(matches!(values[0].kind, ExprKind::Int(44)));
    assert!(matches!(values[1].kind, ExprKind::Int(0xffff_ffff)));
    assert_eq!(ids_of("const A: u8 = 200 + 100; kernel k() {}"), [ids::CONST_OVERFLOW]);
}

#[test]
fn only_mut_pointers_convert_by_themselves() {
    let values = lets("let a: *const u32 = p; let b = p == c; let d = c - p;");
    assert!(
        matches!(&values[0].kind, ExprKind::Cast(from) if from.ty == Type::pointer_mut(Type::U32))
    );
    let ExprKind::Binary(_, left, _) = &values[1].kind else { panic!("{values:?}") };
    assert!(matches!(left.kind, ExprKind::Cast(_)));
    assert_eq!(values[2].ty, Type::I64);
}

#[test]
fn fields_through_pointers_have_their_deref_written_out() {
    let text = "struct S { a: u32 } kernel k(s: *mut S) { s.a = 1; }";
    let kernel = functions(text).remove(0);
    let StatementKind::Assign { place, .. } = &kernel.body.statements[0].kind else {
        panic!("{kernel:?}")
    };
    let ExprKind::Field { base, index: 0 } = &place.kind else { panic!("{place:?}") };
    assert!(matches!(base.kind, ExprKind::Deref(_)));
}

#[test]
fn fields_are_in_declaration_order_and_evaluated_in_that_of_the_source() {
    let values = lets("let a = S { b: n, a: 1 }; let d = S { b: f(1), a: f(2) };");
    let ExprKind::Aggregate(fields) = &values[0].kind else { panic!("{values:?}") };
    assert!(matches!(fields[0].kind, ExprKind::Int(1)));
    // With calls: evaluated into variables in source order.
    let ExprKind::Block(block) = &values[1].kind else { panic!("{values:?}") };
    let lets: Vec<(LocalId, i128)> = block
        .statements
        .iter()
        .map(|statement| {
            let StatementKind::Let { local, value: Some(value) } = &statement.kind else {
                panic!("{statement:?}")
            };
            let ExprKind::Call { arguments, .. } = &value.kind else { panic!("{value:?}") };
            let ExprKind::Int(argument) = arguments[0].kind else { panic!("{arguments:?}") };
            (*local, argument)
        })
        .collect();
    assert_eq!([lets[0].1, lets[1].1], [1, 2]);
    let Some(ExprKind::Aggregate(fields)) = block.value.as_ref().map(|value| &value.kind) else {
        panic!("{block:?}")
    };
    // `a` is the result of the second call.
    assert!(matches!(fields[0].kind, ExprKind::Local(id) if id == lets[1].0));
    assert!(matches!(fields[1].kind, ExprKind::Local(id) if id == lets[0].0));
}

#[test]
fn blocks_that_do_not_end_have_a_value_where_one_is_asked_for() {
    let values = lets(
        "let a = if n == 0 { return; } else { n }; let b = if n == 1 { trap(); } else { 2.0 };",
    );
    for value in &values {
        let ExprKind::If { branches, otherwise } = &value.kind else { panic!("{value:?}") };
        for block in [&branches[0].1, otherwise.as_ref().expect("an else")] {
            assert_eq!(block.value.as_ref().expect("a value").ty, value.ty);
        }
    }
}

#[test]
fn else_ifs_stand_side_by_side() {
    let values = lets("let a = if n == 0 { 1 } else if n == 1 { w } else { 3 };");
    let ExprKind::If { branches, otherwise: Some(otherwise) } = &values[0].kind else {
        panic!("{values:?}")
    };
    assert_eq!(branches.len(), 2);
    assert!(branches.iter().all(|(_, block)| block.statements.is_empty()));
    assert_eq!(otherwise.value.as_ref().expect("a value").ty, Type::U64);
}

#[test]
fn printf_promotes_as_c_does() {
    let text = r#"kernel k(s: i8, h: u16, x: f32) { printf("%d %u %f\n", s, h, x); }"#;
    let kernel = functions(text).remove(0);
    let StatementKind::Expr(Expr { kind: ExprKind::Builtin { arguments, format, .. }, ty, .. }) =
        &kernel.body.statements[0].kind
    else {
        panic!("{kernel:?}")
    };
    let types: Vec<Type> = arguments.iter().map(|argument| argument.ty.clone()).collect();
    assert_eq!(types, [Type::I32, Type::U32, Type::F64]);
    assert_eq!((format.as_deref(), ty), (Some("%d %u %f\n"), &Type::I32));
}

#[test]
fn launches_take_integers_of_any_type_as_sizes() {
    let text = "kernel k(w: i64) { launch k<<<w, 32, shared = 4 * 4, stream = tail>>>(w); }";
    let kernel = functions(text).remove(0);
    let StatementKind::Expr(Expr { kind: ExprKind::Launch(launch), .. }) =
        &kernel.body.statements[0].kind
    else {
        panic!("{kernel:?}")
    };
    let ExprKind::Aggregate(grid) = &launch.grid.kind else { panic!("{launch:?}") };
    assert!(matches!(grid[0].kind, ExprKind::Cast(_)) && grid[0].ty == Type::U32);
    assert!(matches!(grid[1].kind, ExprKind::Int(1)));
    let shared = launch.shared.as_ref().expect("shared memory");
    assert!(matches!((&shared.kind, &shared.ty), (ExprKind::Int(16), &Type::U32)));
    assert!(matches!(launch.stream, StreamExpr::Tail));
    assert!(!launch.is_try);
}

#[test]
fn a_for_takes_the_type_of_the_bound_that_has_one() {
    let kernel = functions(
        "kernel k(n: u16) { for a in 0..n {} for b in n..9 {} for c in 0..9 {} for d in (0..9).step(n) {} }",
    )
    .remove(0);
    let types: Vec<Type> = kernel.locals[1..].iter().map(|local| local.ty.clone()).collect();
    let short = Type::Scalar(Scalar::U16);
    assert_eq!(types, [short.clone(), short.clone(), Type::I32, short]);
}

#[test]
fn labels_count_loops_from_the_inside() {
    let kernel = functions("kernel k() { 'a: loop { loop { break 'a; } continue; } }").remove(0);
    let StatementKind::Loop { body, .. } = &kernel.body.statements[0].kind else {
        panic!("{kernel:?}")
    };
    let StatementKind::Loop { body: inner, .. } = &body.statements[0].kind else {
        panic!("{body:?}")
    };
    assert!(matches!(inner.statements[0].kind, StatementKind::Break { depth: 1 }));
    assert!(matches!(body.statements[1].kind, StatementKind::Continue { depth: 0 }));
}

#[test]
fn an_empty_program_is_an_error() {
    for text in ["", "// nothing\n", "\u{feff}", "const A: u32 = 1;", "fn f() {}"] {
        assert_eq!(ids_of(text), [ids::EMPTY_PROGRAM], "{text:?}");
    }
    // A broken item may have been a kernel.
    assert_eq!(ids_of("kernl k() {}"), [ids::SYNTAX_ERROR]);
}

#[test]
fn files_of_a_map_are_one_program() {
    let files = crate::load::Memory::new([
        ("a.grid", "use \"b.grid\"; kernel k(p: *mut u32) { p[0] = f(N) + wrong; }"),
        ("b.grid", "const N: u32 = 1;\nfn f(n: u32) -> u32 { return missing; }"),
    ]);
    let sources = crate::load::load(&files, std::path::Path::new("a.grid")).unwrap();
    let (_, diagnostics) = parse_and_check(&sources);
    let at: Vec<(u32, u32)> = diagnostics
        .iter()
        .map(|d| (d.labels[0].span.file.0, sources.line(d.labels[0].span)))
        .collect();
    assert_eq!(at, [(0, 1), (1, 2)]);
}

#[test]
fn time_grows_with_the_length_of_the_program() {
    // Tens of thousands of names, scopes and constants: anything quadratic takes minutes.
    let mut text = String::from("kernel k(p: *mut u32) {\n");
    for i in 0..20_000 {
        text += &format!("let x{i} = p[{i}] + C{i}; p[x{i}] = f{i}(x{i});\n");
    }
    text += "}\n";
    for i in 0..20_000 {
        text += &format!("const C{i}: u32 = {i};\nfn f{i}(n: u32) -> u32 {{ return n + C{i}; }}\n");
    }
    let seconds = seconds(|| assert_eq!(functions(&text).len(), 20_001));
    assert!(seconds < 20.0, "{seconds} s");
}

#[test]
fn time_grows_with_the_branches_and_variables_of_a_function() {
    let mut text = String::from("kernel k(p: *mut u32, n: u32) {\n");
    for i in 0..6_000 {
        text += &format!(
            "let x{i}: u32; let mut y{i}: u32; if n == {i} {{ x{i} = 1; }} else {{ x{i} = 2; }}
            loop {{ y{i} = x{i}; if p[{i}] == n {{ break; }} if p[{i}] == 1 {{ return; }} }}
            p[{i}] = y{i}; sync_threads();\n"
        );
    }
    text += "}\n";
    let seconds = seconds(|| assert_eq!(functions(&text).len(), 1));
    assert!(seconds < 20.0, "{seconds} s");
}

#[test]
fn variables_without_a_value_are_followed_however_many_there_are() {
    let count = 10_000;
    let lines = |line: &dyn Fn(usize) -> String| (0..count).map(line).collect::<String>();
    let declared = lines(&|i| format!("let x{i}: u32; let mut y{i}: [u32; 2];\n"));
    let set = lines(&|i| {
        format!("if n == {i} {{ x{i} = 1; y{i}[0] = n; }} else {{ x{i} = 2; y{i}[1] = n; }}\n")
    });
    let passes = lines(&|i| format!("if p[{i}] == 1 {{ y{i}[0] = 1; continue; }}\n"));
    let read = lines(&|i| format!("p[{i}] = x{i} + y{i}[0];\n"));
    let program = |rest: &str| {
        format!(
            "kernel k(p: *mut u32, n: u32) {{\n{declared}{set}while p[0] > n {{\n{passes}}}\n{read}
            {rest}\n}}"
        )
    };
    let seconds = seconds(|| assert!(ids_of(&program("")).is_empty()));
    assert!(seconds < 20.0, "{seconds} s");
    let last = "let z: u32; if n == 0 { z = 1; } p[0] = z;";
    assert_eq!(ids_of(&program(last)), [ids::UNSET_VARIABLE]);
    let last = "let z: u32; while n > 0 { z = 1; p[0] = z; }";
    assert_eq!(ids_of(&program(last)), [ids::IMMUTABLE_ASSIGN]);
}

#[test]
fn instances_have_a_bound_by_the_source_that_they_are_made_of() {
    let text = format!(
        "fn f<const N: u64, const D: u32>() {{ /*{}*/ if D < 60 {{
            f::<{{ N * 2 }}, {{ D + 1 }}>(); f::<{{ N * 2 + 1 }}, {{ D + 1 }}>(); }} }}
        kernel k() {{ f::<0, 0>(); }}",
        " ".repeat(1 << 20)
    );
    assert_eq!(ids_of(&text), [ids::TOO_MANY_INSTANCES]);
    // A single instance of any size is fine.
    let text = format!(
        "fn f<const N: u64>() {{ /*{}*/ }} kernel k() {{ f::<0>(); }}",
        " ".repeat(17 << 20)
    );
    assert!(ids_of(&text).is_empty());
}

#[test]
fn initial_values_have_a_bound_together() {
    let program = |count: u32| {
        let one = |at| format!("static s{at}: [u8; 1 << 24] = [1; 1 << 24];\n");
        let zeros = "static z: [u8; 1 << 24] = [0; 1 << 24];\nkernel k() {}";
        (0..count).map(one).chain([zeros.to_string()]).collect::<String>()
    };
    assert!(ids_of(&program(4)).is_empty());
    assert_eq!(ids_of(&program(5)), [ids::TYPE_TOO_LARGE]);
}
