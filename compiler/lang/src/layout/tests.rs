use proptest::prelude::*;

use super::*;
use crate::check::tree::{ExprKind, Function, StatementKind, StreamExpr};
use crate::diagnostics::Diagnostic;
use crate::error::Error;
use crate::ir::testing::{
    FunctionParts, add_struct, address, array_of, build, call, device, do_, expr, kernel, launch,
    local, printf, shared, statement,
};
use crate::ir::{KernelId, Module, graph};
use crate::types::layout::SATURATED;
use crate::types::{Scalar, Structs};

const BYTE: Type = Type::Scalar(Scalar::I8);
const SHORT: Type = Type::Scalar(Scalar::I16);

fn of(ty: &Type) -> (u64, u64) {
    let layout = type_layout(ty, &Structs::new());
    (layout.size, layout.alignment)
}

#[test]
fn vectors_align_as_cuda_aligns_them() {
    let vector = |scalar, count| of(&Type::Vector(scalar, count));
    assert_eq!(vector(Scalar::U8, 2), (2, 2));
    assert_eq!(vector(Scalar::U8, 3), (3, 1));
    assert_eq!(vector(Scalar::U8, 4), (4, 4));
    assert_eq!(vector(Scalar::F32, 2), (8, 8));
    assert_eq!(vector(Scalar::F32, 3), (12, 4));
    assert_eq!(vector(Scalar::F32, 4), (16, 16));
    assert_eq!(vector(Scalar::F64, 2), (16, 16));
    assert_eq!(vector(Scalar::F64, 3), (24, 8));
    assert_eq!(vector(Scalar::F64, 4), (32, 16));
    assert_eq!(vector(Scalar::Bf16, 4), (8, 8));
}

#[test]
fn scalars_pointers_and_built_in_structs() {
    for scalar in Scalar::ALL {
        assert_eq!(of(&Type::Scalar(scalar)), (scalar.size(), scalar.size()));
    }
    assert_eq!(of(&Type::pointer_const(BYTE)), (8, 8));
    assert_eq!(of(&Type::Stream), (8, 8));
    assert_eq!(of(&Type::DIM3), (12, 4));
    assert_eq!(of(&Type::GEOMETRY), (56, 8));
    assert_eq!(of(&array_of(Type::Vector(Scalar::F32, 3), 5)), (60, 4));
    assert_eq!(of(&array_of(Type::F64, 0)), (0, 8));
}

/// The offsets that nvcc 13.0 computes for `(char, S12 {3 × int}, short, A16 {float4}, S24 {char, double,
/// short}, E {}, char)`.
#[test]
fn parameters_lie_where_nvcc_puts_them() {
    let mut structs = Structs::new();
    let s12 = add_struct(&mut structs, "S12", vec![Type::I32, Type::I32, Type::I32]);
    let a16 = add_struct(&mut structs, "A16", vec![Type::Vector(Scalar::F32, 4)]);
    let s24 = add_struct(&mut structs, "S24", vec![BYTE, Type::F64, SHORT]);
    let empty = add_struct(&mut structs, "E", vec![]);
    let types = [
        BYTE,
        Type::Struct(s12),
        SHORT,
        Type::Struct(a16),
        Type::Struct(s24),
        Type::Struct(empty),
        BYTE,
    ];
    let buffer = buffer_layout(&types, &structs);
    let offsets: Vec<u64> = buffer.slots.iter().map(|slot| slot.offset).collect();
    assert_eq!(offsets, [0, 4, 16, 32, 48, 72, 73]);
    assert_eq!((buffer.size, buffer.alignment), (74, 16));
    assert_eq!(type_layout(&Type::Struct(s24), &structs), TypeLayout { size: 24, alignment: 8 });
    assert_eq!([0, 1, 2, 3].map(|at| field_offset(s24, at, &structs)), [0, 8, 16, 24]);
}

#[test]
fn leaves_name_every_piece_with_its_path() {
    let mut structs = Structs::new();
    let inner = add_struct(&mut structs, "In", vec![BYTE, Type::Vector(Scalar::F32, 3)]);
    let outer = add_struct(&mut structs, "Out", vec![SHORT, array_of(Type::Struct(inner), 2)]);
    let found: Vec<_> = leaves(&Type::Struct(outer), &structs)
        .map(|leaf| (leaf.offset, leaf.ty.display(&structs).to_string(), leaf.path))
        .collect();
    let expected = [
        (0, "i16", vec![0]),
        (4, "i8", vec![1, 0, 0]),
        (8, "f32x3", vec![1, 0, 1]),
        (20, "i8", vec![1, 1, 0]),
        (24, "f32x3", vec![1, 1, 1]),
    ];
    assert_eq!(found, expected.map(|(offset, ty, path)| (offset, ty.to_string(), path)));
    let only: Vec<_> = leaves(&Type::U64, &structs).collect();
    assert_eq!(only, [Leaf { offset: 0, ty: Type::U64, path: vec![] }]);
}

