//! Evaluates IR on integers, to check the semantics of arithmetic and loops.

use std::collections::BTreeMap;

use proptest::prelude::*;

use crate::builtins::Builtin;
use crate::check::tree::{BinaryOp, Function as Tree, UnaryOp};
use crate::ir::build::arithmetic::wrap;
use crate::ir::testing::*;
use crate::ir::{Const, Function, InstKind, Operand, Terminator};
use crate::types::{Scalar, Structs, Type};

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Returned(i128),
    Trapped,
    /// Still running after many blocks.
    Endless,
    /// An operation had an undefined result.
    Undefined,
}

/// Runs a function of integers of one type, or of `bool`s.
fn run(function: &Function, arguments: &[i128], fuel: usize) -> End {
    let mut values = BTreeMap::new();
    let mut slots = vec![0; function.slots.len()];
    let mut at = 0;
    for _ in 0..fuel {
        let block = &function.blocks[at];
        for id in &block.instructions {
            let inst = &function.instructions[id.index()];
            let get = |operand: &Operand| match operand {
                Operand::Inst(id) => values[id],
                Operand::Parameter(at) => arguments[*at as usize],
                Operand::Const(Const::Int(scalar, value)) => wrap(*scalar, *value),
                Operand::Const(Const::Bool(value)) => i128::from(*value),
                other => panic!("{other:?}"),
            };
            let wrapped = |value| match inst.ty {
                Type::BOOL => value,
                ref ty => wrap(ty.as_scalar().unwrap(), value),
            };
            let value = match &inst.kind {
                InstKind::Load(Operand::Slot(slot)) => slots[slot.index()],
                InstKind::Store { pointer: Operand::Slot(slot), value } => {
                    slots[slot.index()] = get(value);
                    continue;
                }
                InstKind::Unary(UnaryOp::Neg, value) => wrapped(-get(value)),
                InstKind::Unary(UnaryOp::Not, value) => 1 - get(value),
                InstKind::Select(condition, yes, no) => {
                    get(if get(condition) != 0 { yes } else { no })
                }
                InstKind::Cast(value) => wrapped(get(value)),
                InstKind::Builtin { builtin: Builtin::Trap, .. } => return End::Trapped,
                InstKind::Advance(counter, step) => {
                    let next = get(counter) + get(step);
                    if next != wrapped(next) {
                        return End::Undefined;
                    }
                    next
                }
                InstKind::Binary(op, left, right) => {
                    let (left, right) = (get(left), get(right));
                    let bits = i128::from(inst.ty.as_scalar().unwrap().bits());
                    let undefined = match op {
                        BinaryOp::Div | BinaryOp::Rem => {
                            right == 0 || left / right != wrapped(left / right)
                        }
                        BinaryOp::Shl | BinaryOp::Shr => !(0..bits).contains(&right),
                        _ => false,
                    };
                    if undefined {
                        return End::Undefined;
                    }
                    wrapped(match op {
                        BinaryOp::Add => left + right,
                        BinaryOp::Sub => left - right,
                        BinaryOp::Mul => left * right,
                        BinaryOp::Div => left / right,
                        BinaryOp::Rem => left % right,
                        BinaryOp::And => left & right,
                        BinaryOp::Or => left | right,
                        BinaryOp::Xor => left ^ right,
                        BinaryOp::Shl => left << right,
                        BinaryOp::Shr => left >> right,
                        BinaryOp::Eq => i128::from(left == right),
                        BinaryOp::Ne => i128::from(left != right),
                        BinaryOp::Lt => i128::from(left < right),
                        BinaryOp::Le => i128::from(left <= right),
                        BinaryOp::Gt => i128::from(left > right),
                        BinaryOp::Ge => i128::from(left >= right),
                    })
                }
                other => panic!("{other:?}"),
            };
            values.insert(*id, value);
        }
        let get = |operand: &Operand| match operand {
            Operand::Inst(id) => values[id],
            Operand::Const(Const::Int(scalar, value)) => wrap(*scalar, *value),
            Operand::Const(Const::Bool(value)) => i128::from(*value),
            other => panic!("{other:?}"),
        };
        match &block.terminator {
            Terminator::Jump(target) => at = target.index(),
            Terminator::Branch { condition, then, otherwise } => {
                at = if get(condition) != 0 { then } else { otherwise }.index();
            }
            Terminator::Return(value) => return End::Returned(value.as_ref().map_or(0, get)),
            Terminator::Unreachable => return End::Undefined,
        }
    }
    End::Endless
}

fn run_tree(tree: Tree, arguments: &[i128]) -> End {
    run(&build(Structs::new(), vec![tree]).functions[0], arguments, 3000)
}

fn operator(op: BinaryOp, scalar: Scalar, left: i128, right: i128, constant: bool) -> End {
    let ty = Type::Scalar(scalar);
    let right_side = if constant { int(scalar, right) } else { local(1, ty.clone()) };
    let value = binary(op, local(0, ty.clone()), right_side);
    let tree =
        device("f", ty.clone()).with(&[("l", ty.clone()), ("r", ty)]).body(vec![return_(value)]);
    run_tree(tree, &[left, right])
}

