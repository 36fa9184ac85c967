//! Every built-in becomes its PTX instruction, on the oldest and the newest architecture.

use gridlet::arch::CudaArch;
use gridlet::builtins::{
    AtomicOp, BitOp, BlockReduceOp, Builtin, MathOp, Order, ReduceOp, Scope, ShuffleMode, VoteMode,
};
use gridlet::codegen;
use gridlet::error::Error;
use gridlet::ir::{Global, GlobalId, Init, InstKind, Operand, Space};
use gridlet::ptx::{PtxOptions, nvptx};
use gridlet::types::{Scalar, Structs, Type};
use inkwell::context::Context;

use super::ir::{Code, add_kernel, module};

const F16: Type = Type::Scalar(Scalar::F16);
const BF16: Type = Type::Scalar(Scalar::Bf16);

/// A kernel that passes its parameters to `builtin` and stores the result.
fn module_with(builtin: Builtin, arguments: &[Type], result: &Type) -> gridlet::ir::Module {
    let mut module = module("builtin.grid", Structs::new());
    let mut parameters = vec![("out", Type::pointer_mut(result.clone()))];
    parameters.extend(arguments.iter().map(|ty| ("argument", ty.clone())));
    let mut code = Code::device("k", &parameters, Type::Unit);
    let operands = (0..arguments.len() as u32).map(|at| Operand::Parameter(at + 2)).collect();
    let format = (builtin == Builtin::Printf).then(|| {
        module.globals.push(Global {
            name: ".str.0".into(),
            space: Space::Constant,
            ty: Type::Array(Box::new(Type::Scalar(Scalar::U8)), 4),
            init: Init::Bytes(b"%d\n\0".to_vec()),
            exported: false,
            variable: None,
        });
        GlobalId(0)
    });
    let value =
        code.emit(InstKind::Builtin { builtin, arguments: operands, format }, result.clone());
    if *result != Type::Unit {
        code.store(Operand::Parameter(1), value);
    }
    add_kernel(&mut module, code.end_return(), None);
    module
}

fn compile(module: &gridlet::ir::Module, arch: &str) -> Result<String, Error> {
    let context = Context::create();
    let llvm = codegen::build_module(&context, module)?;
    let arch: CudaArch = arch.parse().expect("a known architecture");
    Ok(nvptx::compile(&llvm, None, arch, &PtxOptions::default())?.0)
}

/// Checks that the PTX for four architectures has `instructions`.
fn check(builtin: Builtin, arguments: &[Type], result: Type, instructions: &[&str]) {
    let module = module_with(builtin, arguments, &result);
    for arch in ["sm_75", "sm_90", "sm_100", "sm_120"] {
        let ptx = compile(&module, arch)
            .unwrap_or_else(|error| panic!("{} for {arch}: {error}", builtin.name()));
        assert!(ptx.contains(&format!(".target {arch}\n")), "{ptx}");
        for instruction in instructions {
            let name = builtin.name();
            assert!(ptx.contains(instruction), "`{name}`: no `{instruction}` for {arch} in\n{ptx}");
        }
    }
}

const UNIT: Type = Type::Unit;
const I32: Type = Type::I32;
const U32: Type = Type::U32;
const I64: Type = Type::I64;
const U64: Type = Type::U64;
const F32: Type = Type::F32;
const F64: Type = Type::F64;

#[test]
fn barriers_and_fences() {
    check(Builtin::SyncThreads, &[], UNIT, &["bar.sync \t0;"]);
    check(Builtin::SyncWarp, &[U32], UNIT, &["bar.warp.sync"]);
    check(Builtin::Fence(Scope::Block), &[], UNIT, &["membar.cta;"]);
    check(Builtin::Fence(Scope::Device), &[], UNIT, &["membar.gl;"]);
    check(Builtin::Fence(Scope::System), &[], UNIT, &["membar.sys;"]);
}

