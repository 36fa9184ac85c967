//! What modules are made of that `gridlet::host` generates from a program, for hosts whose compiler checks the
//! arguments of launches.
//!
//! ```ignore
//! gridlet_runtime::include_program!("saxpy"); // what the build script made of `saxpy.grid`
//!
//! let program = Program::load(&device)?;
//! program.saxpy(&stream, &LaunchConfig::new(4, 256), 1000, 2.0, &x, &mut y)?;
//! ```
//!
//! # Types
//! Numbers are Rust's, halves are [`struct@f16`] and [`bf16`], vectors are this module's. A generated struct has the bytes of
//! the device's: its padding is fields of its own, always 0, so that none of a struct's bytes is ever uninitialised and
//! none carries old bytes of this process; and a `bool` in memory is a [`Bool`], any byte, because a kernel may write
//! any. So generated structs keep the rules of [`DeviceCopy`], and `S::new` takes only the fields that have a name.
//!
//! # Pointers
//! A `*const T` takes what is [`Readable`], a shared borrow of a buffer; a `*mut T` what is [`Writable`], an exclusive
//! one. A borrow ends with the call and the kernel runs on: dropping or copying a buffer waits for it. Memory from
//! elsewhere, or one buffer for two parameters, is passed as a [`DevicePointer`].

use std::fmt;
use std::marker::PhantomData;

pub use half::{bf16, f16};

use gridlet_artifact::{LaunchConfig, ScalarType};

use crate::arguments::{Arg, Element, Pointer};
use crate::arguments::{DeviceCopy, bytes_of};
use crate::error::{Error, Result};
use crate::handles::Kernel;
use crate::handles::Stream;
use crate::memory::Buffer;
use crate::unified::{HostBuffer, ManagedBuffer, RegisteredMemory};

mod vectors;

pub use vectors::*;

/// Includes the module that a build script generated: `include_program!("saxpy")` for `saxpy.grid`.
#[macro_export]
macro_rules! include_program {
    ($name:literal) => {
        include!(concat!(env!("OUT_DIR"), "/", $name, ".rs"));
    };
}

// SAFETY: 16 bits each, any of which are a number.
unsafe impl DeviceCopy for f16 {
    const ELEMENT: Element = Element::Scalar(ScalarType::F16);
}

// SAFETY: as above.
unsafe impl DeviceCopy for bf16 {
    const ELEMENT: Element = Element::Scalar(ScalarType::Bf16);
}

/// A `bool` in device memory: a byte, of which 0 is false and any other true.
#[derive(Clone, Copy, Default)]
#[repr(transparent)]
pub struct Bool(u8);

impl Bool {
    /// Its value.
    pub const fn get(self) -> bool {
        self.0 != 0
    }
}

// SAFETY: any byte is one.
unsafe impl DeviceCopy for Bool {
    const ELEMENT: Element = Element::Scalar(ScalarType::Bool);
}

impl From<bool> for Bool {
    fn from(value: bool) -> Bool {
        Bool(u8::from(value))
    }
}

impl From<Bool> for bool {
    fn from(value: Bool) -> bool {
        value.get()
    }
}

impl PartialEq for Bool {
    fn eq(&self, other: &Bool) -> bool {
        self.get() == other.get()
    }
}

impl Eq for Bool {}

impl fmt::Debug for Bool {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// The address of `T`s in memory that a device reaches. Nothing is known of the memory: whoever passes it answers for
/// it, as with [`Arg::address`].
#[repr(transparent)]
pub struct DevicePointer<T> {
    address: u64,
    pointee: PhantomData<fn() -> T>,
}

impl<T> DevicePointer<T> {
    /// That address.
    pub const fn new(address: u64) -> DevicePointer<T> {
        DevicePointer { address, pointee: PhantomData }
    }

    /// The null pointer.
    pub const fn null() -> DevicePointer<T> {
        DevicePointer::new(0)
    }

    /// The address.
    pub const fn address(self) -> u64 {
        self.address
    }

    /// The address so many elements further on.
    pub const fn add(self, elements: u64) -> DevicePointer<T> {
        DevicePointer::new(self.address.wrapping_add(elements.wrapping_mul(size_of::<T>() as u64)))
    }
}

// SAFETY: 8 bytes, any of which are an address.
unsafe impl<T: 'static> DeviceCopy for DevicePointer<T> {
    const ELEMENT: Element = Element::Scalar(ScalarType::U64);
}

impl<T> Clone for DevicePointer<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for DevicePointer<T> {}

impl<T> Default for DevicePointer<T> {
    fn default() -> Self {
        DevicePointer::null()
    }
}

impl<T> PartialEq for DevicePointer<T> {
    fn eq(&self, other: &Self) -> bool {
        self.address == other.address
    }
}

impl<T> Eq for DevicePointer<T> {}

impl<T> fmt::Debug for DevicePointer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DevicePointer({:#x})", self.address)
    }
}

impl<T: DeviceCopy> From<DevicePointer<T>> for Arg<'static> {
    fn from(pointer: DevicePointer<T>) -> Self {
        Arg::Pointer(Pointer::to_unknown(pointer.address, T::ELEMENT))
    }
}