const BYTES: [Scalar; 2] = [Scalar::I8, Scalar::U8];

/// All values of an 8-bit type.
fn all(scalar: Scalar) -> impl Iterator<Item = i128> {
    (0..256).map(move |value| wrap(scalar, value))
}

#[test]
fn every_division_of_bytes_is_right_or_traps() {
    for scalar in BYTES {
        for right in all(scalar) {
            for op in [BinaryOp::Div, BinaryOp::Rem] {
                let ty = Type::Scalar(scalar);
                let value = binary(op, local(0, ty.clone()), local(1, ty.clone()));
                let tree = device("f", ty.clone())
                    .with(&[("l", ty.clone()), ("r", ty)])
                    .body(vec![return_(value)]);
                let variable = build(Structs::new(), vec![tree]);
                for left in all(scalar) {
                    let expected = match (right, op) {
                        (0, _) => End::Trapped,
                        (_, BinaryOp::Div) => End::Returned(wrap(scalar, left / right)),
                        _ => End::Returned(left % right),
                    };
                    let found = run(&variable.functions[0], &[left, right], 10);
                    assert_eq!(found, expected, "{left} {op:?} {right}");
                }
                let expected = match right {
                    0 => End::Trapped,
                    _ if op == BinaryOp::Div => End::Returned(wrap(scalar, -128 / right)),
                    _ => End::Returned(wrap(scalar, -128) % right),
                };
                if scalar.is_signed() {
                    assert_eq!(
                        operator(op, scalar, -128, right, true),
                        expected,
                        "-128 {op:?} {right}"
                    );
                }
            }
        }
    }
}

#[test]
fn shift_counts_are_taken_modulo_the_width() {
    for scalar in BYTES {
        for count in all(scalar) {
            for constant in [false, true] {
                let left = wrap(scalar, 0b1011_0101);
                let by = count.rem_euclid(8);
                let shl = operator(BinaryOp::Shl, scalar, left, count, constant);
                assert_eq!(shl, End::Returned(wrap(scalar, left << by)));
                let shr = operator(BinaryOp::Shr, scalar, left, count, constant);
                assert_eq!(shr, End::Returned(left >> by));
            }
        }
    }
}

/// The number of iterations of `for i in (start..end).step(step)` and the sum of all `i`, according to the
/// documentation of the tree.
fn passes(scalar: Scalar, start: i128, end: i128, step: i128) -> (i128, i128) {
    let (mut count, mut sum, mut i) = (0, 0, start);
    while i < end {
        count += 1;
        sum += i;
        i += step;
        if step <= 0 || wrap(scalar, i) != i {
            break;
        }
    }
    (count, sum)
}

/// The same, evaluated from IR. `known` tells whether end and step are constants.
fn passes_of_ir(
    scalar: Scalar,
    (start, end, step): (i128, i128, Option<i128>),
    known: (bool, bool),
    with_continue: bool,
) -> (End, End) {
    let ty = Type::Scalar(scalar);
    let given = |at, value, known| if known { int(scalar, value) } else { local(at, ty.clone()) };
    let program = |sum: bool| {
        let added = if sum { cast(local(3, ty.clone()), Type::I64) } else { int(Scalar::I64, 1) };
        let mut body = vec![assign(local(4, Type::I64), Some(BinaryOp::Add), added)];
        if with_continue {
            body.push(continue_(0));
        }
        device("f", Type::I64)
            .with(&[("start", ty.clone()), ("end", ty.clone()), ("step", ty.clone())])
            .locals(&[("i", ty.clone()), ("sum", Type::I64)])
            .body(vec![
                let_(4, int(Scalar::I64, 0)),
                for_(
                    3,
                    local(0, ty.clone()),
                    given(1, end, known.0),
                    step.map(|step| given(2, step, known.1)),
                    body,
                ),
                return_(local(4, Type::I64)),
            ])
    };
    let arguments = [start, end, step.unwrap_or(1)];
    (run_tree(program(false), &arguments), run_tree(program(true), &arguments))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]
    #[test]
    fn for_loops_never_wrap(
        signed in any::<bool>(),
        start in any::<u8>(),
        end in any::<u8>(),
        step in prop_oneof![
            Just(None),
            any::<u8>().prop_map(Some),
            prop::sample::select(vec![0u8, 1, 2, 127, 128, 129, 254, 255]).prop_map(Some),
        ],
        known in any::<(bool, bool)>(),
        with_continue in any::<bool>(),
    ) {
        let scalar = if signed { Scalar::I8 } else { Scalar::U8 };
        let of = |value: u8| wrap(scalar, value.into());
        let (start, end, step) = (of(start), of(end), step.map(of));
        let (count, sum) = passes(scalar, start, end, step.unwrap_or(1));
        let found = passes_of_ir(scalar, (start, end, step), known, with_continue);
        prop_assert_eq!(found, (End::Returned(count), End::Returned(sum)));
    }
}