#[test]
fn shuffles_move_32_bits_at_a_time() {
    let modes = [
        (ShuffleMode::Index, "shfl.sync.idx.b32", "31, "),
        (ShuffleMode::Up, "shfl.sync.up.b32", "0, "),
        (ShuffleMode::Down, "shfl.sync.down.b32", "31, "),
        (ShuffleMode::Xor, "shfl.sync.bfly.b32", "31, "),
    ];
    for (mode, instruction, clamp) in modes {
        for ty in [I32, U32, F32, I64, U64, F64, Type::pointer_mut(F32)] {
            check(
                Builtin::Shuffle(mode),
                &[U32, ty.clone(), U32],
                ty.clone(),
                &[instruction, clamp],
            );
        }
    }
    let module = module_with(Builtin::Shuffle(ShuffleMode::Down), &[U32, F64, U32], &F64);
    let ptx = compile(&module, "sm_90").expect("PTX");
    assert_eq!(ptx.matches("shfl.sync.down.b32").count(), 2, "{ptx}");
}

#[test]
fn votes_and_lanes() {
    check(Builtin::Vote(VoteMode::Ballot), &[U32, Type::BOOL], U32, &["vote.sync.ballot.b32"]);
    check(Builtin::Vote(VoteMode::Any), &[U32, Type::BOOL], Type::BOOL, &["vote.sync.any.pred"]);
    check(Builtin::Vote(VoteMode::All), &[U32, Type::BOOL], Type::BOOL, &["vote.sync.all.pred"]);
    check(Builtin::ActiveMask, &[], U32, &["activemask.b32"]);
    check(Builtin::LaneId, &[], U32, &["%laneid"]);
    check(Builtin::SmId, &[], U32, &["%smid"]);
}

#[test]
fn atomics_are_relaxed_and_of_device_scope() {
    let both = |op, signed: [&'static str; 2], unsigned: [&'static str; 2]| {
        for (ty, instruction) in
            [(I32, signed[0]), (I64, signed[1]), (U32, unsigned[0]), (U64, unsigned[1])]
        {
            let pointer = Type::pointer_mut(ty.clone());
            let instruction = format!("atom.global.{instruction} ");
            check(Builtin::Atomic(op, Scope::Device), &[pointer, ty.clone()], ty, &[&instruction]);
        }
    };
    both(AtomicOp::Add, ["add.u32", "add.u64"], ["add.u32", "add.u64"]);
    both(AtomicOp::Sub, ["add.u32", "add.u64"], ["add.u32", "add.u64"]);
    both(AtomicOp::Min, ["min.s32", "min.s64"], ["min.u32", "min.u64"]);
    both(AtomicOp::Max, ["max.s32", "max.s64"], ["max.u32", "max.u64"]);
    both(AtomicOp::And, ["and.b32", "and.b64"], ["and.b32", "and.b64"]);
    both(AtomicOp::Or, ["or.b32", "or.b64"], ["or.b32", "or.b64"]);
    both(AtomicOp::Xor, ["xor.b32", "xor.b64"], ["xor.b32", "xor.b64"]);
    both(AtomicOp::Exch, ["exch.b32", "exch.b64"], ["exch.b32", "exch.b64"]);
    for (ty, add, exchange) in [
        (F32, "atom.global.add.f32", "atom.global.exch.b32"),
        (F64, "atom.global.add.f64", "atom.global.exch.b64"),
    ] {
        let arguments = [Type::pointer_mut(ty.clone()), ty.clone()];
        check(Builtin::Atomic(AtomicOp::Add, Scope::Device), &arguments, ty.clone(), &[add]);
        check(Builtin::Atomic(AtomicOp::Exch, Scope::Device), &arguments, ty, &[exchange]);
    }
    for (ty, bits) in [(I32, "b32"), (U32, "b32"), (I64, "b64"), (U64, "b64")] {
        let arguments = [Type::pointer_mut(ty.clone()), ty.clone(), ty.clone()];
        let instruction = format!("atom.relaxed.gpu.global.cas.{bits}");
        check(Builtin::AtomicCas(Scope::Device), &arguments, ty, &[&instruction]);
    }
}

