//! Random parameter types, and what each of Gridlet's and CUDA's languages calls them.

use gridlet::ir::Parameter;
use gridlet::types::{Field, Scalar, Struct, StructId, Structs, Type};
use proptest::prelude::*;

/// A type without names: structs are written out.
#[derive(Clone, Debug)]
pub(crate) enum Shape {
    /// A scalar.
    Scalar(Scalar),
    /// A vector of 2 to 4.
    Vector(Scalar, u8),
    /// A pointer.
    Pointer,
    /// A stream handle.
    Stream,
    /// An array.
    Array(Box<Shape>, u64),
    /// A struct.
    Struct(Vec<Shape>),
}

/// The parameters of one kernel.
pub(crate) type Signature = Vec<Shape>;

/// Most bytes that a signature takes.
const LIMIT_BYTES: u64 = 4096;

/// Where shapes come from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Family {
    /// All that the language has.
    Gridlet,
    /// What CUDA C++ has a type for, too: its headers have no vectors of 3 or 4 of `__half` and
    /// `__nv_bfloat16`.
    Cuda,
}

fn scalar() -> impl Strategy<Value = Scalar> {
    proptest::sample::select(&Scalar::ALL[..])
}

fn vector(family: Family) -> impl Strategy<Value = Shape> {
    let has = move |(scalar, count): &(Scalar, u8)| {
        let half = matches!(scalar, Scalar::F16 | Scalar::Bf16);
        *scalar != Scalar::Bool && !(family == Family::Cuda && half && *count != 2)
    };
    (scalar(), 2..=4_u8)
        .prop_filter("a vector that there is", has)
        .prop_map(|(scalar, count)| Shape::Vector(scalar, count))
}

/// Any type. Nested four deep at most; now and then an array of hundreds.
pub(crate) fn shape(family: Family) -> impl Strategy<Value = Shape> {
    let leaf = prop_oneof![
        6 => scalar().prop_map(Shape::Scalar),
        4 => vector(family),
        1 => Just(Shape::Pointer),
        1 => Just(Shape::Stream),
    ];
    leaf.prop_recursive(4, 24, 6, move |inner| {
        let long = prop_oneof![scalar().prop_map(Shape::Scalar), vector(family)];
        prop_oneof![
            4 => proptest::collection::vec(inner.clone(), 0..6).prop_map(Shape::Struct),
            2 => (inner, 1..6_u64).prop_map(|(element, count)| Shape::Array(Box::new(element), count)),
            1 => (long, 1..600_u64).prop_map(|(element, count)| Shape::Array(Box::new(element), count)),
        ]
    })
}

/// The parameters of a kernel, cut where they would pass the limit.
pub(crate) fn signature(family: Family) -> impl Strategy<Value = Signature> {
    proptest::collection::vec(shape(family), 0..14).prop_map(move |mut shapes| {
        if family == Family::Cuda {
            // As a parameter, an array of C++ is a pointer.
            for shape in shapes.iter_mut().filter(|shape| matches!(shape, Shape::Array(..))) {
                *shape = Shape::Struct(vec![shape.clone()]);
            }
        }
        let mut bytes = 0;
        // An upper bound: as if each parameter needed the most padding there is.
        shapes.retain(|shape| {
            let most = shape.most_bytes() + 15;
            let fits = bytes + most <= LIMIT_BYTES;
            bytes += if fits { most } else { 0 };
            fits
        });
        shapes
    })
}

impl Shape {
    /// At least its size, counted without the layout pass, which is under test.
    fn most_bytes(&self) -> u64 {
        match self {
            Shape::Scalar(scalar) => scalar.size(),
            Shape::Vector(scalar, count) => scalar.size() * u64::from(*count),
            Shape::Pointer | Shape::Stream => 8,
            Shape::Array(element, count) => {
                // An array's elements pad less than 16 bytes each, and those of scalars not at all.
                let padding = if matches!(**element, Shape::Struct(_)) { 15 } else { 0 };
                (element.most_bytes() + padding) * count
            }
            Shape::Struct(fields) => {
                16 + fields.iter().map(|field| field.most_bytes() + 15).sum::<u64>()
            }
        }
    }

    /// As a type of the language; structs are added to the table.
    pub(crate) fn to_type(&self, structs: &mut Structs) -> Type {
        match self {
            Shape::Scalar(scalar) => Type::Scalar(*scalar),
            Shape::Vector(scalar, count) => Type::Vector(*scalar, *count),
            Shape::Pointer => Type::pointer_mut(Type::F32),
            Shape::Stream => Type::Stream,
            Shape::Array(element, count) => Type::Array(Box::new(element.to_type(structs)), *count),
            Shape::Struct(shapes) => {
                let types: Vec<Type> = shapes.iter().map(|shape| shape.to_type(structs)).collect();
                let fields = types
                    .into_iter()
                    .enumerate()
                    .map(|(at, ty)| Field { name: format!("f{at}"), ty });
                let name = format!("S{}", structs.len());
                Type::Struct(structs.add(Struct { name, fields: fields.collect(), span: None }))
            }
        }
    }
}

/// A signature as parameters `p0`, `p1`, ….
pub(crate) fn parameters(signature: &Signature, structs: &mut Structs) -> Vec<Parameter> {
    let types: Vec<Type> = signature.iter().map(|shape| shape.to_type(structs)).collect();
    types.into_iter().enumerate().map(|(at, ty)| Parameter { name: format!("p{at}"), ty }).collect()
}

/// A signature with its structs written out, for messages.
pub(crate) fn describe(parameters: &[Parameter], structs: &Structs) -> String {
    let mut seen = Vec::new();
    for parameter in parameters {
        collect_structs(&parameter.ty, structs, &mut seen);
    }
    let list = |parts: Vec<String>| parts.join(", ");
    let mut text = String::new();
    for id in seen {
        let item = structs.get(id);
        let fields = item
            .fields
            .iter()
            .map(|field| format!("{}: {}", field.name, field.ty.display(structs)));
        text.push_str(&format!("struct {} {{ {} }}\n", item.name, list(fields.collect())));
    }
    let parameters = parameters.iter().map(|p| format!("{}: {}", p.name, p.ty.display(structs)));
    text + &format!("kernel({})", list(parameters.collect()))
}

fn collect_structs(ty: &Type, structs: &Structs, seen: &mut Vec<StructId>) {
    match ty {
        Type::Array(element, _) => collect_structs(element, structs, seen),
        Type::Struct(id) => {
            for field in &structs.get(*id).fields {
                collect_structs(&field.ty, structs, seen);
            }
            seen.push(*id);
        }
        _ => {}
    }
}