#[test]
fn for_loops_stop_at_the_largest_value() {
    for (scalar, largest) in [(Scalar::I8, 127), (Scalar::U8, 255)] {
        for known in [(false, false), (true, false), (false, true), (true, true)] {
            let range = (largest - 5, largest, Some(2));
            let (count, _) = passes_of_ir(scalar, range, known, false);
            assert_eq!(count, End::Returned(3), "{scalar:?} {known:?}");
        }
    }
}

#[test]
fn for_evaluates_its_bounds_once() {
    // let mut n = 3; let mut count = 0; for i in 0..n { n = 100; count += 1; } return count;
    let tree = device("f", Type::U32)
        .locals(&[("i", Type::U32), ("n", Type::U32), ("count", Type::U32)])
        .body(vec![
            let_(1, u32_(3)),
            let_(2, u32_(0)),
            for_(
                0,
                u32_(0),
                local(1, Type::U32),
                None,
                vec![
                    assign(local(1, Type::U32), None, u32_(100)),
                    assign(local(2, Type::U32), Some(BinaryOp::Add), u32_(1)),
                ],
            ),
            return_(local(2, Type::U32)),
        ]);
    assert_eq!(run_tree(tree, &[]), End::Returned(3));
}

#[test]
fn the_right_side_of_and_and_or_runs_only_when_it_decides() {
    // `x != 0 && 10 / x > 2`, where the division would trap; written as a value and as a condition.
    let x = || local(0, Type::I32);
    for (is_and, decided) in [(true, 0), (false, 1)] {
        let left = binary(if is_and { BinaryOp::Ne } else { BinaryOp::Eq }, x(), i32_(0));
        let right = binary(BinaryOp::Gt, binary(BinaryOp::Div, i32_(10), x()), i32_(2));
        let value = logical(is_and, left, right);
        let as_value =
            device("f", Type::BOOL).with(&[("x", Type::I32)]).body(vec![return_(value.clone())]);
        let as_condition = device("f", Type::BOOL).with(&[("x", Type::I32)]).body(vec![
            do_(if_(value, block(vec![return_(bool_(true))]), None, Type::Unit)),
            return_(bool_(false)),
        ]);
        for tree in [as_value, as_condition] {
            assert_eq!(run_tree(tree.clone(), &[0]), End::Returned(decided));
            assert_eq!(run_tree(tree.clone(), &[3]), End::Returned(1));
            assert_eq!(run_tree(tree, &[7]), End::Returned(0));
        }
    }
}

#[test]
fn cheap_right_sides_decide_all_the_same() {
    let x = || local(0, Type::I32);
    for (is_and, expected) in [(true, [0, 1, 0]), (false, [1, 1, 1])] {
        // `x > 0 && x < 5`, `x > 0 || x < 5`
        let left = binary(BinaryOp::Gt, x(), i32_(0));
        let right = binary(BinaryOp::Lt, x(), i32_(5));
        let value = return_(logical(is_and, left, right));
        let tree = device("f", Type::BOOL).with(&[("x", Type::I32)]).body(vec![value]);
        let found = [-1, 3, 9].map(|x| run_tree(tree.clone(), &[x]));
        assert_eq!(found, expected.map(End::Returned));
    }
}

/// A branch would keep loads of what the right side needs waiting.
#[test]
fn a_cheap_right_side_of_two_tests_needs_no_branch() {
    // `x == 3 || x == 4 && y == 1`; with a third test on the right there is a branch.
    let equal = |at, to| binary(BinaryOp::Eq, local(at, Type::I32), i32_(to));
    let both = || logical(true, equal(0, 4), equal(1, 1));
    let tree = |right| {
        let value = return_(logical(false, equal(0, 3), right));
        device("f", Type::BOOL).with(&[("x", Type::I32), ("y", Type::I32)]).body(vec![value])
    };
    let blocks = |right| build(Structs::new(), vec![tree(right)]).functions[0].blocks.len();
    assert_eq!(blocks(both()), 1);
    assert!(blocks(logical(true, both(), equal(1, 2))) > 1);
    for (arguments, expected) in [([3, 0], 1), ([4, 0], 0), ([4, 1], 1), ([5, 1], 0)] {
        assert_eq!(run_tree(tree(both()), &arguments), End::Returned(expected));
    }
}

#[test]
fn a_compound_assignment_reads_the_old_value_last() {
    // let mut a = 1; a += { a = 10; 5 }; return a;
    let a = || local(0, Type::I32);
    let mut inner = value_block(i32_(5));
    inner.statements.push(assign(a(), None, i32_(10)));
    let value = expr(crate::check::tree::ExprKind::Block(inner), Type::I32);
    let tree = device("f", Type::I32).locals(&[("a", Type::I32)]).body(vec![
        let_(0, i32_(1)),
        assign(a(), Some(BinaryOp::Add), value),
        return_(a()),
    ]);
    assert_eq!(run_tree(tree, &[]), End::Returned(15));
}
