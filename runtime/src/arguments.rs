//! Launch arguments: checked against the manifest and packed at the parameters' offsets.
//!
//! Nothing here needs a device.

mod elements;

use std::fmt;
use std::marker::PhantomData;
use std::mem::MaybeUninit;

pub use elements::DeviceCopy;
pub(crate) use elements::{bytes_of, bytes_of_mut};

use gridlet_artifact::manifest::{Kernel, Struct, Type};
use gridlet_artifact::{ScalarType, extent};

use crate::error::{Error, Result, plural};

/// A scalar argument. Its type must equal the parameter's: as in the language, nothing is converted.
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

    /// Writes the value's bytes in the device's byte order, little-endian.
    #[inline]
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

/// The element type of a buffer, as far as the host's type determines it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Element {
    /// Bytes: match any pointer. Used for untyped device memory and `u8`.
    Bytes,
    /// A scalar. `u16` also matches `f16` and `bf16`; `u64` also matches pointers and streams.
    Scalar(ScalarType),
    /// That many elements of one type: matches a vector or an array of that length.
    Array(&'static Element, usize),
    /// The program's struct of that name.
    Struct(&'static str),
}

impl Element {
    pub(crate) fn fits(self, pointee: &Type) -> bool {
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

/// A pointer argument: a device address and what the host knows about the memory there. The memory stays borrowed
/// while the value lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pointer<'a> {
    address: u64,
    element: Element,
    mutable: bool,
    device: Option<u32>,
    memory: PhantomData<&'a ()>,
}

impl<'a> Pointer<'a> {
    /// The address, and the number of the device that owns the memory, if the host knows it.
    pub(crate) fn place(&self) -> (u64, Option<u32>) {
        (self.address, self.device)
    }

    /// Memory about which the host knows only the element type.
    pub(crate) fn to_unknown(address: u64, element: Element) -> Pointer<'static> {
        Pointer { address, element, mutable: true, device: None, memory: PhantomData }
    }

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
/// Scalars convert from their Rust values with `from`, pointers from `&buffer` (for `*const T`) and `&mut buffer`
/// (for either).
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Arg<'a> {
    /// For a scalar parameter.
    Scalar(Scalar),
    /// For a pointer parameter.
    Pointer(Pointer<'a>),
    /// For a parameter of any type except a pointer: its bytes in the device's layout, padding included.
    Bytes(&'a [u8]),
    /// For a struct, a vector or an array by value: its fields or elements in order.
    Fields(Vec<Arg<'a>>),
}

impl Arg<'static> {
    /// The null pointer.
    pub fn null() -> Self {
        Arg::address(0)
    }

    /// A device address about which the host knows nothing; only that the parameter is a pointer is checked.
    pub fn address(address: u64) -> Self {
        Arg::Pointer(Pointer::to_unknown(address, Element::Bytes))
    }

    /// An `f16`, given as its bits.
    pub fn f16_bits(bits: u16) -> Self {
        Arg::Scalar(Scalar::F16(bits))
    }

    /// A `bf16`, given as its bits.
    pub fn bf16_bits(bits: u16) -> Self {
        Arg::Scalar(Scalar::Bf16(bits))
    }
}

impl<'a> Arg<'a> {
    /// A struct, vector or array by value, from a host value of the same layout; only the size is checked.
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

/// The largest parameter block packed on the stack; the compiler allows no larger one.
pub(crate) const STACK_PARAMETER_BYTES: usize = 4096;

/// Stack space for a launch's parameters, so that a launch allocates nothing. Only the bytes that the kernel uses
/// are touched.
#[repr(C, align(16))]
pub(crate) struct ParameterRoom(MaybeUninit<[u8; STACK_PARAMETER_BYTES]>);

impl ParameterRoom {
    pub(crate) fn new() -> ParameterRoom {
        ParameterRoom(MaybeUninit::uninit())
    }

    /// The first `bytes` bytes, zeroed so that padding never exposes old memory of this process; `None` if the
    /// space is too small.
    pub(crate) fn zeroed(&mut self, bytes: usize) -> Option<&mut [u8]> {
        if bytes > STACK_PARAMETER_BYTES {
            return None;
        }
        let first = self.0.as_mut_ptr().cast::<u8>();
        // SAFETY: the storage has that many bytes, they are written before the slice is made, and `self` is
        // borrowed.
        unsafe {
            first.write_bytes(0, bytes);
            Some(std::slice::from_raw_parts_mut(first, bytes))
        }
    }
}

/// Checks the arguments against a kernel's parameters and packs them at the parameters' offsets. `device` is the
/// device that will run the kernel; memory of another device is refused.
///
/// # Errors
/// [`Error::ArgumentCount`], [`Error::Argument`], [`Error::OtherDevice`].
pub fn pack(kernel: &Kernel, structs: &[Struct], args: &[Arg<'_>], device: u32) -> Result<Vec<u8>> {
    // Zero, so that padding never exposes old memory of this process.
    let mut bytes = vec![0u8; kernel.parameter_bytes as usize];
    pack_into(kernel, structs, args, device, &mut bytes)?;
    Ok(bytes)
}

/// Same as [`pack`], into a zeroed slice of exactly the kernel's parameter size. Allocates only to describe an
/// error.
pub(crate) fn pack_into(
    kernel: &Kernel,
    structs: &[Struct],
    args: &[Arg<'_>],
    device: u32,
    bytes: &mut [u8],
) -> Result<()> {
    if args.len() != kernel.parameters.len() {
        return Err(Error::ArgumentCount {
            kernel: kernel.name.clone(),
            expected: kernel.parameters.len(),
            given: args.len(),
        });
    }
    for (index, (parameter, arg)) in kernel.parameters.iter().zip(args).enumerate() {
        let mut packer = Packer { kernel, structs, index, device, bytes };
        let path = Path::Parameter(&parameter.name);
        packer.put(&parameter.ty, u64::from(parameter.offset), arg, &path)?;
    }
    Ok(())
}

/// The path to a parameter or to a value inside it; formatted only for an error.
enum Path<'a> {
    Parameter(&'a str),
    Field(&'a Path<'a>, &'a str),
    Lane(&'a Path<'a>, usize),
    Index(&'a Path<'a>, usize),
}

impl fmt::Display for Path<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Path::Parameter(name) => f.write_str(name),
            Path::Field(of, name) => write!(f, "{of}.{name}"),
            Path::Lane(of, lane) => {
                write!(f, "{of}.{}", ["x", "y", "z", "w"].get(*lane).unwrap_or(&"?"))
            }
            Path::Index(of, index) => write!(f, "{of}[{index}]"),
        }
    }
}

/// Packs one argument.
struct Packer<'a> {
    kernel: &'a Kernel,
    structs: &'a [Struct],
    index: usize,
    device: u32,
    bytes: &'a mut [u8],
}

impl Packer<'_> {
    fn put(&mut self, ty: &Type, offset: u64, arg: &Arg<'_>, path: &Path<'_>) -> Result<()> {
        match (ty, arg) {
            (Type::Scalar(name), Arg::Scalar(scalar)) if scalar.scalar_type().name() == name => {
                let size = scalar.scalar_type().size();
                match self.part(size, offset) {
                    Some(part) => scalar.put(part),
                    None => return Err(self.mismatch(ty, arg, path)),
                }
                Ok(())
            }
            (Type::Pointer { mutable, to }, Arg::Pointer(pointer))
                if pointer.element.fits(to) && (pointer.mutable || !mutable) =>
            {
                if let Some(given) = pointer.device.filter(|given| *given != self.device) {
                    let what = format!("argument `{path}`");
                    return Err(Error::OtherDevice { what, expected: self.device, given });
                }
                self.bytes_at(ty, offset, arg, path)?
                    .copy_from_slice(&pointer.address.to_le_bytes());
                Ok(())
            }
            (Type::Pointer { .. }, _) => Err(self.mismatch(ty, arg, path)),
            (_, Arg::Bytes(given)) => {
                let part = self.bytes_at(ty, offset, arg, path)?;
                if part.len() != given.len() {
                    return Err(self.mismatch(ty, arg, path));
                }
                part.copy_from_slice(given);
                Ok(())
            }
            (_, Arg::Fields(args)) => self.put_fields(ty, offset, arg, args, path),
            _ => Err(self.mismatch(ty, arg, path)),
        }
    }

    fn put_fields(
        &mut self,
        ty: &Type,
        offset: u64,
        arg: &Arg<'_>,
        args: &[Arg<'_>],
        path: &Path<'_>,
    ) -> Result<()> {
        let structs = self.structs;
        match ty {
            Type::Struct(name) => {
                let found = structs.iter().find(|s| s.name == *name);
                let Some(s) = found.filter(|s| s.fields.len() == args.len()) else {
                    return Err(self.mismatch(ty, arg, path));
                };
                for (field, arg) in s.fields.iter().zip(args) {
                    let path = Path::Field(path, &field.name);
                    // Saturates on overflow; the bounds check then rejects the offset.
                    self.put(&field.ty, offset.saturating_add(field.offset), arg, &path)?;
                }
                Ok(())
            }
            Type::Vector { element, count } if args.len() as u64 == u64::from(*count) => {
                let size = ScalarType::from_name(element).map_or(0, ScalarType::size);
                for (lane, arg) in args.iter().enumerate() {
                    let path = Path::Lane(path, lane);
                    self.put_lane(element, offset.saturating_add(lane as u64 * size), arg, &path)?;
                }
                Ok(())
            }
            Type::Array { element, count } if args.len() as u64 == *count => {
                let size = extent(element, structs).map_or(0, |extent| extent.size);
                for (index, arg) in args.iter().enumerate() {
                    let path = Path::Index(path, index);
                    let at = offset.saturating_add((index as u64).saturating_mul(size));
                    self.put(element, at, arg, &path)?;
                }
                Ok(())
            }
            _ => Err(self.mismatch(ty, arg, path)),
        }
    }

    /// Packs one element of a vector, whose type the manifest stores as a name.
    fn put_lane(
        &mut self,
        element: &str,
        offset: u64,
        arg: &Arg<'_>,
        path: &Path<'_>,
    ) -> Result<()> {
        if let Arg::Scalar(scalar) = arg
            && scalar.scalar_type().name() == element
            && let Some(part) = self.part(scalar.scalar_type().size(), offset)
        {
            scalar.put(part);
            return Ok(());
        }
        self.put(&Type::Scalar(element.into()), offset, arg, path)
    }

    /// The `size` bytes at `offset`. They always exist for a kernel of an [`crate::Artifact`], but not necessarily
    /// for one built by hand.
    fn part(&mut self, size: u64, offset: u64) -> Option<&mut [u8]> {
        let end = offset.checked_add(size)?;
        self.bytes.get_mut(usize::try_from(offset).ok()?..usize::try_from(end).ok()?)
    }

    /// The bytes of a value of type `ty` at `offset`.
    fn bytes_at(
        &mut self,
        ty: &Type,
        offset: u64,
        arg: &Arg<'_>,
        path: &Path<'_>,
    ) -> Result<&mut [u8]> {
        let size = extent(ty, self.structs).map_or(u64::MAX, |extent| extent.size);
        if self.part(size, offset).is_none() {
            return Err(self.mismatch(ty, arg, path));
        }
        Ok(&mut self.bytes[offset as usize..(offset + size) as usize])
    }

    fn mismatch(&self, ty: &Type, arg: &Arg<'_>, path: &Path<'_>) -> Error {
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
            parameter: path.to_string(),
            expected,
            given: arg.describe(),
        }
    }
}

#[cfg(test)]
mod tests;
