//! Random parameter types, and their spelling in Gridlet's language and in CUDA C++.

use gridlet::ir::Parameter;
use gridlet::types::{Field, Scalar, Struct, StructId, Structs, Type};

use crate::generate::random::Random;

/// A type without names: structs are written out.
#[derive(Clone, Debug)]
pub enum Shape {
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
pub type Signature = Vec<Shape>;

/// The most bytes that a signature may take.
const LIMIT_BYTES: u64 = 4096;

/// The set of types to draw from.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Family {
    /// All types of the language.
    Gridlet,
    /// Types that CUDA C++ has as well: its headers have no vectors of 3 or 4 `__half` or `__nv_bfloat16`.
    Cuda,
}

/// Random signatures; the same seed gives the same ones.
pub fn signatures(family: Family, count: usize, seed: u64) -> Vec<Signature> {
    let mut random = Random::new(seed);
    (0..count).map(|_| signature(family, &mut random)).collect()
}

/// Up to 13 parameters, cut where they would pass the limit.
fn signature(family: Family, random: &mut Random) -> Signature {
    let mut bytes = 0;
    let mut all = Vec::new();
    for _ in 0..random.below(14) {
        let mut shape = shape(family, 4, random);
        if family == Family::Cuda && matches!(shape, Shape::Array(..)) {
            // As a parameter, a C++ array is a pointer.
            shape = Shape::Struct(vec![shape]);
        }
        // An upper bound that assumes the largest padding for each parameter.
        let most = shape.most_bytes() + 15;
        if bytes + most <= LIMIT_BYTES {
            bytes += most;
            all.push(shape);
        }
    }
    all
}

/// Any type, nested at most `depth` deep; now and then an array of hundreds.
fn shape(family: Family, depth: u32, random: &mut Random) -> Shape {
    match random.below(if depth == 0 { 12 } else { 20 }) {
        0..6 => Shape::Scalar(scalar(random)),
        6..10 => vector(family, random),
        10 => Shape::Pointer,
        11 => Shape::Stream,
        12..17 => {
            let fields = random.below(6);
            Shape::Struct((0..fields).map(|_| shape(family, depth - 1, random)).collect())
        }
        17..19 => {
            let count = 1 + random.below(5) as u64;
            Shape::Array(Box::new(shape(family, depth - 1, random)), count)
        }
        _ => {
            let element = shape(family, 0, random);
            Shape::Array(Box::new(element), 1 + random.below(599) as u64)
        }
    }
}

fn scalar(random: &mut Random) -> Scalar {
    random.pick(&Scalar::ALL)
}

fn vector(family: Family, random: &mut Random) -> Shape {
    loop {
        let (scalar, count) = (scalar(random), 2 + random.below(3) as u8);
        let is_half = matches!(scalar, Scalar::F16 | Scalar::Bf16);
        if scalar != Scalar::Bool && (family == Family::Gridlet || !is_half || count == 2) {
            return Shape::Vector(scalar, count);
        }
    }
}

/// Signatures at the limits of a launch.
pub fn edges() -> Vec<Signature> {
    let byte = || Shape::Scalar(Scalar::U8);
    let array = |element: Shape, count| Shape::Array(Box::new(element), count);
    vec![
        vec![],
        vec![Shape::Struct(vec![])],
        vec![array(byte(), LIMIT_BYTES)],
        vec![
            byte(),
            array(Shape::Vector(Scalar::F64, 4), 127),
            Shape::Vector(Scalar::U8, 3),
            byte(),
        ],
        vec![array(byte(), LIMIT_BYTES - 8), Shape::Pointer],
        vec![Shape::Struct(vec![byte(), array(Shape::Vector(Scalar::I64, 2), 255)])],
        vec![Shape::Scalar(Scalar::U32); LIMIT_BYTES as usize / 4],
        (0..LIMIT_BYTES / 16).flat_map(|_| [byte(), Shape::Scalar(Scalar::F64)]).collect(),
    ]
}

impl Shape {
    /// At least its size, counted without the layout pass, which is under test.
    fn most_bytes(&self) -> u64 {
        match self {
            Shape::Scalar(scalar) => scalar.size(),
            Shape::Vector(scalar, count) => scalar.size() * u64::from(*count),
            Shape::Pointer | Shape::Stream => 8,
            Shape::Array(element, count) => {
                // Each element of an array has less than 16 bytes of padding, and scalars have none.
                let padding = if matches!(**element, Shape::Struct(_)) { 15 } else { 0 };
                (element.most_bytes() + padding) * count
            }
            Shape::Struct(fields) => {
                16 + fields.iter().map(|field| field.most_bytes() + 15).sum::<u64>()
            }
        }
    }

    /// As a type of the language; structs are added to the table.
    pub fn to_type(&self, structs: &mut Structs) -> Type {
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
pub fn parameters(signature: &Signature, structs: &mut Structs) -> Vec<Parameter> {
    let types: Vec<Type> = signature.iter().map(|shape| shape.to_type(structs)).collect();
    types.into_iter().enumerate().map(|(at, ty)| Parameter { name: format!("p{at}"), ty }).collect()
}

/// A signature with its structs written out, for messages.
pub fn describe(parameters: &[Parameter], structs: &Structs) -> String {
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
