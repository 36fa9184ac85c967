//! DLPack, the protocol by which array libraries lend each other memory: <https://dmlc.github.io/dlpack>.

use std::ffi::{CStr, c_void};

use gridlet_runtime::ScalarType;
use pyo3::exceptions::{PyBufferError, PyTypeError};
use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// `kDLCPU`
pub(crate) const CPU: i32 = 1;
/// `kDLCUDA`
pub(crate) const CUDA: i32 = 2;
/// `kDLCUDAHost`: page-locked host memory.
pub(crate) const CUDA_HOST: i32 = 3;
/// `kDLCUDAManaged`
pub(crate) const CUDA_MANAGED: i32 = 13;

/// The version of the structures below.
const VERSION: (u32, u32) = (1, 0);
/// `DLPACK_FLAG_BITMASK_READ_ONLY`
const READ_ONLY: u64 = 1;

const PLAIN: &CStr = c"dltensor";
const PLAIN_USED: &CStr = c"used_dltensor";
const VERSIONED: &CStr = c"dltensor_versioned";
const VERSIONED_USED: &CStr = c"used_dltensor_versioned";

/// `DLTensor`
#[repr(C)]
struct Tensor {
    data: *mut c_void,
    device_type: i32,
    device_id: i32,
    dimensions: i32,
    code: u8,
    bits: u8,
    lanes: u16,
    shape: *mut i64,
    strides: *mut i64,
    byte_offset: u64,
}

/// `DLManagedTensor`
#[repr(C)]
struct Managed {
    tensor: Tensor,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut Managed)>,
}

/// `DLManagedTensorVersioned`
#[repr(C)]
struct ManagedVersioned {
    major: u32,
    minor: u32,
    context: *mut c_void,
    deleter: Option<unsafe extern "C" fn(*mut ManagedVersioned)>,
    flags: u64,
    tensor: Tensor,
}

/// `DLDataTypeCode` and bits of a type.
fn code(scalar: ScalarType) -> (u8, u8) {
    let bits = (scalar.size() * 8) as u8;
    match scalar {
        ScalarType::I8 | ScalarType::I16 | ScalarType::I32 | ScalarType::I64 => (0, bits),
        ScalarType::U8 | ScalarType::U16 | ScalarType::U32 | ScalarType::U64 => (1, bits),
        ScalarType::F16 | ScalarType::F32 | ScalarType::F64 => (2, bits),
        ScalarType::Bf16 => (4, bits),
        ScalarType::Bool => (6, bits),
    }
}

/// Memory to lend, with the object that keeps it alive.
pub(crate) struct Lent {
    pub(crate) address: u64,
    pub(crate) scalar: ScalarType,
    pub(crate) shape: Vec<i64>,
    /// `CPU` or `CUDA`, and the ordinal.
    pub(crate) device: (i32, i32),
    pub(crate) read_only: bool,
    pub(crate) owner: Py<PyAny>,
}

/// What lives while another library holds the memory.
struct Loan {
    shape: Vec<i64>,
    strides: Vec<i64>,
    #[expect(dead_code, reason = "held for its drop")]
    owner: Py<PyAny>,
}

