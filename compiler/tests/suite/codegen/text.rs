//! Snapshots of generated LLVM modules.

use gridlet::arch::CudaArch;
use gridlet::builtins::{AtomicOp, Builtin, Scope};
use gridlet::codegen;
use gridlet::error::Error;
use gridlet::ir::{
    BinaryOp, Const, Extern, Global, GlobalId, Init, InstKind, KernelId, Launch, LaunchBounds,
    Module, Operand, Space, Stream, Terminator,
};
use gridlet::launch::{self, LaunchOptions, LaunchStrategy};
use gridlet::layout::compute_layouts;
use gridlet::ptx::{PtxOptions, nvptx};
use gridlet::types::{Field, Scalar, Struct, Structs, Type};
use inkwell::context::Context;

use super::ir::{Code, add, add_kernel, module};

fn text(module: &Module) -> String {
    let context = Context::create();
    match codegen::build_module(&context, module) {
        Ok(llvm) => llvm.print_to_string().to_string(),
        Err(error) => panic!("{error}"),
    }
}

fn structure(structs: &mut Structs, name: &str, fields: &[(&str, Type)]) -> Type {
    let fields =
        fields.iter().map(|(name, ty)| Field { name: (*name).into(), ty: ty.clone() }).collect();
    Type::Struct(structs.add(Struct { name: name.into(), fields, span: None }))
}

fn int(value: i128) -> Operand {
    Operand::Const(Const::Int(Scalar::U32, value))
}

fn extract(base: Operand, index: u32) -> InstKind {
    InstKind::Extract { base, index }
}

/// A struct by value, a loop over a slot, geometry, an element's address, launch bounds.
#[test]
fn a_kernel_with_a_loop() {
    let mut structs = Structs::new();
    let view = structure(
        &mut structs,
        "View",
        &[("on", Type::BOOL), ("scale", Type::F64), ("tint", Type::Vector(Scalar::F32, 3))],
    );
    let mut module = module("some/folder/loop.grid", structs);
    let out = Type::pointer_mut(Type::F64);
    let parameters = [("out", out.clone()), ("view", view), ("count", Type::U32)];
    let mut code = Code::device("fill", &parameters, Type::Unit);
    let index = code.slot("index", Type::U32);
    let (head, body, end) =
        (code.block("while.head"), code.block("while.body"), code.block("while.end"));
    let thread = code.emit(extract(Operand::Parameter(0), 0), Type::DIM3);
    let x = code.emit(extract(thread, 0), Type::U32);
    code.store(index.clone(), x);
    code.end(Terminator::Jump(head));

    code.enter(head);
    let now = code.emit(InstKind::Load(index.clone()), Type::U32);
    let condition =
        code.emit(InstKind::Binary(BinaryOp::Lt, now.clone(), Operand::Parameter(3)), Type::BOOL);
    code.end(Terminator::Branch { condition, then: body, otherwise: end });

    code.enter(body);
    let address = code
        .emit(InstKind::ElementAddress { base: Operand::Parameter(1), index: now.clone() }, out);
    let scale = code.emit(extract(Operand::Parameter(2), 1), Type::F64);
    code.store(address, scale);
    let next = code.emit(InstKind::Binary(BinaryOp::Add, now, int(1)), Type::U32);
    code.store(index, next);
    code.end(Terminator::Jump(head));

    code.enter(end);
    let bounds = LaunchBounds { max_threads: 128, min_blocks: Some(2) };
    add_kernel(&mut module, code.end_return(), Some(bounds));
    insta::assert_snapshot!(text(&module));
}