#[test]
fn arrays_without_leaves_are_not_walked() {
    let mut structs = Structs::new();
    let empty = add_struct(&mut structs, "E", vec![]);
    let many = array_of(Type::Struct(empty), u64::MAX);
    assert_eq!(leaves(&many, &structs).next(), None);
    assert_eq!(leaves(&array_of(Type::U64, 0), &structs).next(), None);
    assert_eq!(leaves(&Type::Unit, &structs).next(), None);
}

#[test]
fn sizes_stop_growing_instead_of_overflowing() {
    let mut structs = Structs::new();
    let huge = array_of(array_of(Type::F64, u64::MAX), u64::MAX);
    let twice = add_struct(&mut structs, "Twice", vec![huge.clone(), huge.clone(), BYTE]);
    assert_eq!(type_layout(&huge, &structs).size, SATURATED);
    assert_eq!(type_layout(&Type::Struct(twice), &structs).size, SATURATED);
}

/// 50 structs, each twice in the next: without caching, this would not terminate.
#[test]
fn layouts_of_nested_structs_take_no_exponential_time() {
    let mut structs = Structs::new();
    let mut ty = BYTE;
    for _ in 0..50 {
        ty = Type::Struct(add_struct(&mut structs, "S", vec![ty.clone(), ty]));
    }
    assert_eq!(type_layout(&ty, &structs), TypeLayout { size: 1 << 50, alignment: 1 });
    assert_eq!(leaves(&ty, &structs).nth(2).map(|leaf| leaf.offset), Some(2));
}

fn program_errors(module: &Module) -> Vec<Diagnostic> {
    match compute_layouts(module) {
        Err(Error::Program(errors)) => errors,
        other => panic!("{other:?}"),
    }
}

/// All diagnostics as text: id, line, message, notes, hint.
fn shown(module: &Module, errors: &[Diagnostic]) -> String {
    let mut text = String::new();
    for error in errors {
        let line = module.sources.line(error.labels[0].span);
        text += &format!("line {line}: [{}] {}\n", error.id, error.message);
        for label in &error.labels {
            text += &format!("  at {}: {}\n", module.sources.line(label.span), label.message);
        }
        for part in error.notes.iter().chain(&error.hint) {
            text += &format!("{part}\n");
        }
    }
    text
}

fn wide_kernel(bytes: u64) -> Module {
    let parameters =
        [("flag", BYTE), ("data", array_of(Type::F32, bytes / 4 - 2)), ("n", Type::I32)];
    let pass = || {
        let parameters = parameters.iter().enumerate();
        parameters.map(|(at, (_, ty))| local(at as u32, ty.clone())).collect()
    };
    let wide = kernel("wide").with(&parameters).body(vec![
        do_(launch(40, 0, StreamExpr::Tail, pass(), false)),
        do_(launch(41, 0, StreamExpr::Default, pass(), true)),
    ]);
    build(Structs::new(), vec![wide])
}

#[test]
fn parameters_may_take_4096_bytes() {
    let layouts = compute_layouts(&wide_kernel(4096)).unwrap();
    let parameters = layouts.parameters(KernelId(0));
    assert_eq!((parameters.size, parameters.slots[2].offset), (4096, 4092));
}

#[test]
fn parameters_over_4096_bytes_are_an_error_at_the_kernel_and_at_each_launch() {
    let module = wide_kernel(4100);
    let errors = program_errors(&module);
    insta::assert_snapshot!(shown(&module, &errors));
}

#[test]
fn types_over_2_gigabytes_are_an_error() {
    let mut structs = Structs::new();
    let gigabyte = array_of(Type::U32, 1 << 28);
    add_struct(&mut structs, "Big", vec![gigabyte.clone(), gigabyte.clone(), BYTE]);
    let fine = device("fine", Type::Unit).with(&[("p", Type::pointer_mut(gigabyte.clone()))]);
    let huge = array_of(Type::F64, u64::MAX);
    let huge_local = device("huge_local", Type::Unit)
        .locals(&[("x", array_of(huge.clone(), 2))])
        .body(vec![do_(address(local(0, array_of(huge, 2))))]);
    let unused = kernel("unused").shared(&[("s", array_of(Type::U32, 1 << 40))]);
    let module = build(structs, vec![fine, huge_local, unused]);
    insta::assert_snapshot!(shown(&module, &program_errors(&module)));
}

fn uses_shared(name: &str, ty: Type, callees: &[u32]) -> Function {
    let calls = callees.iter().map(|callee| do_(call(*callee, vec![], Type::Unit)));
    let read = do_(shared(0, ty.clone()));
    let function = device(name, Type::Unit).shared(&[("s", ty)]);
    function.body(calls.chain([read]).collect())
}

