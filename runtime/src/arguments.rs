//! Arguments: what the host passes to a kernel, checked against the manifest and packed at its offsets.
//!
//! Nothing here needs a device.

use std::fmt;
use std::marker::PhantomData;

use crate::error::{Error, Result, plural};
use crate::manifest::{Kernel, Struct, Type};
use crate::memory::{DeviceCopy, bytes_of};
use crate::types::{ScalarType, extent};

/// A scalar argument. Its type must be the parameter's: no conversion, as in the language.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Scalar {
    /// `bool`
    Bool(bool),
    /// `i8`
    I8(i8),
    /// `i16`
    I16(i16),
    /// `i32`
    I32(i32),
    /// `i64`
    I64(i64),
    /// `u8`
    U8(u8),
    /// `u16`
    U16(u16),
    /// `u32`
    U32(u32),
    /// `u64`
    U64(u64),
    /// `f16`, as its bits
    F16(u16),
    /// `bf16`, as its bits
    Bf16(u16),
    /// `f32`
    F32(f32),
    /// `f64`
    F64(f64),
}

impl Scalar {
    /// Its type.
    pub fn scalar_type(self) -> ScalarType {
        match self {
            Scalar::Bool(_) => ScalarType::Bool,
            Scalar::I8(_) => ScalarType::I8,
            Scalar::I16(_) => ScalarType::I16,
            Scalar::I32(_) => ScalarType::I32,
            Scalar::I64(_) => ScalarType::I64,
            Scalar::U8(_) => ScalarType::U8,
            Scalar::U16(_) => ScalarType::U16,
            Scalar::U32(_) => ScalarType::U32,
            Scalar::U64(_) => ScalarType::U64,
            Scalar::F16(_) => ScalarType::F16,
            Scalar::Bf16(_) => ScalarType::Bf16,
            Scalar::F32(_) => ScalarType::F32,
            Scalar::F64(_) => ScalarType::F64,
        }
    }

    /// Its bytes as the device has them: little-endian.
    fn put(self, to: &mut [u8]) {
        match self {
            Scalar::Bool(value) => to.copy_from_slice(&[u8::from(value)]),
            Scalar::I8(value) => to.copy_from_slice(&value.to_le_bytes()),
            Scalar::I16(value) => to.copy_from_slice(&value.to_le_bytes()),
            Scalar::I32(value) => to.copy_from_slice(&value.to_le_bytes()),
            Scalar::I64(value) => to.copy_from_slice(&value.to_le_bytes()),
            Scalar::U8(value) => to.copy_from_slice(&value.to_le_bytes()),
            Scalar::U16(value) | Scalar::F16(value) | Scalar::Bf16(value) => {
                to.copy_from_slice(&value.to_le_bytes())
            }
            Scalar::U32(value) => to.copy_from_slice(&value.to_le_bytes()),
            Scalar::U64(value) => to.copy_from_slice(&value.to_le_bytes()),
            Scalar::F32(value) => to.copy_from_slice(&value.to_le_bytes()),
            Scalar::F64(value) => to.copy_from_slice(&value.to_le_bytes()),
        }
    }
}

/// What a buffer's elements are, as far as the host's type says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Bytes: fits any pointer. Device memory without a type, and `u8`.
    Bytes,
    /// A scalar. `u16` also fits `f16` and `bf16`, `u64` also fits pointers and streams.
    Scalar(ScalarType),
    /// So many of one type: fits the vector and the array of that many.
    Array(&'static Element, usize),
    /// The program's struct of that name.
    Struct(&'static str),
}

impl Element {
    fn fits(self, pointee: &Type) -> bool {
        match (self, pointee) {
            (Element::Bytes, _) => true,
            (Element::Scalar(ScalarType::U8), _) => true,
            (Element::Scalar(scalar), Type::Scalar(name)) => {
                scalar.name() == name
                    || (scalar == ScalarType::U16 && matches!(name.as_str(), "f16" | "bf16"))
            }
            (Element::Scalar(ScalarType::U64), Type::Pointer { .. } | Type::Stream) => true,
            (Element::Array(element, count), Type::Vector { element: name, count: lanes }) => {
                count as u64 == u64::from(*lanes) && element.fits(&Type::Scalar(name.clone()))
            }
            (Element::Array(element, count), Type::Array { element: of, count: length }) => {
                count as u64 == *length && element.fits(of)
            }
            (Element::Struct(name), Type::Struct(wanted)) => name == wanted,
            _ => false,
        }
    }
}

impl fmt::Display for Element {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Element::Bytes => f.write_str("bytes"),
            Element::Scalar(scalar) => write!(f, "{scalar}"),
            Element::Array(element, count) => write!(f, "[{element}; {count}]"),
            Element::Struct(name) => f.write_str(name),
        }
    }
}

