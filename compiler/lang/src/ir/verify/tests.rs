//! A valid module, broken in many ways.

use super::*;
use crate::builtins::{AtomicOp, Builtin, MathOp, ShuffleMode};
use crate::check::tree::{GeometryField, LaunchBounds, StreamExpr};
use crate::ir::testing::*;
use crate::ir::{
    BinaryOp, BlockId, ExternId, FunctionId, GlobalId, Inst, InstId, InstKind, SlotId, Stream,
    Terminator, UnaryOp,
};
use crate::types::{Field, Scalar, Struct, StructId, Structs};

/// A valid module: `f`, then the body and the entry of `k`; a struct `Pair`; a string and a shared variable.
fn sound() -> Module {
    let mut structs = Structs::new();
    let pair = Type::Struct(add_struct(&mut structs, "Pair", vec![Type::F32, Type::I32]));
    let x = || local(0, Type::I32);
    let f = device("f", Type::I32).with(&[("x", Type::I32)]).body(vec![
        do_(if_(
            binary(BinaryOp::Lt, x(), i32_(0)),
            block(vec![return_(unary(UnaryOp::Neg, x()))]),
            None,
            Type::Unit,
        )),
        return_(binary(BinaryOp::Div, x(), i32_(3))),
    ]);
    let elements = Type::pointer_mut(Type::U32);
    let pointer = || local(1, elements.clone());
    let read = || index(pointer(), geometry(GeometryField::ThreadIdx, 0));
    let k = kernel("k")
        .with(&[("pair", pair.clone()), ("p", elements.clone())])
        .locals(&[("y", Type::I64)])
        .shared(&[("s", Type::U32)])
        .body(vec![
            assign(shared(0, Type::U32), None, read()),
            let_(2, binary(BinaryOp::Sub, pointer(), pointer())),
            do_(if_(
                binary(BinaryOp::Eq, shared(0, Type::U32), u32_(1)),
                value_block(read()),
                Some(value_block(u32_(0))),
                Type::U32,
            )),
            do_(call(0, vec![cast(local(2, Type::I64), Type::I32)], Type::I32)),
            do_(field(local(0, pair.clone()), 1, Type::I32)),
            do_(printf("%d\n", vec![i32_(1)])),
            do_(launch(7, 1, StreamExpr::Tail, vec![local(0, pair), pointer()], true)),
        ]);
    build(structs, vec![f, k])
}

/// Makes the kernel an `extern kernel`, and forgets its body.
fn declare(module: &mut Module) {
    module.functions[ENTRY].blocks.clear();
    module.functions[ENTRY].instructions.clear();
    module.kernels[0].body = module.kernels[0].entry;
}

const F: usize = 0;
const BODY: usize = 1;
const ENTRY: usize = 2;

/// The first instruction of a kind in a function.
fn first<'m>(module: &'m mut Module, function: usize, kind: &str) -> &'m mut Inst {
    let mut instructions = module.functions[function].instructions.iter_mut();
    instructions.find(|inst| instruction::name(&inst.kind) == kind).unwrap()
}

/// Replaces the first instruction of a kind in a function.
fn replace(module: &mut Module, function: usize, kind: &str, with: InstKind) {
    first(module, function, kind).kind = with;
}

fn id(module: &mut Module, function: usize, kind: &str) -> InstId {
    let instructions = &module.functions[function].instructions;
    let at = instructions.iter().position(|inst| instruction::name(&inst.kind) == kind);
    InstId(at.unwrap() as u32)
}

fn add_inst(module: &mut Module, function: usize, kind: InstKind, ty: Type) {
    let function = &mut module.functions[function];
    let id = InstId(function.instructions.len() as u32);
    function.instructions.push(Inst { kind, ty, span: line(9) });
    function.blocks[0].instructions.insert(0, id);
}

fn int(scalar: Scalar, value: i128) -> Operand {
    Operand::Const(Const::Int(scalar, value))
}

fn zero(ty: Type) -> Operand {
    Operand::Const(Const::Zero(ty))
}

fn call_builtin(builtin: Builtin, arguments: Vec<Operand>) -> InstKind {
    InstKind::Builtin { builtin, arguments, format: None }
}

