//! The types of the language, shared by the checker, the IR, the layout pass and codegen.

pub mod layout;
pub mod leaves;
pub mod nesting;

use std::fmt;
use std::sync::OnceLock;

use crate::source::Span;
use layout::BufferLayout;

/// A scalar type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[expect(missing_docs, reason = "each variant is the type of that name")]
pub enum Scalar {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    Bf16,
    F32,
    F64,
}

impl Scalar {
    /// Every scalar, in the order used by docs and tables.
    pub const ALL: [Scalar; 13] = [
        Scalar::Bool,
        Scalar::I8,
        Scalar::I16,
        Scalar::I32,
        Scalar::I64,
        Scalar::U8,
        Scalar::U16,
        Scalar::U32,
        Scalar::U64,
        Scalar::F16,
        Scalar::Bf16,
        Scalar::F32,
        Scalar::F64,
    ];

    /// The name in the language.
    pub fn name(self) -> &'static str {
        match self {
            Scalar::Bool => "bool",
            Scalar::I8 => "i8",
            Scalar::I16 => "i16",
            Scalar::I32 => "i32",
            Scalar::I64 => "i64",
            Scalar::U8 => "u8",
            Scalar::U16 => "u16",
            Scalar::U32 => "u32",
            Scalar::U64 => "u64",
            Scalar::F16 => "f16",
            Scalar::Bf16 => "bf16",
            Scalar::F32 => "f32",
            Scalar::F64 => "f64",
        }
    }

    /// The scalar with this name.
    pub fn from_name(name: &str) -> Option<Scalar> {
        Scalar::ALL.into_iter().find(|scalar| scalar.name() == name)
    }

    /// The smallest and the largest value of an integer type.
    pub(crate) fn range(self) -> (i128, i128) {
        let bits = self.bits();
        match self.is_signed() {
            true => (-(1 << (bits - 1)), (1 << (bits - 1)) - 1),
            false => (0, (1 << bits) - 1),
        }
    }

    /// Size in memory, in bytes. Scalars are aligned to their size.
    pub fn size(self) -> u64 {
        match self {
            Scalar::Bool | Scalar::I8 | Scalar::U8 => 1,
            Scalar::I16 | Scalar::U16 | Scalar::F16 | Scalar::Bf16 => 2,
            Scalar::I32 | Scalar::U32 | Scalar::F32 => 4,
            Scalar::I64 | Scalar::U64 | Scalar::F64 => 8,
        }
    }

    /// Width of the value in bits; 1 for `bool`.
    pub fn bits(self) -> u32 {
        if self == Scalar::Bool { 1 } else { self.size() as u32 * 8 }
    }

    /// Whether this is one of the eight integer types.
    pub fn is_integer(self) -> bool {
        self.is_signed() || self.is_unsigned()
    }

    /// Whether this is a signed integer type.
    pub fn is_signed(self) -> bool {
        matches!(self, Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64)
    }

    /// Whether this is an unsigned integer type.
    pub fn is_unsigned(self) -> bool {
        matches!(self, Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64)
    }

    /// Whether this is a floating-point type.
    pub fn is_float(self) -> bool {
        matches!(self, Scalar::F16 | Scalar::Bf16 | Scalar::F32 | Scalar::F64)
    }
}

/// The number in the place of an id of another program; no index.
pub(crate) const FOREIGN: u32 = u32::MAX;

/// Index of a struct in a [`Structs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct StructId(pub u32);

impl StructId {
    /// `dim3`: three `u32` fields named `x`, `y`, `z`.
    pub const DIM3: StructId = StructId(0);
    /// The geometry of one thread, the hidden first argument of kernel bodies: see [`Structs::new`].
    pub const GEOMETRY: StructId = StructId(1);
}

/// A type of the language.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Type {
    /// No value: the result of a function without `->`.
    Unit,
    /// A scalar.
    Scalar(Scalar),
    /// `T x2`, `x3`, `x4`: 2 to 4 elements.
    Vector(Scalar, u8),
    /// `[T; N]`.
    Array(Box<Type>, u64),
    /// A struct or `dim3`.
    Struct(StructId),
    /// `*const T` or `*mut T`, in the generic address space.
    Pointer {
        /// `*mut`.
        mutable: bool,
        /// `T`.
        pointee: Box<Type>,
    },
    /// `stream`: a device stream handle, 8 bytes.
    Stream,
}

