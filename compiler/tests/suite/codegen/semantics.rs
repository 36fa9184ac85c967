//! The results of generated code: functions without GPU intrinsics run on this processor, and are
//! compared with Rust.

use gridlet::codegen;
use gridlet::ir::{BinaryOp, Const, InstKind, Module, Operand, Terminator, UnaryOp};
use gridlet::types::{Field, Scalar, Struct, Structs, Type};
use inkwell::OptimizationLevel;
use inkwell::context::Context;
use inkwell::memory_buffer::MemoryBuffer;
use inkwell::module::{Linkage, Module as LlvmModule};
use inkwell::targets::{InitializationConfig, Target, TargetMachine};

use super::ir::{Code, add, module};

/// Models of PTX's `cvt.rzi`: it saturates, and makes NaN 0 if neither type has 64 bits and the highest bit otherwise.
macro_rules! model {
    ($from:ty, $to:ty) => {{
        extern "C" fn model(value: $from) -> $to {
            let is_narrow = <$from>::MANTISSA_DIGITS == 24 && <$to>::BITS == 32;
            if value.is_nan() && !is_narrow { 1 << (<$to>::BITS - 1) } else { value as $to }
        }
        model as extern "C" fn($from) -> $to as usize
    }};
}

/// The address of a model.
type Address = fn() -> usize;

/// The conversions by their names in LLVM, with the addresses of their models.
const CONVERSIONS: [(&str, Address); 8] = [
    ("f2i", || model!(f32, i32)),
    ("f2ui", || model!(f32, u32)),
    ("f2ll", || model!(f32, i64)),
    ("f2ull", || model!(f32, u64)),
    ("d2i", || model!(f64, i32)),
    ("d2ui", || model!(f64, u32)),
    ("d2ll", || model!(f64, i64)),
    ("d2ull", || model!(f64, u64)),
];

/// The address of a model of a conversion to 8 or 16 bits, which is assembly: by its type in PTX, with a register of 16 bits.
macro_rules! short_model {
    ($to:ty) => {{
        extern "C" fn model(value: f32) -> i16 {
            value as $to as i16
        }
        model as extern "C" fn(f32) -> i16 as usize
    }};
}

const SHORT_CONVERSIONS: [(&str, Address); 4] = [
    ("s8", || short_model!(i8)),
    ("u8", || short_model!(u8)),
    ("s16", || short_model!(i16)),
    ("u16", || short_model!(u16)),
];

