//! Host types whose bytes a device can read.

use std::{mem::size_of_val, slice};

use gridlet_artifact::ScalarType;

use super::Element;

/// A host type whose bytes mean the same on the device.
///
/// # Safety
/// Every bit pattern must be a value of the type, it must have no padding ([`crate::typed`] explains how structs
/// avoid it), and its layout must match the device type that [`DeviceCopy::ELEMENT`] names (for structs:
/// `#[repr(C)]`, with explicit fields in place of padding).
pub unsafe trait DeviceCopy: Copy + Send + Sync + 'static {
    /// The corresponding device type.
    const ELEMENT: Element;
}

macro_rules! scalar_device_copy {
    ($($ty:ty => $scalar:ident),*) => { $(
        // SAFETY: a plain number, with the same size and byte order on the device.
        unsafe impl DeviceCopy for $ty {
            const ELEMENT: Element = Element::Scalar(ScalarType::$scalar);
        }
    )* };
}
scalar_device_copy!(i8 => I8, i16 => I16, i32 => I32, i64 => I64, u8 => U8, u16 => U16, u32 => U32, u64 => U64,
    f32 => F32, f64 => F64);

// SAFETY: consecutive elements, as on the device; each satisfies `DeviceCopy`.
unsafe impl<T: DeviceCopy, const N: usize> DeviceCopy for [T; N] {
    const ELEMENT: Element = Element::Array(&T::ELEMENT, N);
}

/// The bytes of values.
pub(crate) fn bytes_of<T: DeviceCopy>(values: &[T]) -> &[u8] {
    // SAFETY: `DeviceCopy` guarantees that there is no padding, so every byte is initialized.
    unsafe { slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}

/// The bytes of values, writable.
pub(crate) fn bytes_of_mut<T: DeviceCopy>(values: &mut [T]) -> &mut [u8] {
    // SAFETY: as above, and every bit pattern is a value.
    unsafe { slice::from_raw_parts_mut(values.as_mut_ptr().cast(), size_of_val(values)) }
}