#[test]
fn atomics_have_the_scope_that_they_say() {
    let pointer = Type::pointer_mut(U32);
    for (scope, cas) in [
        (Scope::Block, "atom.cta.global.cas.b32"),
        (Scope::Device, "atom.relaxed.gpu.global.cas.b32"),
        (Scope::System, "atom.sys.global.cas.b32"),
    ] {
        check(Builtin::AtomicCas(scope), &[pointer.clone(), U32, U32], U32, &[cas]);
    }
    for (op, ty, instruction) in [
        (AtomicOp::Add, I32, "add.u32"),
        (AtomicOp::Add, F64, "add.f64"),
        (AtomicOp::Sub, U64, "add.u64"),
        (AtomicOp::Min, I64, "min.s64"),
        (AtomicOp::Max, U32, "max.u32"),
        (AtomicOp::And, U32, "and.b32"),
        (AtomicOp::Or, U64, "or.b64"),
        (AtomicOp::Xor, I32, "xor.b32"),
        (AtomicOp::Exch, F32, "exch.b32"),
    ] {
        for (scope, word) in [(Scope::Block, "cta"), (Scope::System, "sys")] {
            let arguments = [Type::pointer_mut(ty.clone()), ty.clone()];
            let instruction = format!("atom.{word}.global.{instruction}");
            check(Builtin::Atomic(op, scope), &arguments, ty.clone(), &[&instruction]);
        }
    }
}

#[test]
fn atomic_accesses_have_the_order_and_the_scope_that_they_say() {
    let scopes = [(Scope::Block, "cta"), (Scope::Device, "gpu"), (Scope::System, "sys")];
    for (ty, bits) in [(U32, "b32"), (F32, "b32"), (I64, "b64"), (F64, "b64")] {
        let from = Type::pointer_const(ty.clone());
        for (order, word) in [(Order::Relaxed, "relaxed"), (Order::Acquire, "acquire")] {
            for (scope, of) in scopes {
                let load = Builtin::AtomicLoad(order, scope);
                let instruction = format!("ld.{word}.{of}.global.{bits}");
                check(load, std::slice::from_ref(&from), ty.clone(), &[&instruction]);
            }
        }
        let to = Type::pointer_mut(ty.clone());
        for (order, word) in [(Order::Relaxed, "relaxed"), (Order::Release, "release")] {
            for (scope, of) in scopes {
                let store = Builtin::AtomicStore(order, scope);
                let instruction = format!("st.{word}.{of}.global.{bits}");
                check(store, &[to.clone(), ty.clone()], UNIT, &[&instruction]);
            }
        }
    }
}

#[test]
fn barriers_reduce() {
    for (op, ty, instruction) in [
        (BlockReduceOp::Count, U32, "barrier.red.popc.aligned.u32"),
        (BlockReduceOp::And, Type::BOOL, "barrier.red.and.aligned.pred"),
        (BlockReduceOp::Or, Type::BOOL, "barrier.red.or.aligned.pred"),
    ] {
        check(Builtin::SyncThreadsReduce(op), &[Type::BOOL], ty, &[instruction]);
    }
}

#[test]
fn lanes_match_by_their_bits() {
    for (ty, bits) in [(I32, "b32"), (F32, "b32"), (U64, "b64"), (F64, "b64")] {
        let instruction = format!("match.any.sync.{bits}");
        check(Builtin::MatchAny, &[U32, ty], U32, &[&instruction]);
    }
}

#[test]
fn warps_reduce_integers_by_redux() {
    for (op, signed, unsigned) in [
        (ReduceOp::Add, "add.s32", "add.s32"),
        (ReduceOp::Min, "min.s32", "min.u32"),
        (ReduceOp::Max, "max.s32", "max.u32"),
        (ReduceOp::And, "and.b32", "and.b32"),
        (ReduceOp::Or, "or.b32", "or.b32"),
        (ReduceOp::Xor, "xor.b32", "xor.b32"),
    ] {
        for (ty, instruction) in [(I32, signed), (U32, unsigned)] {
            let module = module_with(Builtin::Reduce(op), &[U32, ty.clone()], &ty);
            let ptx = compile(&module, "sm_80").expect("PTX");
            assert!(ptx.contains(&format!("redux.sync.{instruction}")), "{instruction}:\n{ptx}");
        }
    }
    let module = module_with(Builtin::Reduce(ReduceOp::Add), &[U32, F32], &F32);
    assert!(matches!(compile(&module, "sm_80"), Err(Error::Internal { .. })));
}