/// Makes a capsule, in the newest form that the consumer knows.
pub(crate) fn lend<'py>(
    py: Python<'py>,
    lent: Lent,
    newest: Option<(u32, u32)>,
) -> PyResult<Bound<'py, PyAny>> {
    let mut strides = vec![1; lent.shape.len()];
    for at in (1..lent.shape.len()).rev() {
        strides[at - 1] = strides[at] * lent.shape[at].max(1);
    }
    let (code, bits) = code(lent.scalar);
    let mut loan = Box::new(Loan { shape: lent.shape, strides, owner: lent.owner });
    let tensor = Tensor {
        data: lent.address as *mut c_void,
        device_type: lent.device.0,
        device_id: lent.device.1,
        dimensions: loan.shape.len() as i32,
        code,
        bits,
        lanes: 1,
        shape: loan.shape.as_mut_ptr(),
        strides: loan.strides.as_mut_ptr(),
        byte_offset: 0,
    };
    let context: *mut c_void = Box::into_raw(loan).cast();
    let versioned = newest.is_some_and(|newest| newest.0 >= VERSION.0);
    if !versioned && lent.read_only {
        // SAFETY: made by `into_raw` above and given to nobody.
        drop(unsafe { Box::from_raw(context.cast::<Loan>()) });
        let why = "the array is read-only, which the consumer's version of DLPack cannot express";
        return Err(PyBufferError::new_err(why));
    }
    // SAFETY: the pointer is to a structure of the named kind, which the destructor frees unless a consumer took it.
    unsafe {
        let capsule = if versioned {
            let flags = if lent.read_only { READ_ONLY } else { 0 };
            let deleter = Some(delete_versioned as unsafe extern "C" fn(_));
            let (major, minor) = VERSION;
            let managed = ManagedVersioned { major, minor, context, deleter, flags, tensor };
            let managed = Box::into_raw(Box::new(managed)).cast();
            ffi::PyCapsule_New(managed, VERSIONED.as_ptr(), Some(end_versioned))
        } else {
            let managed = Managed { tensor, context, deleter: Some(delete_plain) };
            let managed = Box::into_raw(Box::new(managed)).cast();
            ffi::PyCapsule_New(managed, PLAIN.as_ptr(), Some(end_plain))
        };
        Bound::from_owned_ptr_or_err(py, capsule)
    }
}

unsafe extern "C" fn delete_plain(managed: *mut Managed) {
    // SAFETY: `lend` made both boxes, and the protocol calls the deleter once.
    unsafe {
        let managed = Box::from_raw(managed);
        release(managed.context);
    }
}

unsafe extern "C" fn delete_versioned(managed: *mut ManagedVersioned) {
    // SAFETY: as in `delete_plain`.
    unsafe {
        let managed = Box::from_raw(managed);
        release(managed.context);
    }
}

/// # Safety
/// The pointer must come from `lend`, and must not be used again.
unsafe fn release(context: *mut c_void) {
    // SAFETY: guaranteed by the caller. A consumer may call from any thread, so Python is attached first.
    Python::attach(|_| drop(unsafe { Box::from_raw(context.cast::<Loan>()) }));
}

unsafe extern "C" fn end_plain(capsule: *mut ffi::PyObject) {
    // SAFETY: Python calls the destructor with the capsule. A consumer that took the structure renamed the capsule.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, PLAIN.as_ptr()) == 1 {
            delete_plain(ffi::PyCapsule_GetPointer(capsule, PLAIN.as_ptr()).cast());
        }
    }
}

unsafe extern "C" fn end_versioned(capsule: *mut ffi::PyObject) {
    // SAFETY: as in `end_plain`.
    unsafe {
        if ffi::PyCapsule_IsValid(capsule, VERSIONED.as_ptr()) == 1 {
            delete_versioned(ffi::PyCapsule_GetPointer(capsule, VERSIONED.as_ptr()).cast());
        }
    }
}

/// Memory that another library lends.
pub(crate) struct Borrowed {
    pub(crate) address: u64,
    pub(crate) scalar: ScalarType,
    pub(crate) shape: Vec<u64>,
    pub(crate) read_only: bool,
    /// Gives the memory back when dropped.
    pub(crate) owner: Owner,
}

/// Calls the lender's deleter when dropped.
pub(crate) enum Owner {
    #[doc(hidden)]
    Plain(*mut c_void),
    #[doc(hidden)]
    Versioned(*mut c_void),
}

// SAFETY: the protocol lets the deleter be called from any thread.
unsafe impl Send for Owner {}
// SAFETY: nothing but the drop uses the pointer.
unsafe impl Sync for Owner {}

impl Drop for Owner {
    fn drop(&mut self) {
        // A deleter may drop Python objects. SAFETY: the capsule's structure is ours and is deleted once.
        Python::attach(|_| unsafe {
            match *self {
                Owner::Plain(managed) => {
                    let managed = managed.cast::<Managed>();
                    if let Some(delete) = (*managed).deleter {
                        delete(managed);
                    }
                }
                Owner::Versioned(managed) => {
                    let managed = managed.cast::<ManagedVersioned>();
                    if let Some(delete) = (*managed).deleter {
                        delete(managed);
                    }
                }
            }
        });
    }
}

