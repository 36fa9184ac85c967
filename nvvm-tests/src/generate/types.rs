//! Types, literals, constants, and the components of a value.

use gridlet::types::{Scalar, StructId, Type};

use super::{Generator, Variable};

/// Every scalar that has operators.
const SCALARS: [Scalar; 13] = [
    Scalar::I32,
    Scalar::U32,
    Scalar::Bool,
    Scalar::I8,
    Scalar::I16,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U64,
    Scalar::F32,
    Scalar::F64,
    Scalar::F16,
    Scalar::Bf16,
];
const INTEGERS: [Scalar; 8] = [
    Scalar::I8,
    Scalar::I16,
    Scalar::I32,
    Scalar::I64,
    Scalar::U8,
    Scalar::U16,
    Scalar::U32,
    Scalar::U64,
];
/// The most scalars that a value has.
const MAX_LEAVES: u64 = 24;
/// The first of the program's own structs.
const FIRST_STRUCT: u32 = 2;

impl Generator {
    pub(super) fn scalar(&mut self) -> Scalar {
        self.random.pick(&SCALARS)
    }

    pub(super) fn integer_type(&mut self) -> Scalar {
        self.random.pick(&INTEGERS)
    }

    /// Any type but a pointer, with few scalars, inside up to `levels` of arrays.
    pub(super) fn some_type(&mut self, levels: u32) -> Type {
        let ty = self.any_type(levels);
        if self.leaves(&ty) <= MAX_LEAVES { ty } else { Type::Scalar(self.scalar()) }
    }

    /// Scalars in a value.
    fn leaves(&self, ty: &Type) -> u64 {
        match ty {
            Type::Vector(_, count) => u64::from(*count),
            Type::Array(element, count) => self.leaves(element) * count,
            Type::Struct(id) => {
                self.structs.get(*id).fields.iter().map(|field| self.leaves(&field.ty)).sum()
            }
            _ => 1,
        }
    }

    fn any_type(&mut self, levels: u32) -> Type {
        match self.random.below(10) {
            0 | 1 => {
                let scalar = self.random.pick(&SCALARS);
                let scalar = if scalar == Scalar::Bool { Scalar::U8 } else { scalar };
                Type::Vector(scalar, 2 + self.random.below(3) as u8)
            }
            2 if levels > 0 => {
                let element = self.some_type(levels - 1);
                Type::Array(Box::new(element), 1 + self.random.below(4) as u64)
            }
            3 | 4 if self.structs.len() > FIRST_STRUCT as usize => {
                let own = self.structs.len() - FIRST_STRUCT as usize;
                Type::Struct(StructId(FIRST_STRUCT + self.random.below(own) as u32))
            }
            _ => Type::Scalar(self.scalar()),
        }
    }

    /// A number with its type suffix, in parentheses if it is negative.
    pub(super) fn literal(&mut self, scalar: Scalar) -> String {
        if scalar == Scalar::Bool {
            return self.random.pick(&["true", "false"]).to_owned();
        }
        if scalar.is_float() {
            return self.float_literal(scalar);
        }
        let bits = scalar.bits();
        let value = match self.random.below(4) {
            // Edge values.
            0 => self.random.pick(&[0, 1, 2, u64::MAX, 1 << (bits - 1), (1 << (bits - 1)) - 1]),
            1 => self.random.bits(),
            _ => self.random.below(20) as u64,
        };
        let name = scalar.name();
        if scalar.is_signed() {
            let value = ((value << (64 - bits)) as i64) >> (64 - bits);
            return if value < 0 { format!("({value}{name})") } else { format!("{value}{name}") };
        }
        let value = value << (64 - bits) >> (64 - bits);
        if self.random.percent(20) { format!("{value:#x}{name}") } else { format!("{value}{name}") }
    }

    fn float_literal(&mut self, scalar: Scalar) -> String {
        let name = scalar.name();
        let magnitude = match self.random.below(8) {
            0 => format!("{}.0", self.random.below(4)),
            1 => {
                let (least, most) = match scalar {
                    Scalar::F16 => (-8, 4),
                    Scalar::Bf16 | Scalar::F32 => (-38, 38),
                    _ => (-300, 300),
                };
                let exponent = least + self.random.below((most - least) as usize) as i64;
                format!("{}.{}e{exponent}", 1 + self.random.below(3), self.random.below(1000))
            }
            _ => format!("{}.{}", self.random.below(50), self.random.below(1000)),
        };
        let negative = self.random.percent(25);
        if negative { format!("(-{magnitude}{name})") } else { format!("{magnitude}{name}") }
    }

    /// A value that is known at compile time.
    pub(super) fn constant(&mut self, ty: &Type) -> String {
        self.compose(ty, &mut |generator, scalar| generator.literal(scalar))
    }

    /// A value of a type, written out down to its scalars.
    pub(super) fn compose(
        &mut self,
        ty: &Type,
        scalar_of: &mut dyn FnMut(&mut Generator, Scalar) -> String,
    ) -> String {
        match ty {
            Type::Scalar(scalar) => scalar_of(self, *scalar),
            Type::Vector(scalar, count) => {
                let parts: Vec<String> = (0..*count).map(|_| scalar_of(self, *scalar)).collect();
                format!("{}x{count}({})", scalar.name(), parts.join(", "))
            }
            Type::Array(element, count) if self.random.percent(30) => {
                format!("[{}; {count}]", self.compose(element, scalar_of))
            }
            Type::Array(element, count) => {
                let parts: Vec<String> =
                    (0..*count).map(|_| self.compose(element, scalar_of)).collect();
                format!("[{}]", parts.join(", "))
            }
            Type::Struct(id) => {
                let item = self.structs.get(*id).clone();
                let fields: Vec<String> = item
                    .fields
                    .iter()
                    .map(|field| format!("{}: {}", field.name, self.compose(&field.ty, scalar_of)))
                    .collect();
                format!("{} {{ {} }}", item.name, fields.join(", "))
            }
            // The generator makes none of these.
            Type::Unit | Type::Pointer { .. } | Type::Stream => String::new(),
        }
    }

    /// A value and all its components, as places.
    pub(super) fn parts(&self, path: &str, ty: &Type, mutable: bool) -> Vec<Variable> {
        let mut found = vec![Variable { path: path.to_owned(), ty: ty.clone(), mutable }];
        let mut at = 0;
        while at < found.len() {
            let Variable { path, ty, .. } = found[at].clone();
            match ty {
                Type::Vector(scalar, count) => {
                    let names = ["x", "y", "z", "w"].into_iter().take(usize::from(count));
                    found.extend(names.map(|name| Variable {
                        path: format!("{path}.{name}"),
                        ty: Type::Scalar(scalar),
                        mutable,
                    }));
                }
                Type::Array(element, count) => found.push(Variable {
                    path: format!("{path}[#{count}]"),
                    ty: *element,
                    mutable,
                }),
                Type::Struct(id) => {
                    found.extend(self.structs.get(id).fields.iter().map(|field| Variable {
                        path: format!("{path}.{}", field.name),
                        ty: field.ty.clone(),
                        mutable,
                    }));
                }
                _ => {}
            }
            at += 1;
        }
        found
    }
}