impl Type {
    /// `bool`.
    pub const BOOL: Type = Type::Scalar(Scalar::Bool);
    /// `i32`.
    pub const I32: Type = Type::Scalar(Scalar::I32);
    /// `i64`.
    pub const I64: Type = Type::Scalar(Scalar::I64);
    /// `u32`.
    pub const U32: Type = Type::Scalar(Scalar::U32);
    /// `u64`.
    pub const U64: Type = Type::Scalar(Scalar::U64);
    /// `f32`.
    pub const F32: Type = Type::Scalar(Scalar::F32);
    /// `f64`.
    pub const F64: Type = Type::Scalar(Scalar::F64);
    /// `dim3`.
    pub const DIM3: Type = Type::Struct(StructId::DIM3);
    /// The geometry of one thread.
    pub const GEOMETRY: Type = Type::Struct(StructId::GEOMETRY);

    /// `*mut pointee`.
    pub fn pointer_mut(pointee: Type) -> Type {
        Type::Pointer { mutable: true, pointee: Box::new(pointee) }
    }

    /// `*const pointee`.
    pub fn pointer_const(pointee: Type) -> Type {
        Type::Pointer { mutable: false, pointee: Box::new(pointee) }
    }

    /// The scalar, if this is one.
    pub fn as_scalar(&self) -> Option<Scalar> {
        match self {
            Type::Scalar(scalar) => Some(*scalar),
            _ => None,
        }
    }

    /// The type that a pointer points to.
    pub fn pointee(&self) -> Option<&Type> {
        match self {
            Type::Pointer { pointee, .. } => Some(pointee),
            _ => None,
        }
    }

    /// Whether this is a pointer.
    pub fn is_pointer(&self) -> bool {
        matches!(self, Type::Pointer { .. })
    }

    /// The type in the language's syntax.
    pub fn display<'a>(&'a self, structs: &'a Structs) -> impl fmt::Display + 'a {
        DisplayType { ty: self, structs }
    }
}

struct DisplayType<'a> {
    ty: &'a Type,
    structs: &'a Structs,
}

impl fmt::Display for DisplayType<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let nested = |ty| DisplayType { ty, structs: self.structs };
        match self.ty {
            Type::Unit => f.write_str("()"),
            Type::Scalar(scalar) => f.write_str(scalar.name()),
            Type::Vector(scalar, count) => write!(f, "{}x{count}", scalar.name()),
            Type::Array(element, count) => write!(f, "[{}; {count}]", nested(element)),
            // Invalid modules are printed too, for debugging.
            Type::Struct(id) => {
                f.write_str(self.structs.items.get(id.0 as usize).map_or("?", |item| &item.name))
            }
            Type::Pointer { mutable: true, pointee } => write!(f, "*mut {}", nested(pointee)),
            Type::Pointer { mutable: false, pointee } => write!(f, "*const {}", nested(pointee)),
            Type::Stream => f.write_str("stream"),
        }
    }
}

/// A field of a struct.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Field {
    /// Its name.
    pub name: String,
    /// Its type.
    pub ty: Type,
}

/// A struct with C layout: fields in declaration order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Struct {
    /// Its name.
    pub name: String,
    /// The fields, in declaration order.
    pub fields: Vec<Field>,
    /// Where it is declared; `None` for the built-in ones.
    pub span: Option<Span>,
}

/// All structs of a program. The first two are built in.
#[derive(Clone, Debug)]
pub struct Structs {
    items: Vec<Struct>,
    /// The layout of each struct's fields, computed by [`layout`] on first use.
    layouts: Vec<OnceLock<BufferLayout>>,
    /// The id of the struct with index 0, if the built-in ones were not numbered from 0: see [`Structs::numbered`].
    base: u32,
}

impl PartialEq for Structs {
    fn eq(&self, other: &Self) -> bool {
        self.items == other.items
    }
}