/// A module in which calls of functions `model.TYPE` are in place of the assembly of [`SHORT_CONVERSIONS`].
fn without_assembly<'c>(context: &'c Context, llvm: &LlvmModule<'c>) -> LlvmModule<'c> {
    let mut text = llvm.print_to_string().to_string();
    for (name, _) in SHORT_CONVERSIONS {
        let assembly = format!(r#"asm "cvt.rzi.{name}.f32 $0, $1;", "=h,f""#);
        if text.contains(&assembly) {
            text = text.replace(&assembly, &format!("@model.{name}"));
            text += &format!("declare i16 @model.{name}(float)\n");
        }
    }
    let buffer = MemoryBuffer::create_from_memory_range_copy(text.as_bytes(), "models");
    context.create_module_from_ir(buffer).expect("a module")
}

/// Runs the module's first function, `run(input, output)`, for each input.
fn run<A: Copy, B: Copy + Default>(module: &Module, inputs: &[A]) -> Vec<B> {
    Target::initialize_native(&InitializationConfig::default()).expect("this processor");
    let context = Context::create();
    let llvm = codegen::build_module(&context, module).expect("a module");
    let llvm = without_assembly(&context, &llvm);
    llvm.get_function("own.run").expect("`run`").set_linkage(Linkage::External);
    llvm.set_triple(&TargetMachine::get_default_triple());
    let short_models = SHORT_CONVERSIONS
        .iter()
        .filter_map(|(name, model)| Some((llvm.get_function(&format!("model.{name}"))?, model())));
    let models: Vec<_> = CONVERSIONS
        .iter()
        .filter_map(|(name, model)| {
            let intrinsic = llvm.get_function(&format!("llvm.nvvm.{name}.rz"))?;
            let function = llvm.add_function(&format!("model.{name}"), intrinsic.get_type(), None);
            intrinsic.replace_all_uses_with(function);
            Some((function, model()))
        })
        .chain(short_models)
        .collect();
    let engine = llvm.create_jit_execution_engine(OptimizationLevel::None).expect("an engine");
    for (function, address) in models {
        engine.add_global_mapping(&function, address);
    }
    llvm.set_data_layout(&engine.get_target_data().get_data_layout());
    // SAFETY: `run` takes two pointers and returns nothing.
    let function = unsafe {
        engine.get_function::<unsafe extern "C" fn(*const A, *mut B)>("own.run").expect("`run`")
    };
    inputs
        .iter()
        .map(|input| {
            let mut output = B::default();
            // SAFETY: the function reads one `A` and writes one `B`.
            unsafe { function.call(input, &mut output) };
            output
        })
        .collect()
}

/// `run`, which loads a `from`, executes `body`, and stores a `to`.
fn function(
    structs: Structs,
    from: &Type,
    to: &Type,
    body: impl FnOnce(&mut Code, Operand) -> Operand,
) -> Module {
    let parameters =
        [("input", Type::pointer_const(from.clone())), ("output", Type::pointer_mut(to.clone()))];
    let mut code = Code::device("run", &parameters, Type::Unit);
    let value = code.emit(InstKind::Load(Operand::Parameter(0)), from.clone());
    let value = body(&mut code, value);
    code.store(Operand::Parameter(1), value);
    let mut module = module("run.grid", structs);
    add(&mut module, code.end_return());
    module
}

fn cast(from: Scalar, to: Scalar) -> Module {
    let (from, to) = (Type::Scalar(from), Type::Scalar(to));
    function(Structs::new(), &from, &to, |code, value| code.emit(InstKind::Cast(value), to.clone()))
}

/// Checks `$from as $to` for values around every bound of every type.
macro_rules! check_casts {
    ($from:ty, $scalar:expr, $values:expr => $($to:ty, $to_scalar:expr);+ $(;)?) => {
        let values: Vec<$from> = $values;
        $(
            let results: Vec<$to> = run(&cast($scalar, $to_scalar), &values);
            for (value, result) in values.iter().zip(results) {
                let expected = *value as $to;
                let same = result == expected || (expected != expected && result != result);
                let types = concat!(stringify!($from), " as ", stringify!($to));
                assert!(same, "{value:?}: {types} is {expected:?}, not {result:?}");
            }
        )+
    };
}

/// Checks casts from one type to all types.
macro_rules! check_casts_to_all {
    ($from:ty, $scalar:expr, $values:expr) => {
        check_casts!($from, $scalar, $values =>
            i8, Scalar::I8; i16, Scalar::I16; i32, Scalar::I32; i64, Scalar::I64;
            u8, Scalar::U8; u16, Scalar::U16; u32, Scalar::U32; u64, Scalar::U64;
            f32, Scalar::F32; f64, Scalar::F64);
    };
}

fn float_values() -> Vec<f64> {
    let mut values = vec![
        0.0,
        -0.0,
        0.4,
        -0.4,
        -0.99,
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        1e300,
        -1e300,
    ];
    for bits in [7, 8, 15, 16, 24, 31, 32, 53, 63, 64] {
        let power = f64::from(bits).exp2();
        for value in [power, power - 1.0, power - 0.5, power + 1.0, power * 1.5] {
            values.extend([value, -value]);
        }
    }
    values
}

fn int_values() -> Vec<i64> {
    let mut values = vec![0, 1, -1, 42, i64::MIN, i64::MAX, 0x0012_3456_789a_bcde];
    for bits in [7, 8, 15, 16, 24, 25, 31, 32, 53, 54, 62] {
        let power = 1_i64 << bits;
        for value in [power, power - 1, power + 1] {
            values.extend([value, -value]);
        }
    }
    values
}

#[test]
fn casts_match_rust() {
    let ints = int_values;
    check_casts_to_all!(f32, Scalar::F32, float_values().iter().map(|v| *v as f32).collect());
    check_casts_to_all!(f64, Scalar::F64, float_values());
    check_casts_to_all!(i8, Scalar::I8, ints().iter().map(|v| *v as i8).collect());
    check_casts_to_all!(i16, Scalar::I16, ints().iter().map(|v| *v as i16).collect());
    check_casts_to_all!(i32, Scalar::I32, ints().iter().map(|v| *v as i32).collect());
    check_casts_to_all!(i64, Scalar::I64, ints());
    check_casts_to_all!(u8, Scalar::U8, ints().iter().map(|v| *v as u8).collect());
    check_casts_to_all!(u16, Scalar::U16, ints().iter().map(|v| *v as u16).collect());
    check_casts_to_all!(u32, Scalar::U32, ints().iter().map(|v| *v as u32).collect());
    check_casts_to_all!(u64, Scalar::U64, ints().iter().map(|v| *v as u64).collect());
}

#[test]
fn bool_is_a_byte_of_0_or_1() {
    let values = [true, false];
    assert_eq!(run::<bool, u32>(&cast(Scalar::Bool, Scalar::U32), &values), [1, 0]);
    assert_eq!(run::<bool, f32>(&cast(Scalar::Bool, Scalar::F32), &values), [1.0, 0.0]);
    let not = function(Structs::new(), &Type::BOOL, &Type::BOOL, |code, value| {
        code.emit(InstKind::Unary(UnaryOp::Not, value), Type::BOOL)
    });
    assert_eq!(run::<bool, u8>(&not, &values), [0, 1]);
}

/// The bits of the `bf16` nearest to `value`, ties to even, found by exhaustive search.
fn nearest_bf16(value: f64) -> u16 {
    let to_f64 = |bits: u16| f64::from(f32::from_bits(u32::from(bits) << 16));
    // Infinity stands for the value after the largest finite one.
    let limit = |bits: u16| if bits == 0x7f80 { 128_f64.exp2() } else { to_f64(bits) };
    let sign = if value.is_sign_negative() { 0x8000 } else { 0 };
    let distance = |bits: u16| (limit(bits) - value.abs()).abs();
    let mut best = 0;
    for bits in 1..=0x7f80_u16 {
        let (new, old) = (distance(bits), distance(best));
        if new < old || (new == old && bits % 2 == 0) {
            best = bits;
        }
    }
    best | sign
}

#[test]
fn bf16_rounds_once_to_the_nearest() {
    let next = |value: f64, by: i64| f64::from_bits((value.to_bits() as i64 + by) as u64);
    let mut values = vec![0.0, -0.0, 1.0, -2.5, 1e-40, -1e-41, 3.38e38, 3.3961e38, 1e39, 1e-300];
    // Halfway between two bf16 values, or so close that f32 cannot tell the difference.
    for tie in [1.003_906_25, 1.011_718_75, -1.003_906_25, 9.219e-41] {
        values.extend([tie, next(tie, 1), next(tie, -1)]);
    }
    let results: Vec<u16> = run(&cast(Scalar::F64, Scalar::Bf16), &values);
    for (value, result) in values.iter().zip(results) {
        assert_eq!(result, nearest_bf16(*value), "{value:e}");
    }
    let nan: Vec<u16> = run(&cast(Scalar::F64, Scalar::Bf16), &[f64::NAN]);
    assert!(f32::from_bits(u32::from(nan[0]) << 16).is_nan());

    // 2^62 + 2^54 is a tie; one more is not, and neither f64 nor f32 can tell the difference.
    let tie = (1_i64 << 62) + (1 << 54);
    let ints = [0, 1, -1, 300, tie, tie + 1, tie - 1, -tie, -tie - 1, i64::MIN, i64::MAX];
    let results: Vec<u16> = run(&cast(Scalar::I64, Scalar::Bf16), &ints);
    let above = nearest_bf16(tie as f64) + 1;
    for (value, result) in ints.iter().zip(results) {
        let expected = match *value {
            value if value == tie + 1 => above,
            value if value == -tie - 1 => above | 0x8000,
            value => nearest_bf16(value as f64),
        };
        assert_eq!(result, expected, "{value}");
    }

    let wide: Vec<f64> = run(&cast(Scalar::Bf16, Scalar::F64), &[0x3f80_u16, 0xc020, 0x0001]);
    assert_eq!(wide, [1.0, -2.5, f64::from(f32::from_bits(0x0001_0000))]);
}

fn binary(op: BinaryOp, scalar: Scalar, result: Scalar) -> Module {
    let mut structs = Structs::new();
    let fields =
        ["left", "right"].map(|name| Field { name: name.into(), ty: Type::Scalar(scalar) });
    let pair = Struct { name: "Pair".into(), fields: fields.to_vec(), span: None };
    let pair = Type::Struct(structs.add(pair));
    function(structs, &pair, &Type::Scalar(result), |code, pair| {
        let [left, right] = [0, 1].map(|index| {
            code.emit(InstKind::Extract { base: pair.clone(), index }, Type::Scalar(scalar))
        });
        code.emit(InstKind::Binary(op, left, right), Type::Scalar(result))
    })
}

#[test]
fn division_and_shifts_know_signs() {
    let pairs = [(7, 2), (-7, 2), (7, -2), (i32::MIN, 2), (i32::MIN, i32::MIN)];
    let quotients: Vec<i32> = run(&binary(BinaryOp::Div, Scalar::I32, Scalar::I32), &pairs);
    assert_eq!(quotients, pairs.map(|(left, right)| left / right));
    let remainders: Vec<i32> = run(&binary(BinaryOp::Rem, Scalar::I32, Scalar::I32), &pairs);
    assert_eq!(remainders, pairs.map(|(left, right)| left % right));
    let pairs = [(7_u64, 2_u64), (u64::MAX, 10), (u64::MAX, u64::MAX)];
    let quotients: Vec<u64> = run(&binary(BinaryOp::Div, Scalar::U64, Scalar::U64), &pairs);
    assert_eq!(quotients, pairs.map(|(left, right)| left / right));
    let remainders: Vec<u64> = run(&binary(BinaryOp::Rem, Scalar::U64, Scalar::U64), &pairs);
    assert_eq!(remainders, pairs.map(|(left, right)| left % right));

    // The count may be wider or narrower than the shifted value.
    let shift = |op, count: Scalar| {
        let ty = Type::Scalar(Scalar::I16);
        function(Structs::new(), &ty, &ty, |code, value| {
            let count = Operand::Const(Const::Int(count, 15));
            code.emit(InstKind::Binary(op, value, count), ty.clone())
        })
    };
    for count in [Scalar::U8, Scalar::I64] {
        let left: Vec<i16> = run(&shift(BinaryOp::Shl, count), &[3_i16, -1]);
        assert_eq!(left, [i16::MIN, i16::MIN]);
        let right: Vec<i16> = run(&shift(BinaryOp::Shr, count), &[-3_i16, 3]);
        assert_eq!(right, [-1, 0]);
    }
}

#[test]
fn comparisons_know_signs_and_nan() {
    let less = |scalar| binary(BinaryOp::Lt, scalar, Scalar::Bool);
    assert_eq!(run::<_, bool>(&less(Scalar::I32), &[(-1_i32, 1_i32), (1, -1)]), [true, false]);
    let unsigned = [(u32::MAX, 1_u32), (1, u32::MAX)];
    assert_eq!(run::<_, bool>(&less(Scalar::U32), &unsigned), [false, true]);
    let floats = [(f32::NAN, 1_f32), (1.0, f32::NAN), (1.0, 2.0), (f32::NAN, f32::NAN)];
    assert_eq!(run::<_, bool>(&less(Scalar::F32), &floats), [false, false, true, false]);
    let unequal = binary(BinaryOp::Ne, Scalar::F32, Scalar::Bool);
    assert_eq!(run::<_, bool>(&unequal, &floats), [true, true, true, true]);
}

#[test]
fn pointers_count_in_elements() {
    // Three u16: an element size of six bytes, for which the division cannot be a shift.
    let triple = Type::Vector(Scalar::U16, 3);
    let pointer = Type::pointer_const(triple.clone());
    for index in [Scalar::I8, Scalar::I64] {
        let module = function(Structs::new(), &pointer, &Type::I64, |code, base| {
            let back = Operand::Const(Const::Int(index, -4));
            let there = code.emit(
                InstKind::ElementAddress { base: base.clone(), index: back },
                pointer.clone(),
            );
            let there = code.emit(
                InstKind::ElementAddress {
                    base: there,
                    index: Operand::Const(Const::Int(Scalar::U8, 255)),
                },
                pointer.clone(),
            );
            code.emit(InstKind::PointerDifference(there, base), Type::I64)
        });
        assert_eq!(run::<usize, i64>(&module, &[0x1_0000]), [251]);
    }
    let module = function(Structs::new(), &pointer, &Type::U64, |code, base| {
        let next = Operand::Const(Const::Int(Scalar::I32, 1));
        let next = code.emit(InstKind::ElementAddress { base, index: next }, pointer.clone());
        let lane = code.emit(
            InstKind::FieldAddress { base: next, index: 2 },
            Type::pointer_const(Type::Scalar(Scalar::U16)),
        );
        code.emit(InstKind::Cast(lane), Type::U64)
    });
    assert_eq!(run::<u64, u64>(&module, &[1000]), [1010]);
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Mixed {
    flag: bool,
    wide: f64,
    narrow: [u16; 3],
    last: u8,
}

fn mixed(structs: &mut Structs) -> Type {
    let field = |name: &str, ty| Field { name: name.into(), ty };
    let fields = vec![
        field("flag", Type::BOOL),
        field("wide", Type::F64),
        field("narrow", Type::Array(Box::new(Type::Scalar(Scalar::U16)), 3)),
        field("last", Type::Scalar(Scalar::U8)),
    ];
    Type::Struct(structs.add(Struct { name: "Mixed".into(), fields, span: None }))
}

#[test]
fn structs_are_laid_out_as_in_c() {
    let mut structs = Structs::new();
    let ty = mixed(&mut structs);
    let module = function(structs, &ty, &ty, |code, value| {
        let types = [
            Type::BOOL,
            Type::F64,
            Type::Array(Box::new(Type::Scalar(Scalar::U16)), 3),
            Type::Scalar(Scalar::U8),
        ];
        let mut parts: Vec<Operand> = types
            .into_iter()
            .enumerate()
            .map(|(index, ty)| {
                code.emit(InstKind::Extract { base: value.clone(), index: index as u32 }, ty)
            })
            .collect();
        parts[1] = Operand::Const(Const::Float(Scalar::F64, 2.5));
        code.emit(InstKind::Aggregate(parts), ty.clone())
    });
    let input = Mixed { flag: true, wide: 1.0, narrow: [7, 8, 9], last: 255 };
    assert_eq!(run::<Mixed, Mixed>(&module, &[input]), [Mixed { wide: 2.5, ..input }]);
}

/// A wide value does not change when its source does, through calls, selects and parts.
#[test]
fn wide_values_are_copies() {
    const COUNT: usize = 200;
    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Wide([u32; COUNT]);
    impl Default for Wide {
        fn default() -> Self {
            Wide([0; COUNT])
        }
    }
    let wide = Type::Array(Box::new(Type::U32), COUNT as u64);
    let mut structs = Structs::new();
    let fields = ["a", "b"].map(|name| Field { name: name.into(), ty: wide.clone() });
    let pair = Struct { name: "Pair".into(), fields: fields.to_vec(), span: None };
    let pair = Type::Struct(structs.add(pair));
    let mut module = function(structs, &wide, &wide, |code, value| {
        let call = |code: &mut Code, argument: Operand| {
            let function = gridlet::ir::FunctionId(1);
            let arguments = vec![argument];
            code.emit(InstKind::Call { function, arguments }, wide.clone())
        };
        let slot = code.slot("slot", wide.clone());
        code.store(slot.clone(), value.clone());
        let before = code.emit(InstKind::Load(slot.clone()), wide.clone());
        let zero = Operand::Const(Const::Zero(wide.clone()));
        code.store(slot, zero.clone());
        let parts = vec![zero, before];
        let both = code.emit(InstKind::Aggregate(parts), pair.clone());
        let second = code.emit(InstKind::Extract { base: both, index: 1 }, wide.clone());
        let same = call(code, second);
        let first = code.emit(InstKind::Extract { base: same.clone(), index: 0 }, Type::U32);
        let is_seven = code.emit(
            InstKind::Binary(BinaryOp::Eq, first, Operand::Const(Const::Int(Scalar::U32, 7))),
            Type::BOOL,
        );
        let zero = Operand::Const(Const::Zero(wide.clone()));
        code.emit(InstKind::Select(is_seven, same, zero), wide.clone())
    });
    let mut same = Code::device("same", &[("value", wide.clone())], wide);
    same.end(Terminator::Return(Some(Operand::Parameter(0))));
    add(&mut module, same.finish());

    let mut seven = Wide([3; COUNT]);
    seven.0[0] = 7;
    let results: Vec<Wide> = run(&module, &[seven, Wide([3; COUNT])]);
    assert_eq!(results, [seven, Wide::default()]);
}