/// The type and number of the device that holds an object's memory.
pub(crate) fn device_of(object: &Bound<'_, PyAny>) -> PyResult<(i32, i32)> {
    object.call_method0("__dlpack_device__")?.extract()
}

/// Borrows an object's memory. `stream` is the handle of the stream whose work must come after the object's.
pub(crate) fn borrow(object: &Bound<'_, PyAny>, stream: Option<u64>) -> PyResult<Borrowed> {
    let py = object.py();
    let options = PyDict::new(py);
    if let Some(stream) = stream {
        options.set_item("stream", stream)?;
    }
    options.set_item("max_version", VERSION)?;
    let capsule = match object.call_method("__dlpack__", (), Some(&options)) {
        // Libraries from before version 1 of DLPack do not know the argument.
        Err(error) if error.is_instance_of::<PyTypeError>(py) => {
            options.del_item("max_version")?;
            object.call_method("__dlpack__", (), Some(&options))?
        }
        other => other?,
    };
    // SAFETY: the protocol gives the structures behind these names, and renaming the capsule makes them ours.
    let (owner, tensor, read_only) = unsafe {
        let raw = capsule.as_ptr();
        if ffi::PyCapsule_IsValid(raw, VERSIONED.as_ptr()) == 1 {
            let managed: *mut ManagedVersioned =
                ffi::PyCapsule_GetPointer(raw, VERSIONED.as_ptr()).cast();
            if (*managed).major > VERSION.0 {
                return Err(PyBufferError::new_err("the object's version of DLPack is too new"));
            }
            ffi::PyCapsule_SetName(raw, VERSIONED_USED.as_ptr());
            let read_only = (*managed).flags & READ_ONLY != 0;
            (Owner::Versioned(managed.cast()), &raw const (*managed).tensor, read_only)
        } else if ffi::PyCapsule_IsValid(raw, PLAIN.as_ptr()) == 1 {
            let managed: *mut Managed = ffi::PyCapsule_GetPointer(raw, PLAIN.as_ptr()).cast();
            ffi::PyCapsule_SetName(raw, PLAIN_USED.as_ptr());
            (Owner::Plain(managed.cast()), &raw const (*managed).tensor, false)
        } else {
            return Err(PyTypeError::new_err("`__dlpack__` returned no DLPack capsule"));
        }
    };
    // SAFETY: the structure lives until `owner` is dropped.
    let tensor = unsafe { &*tensor };
    read(tensor, read_only, owner)
}

fn read(tensor: &Tensor, read_only: bool, owner: Owner) -> PyResult<Borrowed> {
    let dimensions = usize::try_from(tensor.dimensions).unwrap_or(0);
    let list = |pointer: *mut i64| {
        if pointer.is_null() || dimensions == 0 {
            return None;
        }
        // SAFETY: the protocol gives both lists one entry for each dimension.
        Some(unsafe { std::slice::from_raw_parts(pointer, dimensions) })
    };
    let shape = list(tensor.shape).unwrap_or_default();
    let mut expected = 1;
    let mut dense = true;
    for (length, stride) in shape.iter().zip(list(tensor.strides).unwrap_or_default()).rev() {
        dense &= *length == 1 || *stride == expected;
        expected *= length;
    }
    if !dense && !shape.contains(&0) {
        let why = "the array is not contiguous in row-major order; make a contiguous copy first";
        return Err(PyBufferError::new_err(why));
    }
    let given = (tensor.code, tensor.bits);
    let scalar = ScalarType::ALL.into_iter().find(|scalar| code(*scalar) == given);
    let Some(scalar) = scalar.filter(|_| tensor.lanes == 1) else {
        let (code, bits) = given;
        return Err(PyTypeError::new_err(format!(
            "kernels have no type like DLPack's type of code {code} with {bits} bits"
        )));
    };
    Ok(Borrowed {
        address: (tensor.data as u64).saturating_add(tensor.byte_offset),
        scalar,
        shape: shape.iter().map(|length| u64::try_from(*length).unwrap_or(0)).collect(),
        read_only,
        owner,
    })
}