/// A kernel that launches itself and records lost launches, as lowered by the `launch` stage.
#[test]
fn a_lowered_launch() {
    let mut module = module("launch.grid", Structs::new());
    let pointer = Type::pointer_mut(Type::Scalar(Scalar::U8));
    let parameters = [("data", pointer), ("on", Type::BOOL), ("left", Type::I32)];
    let mut code = Code::device("sort", &parameters, Type::Unit);
    let one = code.emit(InstKind::Aggregate(vec![int(1), int(1), int(1)]), Type::DIM3);
    let launch = Launch {
        kernel: KernelId(0),
        grid: one.clone(),
        block: one,
        shared: int(0),
        stream: Stream::FireAndForget,
        arguments: (1..=3).map(Operand::Parameter).collect(),
        is_try: false,
    };
    code.emit(InstKind::Launch(Box::new(launch)), Type::Unit);
    add_kernel(&mut module, code.end_return(), None);
    module.lowered = false;

    let layouts = compute_layouts(&module).expect("layouts");
    let options = LaunchOptions::for_arch(LaunchStrategy::Cdp, CudaArch::DEFAULT);
    let module = launch::lower(&module, &layouts, &options).expect("a lowered module");
    insta::assert_snapshot!(text(&module));
    for arch in CudaArch::SUPPORTED {
        let context = Context::create();
        let llvm = codegen::build_module(&context, &module).expect("a module");
        let ptx = nvptx::compile(&llvm, None, arch, &PtxOptions::default()).expect("PTX").0;
        let call =
            "call.uni (retval0), cudaGetParameterBufferV2, (param0, param1, param2, param3);";
        assert!(ptx.contains(call), "{ptx}");
        assert!(ptx.contains(".param .align 4 .b8 \tparam1[12];"), "{ptx}");
    }
}

/// Device, shared and constant variables, and the dynamic shared memory.
#[test]
fn globals() {
    let mut module = module("globals.grid", Structs::new());
    let global = |name: &str, space, ty, init, exported| Global {
        name: name.into(),
        space,
        ty,
        init,
        exported,
        variable: None,
    };
    let words = Type::Array(Box::new(Type::U32), 4);
    module.globals = vec![
        global("__gridlet_lost_launches", Space::Device, words, Init::Zero, true),
        global("fill.partial", Space::Shared, Type::F64, Init::Unset, false),
        global("table", Space::Constant, Type::U32, Init::Bytes(vec![1, 2, 3, 4]), false),
    ];
    let mut code = Code::device("fill", &[], Type::Unit);
    let first = code.emit(
        InstKind::ElementAddress { base: Operand::Global(GlobalId(0)), index: int(1) },
        Type::pointer_mut(Type::U32),
    );
    let arguments = vec![first, int(1)];
    let builtin = Builtin::Atomic(AtomicOp::Add, Scope::Device);
    let old = code.emit(InstKind::Builtin { builtin, arguments, format: None }, Type::U32);
    let pointer = Type::pointer_mut(Type::Scalar(Scalar::U8));
    let dynamic = code.emit(extract(Operand::Parameter(0), 4), pointer.clone());
    let words = code.emit(InstKind::Cast(dynamic), Type::pointer_mut(Type::U32));
    let table = code.emit(InstKind::Load(Operand::Global(GlobalId(2))), Type::U32);
    let sum = code.emit(InstKind::Binary(BinaryOp::Add, old, table), Type::U32);
    code.store(words, sum);
    code.store(Operand::Global(GlobalId(1)), Operand::Const(Const::Float(Scalar::F64, 0.5)));
    add_kernel(&mut module, code.end_return(), None);
    insta::assert_snapshot!(text(&module));
}

/// Aggregates of every kind go through memory leaf by leaf; wide ones are copied.
#[test]
fn aggregates_in_memory() {
    let mut structs = Structs::new();
    let empty = structure(&mut structs, "Empty", &[]);
    let mixed = structure(
        &mut structs,
        "Mixed",
        &[
            ("flag", Type::BOOL),
            ("pair", Type::Vector(Scalar::F32, 2)),
            ("triple", Type::Vector(Scalar::U16, 3)),
            ("list", Type::Array(Box::new(Type::U32), 2)),
            ("nothing", empty),
        ],
    );
    let wide = Type::Array(Box::new(Type::F32), 100);
    let mut module = module("aggregates.grid", structs);
    let parameters = [
        ("from", Type::pointer_const(mixed.clone())),
        ("to", Type::pointer_mut(mixed.clone())),
        ("wide", wide.clone()),
        ("wide_to", Type::pointer_mut(wide)),
    ];
    let mut code = Code::device("copy", &parameters, Type::Unit);
    let value = code.emit(InstKind::Load(Operand::Parameter(1)), mixed);
    code.store(Operand::Parameter(2), value);
    code.store(Operand::Parameter(4), Operand::Parameter(3));
    add_kernel(&mut module, code.end_return(), None);
    insta::assert_snapshot!(text(&module));
}

