//! The host types whose bytes a device can read.

use std::{mem::size_of_val, slice};

use gridlet_artifact::ScalarType;

use super::Element;

/// A host type whose bytes mean the same on the device.
///
/// # Safety
/// Every pattern of bits is a value of the type, it has no padding ([`crate::typed`] says how structs do without), and its layout is that of the device type
/// which [`DeviceCopy::ELEMENT`] names (for structs: `#[repr(C)]`, with explicit fields in place of padding).
pub unsafe trait DeviceCopy: Copy + Send + Sync + 'static {
    /// The device's name for the type.
    const ELEMENT: Element;
}

macro_rules! scalar_device_copy {
    ($($ty:ty => $scalar:ident),*) => { $(
        // SAFETY: a plain number, of the same size and byte order on the device.
        unsafe impl DeviceCopy for $ty {
            const ELEMENT: Element = Element::Scalar(ScalarType::$scalar);
        }
    )* };
}
scalar_device_copy!(i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f32 => F32, f64 => F64);

// SAFETY: elements one after another, as on the device, each as its type promises.
unsafe impl<T: DeviceCopy, const N: usize> DeviceCopy for [T; N] {
    const ELEMENT: Element = Element::Array(&T::ELEMENT, N);
}

/// The bytes of values.
pub(crate) fn bytes_of<T: DeviceCopy>(values: &[T]) -> &[u8] {
    // SAFETY: `DeviceCopy` promises that there is no padding, so every byte is initialised.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of values, to write to.
pub(crate) fn bytes_of_mut<T: DeviceCopy>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and every pattern of bits is a value.
    unsafe { slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}