impl Eq for Structs {}

impl Default for Structs {
    fn default() -> Self {
        Structs::new()
    }
}

impl Structs {
    /// A table of the built-in structs: `dim3`, and the geometry, whose fields are
    /// `thread_idx, block_idx, block_dim, grid_dim: dim3` and `dynamic_shared: *mut u8`.
    pub fn new() -> Self {
        let field = |name: &str, ty: Type| Field { name: name.into(), ty };
        let dim3 = Struct {
            name: "dim3".into(),
            fields: ["x", "y", "z"].map(|name| field(name, Type::U32)).to_vec(),
            span: None,
        };
        let geometry = Struct {
            name: "geometry".into(),
            fields: vec![
                field("thread_idx", Type::DIM3),
                field("block_idx", Type::DIM3),
                field("block_dim", Type::DIM3),
                field("grid_dim", Type::DIM3),
                field("dynamic_shared", Type::pointer_mut(Type::Scalar(Scalar::U8))),
            ],
            span: None,
        };
        let mut structs = Structs { items: vec![], layouts: vec![], base: 0 };
        structs.add(dim3);
        structs.add(geometry);
        structs
    }

    /// As [`Structs::new`], whose further structs have ids of their own: their index plus `base`. Other tables then do not
    /// take them for theirs. [`Structs::settle`] ends that.
    pub(crate) fn numbered(base: u32) -> Self {
        Structs { base, ..Structs::new() }
    }

    /// Makes indices of all ids: in the fields here, and in other types by the function that is the result. Those of other
    /// tables become [`FOREIGN`].
    pub(crate) fn settle(&mut self) -> impl Fn(&mut Type) + use<> {
        let (base, count) = (std::mem::take(&mut self.base), self.items.len());
        let settle = move |ty: &mut Type| {
            let mut ty = ty;
            while let Type::Array(inner, _) | Type::Pointer { pointee: inner, .. } = ty {
                ty = inner;
            }
            if let Type::Struct(id) = ty {
                let index = position(*id, base);
                *id = if index < count { StructId(index as u32) } else { StructId(FOREIGN) };
            }
        };
        for item in &mut self.items {
            item.fields.iter_mut().for_each(|field| settle(&mut field.ty));
        }
        settle
    }

    /// Adds a struct and returns its id.
    pub fn add(&mut self, item: Struct) -> StructId {
        self.items.push(item);
        self.layouts.push(OnceLock::new());
        self.id(self.items.len() - 1)
    }

    /// The id for an index.
    fn id(&self, index: usize) -> StructId {
        let is_built_in = index <= StructId::GEOMETRY.0 as usize;
        StructId(if is_built_in { index as u32 } else { self.base.wrapping_add(index as u32) })
    }

    /// The struct with an id that this table returned.
    ///
    /// # Panics
    /// With an id of another table.
    pub fn get(&self, id: StructId) -> &Struct {
        &self.items[position(id, self.base)]
    }

    /// The struct with an id, for filling in its fields. Drops the cached layout of this struct only: call it
    /// before laying out a struct that contains it.
    pub fn get_mut(&mut self, id: StructId) -> &mut Struct {
        let index = position(id, self.base);
        self.layouts[index].take();
        &mut self.items[index]
    }

    /// The cached layout of a struct, filled by the layout pass.
    pub(crate) fn kept_layout(&self, id: StructId) -> &OnceLock<BufferLayout> {
        &self.layouts[position(id, self.base)]
    }

    /// All structs with their ids, built-in ones first.
    pub fn iter(&self) -> impl Iterator<Item = (StructId, &Struct)> {
        self.items.iter().enumerate().map(|(at, item)| (self.id(at), item))
    }

    /// The number of structs, built-in ones included.
    pub fn len(&self) -> usize {
        self.items.len()
    }

    /// Always false: the built-in structs are always present.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }
}

/// The index of a struct in a table with such a base, or a number that is none.
fn position(id: StructId, base: u32) -> usize {
    let is_built_in = id <= StructId::GEOMETRY;
    (if is_built_in { id.0 } else { id.0.wrapping_sub(base) }) as usize
}
