//! Devices and their attributes (driver API, Device Management). These calls need no context.

use std::ffi::{CStr, c_char, c_int};

use super::sys::{CUdevice, CUdevice_attribute, CUuuid};
use super::{Driver, Failed, calls};

impl Driver {
    /// `cuDeviceGetCount`.
    pub(crate) fn device_count(&self) -> Result<u32, Failed> {
        let mut count: c_int = 0;
        // SAFETY: `self` proves that `cuInit` ran; the pointer is to a live integer.
        unsafe { calls::cuDeviceGetCount(&mut count) }?;
        Ok(count.max(0).unsigned_abs())
    }

    /// `cuDeviceGet`: the handle of the device with this ordinal.
    pub(crate) fn device(&self, ordinal: u32) -> Result<CUdevice, Failed> {
        let mut device: CUdevice = 0;
        let ordinal = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
        // SAFETY: `self` proves that `cuInit` ran; the pointer is to a live integer.
        unsafe { calls::cuDeviceGet(&mut device, ordinal) }?;
        Ok(device)
    }
}

/// `cuDeviceGetName`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn name(device: CUdevice) -> Result<String, Failed> {
    let mut bytes = [0u8; 256];
    // SAFETY: passed on to the caller; the buffer has the length passed.
    unsafe {
        calls::cuDeviceGetName(bytes.as_mut_ptr().cast::<c_char>(), bytes.len() as c_int, device)
    }?;
    Ok(CStr::from_bytes_until_nul(&bytes).unwrap_or_default().to_string_lossy().into_owned())
}

/// `cuDeviceGetUuid_v2`, in the usual notation.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn uuid(device: CUdevice) -> Result<String, Failed> {
    let mut uuid = CUuuid { bytes: [0; 16] };
    // SAFETY: passed on to the caller; the pointer is to a live value.
    unsafe { calls::cuDeviceGetUuid_v2(&mut uuid, device) }?;
    let mut text = String::from("GPU-");
    for (index, byte) in uuid.bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{:02x}", *byte as u8));
    }
    Ok(text)
}

/// `cuDeviceTotalMem`, in bytes.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn total_memory(device: CUdevice) -> Result<u64, Failed> {
    let mut bytes = 0usize;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe { calls::cuDeviceTotalMem_v2(&mut bytes, device) }?;
    Ok(bytes as u64)
}

/// `cuDeviceGetAttribute`.
///
/// # Safety
/// The contract of [`super`].
pub(crate) unsafe fn attribute(
    device: CUdevice,
    attribute: CUdevice_attribute,
) -> Result<u32, Failed> {
    let mut value: c_int = 0;
    // SAFETY: passed on to the caller; the pointer is to a live integer.
    unsafe { calls::cuDeviceGetAttribute(&mut value, attribute, device) }?;
    Ok(value.max(0).unsigned_abs())
}