/// A pointer argument: a device address with what the host knows of the memory there. The memory stays
/// borrowed while the value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer<'a> {
    address: u64,
    element: Element,
    mutable: bool,
    device: Option<u32>,
    memory: PhantomData<&'a ()>,
}

impl<'a> Pointer<'a> {
    pub(crate) fn to_memory(
        address: u64,
        element: Element,
        mutable: bool,
        device: u32,
    ) -> Pointer<'a> {
        Pointer { address, element, mutable, device: Some(device), memory: PhantomData }
    }
}

/// An argument of a launch.
///
/// Scalars come `from` their Rust values, pointers from `&buffer` (for `*const T`) and `&mut buffer` (for
/// either).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Arg<'a> {
    /// For a scalar parameter.
    Scalar(Scalar),
    /// For a pointer parameter.
    Pointer(Pointer<'a>),
    /// For a parameter of any type but a pointer: its bytes as the device has them, padding included.
    Bytes(&'a [u8]),
    /// For a struct, a vector or an array by value: its fields or elements in order.
    Fields(Vec<Arg<'a>>),
}

impl Arg<'static> {
    /// The null pointer.
    pub fn null() -> Self {
        Arg::address(0)
    }

    /// A device address of which the host knows nothing; nothing is checked but that the parameter is a
    /// pointer.
    pub fn address(address: u64) -> Self {
        Arg::Pointer(Pointer {
            address,
            element: Element::Bytes,
            mutable: true,
            device: None,
            memory: PhantomData,
        })
    }

    /// An `f16`, as its bits.
    pub fn f16_bits(bits: u16) -> Self {
        Arg::Scalar(Scalar::F16(bits))
    }

    /// A `bf16`, as its bits.
    pub fn bf16_bits(bits: u16) -> Self {
        Arg::Scalar(Scalar::Bf16(bits))
    }
}

impl<'a> Arg<'a> {
    /// A struct, vector or array by value, from a host value of the same layout; its size is checked.
    pub fn value<T: DeviceCopy>(value: &'a T) -> Self {
        Arg::Bytes(bytes_of(std::slice::from_ref(value)))
    }

    fn describe(&self) -> String {
        match self {
            Arg::Scalar(scalar) => format!("a value of type `{}`", scalar.scalar_type()),
            Arg::Pointer(Pointer { element: Element::Bytes, mutable: true, .. }) => {
                "a device address".into()
            }
            Arg::Pointer(Pointer { element, mutable: true, .. }) => {
                format!("a mutable buffer of `{element}`")
            }
            Arg::Pointer(Pointer { element, .. }) => {
                format!("a read-only buffer of `{element}` (`&`, not `&mut`)")
            }
            Arg::Bytes(bytes) => format!("{} byte{}", bytes.len(), plural(bytes.len() as u64)),
            Arg::Fields(fields) => format!("{} field{}", fields.len(), plural(fields.len() as u64)),
        }
    }
}

macro_rules! arg_from_scalar {
    ($($ty:ty => $variant:ident),*) => { $(
        impl From<$ty> for Arg<'static> {
            fn from(value: $ty) -> Self {
                Arg::Scalar(Scalar::$variant(value))
            }
        }
    )* };
}
arg_from_scalar!(bool => Bool, i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32,
    u64 => U64, f32 => F32, f64 => F64);

/// Checks the arguments against a kernel's parameters and packs them at the parameters' offsets. `device` is
/// where the kernel will run: memory of another device is refused.
///
/// # Errors
/// [`Error::ArgumentCount`], [`Error::Argument`], [`Error::OtherDevice`].
pub fn pack(kernel: &Kernel, structs: &[Struct], args: &[Arg<'_>], device: u32) -> Result<Vec<u8>> {
    if args.len() != kernel.parameters.len() {
        return Err(Error::ArgumentCount {
            kernel: kernel.name.clone(),
            expected: kernel.parameters.len(),
            given: args.len(),
        });
    }
    // Zero, so that padding never carries old bytes of this process.
    let mut bytes = vec![0u8; kernel.parameter_bytes as usize];
    for (index, (parameter, arg)) in kernel.parameters.iter().zip(args).enumerate() {
        let mut packer = Packer {
            kernel,
            structs,
            index,
            device,
            path: parameter.name.clone(),
            bytes: &mut bytes,
        };
        packer.put(&parameter.ty, u64::from(parameter.offset), arg)?;
    }
    Ok(bytes)
}

/// Packs one argument.
struct Packer<'a> {
    kernel: &'a Kernel,
    structs: &'a [Struct],
    index: usize,
    device: u32,
    /// The parameter's name, with the fields that lead to the part at hand.
    path: String,
    bytes: &'a mut [u8],
}