type Break = (&'static str, fn(&mut Module));

const BREAKS: &[Break] = &[
    ("no built-in structs", |m| m.structs.get_mut(StructId::DIM3).fields.truncate(2)),
    ("a struct in itself", |m| {
        let ty = array_of(Type::Struct(StructId(2)), 1);
        m.structs.get_mut(StructId(2)).fields[0].ty = ty;
    }),
    ("a circle of structs", |m| {
        let fields = vec![Field { name: "back".into(), ty: Type::Struct(StructId(2)) }];
        m.structs.add(Struct { name: "Other".into(), fields, span: None });
        m.structs.get_mut(StructId(2)).fields[0].ty = Type::Struct(StructId(3));
    }),
    ("a field of a missing struct", |m| {
        m.structs.get_mut(StructId(2)).fields[0].ty = Type::Struct(StructId(9));
    }),
    ("a field without a value", |m| m.structs.get_mut(StructId(2)).fields[0].ty = Type::Unit),
    ("one symbol twice", |m| m.globals[0].name = "f".into()),
    ("device memory unset", |m| m.globals[0].space = Space::Device),
    ("shared memory set", |m| m.globals[0].init = Init::Zero),
    ("shared memory exported", |m| m.globals[0].exported = true),
    ("bytes missing", |m| m.globals[1].init = Init::Bytes(vec![0])),
    ("a vector of one", |m| m.globals[0].ty = Type::Vector(Scalar::F32, 1)),
    ("a kernel without a body", |m| m.kernels[0].body = FunctionId(7)),
    ("an entry as body", |m| m.kernels[0].body = FunctionId(2)),
    ("a declared kernel with a body", |m| declare(m)),
    ("a declared kernel with launch bounds", |m| {
        declare(m);
        let bounds = LaunchBounds { max_threads: 32, min_blocks: None };
        m.kernels[0].launch_bounds = Some(bounds);
    }),
    ("a declared kernel that promises something", |m| {
        declare(m);
        m.kernels[0].noalias = true;
    }),
    ("a declared kernel with fast mathematics", |m| {
        declare(m);
        m.kernels[0].fast_math = true;
    }),
    ("a copy that does not exist", |m| m.kernels[0].whole = Some(FunctionId(7))),
    ("an entry as copy", |m| m.kernels[0].whole = Some(m.kernels[0].entry)),
    ("another entry", |m| m.kernels[0].name = "l".into()),
    ("other parameters", |m| m.kernels[0].parameters[1].ty = Type::U32),
    ("a kernel with a result", |m| {
        m.functions[BODY].result = Type::I32;
    }),
    ("a body without geometry", |m| m.functions[BODY].takes_geometry = false),
    ("geometry that is not passed", |m| m.functions[F].takes_geometry = true),
    ("a second body", |m| m.functions[F].role = Role::Body(KernelId(0))),
    ("a slot without a type", |m| m.functions[BODY].slots[0].ty = Type::Unit),
    ("no blocks", |m| {
        m.functions[F] = Function { blocks: vec![], instructions: vec![], ..m.functions[F].clone() }
    }),
    ("two blocks of one name", |m| m.functions[F].blocks[1].name = "entry".into()),
    ("a jump nowhere", |m| {
        m.functions[F].blocks[1].terminator = Terminator::Jump(BlockId(9));
    }),
    ("a jump to the entry", |m| {
        m.functions[F].blocks[1].terminator = Terminator::Jump(BlockId(0));
    }),
    ("a block that nothing reaches", |m| {
        m.functions[F].blocks[0].terminator = Terminator::Jump(BlockId(2));
    }),
    ("an instruction twice", |m| {
        let id = m.functions[F].blocks[0].instructions[0];
        m.functions[F].blocks[1].instructions.push(id);
    }),
    ("an instruction nowhere", |m| m.functions[F].blocks[2].instructions.clear()),
    ("a missing instruction", |m| {
        m.functions[F].blocks[1].instructions.push(InstId(77));
    }),
    ("a missing type", |m| first(m, BODY, "load").ty = Type::Struct(StructId(9))),
    ("a use before the definition", |m| {
        let last = InstId(m.functions[F].instructions.len() as u32);
        add_inst(m, F, InstKind::Cast(Operand::Inst(InstId(0))), Type::I64);
        assert!(m.functions[F].blocks[0].instructions[0] == last);
    }),
    ("a use that is not dominated", |m| {
        let negated = Operand::Inst(id(m, F, "unary"));
        m.functions[F].blocks[2].terminator = Terminator::Return(Some(negated));
    }),
    ("the value of a store", |m| {
        let store = Operand::Inst(id(m, BODY, "store"));
        replace(m, BODY, "cast", InstKind::Cast(store));
    }),
    ("a missing parameter", |m| {
        replace(m, F, "unary", InstKind::Unary(UnaryOp::Neg, Operand::Parameter(1)));
    }),
    ("a missing slot", |m| replace(m, BODY, "load", InstKind::Load(Operand::Slot(SlotId(9))))),
    ("a missing global", |m| {
        replace(m, BODY, "load", InstKind::Load(Operand::Global(GlobalId(9))));
    }),
    ("a missing kernel", |m| {
        replace(m, BODY, "cast", InstKind::Cast(Operand::Kernel(KernelId(9))));
    }),
    ("a branch on a number", |m| {
        let Terminator::Branch { condition, .. } = &mut m.functions[F].blocks[0].terminator else {
            panic!();
        };
        *condition = int(Scalar::I32, 1);
    }),
    ("no result", |m| m.functions[F].blocks[1].terminator = Terminator::Return(None)),
    ("a result of another type", |m| {
        let value = Operand::Const(Const::Bool(true));
        m.functions[F].blocks[1].terminator = Terminator::Return(Some(value));
    }),
    ("a result of a kernel", |m| {
        let value = int(Scalar::I32, 1);
        m.functions[ENTRY].blocks[0].terminator = Terminator::Return(Some(value));
    }),
    ("a constant that does not fit", |m| {
        replace(m, F, "unary", InstKind::Unary(UnaryOp::Neg, int(Scalar::U8, 256)));
    }),
    ("an integer constant of a float type", |m| {
        replace(m, F, "unary", InstKind::Unary(UnaryOp::Neg, int(Scalar::F32, 1)));
    }),
    ("a float that is not rounded", |m| {
        let value = Operand::Const(Const::Float(Scalar::F32, 0.1));
        add_inst(m, F, InstKind::Unary(UnaryOp::Neg, value), Type::F32);
    }),
    ("a load from a number", |m| {
        replace(m, BODY, "load", InstKind::Load(int(Scalar::U64, 16)));
    }),
    ("a load of another type", |m| first(m, BODY, "load").ty = Type::F64),
    ("a store of another type", |m| {
        let pointer = Operand::Slot(SlotId(0));
        replace(m, BODY, "store", InstKind::Store { pointer, value: int(Scalar::U32, 1) });
    }),
    ("`!` of a float", |m| {
        add_inst(m, F, InstKind::Unary(UnaryOp::Not, zero(Type::F32)), Type::F32);
    }),
    ("operands of two types", |m| {
        let (left, right) = (int(Scalar::I32, 1), int(Scalar::I64, 1));
        add_inst(m, F, InstKind::Binary(BinaryOp::Add, left, right), Type::I32);
    }),
    ("`&` of floats", |m| {
        let kind = InstKind::Binary(BinaryOp::And, zero(Type::F32), zero(Type::F32));
        add_inst(m, F, kind, Type::F32);
    }),
    ("a sum of structs", |m| {
        let kind = InstKind::Binary(BinaryOp::Add, zero(Type::DIM3), zero(Type::DIM3));
        add_inst(m, F, kind, Type::DIM3);
    }),
    ("a comparison that is not a bool", |m| first(m, F, "binary").ty = Type::I32),
    ("a division by zero", |m| {
        let kind = InstKind::Binary(BinaryOp::Rem, int(Scalar::U8, 1), int(Scalar::U8, 0));
        add_inst(m, F, kind, Type::Scalar(Scalar::U8));
    }),
    ("a division by -1", |m| {
        let kind = InstKind::Binary(BinaryOp::Div, int(Scalar::I8, 1), int(Scalar::I8, 255));
        add_inst(m, F, kind, Type::Scalar(Scalar::I8));
    }),
    ("a shift by the width", |m| {
        let kind = InstKind::Binary(BinaryOp::Shl, int(Scalar::I8, 1), int(Scalar::U64, 8));
        add_inst(m, F, kind, Type::Scalar(Scalar::I8));
    }),
    ("a cast of a struct", |m| {
        add_inst(m, F, InstKind::Cast(zero(Type::DIM3)), Type::U32);
    }),
    ("a pointer from 32 bits", |m| {
        add_inst(m, F, InstKind::Cast(int(Scalar::U32, 1)), Type::pointer_mut(Type::U32));
    }),
    ("a select of two types", |m| {
        let condition = Operand::Const(Const::Bool(true));
        let kind = InstKind::Select(condition, int(Scalar::I32, 1), zero(Type::F32));
        add_inst(m, F, kind, Type::I32);
    }),
    ("a missing field", |m| {
        let InstKind::FieldAddress { index, .. } = &mut first(m, BODY, "field_address").kind else {
            panic!();
        };
        *index = 2;
    }),
    ("the address of a field of another type", |m| {
        first(m, BODY, "field_address").ty = Type::pointer_mut(Type::F32);
    }),
    ("an index that is a float", |m| {
        let InstKind::ElementAddress { index, .. } = &mut first(m, BODY, "element_address").kind
        else {
            panic!();
        };
        *index = zero(Type::F32);
    }),
    ("an element of another type", |m| {
        first(m, BODY, "element_address").ty = Type::pointer_mut(Type::F32);
    }),
    ("a difference of two kinds of pointers", |m| {
        let InstKind::PointerDifference(_, right) = &mut first(m, BODY, "pointer_difference").kind
        else {
            panic!();
        };
        *right = Operand::Slot(SlotId(1));
    }),
    ("an offset that is not a pointer", |m| {
        let base = Operand::Slot(SlotId(0));
        add_inst(m, BODY, InstKind::ByteOffset { base, bytes: 4 }, Type::U64);
    }),
    ("an extract of a scalar", |m| {
        let kind = InstKind::Extract { base: int(Scalar::I32, 1), index: 0 };
        add_inst(m, F, kind, Type::I32);
    }),
    ("an aggregate of too few parts", |m| {
        let InstKind::Aggregate(parts) = &mut first(m, BODY, "aggregate").kind else {
            panic!();
        };
        parts.pop();
    }),
    ("an aggregate of other parts", |m| {
        let InstKind::Aggregate(parts) = &mut first(m, BODY, "aggregate").kind else {
            panic!();
        };
        parts[1] = int(Scalar::I32, 1);
    }),
    ("a call of nothing", |m| {
        replace(m, BODY, "call", InstKind::Call { function: FunctionId(9), arguments: vec![] });
    }),
    ("a call without its argument", |m| {
        replace(m, BODY, "call", InstKind::Call { function: FunctionId(0), arguments: vec![] });
    }),
    ("a call with another argument", |m| {
        let arguments = vec![zero(Type::F32)];
        replace(m, BODY, "call", InstKind::Call { function: FunctionId(0), arguments });
    }),
    ("a call of an entry", |m| {
        replace(m, BODY, "call", InstKind::Call { function: FunctionId(2), arguments: vec![] });
    }),
    ("a call of a body", |m| {
        replace(m, BODY, "call", InstKind::Call { function: FunctionId(1), arguments: vec![] });
    }),
    ("a call of a missing extern", |m| {
        let kind = InstKind::CallExtern { function: ExternId(0), arguments: vec![] };
        add_inst(m, F, kind, Type::Unit);
    }),
    ("an atomic on a pointer to floats", |m| {
        let arguments = vec![zero(Type::pointer_mut(Type::F32)), zero(Type::F32)];
        add_inst(
            m,
            F,
            call_builtin(Builtin::Atomic(AtomicOp::Or, crate::builtins::Scope::Device), arguments),
            Type::F32,
        );
    }),
    ("a shuffle of bytes", |m| {
        let arguments = vec![int(Scalar::U32, 1), int(Scalar::U8, 1), int(Scalar::U32, 1)];
        let shuffle = Builtin::Shuffle(ShuffleMode::Up);
        add_inst(m, F, call_builtin(shuffle, arguments), Type::Scalar(Scalar::U8));
    }),
    ("the sine of an integer", |m| {
        let arguments = vec![int(Scalar::I32, 1)];
        add_inst(m, F, call_builtin(Builtin::Math(MathOp::Sin), arguments), Type::I32);
    }),
    ("a fused multiply-add of two", |m| {
        let arguments = vec![zero(Type::F32), zero(Type::F32)];
        add_inst(m, F, call_builtin(Builtin::Math(MathOp::Fma), arguments), Type::F32);
    }),
    ("a print without a format", |m| {
        add_inst(m, F, call_builtin(Builtin::Printf, vec![]), Type::I32);
    }),
    ("a format that is not a string", |m| {
        let InstKind::Builtin { format, .. } = &mut first(m, BODY, "builtin").kind else {
            panic!();
        };
        *format = Some(GlobalId(0));
    }),
    ("a print of a byte", |m| {
        let InstKind::Builtin { arguments, .. } = &mut first(m, BODY, "builtin").kind else {
            panic!();
        };
        arguments[0] = int(Scalar::U8, 1);
    }),
    ("the hardware's geometry in a body", |m| {
        add_inst(m, BODY, InstKind::HardwareGeometry, Type::GEOMETRY);
    }),
    ("the hardware's geometry before launches are lowered", |m| {
        add_inst(m, F, InstKind::HardwareGeometry, Type::GEOMETRY);
    }),
    ("a launch of nothing", |m| launch_of(m).kernel = KernelId(9)),
    ("a launch of a number of blocks", |m| launch_of(m).grid = int(Scalar::U32, 1)),
    ("a launch with signed shared memory", |m| launch_of(m).shared = int(Scalar::I32, 1)),
    ("a launch into a number", |m| launch_of(m).stream = Stream::Value(int(Scalar::U64, 3))),
    ("a launch without its arguments", |m| launch_of(m).arguments.clear()),
    ("a launch with other arguments", |m| launch_of(m).arguments.swap(0, 1)),
    ("a plain launch with a status", |m| launch_of(m).is_try = false),
    ("a launch after the launch stage", |m| m.lowered = true),
    ("a launch from nowhere", |m| {
        first(m, BODY, "launch").span.file = crate::source::FileId(3);
    }),
];

fn launch_of(module: &mut Module) -> &mut super::super::Launch {
    match &mut first(module, BODY, "launch").kind {
        InstKind::Launch(launch) => launch,
        _ => panic!(),
    }
}

#[test]
fn every_broken_module_is_refused_for_its_reason() {
    let mut messages = String::new();
    for (what, break_it) in BREAKS {
        let mut module = sound();
        break_it(&mut module);
        let Err(Error::Internal { stage: "ir", message }) = verify(&module) else {
            panic!("{what}: the verifier accepts it");
        };
        messages += &format!("{what}\n    {message}\n");
        // Invalid modules can still be printed, for debugging.
        assert!(crate::ir::print::print(&module).starts_with("launches"));
    }
    insta::assert_snapshot!(messages);
}

#[test]
fn dominance_sees_through_loops() {
    // A value from the loop's head may be used in its body and after it, one from the body only in the body.
    let x = || local(0, Type::I32);
    let f = device("f", Type::I32).with(&[("x", Type::I32)]).body(vec![
        while_(binary(BinaryOp::Lt, x(), i32_(1)), vec![do_(unary(UnaryOp::Neg, x()))]),
        return_(x()),
    ]);
    let module = build(Structs::new(), vec![f]);
    let use_at_end = |kind| {
        let mut module = module.clone();
        let value = Operand::Inst(id(&mut module, F, kind));
        let is_bool = kind == "binary";
        let cast = InstKind::Cast(value);
        let function = &mut module.functions[F];
        let last = function.blocks.len() - 1;
        function.instructions.push(Inst { kind: cast, ty: Type::I64, span: line(1) });
        let new = InstId(function.instructions.len() as u32 - 1);
        function.blocks[last].instructions.push(new);
        assert_eq!(verify(&module).is_ok(), is_bool);
    };
    use_at_end("binary");
    use_at_end("unary");
}

#[test]
fn a_value_reaches_beyond_the_join_of_two_ways() {
    // In a loop: `f(-x, if x < 1 { f(x, x) } else { 2 })`; `-x` precedes the `if` and is used after it.
    let x = || local(0, Type::I32);
    let is_small = || binary(BinaryOp::Lt, x(), i32_(1));
    let then = value_block(call(0, vec![x(), x()], Type::I32));
    let chosen = if_(is_small(), then, Some(value_block(i32_(2))), Type::I32);
    let both = call(0, vec![unary(UnaryOp::Neg, x()), chosen], Type::I32);
    let f = device("f", Type::I32)
        .with(&[("x", Type::I32), ("y", Type::I32)])
        .body(vec![while_(is_small(), vec![do_(both)]), return_(x())]);
    build(Structs::new(), vec![f]);
}