impl<T: DeviceCopy> From<&Buffer<T>> for DevicePointer<T> {
    fn from(buffer: &Buffer<T>) -> Self {
        DevicePointer::new(buffer.address())
    }
}

/// Where an argument's memory is: what a launch needs to know of it.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    address: u64,
    device: Option<u32>,
}

impl Place {
    fn of(arg: Arg<'_>) -> Place {
        let (address, device) = match arg {
            Arg::Pointer(pointer) => pointer.place(),
            // Memory makes pointers only.
            _ => (0, None),
        };
        Place { address, device }
    }
}

/// Memory that a kernel reads `T`s from: what a parameter `*const T` takes.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot read `{T}` from `{Self}`",
    label = "a parameter `*const {T}` takes `&Buffer<{T}>`, or another memory of `{T}`",
    note = "as `&Buffer`, also `&ManagedBuffer`, `&HostBuffer` and `&RegisteredMemory`; `DevicePointer` for memory from elsewhere"
)]
pub trait Readable<T> {
    /// Where it is.
    fn place(self) -> Place;
}

/// Memory that a kernel reads `T`s from and writes to: what a parameter `*mut T` takes.
#[diagnostic::on_unimplemented(
    message = "a kernel cannot write `{T}` to `{Self}`",
    label = "a parameter `*mut {T}` takes `&mut Buffer<{T}>`, or another memory of `{T}`",
    note = "as `&mut Buffer`, also `&mut ManagedBuffer`, `&mut HostBuffer` and `&mut RegisteredMemory`; `DevicePointer` for memory from elsewhere"
)]
pub trait Writable<T> {
    /// Where it is.
    fn place_to_write(self) -> Place;
}

macro_rules! memory {
    ($($memory:ident),*) => { $(
        impl<T: DeviceCopy> Readable<T> for &$memory<T> {
            #[inline]
            fn place(self) -> Place {
                Place::of(Arg::from(self))
            }
        }

        impl<T: DeviceCopy> Readable<T> for &mut $memory<T> {
            #[inline]
            fn place(self) -> Place {
                Place::of(Arg::from(&*self))
            }
        }

        impl<T: DeviceCopy> Writable<T> for &mut $memory<T> {
            #[inline]
            fn place_to_write(self) -> Place {
                Place::of(Arg::from(self))
            }
        }
    )* };
}
memory!(Buffer, ManagedBuffer, HostBuffer, RegisteredMemory);

impl<T> Readable<T> for DevicePointer<T> {
    fn place(self) -> Place {
        Place { address: self.address, device: None }
    }
}

impl<T> Writable<T> for DevicePointer<T> {
    fn place_to_write(self) -> Place {
        self.place()
    }
}

/// A value with every byte 0.
pub fn zeroed<T: DeviceCopy>() -> T {
    // SAFETY: every pattern of bits is a value.
    unsafe { std::mem::zeroed() }
}

/// A launch's parameters at offsets that are known when the host is compiled. What generated methods use.
#[derive(Debug)]
#[repr(C, align(16))]
pub struct Parameters<const BYTES: usize>([u8; BYTES]);

impl<const BYTES: usize> Default for Parameters<BYTES> {
    fn default() -> Self {
        // Zero, so that padding never carries old bytes of this process.
        Parameters([0; BYTES])
    }
}

impl<const BYTES: usize> Parameters<BYTES> {
    /// None yet.
    #[inline]
    pub fn new() -> Self {
        Parameters::default()
    }

    /// Puts a value.
    #[inline]
    pub fn put<const OFFSET: usize, T: DeviceCopy>(&mut self, value: T) {
        const { assert!(OFFSET + size_of::<T>() <= BYTES) };
        self.0[OFFSET..OFFSET + size_of::<T>()]
            .copy_from_slice(bytes_of(std::slice::from_ref(&value)));
    }

    /// Puts a pointer to memory of the stream's device.
    ///
    /// # Errors
    /// [`Error::OtherDevice`].
    #[inline]
    pub fn point<const OFFSET: usize>(
        &mut self,
        stream: &Stream,
        parameter: &'static str,
        place: Place,
    ) -> Result<()> {
        let expected = stream.device_number();
        if let Some(given) = place.device.filter(|given| *given != expected) {
            let what = format!("argument `{parameter}`");
            return Err(Error::OtherDevice { what, expected, given });
        }
        self.put::<OFFSET, u64>(place.address);
        Ok(())
    }

    /// Launches the kernel with them. Allocates nothing.
    ///
    /// # Errors
    /// Those of [`Stream::launch`], but for arguments.
    ///
    /// # Safety
    /// They are what the kernel reads: of its parameters' types, at its parameters' offsets.
    #[inline]
    pub unsafe fn launch(
        mut self,
        stream: &Stream,
        kernel: &Kernel,
        config: &LaunchConfig,
    ) -> Result<()> {
        stream.check(kernel, config)?;
        // SAFETY: passed on to the caller.
        unsafe { stream.submit(kernel, config, &mut self.0) }
    }
}

#[cfg(test)]
mod tests;