#[test]
fn shared_memory_is_that_of_all_functions_in_reach() {
    let pointer = Type::pointer_mut(Type::F32);
    let dynamic = expr(ExprKind::DynamicShared, pointer);
    let functions = vec![
        uses_shared("one", BYTE, &[1]),
        uses_shared("other", Type::F64, &[0]),
        uses_shared("apart", array_of(Type::U32, 100), &[]),
        device("dynamic", Type::Unit).body(vec![statement(StatementKind::Expr(dynamic))]),
        kernel("both").body(vec![do_(call(1, vec![], Type::Unit)), do_(printf("text\n", vec![]))]),
        kernel("neither").body(vec![do_(launch(5, 4, StreamExpr::Tail, vec![], false))]),
        kernel("last").body(vec![do_(call(3, vec![], Type::Unit))]),
    ];
    let module = build(Structs::new(), functions);
    assert_eq!(static_shared_bytes(&module), [16, 0, 0]);
    assert_eq!(graph::uses_dynamic_shared(&module), [false, false, true]);
    assert_eq!(graph::launched(&module), [vec![], vec![KernelId(0)], vec![]]);
}

/// A type whose structs are not in a table yet.
#[derive(Clone, Debug)]
enum Shape {
    Scalar(Scalar),
    Vector(Scalar, u8),
    Array(Box<Shape>, u64),
    Struct(Vec<Shape>),
    Pointer,
}

fn shape() -> impl Strategy<Value = Shape> {
    let scalar = || prop::sample::select(Scalar::ALL.to_vec());
    let leaf = prop_oneof![
        scalar().prop_map(Shape::Scalar),
        (scalar(), 2..=4u8).prop_map(|(scalar, count)| Shape::Vector(scalar, count)),
        Just(Shape::Pointer),
    ];
    leaf.prop_recursive(3, 24, 5, |inner| {
        prop_oneof![
            (inner.clone(), 0..5u64).prop_map(|(element, n)| Shape::Array(Box::new(element), n)),
            prop::collection::vec(inner, 0..5).prop_map(Shape::Struct),
        ]
    })
}

fn intern(shape: Shape, structs: &mut Structs) -> Type {
    match shape {
        Shape::Scalar(scalar) => Type::Scalar(scalar),
        Shape::Vector(scalar, count) => Type::Vector(scalar, count),
        Shape::Array(element, count) => array_of(intern(*element, structs), count),
        Shape::Struct(fields) => {
            let fields = fields.into_iter().map(|field| intern(field, structs)).collect();
            Type::Struct(add_struct(structs, "S", fields))
        }
        Shape::Pointer => Type::pointer_mut(BYTE),
    }
}

proptest! {
    #[test]
    fn buffers_are_aligned_ordered_disjoint_and_minimal(
        shapes in prop::collection::vec(shape(), 0..8)
    ) {
        let mut structs = Structs::new();
        let types: Vec<Type> =
            shapes.into_iter().map(|shape| intern(shape, &mut structs)).collect();
        let buffer = buffer_layout(&types, &structs);
        prop_assert_eq!(buffer.slots.len(), types.len());
        let mut end = 0;
        for (slot, ty) in buffer.slots.iter().zip(&types) {
            let TypeLayout { size, alignment } = type_layout(ty, &structs);
            prop_assert_eq!((slot.size, slot.alignment), (size, alignment));
            prop_assert_eq!(slot.offset % alignment, 0);
            prop_assert!(slot.offset >= end);
            prop_assert!(slot.offset - end < alignment, "padding that no alignment asks for");
            end = slot.offset + slot.size;
        }
        prop_assert_eq!(buffer.size, end);
    }

    #[test]
    fn leaves_are_aligned_ordered_disjoint_and_inside(shape in shape()) {
        let mut structs = Structs::new();
        let ty = intern(shape, &mut structs);
        let whole = type_layout(&ty, &structs);
        prop_assert!(whole.alignment.is_power_of_two());
        prop_assert_eq!(whole.size % whole.alignment, 0);
        let mut end = 0;
        for leaf in leaves(&ty, &structs) {
            let TypeLayout { size, alignment } = type_layout(&leaf.ty, &structs);
            prop_assert_eq!(leaf.offset % alignment, 0);
            prop_assert!(leaf.offset >= end);
            prop_assert!(alignment <= whole.alignment);
            prop_assert_eq!(leaf.offset, offset_of_path(&ty, &leaf.path, &structs));
            end = leaf.offset + size;
        }
        prop_assert!(end <= whole.size);
    }
}

/// Follows a path with the functions for single parts.
fn offset_of_path(ty: &Type, path: &[u64], structs: &Structs) -> u64 {
    let Some((first, rest)) = path.split_first() else {
        return 0;
    };
    match ty {
        Type::Array(element, _) => {
            first * array_stride(element, structs) + offset_of_path(element, rest, structs)
        }
        Type::Struct(id) => {
            let field = &structs.get(*id).fields[*first as usize].ty;
            field_offset(*id, *first as u32, structs) + offset_of_path(field, rest, structs)
        }
        _ => panic!("a path into a leaf"),
    }
}