#[test]
fn high_halves_are_one_instruction() {
    for (ty, instruction) in
        [(I32, "mul.hi.s32"), (U32, "mul.hi.u32"), (I64, "mul.hi.s64"), (U64, "mul.hi.u64")]
    {
        check(Builtin::MulHi, &[ty.clone(), ty.clone()], ty, &[instruction]);
    }
}

#[test]
fn bits_are_seen_as_another_type() {
    let vector = |scalar, count| Type::Vector(scalar, count);
    for (from, to) in [
        (F32, U32),
        (I64, F64),
        (vector(Scalar::F32, 2), U64),
        (vector(Scalar::F32, 3), vector(Scalar::U32, 3)),
        (vector(Scalar::Bf16, 4), vector(Scalar::F16, 4)),
        (U32, vector(Scalar::U8, 4)),
    ] {
        check(Builtin::Bitcast, &[from], to, &[]);
    }
}

#[test]
fn heap_and_assertions_are_calls() {
    let string = Type::pointer_const(Type::Scalar(Scalar::U8));
    check(Builtin::Malloc, &[U64], Type::pointer_mut(Type::Scalar(Scalar::U8)), &["malloc"]);
    check(Builtin::Free, &[Type::pointer_mut(Type::Scalar(Scalar::U8))], UNIT, &["free"]);
    let arguments = [string.clone(), string.clone(), U32, string];
    check(Builtin::Assert, &arguments, UNIT, &["__assertfail"]);
}

#[test]
fn bit_operations() {
    check(Builtin::Bit(BitOp::Popc), &[U32], U32, &["popc.b32"]);
    check(Builtin::Bit(BitOp::Popc), &[I64], U32, &["popc.b64"]);
    check(Builtin::Bit(BitOp::Clz), &[I32], U32, &["clz.b32"]);
    check(Builtin::Bit(BitOp::Clz), &[U64], U32, &["clz.b64"]);
    check(Builtin::Bit(BitOp::Ctz), &[U32], U32, &["popc.b32"]);
    check(Builtin::Bit(BitOp::Ctz), &[U64], U32, &["popc.b64"]);
    check(Builtin::Bit(BitOp::Brev), &[I32], I32, &["brev.b32"]);
    check(Builtin::Bit(BitOp::Brev), &[U64], U64, &["brev.b64"]);
}

#[test]
fn exact_mathematics_needs_no_library() {
    let exact = [
        (MathOp::Abs, 1, ["abs.f32", "abs.f64"]),
        (MathOp::Min, 2, ["min.f32", "min.f64"]),
        (MathOp::Max, 2, ["max.f32", "max.f64"]),
        (MathOp::Sqrt, 1, ["sqrt.rn.f32", "sqrt.rn.f64"]),
        (MathOp::Floor, 1, ["cvt.rmi.f32.f32", "cvt.rmi.f64.f64"]),
        (MathOp::Ceil, 1, ["cvt.rpi.f32.f32", "cvt.rpi.f64.f64"]),
        (MathOp::Fma, 3, ["fma.rn.f32", "fma.rn.f64"]),
    ];
    for (op, count, [single, double]) in exact {
        check(Builtin::Math(op), &vec![F32; count], F32, &[single]);
        check(Builtin::Math(op), &vec![F64; count], F64, &[double]);
    }
    check(Builtin::Math(MathOp::Min), &[I32, I32], I32, &["min.s32"]);
    check(Builtin::Math(MathOp::Max), &[U64, U64], U64, &["max.u64"]);
    check(Builtin::Math(MathOp::Abs), &[I64], I64, &["neg.s64"]);
}

#[test]
fn other_mathematics_is_libdevice() {
    let exact = [
        MathOp::Abs,
        MathOp::Min,
        MathOp::Max,
        MathOp::Sqrt,
        MathOp::Floor,
        MathOp::Ceil,
        MathOp::Fma,
    ];
    let context = Context::create();
    // `ir::build` expresses these through other operations.
    let made = [MathOp::Clamp, MathOp::Saturate];
    for (op, name, count) in MathOp::all().filter(|(op, ..)| !made.contains(op)) {
        for (ty, suffix) in [(F32, "f"), (F64, "")] {
            let module = module_with(Builtin::Math(op), &vec![ty.clone(); count], &ty);
            let llvm = codegen::build_module(&context, &module).expect("a module");
            let is_exact = exact.contains(&op);
            assert_eq!(codegen::uses_libdevice(&llvm), !is_exact, "{name}");
            let function = llvm.get_function(&format!("__nv_{name}{suffix}"));
            assert_eq!(function.is_some(), !is_exact, "{name}");
        }
    }
    let module = module_with(Builtin::Math(MathOp::Sin), &[F32], &F32);
    assert!(matches!(compile(&module, "sm_90"), Err(Error::Missing { .. })));
}

