//! The language's vectors, in the device's layouts: vectors of 2 and 4 elements align to their size, up to 16
//! bytes; vectors of 3 align to their element (CUDA C++ Programming Guide, Built-in Vector Types).

use super::{Bool, bf16, f16};
use crate::arguments::DeviceCopy;
use crate::arguments::Element;

/// Defines one vector per line: `name: element, count, alignment, [fields]`.
macro_rules! vectors {
    ($($name:ident: $element:ident, $count:literal, $alignment:literal, [$($field:ident),*];)*) => { $(
        #[doc = concat!("`", stringify!($element), "x", stringify!($count), "`")]
        #[derive(Clone, Copy, Debug, Default, PartialEq)]
        #[repr(C, align($alignment))]
        #[allow(missing_docs, reason = "x, y, z and w")]
        pub struct $name { $(pub $field: $element),* }

        // No padding, and the same alignment as on the device.
        const _: () = assert!(size_of::<$name>() == $count * size_of::<$element>());
        const _: () = assert!(align_of::<$name>() == $alignment);

        impl $name {
            /// Makes a vector from its elements.
            #[must_use]
            pub const fn new($($field: $element),*) -> Self {
                $name { $($field),* }
            }
        }

        // SAFETY: consecutive elements without padding, and every bit pattern of an element is a value.
        unsafe impl DeviceCopy for $name {
            const ELEMENT: Element = Element::Array(&<$element>::ELEMENT, $count);
        }

        impl From<[$element; $count]> for $name {
            fn from([$($field),*]: [$element; $count]) -> Self {
                $name { $($field),* }
            }
        }

        impl From<$name> for [$element; $count] {
            fn from(vector: $name) -> Self {
                [$(vector.$field),*]
            }
        }
    )* };
}
vectors! {
    Boolx2: Bool, 2, 2, [x, y];
    Boolx3: Bool, 3, 1, [x, y, z];
    Boolx4: Bool, 4, 4, [x, y, z, w];
    I8x2: i8, 2, 2, [x, y];
    I8x3: i8, 3, 1, [x, y, z];
    I8x4: i8, 4, 4, [x, y, z, w];
    I16x2: i16, 2, 4, [x, y];
    I16x3: i16, 3, 2, [x, y, z];
    I16x4: i16, 4, 8, [x, y, z, w];
    I32x2: i32, 2, 8, [x, y];
    I32x3: i32, 3, 4, [x, y, z];
    I32x4: i32, 4, 16, [x, y, z, w];
    I64x2: i64, 2, 16, [x, y];
    I64x3: i64, 3, 8, [x, y, z];
    I64x4: i64, 4, 16, [x, y, z, w];
    U8x2: u8, 2, 2, [x, y];
    U8x3: u8, 3, 1, [x, y, z];
    U8x4: u8, 4, 4, [x, y, z, w];
    U16x2: u16, 2, 4, [x, y];
    U16x3: u16, 3, 2, [x, y, z];
    U16x4: u16, 4, 8, [x, y, z, w];
    U32x2: u32, 2, 8, [x, y];
    U32x3: u32, 3, 4, [x, y, z];
    U32x4: u32, 4, 16, [x, y, z, w];
    U64x2: u64, 2, 16, [x, y];
    U64x3: u64, 3, 8, [x, y, z];
    U64x4: u64, 4, 16, [x, y, z, w];
    F16x2: f16, 2, 4, [x, y];
    F16x3: f16, 3, 2, [x, y, z];
    F16x4: f16, 4, 8, [x, y, z, w];
    Bf16x2: bf16, 2, 4, [x, y];
    Bf16x3: bf16, 3, 2, [x, y, z];
    Bf16x4: bf16, 4, 8, [x, y, z, w];
    F32x2: f32, 2, 8, [x, y];
    F32x3: f32, 3, 4, [x, y, z];
    F32x4: f32, 4, 16, [x, y, z, w];
    F64x2: f64, 2, 16, [x, y];
    F64x3: f64, 3, 8, [x, y, z];
    F64x4: f64, 4, 16, [x, y, z, w];
}