/// One context may serve several modules, even if they define different structs with the same name.
#[test]
fn a_context_serves_two_modules() {
    let context = Context::create();
    for ty in [Type::F32, Type::U64, Type::F32] {
        let mut structs = Structs::new();
        let pair = structure(&mut structs, "Pair", &[("a", ty.clone()), ("b", ty)]);
        let mut module = module("pair.grid", structs);
        let pointer = Type::pointer_mut(pair.clone());
        let mut code = Code::device("swap", &[("a", pointer)], Type::Unit);
        let value = code.emit(InstKind::Load(Operand::Parameter(0)), pair);
        code.store(Operand::Parameter(0), value);
        add(&mut module, code.end_return());
        codegen::build_module(&context, &module).expect("a module");
    }
}

#[test]
fn a_program_may_not_take_cudas_names() {
    let mut module = module("names.grid", Structs::new());
    let vprintf = Code::device("vprintf", &[], Type::Unit);
    add_kernel(&mut module, vprintf.end_return(), None);
    module.externs.push(Extern {
        name: "vprintf".into(),
        parameters: vec![],
        result: Type::I32,
        span: None,
    });
    let context = Context::create();
    match codegen::build_module(&context, &module) {
        Err(Error::Invalid(message)) => assert!(message.contains("`vprintf`"), "{message}"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn gpu_functions_return_at_most_4096_bytes() {
    let array = |count| Type::Array(Box::new(Type::F64), count);
    for (count, fits) in [(512, true), (513, false)] {
        let mut structs = Structs::new();
        let field = Field { name: "all".into(), ty: array(count) };
        let id = structs.add(Struct { name: "Large".into(), fields: vec![field], span: None });
        let mut module = module("large.grid", structs);
        let k = Code::device("k", &[], Type::Unit);
        add_kernel(&mut module, k.end_return(), None);
        module.externs.push(Extern {
            name: "large".into(),
            parameters: vec![],
            result: Type::Struct(id),
            span: Some(gridlet::source::Span::new(gridlet::source::FileId(0), 0..1)),
        });
        let context = Context::create();
        match codegen::build_module(&context, &module) {
            Ok(_) => assert!(fits, "{count}"),
            Err(Error::Invalid(message)) => {
                assert!(!fits && message.contains("`large` returns 4104 bytes"), "{message}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn broken_ir_is_an_internal_error() {
    let mut unlowered = module("unlowered.grid", Structs::new());
    unlowered.lowered = false;
    let mut mistyped = module("mistyped.grid", Structs::new());
    let mut code = Code::device("f", &[("x", Type::F32)], Type::Unit);
    code.emit(InstKind::Load(Operand::Parameter(0)), Type::F32);
    add(&mut mistyped, code.end_return());
    let mut missing = module("missing.grid", Structs::new());
    let mut code = Code::device("f", &[], Type::Unit);
    code.store(Operand::Parameter(3), int(1));
    add(&mut missing, code.end_return());
    let mut unverified = module("unverified.grid", Structs::new());
    let mut code = Code::device("f", &[], Type::F32);
    code.end(Terminator::Return(Some(int(1))));
    add(&mut unverified, code.finish());

    let context = Context::create();
    for module in [unlowered, mistyped, missing, unverified] {
        let result = codegen::build_module(&context, &module);
        assert!(matches!(result, Err(Error::Internal { .. })), "{result:?}");
    }
}