impl Packer<'_> {
    fn put(&mut self, ty: &Type, offset: u64, arg: &Arg<'_>) -> Result<()> {
        match (ty, arg) {
            (Type::Scalar(name), Arg::Scalar(scalar)) if scalar.scalar_type().name() == name => {
                scalar.put(self.part(ty, offset, arg)?);
                Ok(())
            }
            (Type::Pointer { mutable, to }, Arg::Pointer(pointer))
                if pointer.element.fits(to) && (pointer.mutable || !mutable) =>
            {
                if let Some(given) = pointer.device.filter(|given| *given != self.device) {
                    let what = format!("argument `{}`", self.path);
                    return Err(Error::OtherDevice { what, expected: self.device, given });
                }
                self.part(ty, offset, arg)?.copy_from_slice(&pointer.address.to_le_bytes());
                Ok(())
            }
            (Type::Pointer { .. }, _) => Err(self.mismatch(ty, arg)),
            (_, Arg::Bytes(given)) => {
                let part = self.part(ty, offset, arg)?;
                if part.len() != given.len() {
                    return Err(self.mismatch(ty, arg));
                }
                part.copy_from_slice(given);
                Ok(())
            }
            (_, Arg::Fields(args)) => self.put_fields(ty, offset, arg, args),
            _ => Err(self.mismatch(ty, arg)),
        }
    }

    fn put_fields(
        &mut self,
        ty: &Type,
        offset: u64,
        arg: &Arg<'_>,
        args: &[Arg<'_>],
    ) -> Result<()> {
        let parts: Vec<(String, Type, u64)> = match ty {
            Type::Struct(name) => {
                let Some(s) = self.structs.iter().find(|s| s.name == *name) else {
                    return Err(self.mismatch(ty, arg));
                };
                s.fields.iter().map(|f| (format!(".{}", f.name), f.ty.clone(), f.offset)).collect()
            }
            Type::Vector { element, count } if args.len() as u64 == u64::from(*count) => {
                let element = Type::Scalar(element.clone());
                let size = extent(&element, self.structs).map_or(0, |extent| extent.size);
                let name = |lane: u32| {
                    format!(".{}", ["x", "y", "z", "w"].get(lane as usize).unwrap_or(&"?"))
                };
                (0..*count)
                    .map(|lane| (name(lane), element.clone(), u64::from(lane) * size))
                    .collect()
            }
            Type::Array { element, count } if args.len() as u64 == *count => {
                let size = extent(element, self.structs).map_or(0, |extent| extent.size);
                (0..*count).map(|i| (format!("[{i}]"), (**element).clone(), i * size)).collect()
            }
            _ => return Err(self.mismatch(ty, arg)),
        };
        if parts.len() != args.len() {
            return Err(self.mismatch(ty, arg));
        }
        let length = self.path.len();
        for ((name, ty, at), arg) in parts.iter().zip(args) {
            self.path.push_str(name);
            self.put(ty, offset + at, arg)?;
            self.path.truncate(length);
        }
        Ok(())
    }

    /// The bytes of the part at `offset`. A kernel of an [`crate::Artifact`] always has them; one made by hand
    /// may not.
    fn part(&mut self, ty: &Type, offset: u64, arg: &Arg<'_>) -> Result<&mut [u8]> {
        let size = extent(ty, self.structs).map_or(u64::MAX, |extent| extent.size);
        let end = offset.saturating_add(size);
        if end > self.bytes.len() as u64 {
            return Err(self.mismatch(ty, arg));
        }
        Ok(&mut self.bytes[offset as usize..end as usize])
    }

    fn mismatch(&self, ty: &Type, arg: &Arg<'_>) -> Error {
        let size = extent(ty, self.structs).map_or(0, |extent| extent.size);
        let expected = match (ty, arg) {
            (Type::Scalar(_), _) => format!("a value of type `{ty}`"),
            (Type::Pointer { mutable: true, to }, _) => format!("a mutable buffer of `{to}`"),
            (Type::Pointer { mutable: false, to }, _) => format!("a buffer of `{to}`"),
            (Type::Struct(name), Arg::Fields(_)) => {
                let count =
                    self.structs.iter().find(|s| s.name == *name).map_or(0, |s| s.fields.len());
                format!("the {count} fields of `{ty}`")
            }
            (Type::Vector { count, .. }, Arg::Fields(_)) => {
                format!("the {count} elements of `{ty}`")
            }
            (Type::Array { count, .. }, Arg::Fields(_)) => {
                format!("the {count} elements of `{ty}`")
            }
            _ => format!("the {size} bytes of `{ty}`"),
        };
        Error::Argument {
            kernel: self.kernel.name.clone(),
            index: self.index,
            parameter: self.path.clone(),
            expected,
            given: arg.describe(),
        }
    }
}

#[cfg(test)]
mod tests;