#[test]
fn timer_reads_are_not_moved() {
    check(Builtin::Clock64, &[], U64, &["mov.u64 %rd1, %clock64;"]);
    check(Builtin::GlobalTimer, &[], U64, &["mov.u64 %rd1, %globaltimer;"]);
    let mut module = module("clock.grid", Structs::new());
    let mut code = Code::device("k", &[("out", Type::pointer_mut(U64))], Type::Unit);
    let clock = InstKind::Builtin { builtin: Builtin::Clock64, arguments: vec![], format: None };
    for _ in 0..2 {
        let now = code.emit(clock.clone(), U64);
        code.store(Operand::Parameter(1), now);
    }
    add_kernel(&mut module, code.end_return(), None);
    let ptx = compile(&module, "sm_90").expect("PTX");
    assert_eq!(ptx.matches("%clock64").count(), 2, "{ptx}");
}

#[test]
fn printf_and_trap() {
    check(Builtin::Trap, &[], UNIT, &["trap;"]);
    check(Builtin::Printf, &[], I32, &["vprintf"]);
    // An i32 at 0, an f64 at 8 and a pointer at 16, as in C.
    let arguments = [I32, F64, Type::pointer_const(F32)];
    let stores =
        ["st.local.b32 \t[%rd5],", "st.local.b64 \t[%rd5+8],", "st.local.b64 \t[%rd5+16],"];
    check(Builtin::Printf, &arguments, I32, &["vprintf", "__local_depot0[24]"]);
    let module = module_with(Builtin::Printf, &arguments, &I32);
    let ptx = compile(&module, "sm_90").expect("PTX");
    for store in stores {
        assert!(ptx.contains(store), "no `{store}` in\n{ptx}");
    }
}

#[test]
fn narrow_floats_are_parameters_of_two_bytes() {
    for ty in [F16, BF16] {
        let mut module = module("narrow.grid", Structs::new());
        let parameters = [("out", Type::pointer_mut(ty.clone())), ("value", ty.clone())];
        let mut code = Code::device("k", &parameters, Type::Unit);
        let (left, right) = (Operand::Parameter(2), Operand::Parameter(2));
        let sum = code.emit(InstKind::Binary(gridlet::ir::BinaryOp::Add, left, right), ty);
        code.store(Operand::Parameter(1), sum);
        add_kernel(&mut module, code.end_return(), None);
        for arch in ["sm_75", "sm_120"] {
            let ptx = compile(&module, arch).expect("PTX");
            let is_two_bytes = ptx.contains(".param .align 2 .b8 k_param_1[2]")
                || ptx.contains(".param .u16 k_param_1");
            assert!(is_two_bytes, "{ptx}");
        }
    }
}

/// No caller passes an `i1` parameter.
#[test]
fn bool_is_a_parameter_of_one_byte() {
    let mut module = module("bool.grid", Structs::new());
    let parameters = [("out", Type::pointer_mut(Type::BOOL)), ("on", Type::BOOL)];
    let mut code = Code::device("k", &parameters, Type::Unit);
    let not = InstKind::Unary(gridlet::ir::UnaryOp::Not, Operand::Parameter(2));
    let not = code.emit(not, Type::BOOL);
    code.store(Operand::Parameter(1), not);
    add_kernel(&mut module, code.end_return(), None);
    let context = Context::create();
    let llvm = codegen::build_module(&context, &module).expect("a module");
    let entry = llvm.get_function("k").expect("the entry");
    let parameter = entry.get_nth_param(1).expect("a parameter").get_type();
    assert_eq!(parameter, context.i8_type().into());
    let ptx = compile(&module, "sm_90").expect("PTX");
    assert!(ptx.contains(".param .u8 k_param_1"), "{ptx}");
    assert!(ptx.contains("st.global.b8"), "{ptx}");
}
